/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Whether the kernel can attach, for those who may not make a network namespace to
 * try it in: requests that it understands and then has to refuse. They change
 * nothing. 0, or why not.
 */
#ifndef NETOBS_ATTACH_PROBE_ATTACH_H
#define NETOBS_ATTACH_PROBE_ATTACH_H

int probe_attach_tcx(int program_fd);
/* A qdisc at the place of clsact; @kind has up to 7 characters. */
int probe_attach_qdisc(const char *kind);

#endif
