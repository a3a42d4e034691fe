/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The decision whether a packet is observed. Programs that are loaded with a filter call judge();
 * its code is generated (src/lib/filter/filter.h), and may call find_carried().
 */
#ifndef NETOBS_BPF_JUDGE_H
#define NETOBS_BPF_JUDGE_H

#include "bpf/parse/parse.h"
#include <bpf/bpf_helpers.h>

const volatile __u8 config_link = LINK_ETHERNET;
const volatile __u8 config_is_filtered = 0; /* judge() decides */
const volatile struct tunnel_ports config_tunnels = {
	.vxlan = { 4789, 8472 }, /* IANA; Linux' old default */
	.geneve = 6081,
	.gtpu = 2152,
};

/* Use the knobs by their address, so that they are read at run time. */
static __always_inline const struct tunnel_ports *tunnels(void)
{
	const struct tunnel_ports *ports = (const void *)&config_tunnels;

	asm volatile("" : "+r"(ports));
	return ports;
}

static __always_inline struct cursor cursor_of(const struct __sk_buff *skb)
{
	return (struct cursor){
		.start = (void *)(long)skb->data,
		.pos = (void *)(long)skb->data,
		.end = (void *)(long)skb->data_end,
	};
}

/* Pull the first @len bytes, as far as they exist, if they are not in the linear part. */
static __always_inline void pull_bytes(struct __sk_buff *skb, __u32 len)
{
	if (len > skb->len)
		len = skb->len;
	if (skb->data_end - skb->data < len)
		bpf_skb_pull_data(skb, len);
}

/*
 * For filters with "inner": find the packet that a tunnel carries, and pull @reach bytes of it. See
 * types.h for the result. The verifier does not know its range: two loads of a field may differ.
 */
static __attribute__((noinline)) __u64 find_carried(struct __sk_buff *skb,
						    __u32 reach)
{
	const volatile __u32 *len = &skb->len;
	__u64 unknown_zero = *len ^ *len, found = 0;
	struct carried carried;
	struct packet pkt = { 0 };
	struct cursor c;

	pull_bytes(skb, CURSOR_REACH);
	c = cursor_of(skb);
	if (!parse_carried(&c, &pkt, config_link, tunnels(), &carried)) {
		pull_bytes(skb, carried.offset + reach);
		found = (__u64)carried.end << 32 | carried.offset |
			(carried.link == LINK_ETHERNET ? CARRIED_ETHERNET :
							 CARRIED_IP);
	}
	return found ^ unknown_zero ^ unknown_zero << 32;
}

/*
 * See types.h for the result. The call may pull the packet, so pointers into it are not valid
 * afterwards. This version rejects all packets: programs with it are loaded only to be copied, and
 * cost the verifier less. It calls every function that the generated one may call.
 */
static __attribute__((noinline)) __u32 judge(struct __sk_buff *skb)
{
	__u64 judgement = config_is_filtered ? 0 : find_carried(skb, 0);

	/* The compiler must not know the result. */
	asm volatile("%0 = 0" : "=r"(judgement) : "r"(skb), "r"(judgement));
	return judgement;
}

#endif
