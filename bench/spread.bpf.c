// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Turns the one packet of BPF_PROG_TEST_RUN into one of many flows, then runs
 * the program that is measured. Flow numbers come from a sequence that user
 * space has made and that is read from front to back, so they cost the same
 * whatever their distribution and the design that is measured.
 */
#define BPF_NO_PRESERVE_ACCESS_INDEX
#include "vmlinux.h"

#include "shared.h"
#include "talk.h"
#include "bpf/parse/headers.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { VERDICT_NEXT = -1 };

/* User space sets the sizes, and maps them. */
#define MAPPED_ARRAY(name, element)                \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);  \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, 1);            \
		__type(key, __u32);                \
		__type(value, struct element);     \
	} name SEC(".maps")

MAPPED_ARRAY(sequence, number_line);
MAPPED_ARRAY(cursors, cursor_state);
MAPPED_ARRAY(sent,
	     number_line); /* of conversations: how many segments each client has sent */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} measured SEC(".maps");

static __always_inline const __u32 *next_number(struct cursor_state *cursor)
{
	__u32 index = cursor->first + (cursor->position++ & cursor->mask);
	__u32 n = index / LINE_NUMBERS;
	const struct number_line *line = bpf_map_lookup_elem(&sequence, &n);

	return line ? &line->numbers[index % LINE_NUMBERS] : NULL;
}

/* The number is the source address, or the end of it. */
static __always_inline void set_source(struct __sk_buff *skb, __u32 flow)
{
	const struct ether_wire *eth = (void *)(long)skb->data;
	struct ipv4_wire *ipv4 = (void *)(eth + 1);
	struct ipv6_wire *ipv6 = (void *)(eth + 1);
	const void *end = (void *)(long)skb->data_end;

	if (skb->protocol == bpf_htons(ETHERTYPE_IPV4)) {
		if ((void *)(ipv4 + 1) <= end)
			ipv4->src = flow;
	} else if ((void *)(ipv6 + 1) <= end) {
		__builtin_memcpy(&ipv6->src[12], &flow, sizeof(flow));
	}
}

static __always_inline void write_talk(struct __sk_buff *skb, __u32 flow)
{
	__u8 *frame = (void *)(long)skb->data;
	__u32 n = flow / 2 / LINE_NUMBERS;
	struct number_line *line = bpf_map_lookup_elem(&sent, &n);

	if (line && frame + TALK_REACH <= (__u8 *)(long)skb->data_end)
		talk_write(frame, skb->protocol == bpf_htons(ETHERTYPE_IPV6),
			   flow, &line->numbers[flow / 2 % LINE_NUMBERS]);
}

SEC("tc")
int spread(struct __sk_buff *skb)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct cursor_state *cursor = bpf_map_lookup_elem(&cursors, &cpu);
	const __u32 *number = cursor ? next_number(cursor) : NULL;
	__u32 flow;

	if (!number)
		return VERDICT_NEXT;
	flow = *number;
	if (cursor->share)
		flow = cursor->base + flow % cursor->share;
	if (cursor->is_talk)
		write_talk(skb, flow);
	else
		set_source(skb, flow);
	bpf_tail_call(skb, &measured, 0);
	return VERDICT_NEXT;
}

SEC("tc")
int empty(struct __sk_buff *skb)
{
	return VERDICT_NEXT;
}

/* Another one that does nothing: what differs between the two is noise. */
SEC("tc")
int empty2(struct __sk_buff *skb)
{
	return VERDICT_NEXT;
}
