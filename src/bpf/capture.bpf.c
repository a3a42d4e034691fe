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
const volatile __u32 config_snap = CAPTURE_SNAP_MAX;
const volatile __u32 config_wake = 0; /* bytes in a ring that wake user space */
const volatile __u32 config_rings = CAPTURE_RINGS_MAX; /* a power of two */
const volatile __u32 config_ring_bytes = 1 << 20;
/* At most so many packets in each window; 0: any number. */
const volatile __u64 config_window_packets = 0;
const volatile __u64 config_window_ns = 0;

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
};

/* Different CPUs use different ring buffers, as they would wait for its lock. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, CAPTURE_RINGS_MAX);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

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

/* CPUs that check at the same moment may exceed the limit by a packet each. */
static __always_inline bool is_limited(struct capture_window *current)
{
	__u64 now;

	if (!config_window_packets)
		return false;
	now = bpf_ktime_get_boot_ns();
	/* Another CPU may have begun a window after @now. */
	if ((__s64)(now - current->start_ns) >= (__s64)config_window_ns) {
		current->start_ns = now;
		current->packets = 0;
	}
	if (current->packets >= config_window_packets)
		return true;
	__sync_fetch_and_add(&current->packets, 1);
	return false;
}

/* The ring buffer for a record. */
struct place {
	void *ring; /* NULL: all are full */
	__u64 used; /* bytes in use */
};

/* Find a ring buffer with room: this CPU's, else another one. Takes no lock. */
static __always_inline struct place find_place(__u32 size)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct place place = { 0 };

	for (__u32 i = 0; i < CAPTURE_RINGS_MAX && i < config_rings; i++) {
		__u32 index = (cpu + i) & (config_rings - 1);
		void *ring = bpf_map_lookup_elem(&rings, &index);

		if (!ring)
			break;
		place.used = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
		/* The kernel never fills the last byte. */
		if (place.used + BPF_RINGBUF_HDR_SZ + size >= config_ring_bytes)
			continue;
		place.ring = ring;
		break;
	}
	return place;
}

/*
 * Wake user space, which waits a little for more packets, with the first packet in an empty ring
 * buffer, and with the packet that fills it up to config_wake.
 */
static __always_inline __u64 wake_flags(__u64 used, __u32 size)
{
	__u64 after = used + BPF_RINGBUF_HDR_SZ + size;

	return !used || (used < config_wake && after >= config_wake) ?
		       BPF_RB_FORCE_WAKEUP :
		       BPF_RB_NO_WAKEUP;
}

/* Lengths and direction of a packet; the rest is in its context. */
struct captive {
	__u32 length, captured;
	__u8 direction;
};

static __always_inline void describe(struct capture_packet *slot,
				     const struct __sk_buff *skb,
				     const struct captive *packet)
{
	const bool has_tag = skb->vlan_present;

	slot->ifindex = skb->ifindex;
	slot->length = packet->length;
	slot->captured = packet->captured;
	slot->netns = config_netns;
	slot->vlan_tci = has_tag ? skb->vlan_tci : 0;
	slot->vlan_type = has_tag ? skb->vlan_proto : 0;
	slot->direction = packet->direction;
	slot->link = config_link;
	*(__u32 *)slot->reserved = 0;
}

/*
 * The clock is read last: meanwhile the memory of the slot arrives, which user space had on
 * another CPU, and which the submission waits for.
 */
static __always_inline bool put(struct __sk_buff *skb,
				const struct captive *packet,
				struct place place, const __u32 room)
{
	const __u32 size = sizeof(struct capture_packet) + room;
	struct capture_packet *slot = bpf_ringbuf_reserve(place.ring, size, 0);
	__u64 len = packet->captured, least = 1, flags;

	if (!slot)
		return false;
	flags = wake_flags(place.used, size);
	/*
	 * COMPAT(<5.11): the verifier requires both bounds of this very register, and finds
	 * nothing from a comparison for equality, which the compiler would make.
	 */
	asm volatile("" : "+r"(len), "+r"(least));
	if (len < least || len > room ||
	    bpf_skb_load_bytes(skb, 0, slot + 1, len)) {
		bpf_ringbuf_discard(slot, flags);
		return false;
	}
	describe(slot, skb, packet);
	slot->time_ns = bpf_ktime_get_boot_ns();
	bpf_ringbuf_submit(slot, flags);
	return true;
}

/* COMPAT(<5.19): without dynptr, sizes have to be known when programs are loaded. */
#define ROOMS(DO)                             \
	DO(96)                                \
	DO(224)                               \
	DO(480)                               \
	DO(992)                               \
	DO(1536) /* a full Ethernet frame */  \
	DO(3072)                              \
	DO(9216)                              \
	DO(18432)                             \
	DO(36864)                             \
	DO(66560) /* what GSO and GRO make */ \
	DO(CAPTURE_SNAP_MAX)

static __always_inline __u32 find_room(__u32 len)
{
#define RETURN_ROOM(room)  \
	if (len <= (room)) \
		return room;
	ROOMS(RETURN_ROOM)
	return CAPTURE_SNAP_MAX;
}

static __always_inline bool put_sized(struct __sk_buff *skb,
				      const struct captive *packet)
{
	__u32 len = packet->captured;
	struct place place =
		find_place(sizeof(struct capture_packet) + find_room(len));

	if (!place.ring)
		return false;
#define PUT_ROOM(room)     \
	if (len <= (room)) \
		return put(skb, packet, place, room);
	ROOMS(PUT_ROOM)
	return false;
}

static __always_inline int capture_packet(struct __sk_buff *skb,
					  struct capture_window *current,
					  __u8 direction)
{
	struct capture_counters *count = find_counters(skb);
	const __u32 length = skb->len;
	const struct captive packet = {
		.length = length,
		.captured = length < config_snap ? length : config_snap,
		.direction = direction,
	};

	if (!count) {
		count_uncounted();
		return VERDICT_NEXT;
	}
	__sync_fetch_and_add(&count->matched, 1);
	if (is_limited(current))
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
