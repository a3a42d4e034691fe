// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Packets, whole or up to a length, for user space. */
#define BPF_NO_PRESERVE_ACCESS_INDEX /* as in flows.bpf.c */
#include "vmlinux.h"

#include "bpf/capture.h"
#include "bpf/judge.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* As TC_ACT_UNSPEC for a clsact filter: the next filter decides. */
enum { VERDICT_NEXT = -1 };

const volatile __u16 config_netns = 0; /* index, for user space */
const volatile __u8 config_link = LINK_ETHERNET;
const volatile __u8 config_is_filtered = 0; /* judge() decides */
const volatile __u32 config_snap = CAPTURE_SNAP_MAX;
const volatile __u32 config_wake = 0; /* bytes in the ring buffer that wake */
/* At most so many packets in each window; 0: any number. */
const volatile __u64 config_window_packets = 0;
const volatile __u64 config_window_ns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* user space sets it */
} packets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct capture_interface_key);
	__type(value, struct capture_counters);
} counters SEC(".maps");

/* Packets of interfaces that the kernel had no memory to count: all are lost. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} uncounted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct capture_window);
} window SEC(".maps");

static __always_inline struct capture_counters *
find_counters(const struct __sk_buff *skb)
{
	const struct capture_interface_key key = { skb->ifindex, config_netns };
	const struct capture_counters none = { 0 };
	struct capture_counters *found = bpf_map_lookup_elem(&counters, &key);

	if (found)
		return found;
	bpf_map_update_elem(&counters, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&counters, &key);
}

static __always_inline void count_uncounted(void)
{
	__u64 *count = bpf_map_lookup_elem(&uncounted, &(__u32){ 0 });

	if (count)
		__sync_fetch_and_add(count, 1);
}

/* CPUs that come at the same moment may exceed the limit by a packet each. */
static __always_inline bool is_limited(struct capture_window *current, __u64 now)
{
	if (!config_window_packets)
		return false;
	/* Another CPU may have begun one after @now. */
	if ((__s64)(now - current->start_ns) >= (__s64)config_window_ns) {
		current->start_ns = now;
		current->packets = 0;
	}
	if (current->packets >= config_window_packets)
		return true;
	__sync_fetch_and_add(&current->packets, 1);
	return false;
}

/*
 * The first packet in an empty ring buffer wakes user space, which waits a little for
 * more, and the one that fills it up to the mark.
 */
static __always_inline __u64 wake_flags(__u32 size)
{
	__u64 used = bpf_ringbuf_query(&packets, BPF_RB_AVAIL_DATA);

	return !used || (used < config_wake && used + size >= config_wake) ?
		       BPF_RB_FORCE_WAKEUP :
		       BPF_RB_NO_WAKEUP;
}

static __always_inline bool put(struct __sk_buff *skb,
				const struct capture_packet *packet,
				const __u32 room)
{
	const __u32 size = sizeof(*packet) + room;
	__u64 flags = wake_flags(size);
	struct capture_packet *slot = bpf_ringbuf_reserve(&packets, size, 0);
	__u64 len = packet->captured, least = 1;

	if (!slot)
		return false;
	*slot = *packet;
	/*
	 * COMPAT(<5.11): the verifier wants both bounds of this very register, and learns
	 * nothing from a comparison for equality, which the compiler would make.
	 */
	asm volatile("" : "+r"(len), "+r"(least));
	if (len < least || len > room ||
	    bpf_skb_load_bytes(skb, 0, slot + 1, len)) {
		bpf_ringbuf_discard(slot, flags);
		return false;
	}
	bpf_ringbuf_submit(slot, flags);
	return true;
}

/* COMPAT(<5.19): without dynptr, the kernel wants to know sizes when it loads. */
static __always_inline bool put_sized(struct __sk_buff *skb,
				      const struct capture_packet *packet)
{
	__u32 len = packet->captured;

	if (len <= 96)
		return put(skb, packet, 96);
	if (len <= 224)
		return put(skb, packet, 224);
	if (len <= 480)
		return put(skb, packet, 480);
	if (len <= 992)
		return put(skb, packet, 992);
	if (len <= 1536) /* a full Ethernet frame */
		return put(skb, packet, 1536);
	if (len <= 3072)
		return put(skb, packet, 3072);
	if (len <= 9216)
		return put(skb, packet, 9216);
	if (len <= 18432)
		return put(skb, packet, 18432);
	if (len <= 36864)
		return put(skb, packet, 36864);
	if (len <= 66560) /* what GSO and GRO make */
		return put(skb, packet, 66560);
	return put(skb, packet, CAPTURE_SNAP_MAX);
}

static __always_inline int capture_packet(struct __sk_buff *skb,
					  struct capture_window *current,
					  __u8 direction)
{
	struct capture_counters *count = find_counters(skb);
	struct capture_packet packet = {
		.time_ns = bpf_ktime_get_boot_ns(),
		.ifindex = skb->ifindex,
		.length = skb->len,
		.captured = skb->len < config_snap ? skb->len : config_snap,
		.netns = config_netns,
		.vlan_tci = skb->vlan_present ? skb->vlan_tci : 0,
		.vlan_type = skb->vlan_present ? skb->vlan_proto : 0,
		.direction = direction,
		.link = config_link,
	};

	if (!count) {
		count_uncounted();
		return VERDICT_NEXT;
	}
	__sync_fetch_and_add(&count->matched, 1);
	if (is_limited(current, packet.time_ns))
		__sync_fetch_and_add(&count->limited, 1);
	else if (!put_sized(skb, &packet))
		__sync_fetch_and_add(&count->lost, 1);
	return VERDICT_NEXT;
}

static __always_inline int capture(struct __sk_buff *skb, __u8 direction)
{
	struct capture_window *current =
		bpf_map_lookup_elem(&window, &(__u32){ 0 });

	if (!current || current->is_closed)
		return VERDICT_NEXT;
	if (config_is_filtered && !(judge(skb) & JUDGED_ACCEPT))
		return VERDICT_NEXT;
	return capture_packet(skb, current, direction);
}

SEC("tc")
int netobs_capt_in(struct __sk_buff *skb)
{
	return capture(skb, 0);
}

SEC("tc")
int netobs_capt_out(struct __sk_buff *skb)
{
	return capture(skb, 1);
}
