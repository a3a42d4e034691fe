/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Tables that outlive the process: the next process delivers what is in them, after a clean end and
 * after a kill. Packets that a killed process had drained and not noted count as lost.
 */
#ifndef NETOBS_FLOWS_PIPELINE_RESTART_H
#define NETOBS_FLOWS_PIPELINE_RESTART_H

#include "pipeline_state.h"

/*
 * Begin with a drain of the generation that the earlier process was not writing to, in case it
 * was killed in the middle of one.
 */
void pipeline_adopt(struct pipeline *pipeline);

/*
 * At the end of a drain, once its records have been delivered: note that for the next process. If
 * this one is killed before, all packets that it has drained count as lost; if it is killed
 * later, none of them does.
 */
void pipeline_note(struct pipeline *pipeline);

/* Leave packets that are counted after the next drain to the next process. */
void pipeline_leave(struct pipeline *pipeline);

#endif
