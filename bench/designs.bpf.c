// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The stores of the published study, and of published agents: the least that each does
 * for a packet. All parse alike, read the clock for each packet, and keep the same values.
 */
#define BPF_NO_PRESERVE_ACCESS_INDEX
#include "vmlinux.h"

#include "bpf/parse/headers.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { VERDICT_NEXT = -1, EEXIST = 17 };

/* The key of published agents; IPv4 as ::ffff:a.b.c.d. */
struct flow_id {
	struct ip_addr src;
	struct ip_addr dst;
	__u16 src_port;
	__u16 dst_port;
	__u8 proto;
	__u8 icmp_type;
	__u8 icmp_code;
	__u8 reserved;
};

struct metrics {
	__u64 first_ns;
	__u64 last_ns;
	__u64 bytes;
	__u32 packets;
	__u16 flags;
	__u16 ethertype;
};

struct locked_metrics {
	struct metrics m;
	struct bpf_spin_lock lock;
	__u32 reserved;
};

struct flow_record {
	struct flow_id id;
	struct metrics m;
};

/* One packet. */
struct seen {
	struct flow_id id;
	__u16 flags;
	__u16 ethertype;
};

/* ---- The minimal parser: fixed offsets, as published agents have it -------- */

enum { TCP_FLAGS_OFFSET = 13 };

static __always_inline bool parse_transport(const void *l4, const void *end,
					    struct seen *seen)
{
	const struct ports_wire *ports = l4;
	const __u8 *bytes = l4;

	switch (seen->id.proto) {
	case IP_PROTO_TCP:
		if (l4 + TCP_HEADER_LEN > end)
			return false;
		seen->flags = bytes[TCP_FLAGS_OFFSET];
		break;
	case IP_PROTO_UDP:
		if (l4 + UDP_HEADER_LEN > end)
			return false;
		break;
	case IP_PROTO_ICMP:
	case IP_PROTO_ICMPV6:
		if (l4 + ICMP_HEADER_LEN > end)
			return false;
		seen->id.icmp_type = bytes[0];
		seen->id.icmp_code = bytes[1];
		return true;
	default:
		return true;
	}
	seen->id.src_port = bpf_ntohs(ports->src);
	seen->id.dst_port = bpf_ntohs(ports->dst);
	return true;
}

static __always_inline bool parse_ipv4(const void *l3, const void *end,
				       struct seen *seen)
{
	const struct ipv4_wire *ip = l3;
	const __u32 prefix = bpf_htonl(0xffff);

	if ((const void *)(ip + 1) > end)
		return false;
	seen->id.src.words[2] = prefix;
	seen->id.src.words[3] = ip->src;
	seen->id.dst.words[2] = prefix;
	seen->id.dst.words[3] = ip->dst;
	seen->id.proto = ip->proto;
	return parse_transport(ip + 1, end, seen);
}

static __always_inline bool parse_ipv6(const void *l3, const void *end,
				       struct seen *seen)
{
	const struct ipv6_wire *ip = l3;

	if ((const void *)(ip + 1) > end)
		return false;
	__builtin_memcpy(&seen->id.src, ip->src, sizeof(ip->src));
	__builtin_memcpy(&seen->id.dst, ip->dst, sizeof(ip->dst));
	seen->id.proto = ip->next;
	return parse_transport(ip + 1, end, seen);
}

static __always_inline bool parse_skb(const struct __sk_buff *skb,
				      struct seen *seen)
{
	const void *end = (void *)(long)skb->data_end;
	const struct ether_wire *eth = (void *)(long)skb->data;

	if ((const void *)(eth + 1) > end)
		return false;
	seen->ethertype = bpf_ntohs(eth->type);
	switch (seen->ethertype) {
	case ETHERTYPE_IPV4:
		return parse_ipv4(eth + 1, end, seen);
	case ETHERTYPE_IPV6:
		return parse_ipv6(eth + 1, end, seen);
	default:
		return false;
	}
}

/* ---- The floor: the cache lines of netobs, without its code ------------------- */

enum {
	FLOOR_FLOWS = 5120,
	FLOOR_KNOBS = FLOOR_FLOWS,
	FLOOR_STATE,
	FLOOR_PLACES
};

/* Of a flow three lines: a bucket's tags, and an entry. */
struct floor_place {
	__u64 lines[4][8];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOOR_PLACES);
	__type(key, __u32);
	__type(value, struct floor_place);
} map_floor SEC(".maps");

static __always_inline __u64 floor_flow(const struct __sk_buff *skb)
{
	const struct ether_wire *eth = (void *)(long)skb->data;
	const struct ipv4_wire *ip = (const void *)(eth + 1);

	if ((const void *)(ip + 1) > (void *)(long)skb->data_end)
		return 0;
	return (__u64)(ip->src * 0x9e3779b1U) * FLOOR_FLOWS >> 32;
}

/* What netobs reads of a packet, its knobs, its state of the CPU, and its entry of the flow. */
SEC("tc")
int run_floor(struct __sk_buff *skb)
{
	__u64 size = skb->len + skb->gso_size + skb->ifindex +
		     skb->vlan_present + skb->ingress_ifindex;
	__u32 flow = floor_flow(skb), knobs = FLOOR_KNOBS, state = FLOOR_STATE;
	struct floor_place *place = bpf_map_lookup_elem(&map_floor, &flow);
	struct floor_place *read = bpf_map_lookup_elem(&map_floor, &knobs);
	struct floor_place *written = bpf_map_lookup_elem(&map_floor, &state);

	if (!place || !read || !written)
		return VERDICT_NEXT;
	size += read->lines[0][0] + read->lines[1][0] + read->lines[2][0];
	for (int i = 0; i < 4; i++)
		written->lines[i][0] += size;
	place->lines[0][0] = size;
	place->lines[2][0] += size;
	if (place->lines[1][0] == size) /* the key */
		place->lines[2][1]++;
	return VERDICT_NEXT;
}

/* ---- Values ---------------------------------------------------------------- */

static __always_inline void metrics_start(struct metrics *m,
					  const struct __sk_buff *skb,
					  const struct seen *seen, __u64 now)
{
	m->first_ns = now;
	m->last_ns = now;
	m->bytes = skb->len;
	m->packets = 1;
	m->flags = seen->flags;
	m->ethertype = seen->ethertype;
}

/* Add a packet to the value of its flow. */
typedef void metrics_add_fn(void *value, const struct __sk_buff *skb,
			    const struct seen *seen, __u64 now);

/* No other CPU writes to it. */
static __always_inline void metrics_add(void *value, const struct __sk_buff *skb,
					const struct seen *seen, __u64 now)
{
	struct metrics *m = value;

	m->packets++;
	m->bytes += skb->len;
	m->last_ns = now;
	m->flags |= seen->flags;
}

static __always_inline void metrics_add_shared(void *value,
					       const struct __sk_buff *skb,
					       const struct seen *seen, __u64 now)
{
	struct metrics *m = value;

	__sync_fetch_and_add(&m->packets, 1);
	__sync_fetch_and_add(&m->bytes, skb->len);
	m->last_ns = now;
	if (seen->flags & ~m->flags)
		m->flags |= seen->flags;
}

static __always_inline void metrics_add_locked(void *value,
					       const struct __sk_buff *skb,
					       const struct seen *seen, __u64 now)
{
	struct locked_metrics *locked = value;

	bpf_spin_lock(&locked->lock);
	metrics_add(&locked->m, skb, seen, now);
	bpf_spin_unlock(&locked->lock);
}

/* ---- The stores: user space sets the sizes ---------------------------------- */

/* @fresh: a zeroed value, which begins with struct metrics. */
static __always_inline int count_hashed(struct __sk_buff *skb, void *map,
					void *fresh, metrics_add_fn *add)
{
	struct seen seen = {};
	void *known;
	__u64 now;

	if (!parse_skb(skb, &seen))
		return VERDICT_NEXT;
	now = bpf_ktime_get_ns();
	known = bpf_map_lookup_elem(map, &seen.id);
	if (!known) {
		metrics_start(fresh, skb, &seen, now);
		/* Another CPU may have been faster. */
		if (bpf_map_update_elem(map, &seen.id, fresh, BPF_NOEXIST) !=
		    -EEXIST)
			return VERDICT_NEXT;
		known = bpf_map_lookup_elem(map, &seen.id);
	}
	if (known)
		add(known, skb, &seen, now);
	return VERDICT_NEXT;
}

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow_id);
	__type(value, struct metrics);
} map_hash SEC(".maps");

SEC("tc")
int run_hash(struct __sk_buff *skb)
{
	struct metrics fresh = {};

	return count_hashed(skb, &map_hash, &fresh, metrics_add_shared);
}

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow_id);
	__type(value, struct locked_metrics);
} map_hash_spinlock SEC(".maps");

SEC("tc")
int run_hash_spinlock(struct __sk_buff *skb)
{
	struct locked_metrics fresh = {};

	return count_hashed(skb, &map_hash_spinlock, &fresh, metrics_add_locked);
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow_id);
	__type(value, struct metrics);
} map_percpu_hash SEC(".maps");

SEC("tc")
int run_percpu_hash(struct __sk_buff *skb)
{
	struct metrics fresh = {};

	return count_hashed(skb, &map_percpu_hash, &fresh, metrics_add);
}

/* What published agents keep of a translated packet; here only the insert is measured. */
struct translated {
	struct flow_id after;
	__u16 zone;
	__u16 reserved[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow_id);
	__type(value, struct translated);
} map_nat_hash SEC(".maps");

SEC("tc")
int run_nat_hash(struct __sk_buff *skb)
{
	struct seen seen = {};
	struct translated translated = {};

	if (!parse_skb(skb, &seen))
		return VERDICT_NEXT;
	translated.after = seen.id;
	bpf_map_update_elem(&map_nat_hash, &seen.id, &translated, BPF_ANY);
	return VERDICT_NEXT;
}

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} map_ringbuf SEC(".maps");

/* There is no reader to wake: user space throws the records away. */
SEC("tc")
int run_ringbuf(struct __sk_buff *skb)
{
	struct seen seen = {};
	struct flow_record *record;

	if (!parse_skb(skb, &seen))
		return VERDICT_NEXT;
	record = bpf_ringbuf_reserve(&map_ringbuf, sizeof(*record), 0);
	if (!record)
		return VERDICT_NEXT;
	record->id = seen.id;
	metrics_start(&record->m, skb, &seen, bpf_ktime_get_ns());
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return VERDICT_NEXT;
}
