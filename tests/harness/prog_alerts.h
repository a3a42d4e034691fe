/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Rules about connections in the flow programs, and what these report. */
#ifndef HARNESS_PROG_ALERTS_H
#define HARNESS_PROG_ALERTS_H

#include "prog.h"

/* Forget rules, their counts and their silences. */
int prog_reset_alerts(struct prog *prog);

/* Read the alerts that there are: prog.on_alert. */
void prog_read_alerts(struct prog *prog);

/* What rules have counted on all CPUs, by slot. */
struct alert_count prog_alert_count(const struct prog *prog, __u32 slot);

/* For prog.c: 0 or a negated errno. The programs are not loaded yet. */
int prog_size_alerts(struct prog *prog);

/* They are. */
int prog_open_alerts(struct prog *prog);
void prog_close_alerts(struct prog *prog);

#endif
