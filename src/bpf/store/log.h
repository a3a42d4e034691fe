/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The log of a CPU: a ring of slots, written in order by the CPU's programs and read in
 * order by user space. Positions count slots and never wrap. The log's head is stored
 * after the slots before it; on processors that reorder stores, user space reads only
 * records that were published a moment before. So a record costs neither a lock nor an atomic
 * operation.
 *
 * Pure: the same header builds for the host, where it is tested against a model.
 */
#ifndef NETOBS_BPF_STORE_LOG_H
#define NETOBS_BPF_STORE_LOG_H

#include "bpf/parse/packet.h"
#include "bpf/parse/wire.h"
#include "hash.h"

/* User space is woken each time that so much of a log has been written. */
enum { LOG_WAKE_SHARE = 4 };

/*
 * @return whether @n slots are free. The reader's position, on a cache line of its own, is read
 * when the slots that were free last time are used up.
 */
static __always_inline bool log_has_room(struct cpu_state *cpu, __u32 n,
					 __u32 n_slots)
{
	if (cpu->log_head + n <= cpu->log_limit)
		return true;
	cpu->log_limit = READ_ONCE(cpu->log_tail) + n_slots;
	return cpu->log_head + n <= cpu->log_limit;
}

/* Publish @n more slots. True: wake user space. */
static __always_inline bool log_publish(struct cpu_state *cpu, __u32 n,
					__u32 n_slots)
{
	__u64 before = cpu->log_head, after = before + n;

	asm volatile("" ::: "memory");
	WRITE_ONCE(cpu->log_head, after);
	return (before ^ after) & ~(__u64)(n_slots / LOG_WAKE_SHARE - 1);
}

static __always_inline __u64 log_generation_flag(__u32 generation)
{
	return generation ? LOG_GENERATION : 0;
}

/* @return whether a packet fits into one slot */
static __always_inline bool is_log_short(const struct packet *pkt,
					 const struct wire_size *size)
{
	return !(pkt->key.flags & KEY_IPV6) && !pkt->key.tunnel &&
	       size->packets <= 0xffff &&
	       !((size->bytes | size->l2_bytes) >> 32);
}

/* The addresses of an Ethernet header, as a slot stores them. */
struct log_macs {
	__u64 low; /* four bytes */
	__u64 high;
};

/* Writes whole words. @flags: LOG_GENERATION, LOG_HAS_MAC. */
static __always_inline void
log_write_packet(struct log_slot *slot, const struct packet *pkt,
		 const struct wire_size *size, const struct log_macs *macs,
		 __u64 hash, __u64 time_ns, __u64 flags)
{
	const __u64 *lanes = (const __u64 *)&pkt->key;

	slot->words[0] = lanes[1] >> 32 | (lanes[3] & ~0xffffffffULL);
	slot->time_ns = time_ns;
	slot->words[2] = (__u32)size->bytes | size->l2_bytes << 32;
	slot->words[3] = pkt->attrs.marks | (hash >> 32) << 32;
	slot->key_ports = lanes[4];
	slot->key_rest = lanes[5] | flags;
	slot->words[6] = (__u16)size->packets | (__u64)pkt->attrs.dscp << 16 |
			 (__u64)pkt->attrs.ttl_min << 24 | macs->low << 32;
	slot->words[7] = macs->high;
}

/* Write an entry to two slots, which need not be adjacent. */
static __always_inline void log_write_entry(struct log_slot *first,
					    struct log_slot *second,
					    const struct flow_entry *entry,
					    __u32 generation)
{
	__builtin_memcpy(first, entry, sizeof(*first));
	__builtin_memcpy(second, &entry->tally, sizeof(*second));
	first->key_rest |= LOG_LONG | log_generation_flag(generation);
}

static __always_inline bool is_log_long(const struct log_slot *slot)
{
	return slot->key_rest & LOG_LONG;
}

/* Read the key of the record at @slot. */
static __always_inline void log_read_key(const struct log_slot *slot,
					 struct flow_key *ret_key)
{
	__u64 *lanes = (__u64 *)ret_key;

	if (is_log_long(slot)) {
		__builtin_memcpy(ret_key, slot, sizeof(*ret_key));
	} else {
		lanes[0] = 0;
		lanes[1] = (__u64)slot->src << 32 | 0xffff0000;
		lanes[2] = 0;
		lanes[3] = (__u64)slot->dst << 32 | 0xffff0000;
		lanes[4] = slot->key_ports;
		lanes[5] = slot->key_rest;
		lanes[6] = 0;
	}
	lanes[5] &= ~LOG_FLAGS;
}

/* Read the part of a record of one slot that is added to a flow. */
static __always_inline void log_read_tally(const struct log_slot *slot,
					   struct flow_tally *ret_tally)
{
	*ret_tally = (struct flow_tally){
		.packets = slot->packets,
		.bytes = slot->bytes,
		.l2_bytes = slot->l2_bytes,
		.first_ns = slot->time_ns,
		.last_ns = slot->time_ns,
		.attrs = {
			.marks = slot->marks,
			.dscp = slot->dscp,
			.ttl_min = slot->ttl,
			.ttl_max = slot->ttl,
			.has_mac = (slot->key_rest & LOG_HAS_MAC) != 0,
		},
	};
	__builtin_memcpy(ret_tally->macs, slot->macs, sizeof(slot->macs));
}

/* Read the record at @slot as an entry. @return the number of its slots */
static __always_inline __u32 log_read(const struct log_slot *slot,
				      struct flow_entry *ret_entry)
{
	log_read_key(slot, &ret_entry->key);
	if (is_log_long(slot)) {
		const struct flow_entry *entry = (const struct flow_entry *)slot;

		ret_entry->outer_src_port = entry->outer_src_port;
		ret_entry->outer_dst_port = entry->outer_dst_port;
		ret_entry->outer_check = entry->outer_check;
		ret_entry->tally = entry->tally;
		return 2;
	}
	ret_entry->outer_src_port = 0;
	ret_entry->outer_dst_port = 0;
	ret_entry->outer_check = 0;
	log_read_tally(slot, &ret_entry->tally);
	return 1;
}

/* @return the generation of a record */
static __always_inline __u32 log_generation(const struct log_slot *slot)
{
	return (slot->key_rest & LOG_GENERATION) != 0;
}

#endif
