/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Finds the conversation of a connection that a socket or a rule about connections names. Pending
 * reports of programs are read first. If several conversations are possible, or a report may still be
 * unread, there is none.
 */
#ifndef NETOBS_FLOWS_CONVERSATION_SEARCH_H
#define NETOBS_FLOWS_CONVERSATION_SEARCH_H

#include <stdint.h>

struct flow_entry;
struct translations;

/*
 * Find the conversation of a connection at an interface. @entry: one of its tuples, interface, time
 *
 * @param ret_id  as flows have it; 0: it is not known
 * @return 0; -EAGAIN: reports about it wait for the end of a drain
 */
int conversation_at(struct translations *translations,
		    const struct flow_entry *entry, uint64_t *ret_id);

/*
 * Find the conversation of a socket's connection. @entry has the tuple as the socket sends it,
 * and the time; its interface is not used.
 *
 * @inode  inode of the socket's namespace, which need not be followed
 * @pid    of a process there; 0: none is known
 * @return 0; -ENOENT: it is not known; -EAGAIN: as conversation_at()
 */
int conversation_of_socket(struct translations *translations,
			   const struct flow_entry *entry, uint32_t inode,
			   uint32_t pid, uint64_t *ret_id);

#endif
