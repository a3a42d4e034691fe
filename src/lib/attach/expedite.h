/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Linux waits for a grace period of RCU, 13 to 15 ms, for each tcx link that comes
 * or goes, and holds the lock of the network configuration meanwhile
 * (kernel/bpf/tcx.c, tcx_link_attach, tcx_uninstall), so that threads do not help: 1,000
 * interfaces would take half a minute, to be removed as well. While links change, the kernel is
 * asked to expedite grace periods (/sys/kernel/rcu_expedited): then a link takes 40 us. The
 * value written is a mark of netobs, which a later run of netobs takes back should
 * this one be killed in between; a value of the administrator's is left alone.
 */
#ifndef NETOBS_ATTACH_EXPEDITE_H
#define NETOBS_ATTACH_EXPEDITE_H

/* @return 0: grace periods can be expedited; -errno: they cannot */
int expedite_probe(void);

/* Ask for expedited grace periods, or renew the request. */
void expedite_begin(void);

/* Withdraw the request, whichever run of netobs made it. */
void expedite_end(void);

#endif
