/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the parts of a line_out have in common. */
#ifndef NETOBS_SINKS_JSON_LINE_PART_H
#define NETOBS_SINKS_JSON_LINE_PART_H

#include "line_out.h"

/* What epoll refuses is never waited for: files, and what looks like them. */
void line_out_watch(struct line_out *out);
void line_out_close_target(struct line_out *out);

/* Whether it would succeed now: 0, or -errno. */
void line_out_note(struct line_out *out, int err);

/* Whether it has a reader, that may go away, and that may leave something. */
bool line_reader_is_used(const struct line_out *out);

bool line_reader_has_hung_up(const struct line_out *out);

/* Its reader is gone: the next one gets what it had not taken. */
void line_reader_lose(struct line_out *out, int err);

/* As line_out_prepare(). */
enum peer_state line_reader_prepare(struct line_out *out);

#endif
