/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Tables that outlive the process: a process notes how far its drains have come, and the next
 * one goes on from there.
 */
#ifndef NETOBS_FLOWS_PIPELINE_RESTART_H
#define NETOBS_FLOWS_PIPELINE_RESTART_H

#include "pipeline_state.h"

/*
 * Have the fold outlive the process if the tables do, and go on with what an earlier one has
 * left of it; before the logs are read. @return 0, or -errno
 */
int pipeline_keep(struct pipeline *pipeline);
void pipeline_close_kept(struct pipeline *pipeline);

/*
 * Begin with a drain of the generation that the earlier process was not writing to, in case it
 * was killed in the middle of one.
 */
void pipeline_adopt(struct pipeline *pipeline);

/* A drain that was exact so far takes effect. */
void pipeline_commit(struct pipeline *pipeline);

/* Before reading: packets that the process has read are lost if it is killed. */
void pipeline_note_reading(const struct pipeline *pipeline);

/* After each step: note how many packets are lost if the process is killed. */
void pipeline_note_unreported(const struct pipeline *pipeline);

/* Leave packets that are counted after the next drain to the next process. */
void pipeline_leave(struct pipeline *pipeline);

#endif
