/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "spread.h"

#include "sequence.h"
#include "talk.h"
#include "base/util.h"
#include "bpf/parse/headers.h"

#include "spread.skel.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* ---- Frames ---------------------------------------------------------------- */

const char *const traffic_names[] = {
	[TRAFFIC_UDP4] = "udp4",   [TRAFFIC_UDP6] = "udp6",
	[TRAFFIC_TCP4] = "tcp4",   [TRAFFIC_TCP6] = "tcp6",
	[TRAFFIC_TALK4] = "talk4", [TRAFFIC_TALK6] = "talk6",
	[TRAFFICS] = NULL,
};

enum { L3 = sizeof(struct ether_wire) };

/* To 198.18.0.7. */
static uint8_t *put_ipv4(uint8_t *frame, uint8_t proto)
{
	struct ipv4_wire *ip = (void *)(frame + L3);

	frame[12] = ETHERTYPE_IPV4 >> 8;
	*ip = (struct ipv4_wire){
		.version_ihl = 0x45,
		.total = htons(FRAME - L3),
		.ttl = 64,
		.proto = proto,
		.dst = TALK_SERVER4,
	};
	return (uint8_t *)(ip + 1);
}

/* From 2001:db8::/64 to 2001:db8::7. */
static uint8_t *put_ipv6(uint8_t *frame, uint8_t proto)
{
	static const uint8_t prefix[] = { 0x20, 0x01, 0x0d, 0xb8 };
	struct ipv6_wire *ip = (void *)(frame + L3);

	frame[12] = ETHERTYPE_IPV6 >> 8;
	frame[13] = ETHERTYPE_IPV6 & 0xff;
	*ip = (struct ipv6_wire){
		.version_class_flow = htonl(6U << 28),
		.payload = htons(FRAME - L3 - sizeof(*ip)),
		.next = proto,
		.hop_limit = 64,
		.dst = { [15] = 7 },
	};
	memcpy(ip->src, prefix, sizeof(prefix));
	memcpy(ip->dst, prefix, sizeof(prefix));
	return (uint8_t *)(ip + 1);
}

static void put_ports(uint8_t *l4)
{
	struct ports_wire *ports = (void *)l4;

	*ports = (struct ports_wire){ htons(TALK_PORT_SOURCE),
				      htons(TALK_PORT_DEST) };
}

static bool is_ipv6(enum traffic traffic)
{
	return traffic == TRAFFIC_UDP6 || traffic == TRAFFIC_TCP6 ||
	       traffic == TRAFFIC_TALK6;
}

static bool is_talk(enum traffic traffic)
{
	return traffic == TRAFFIC_TALK4 || traffic == TRAFFIC_TALK6;
}

/* Where the last word of the source address is. */
static size_t source_end(enum traffic traffic)
{
	return is_ipv6(traffic) ?
		       L3 + offsetof(struct ipv6_wire, dst) - sizeof(uint32_t) :
		       L3 + offsetof(struct ipv4_wire, src);
}

void frame_make(enum traffic traffic, uint8_t ret_frame[FRAME])
{
	bool is_udp = traffic == TRAFFIC_UDP4 || traffic == TRAFFIC_UDP6;
	uint8_t proto = is_udp ? IPPROTO_UDP : IPPROTO_TCP, *l4;

	memset(ret_frame, 0, FRAME);
	ret_frame[0] = 0x02; /* of no interface: the packet ends behind the hook */
	l4 = is_ipv6(traffic) ? put_ipv6(ret_frame, proto) :
				put_ipv4(ret_frame, proto);
	put_ports(l4);
	if (is_udp) {
		l4[5] = FRAME - (l4 - ret_frame); /* the length, RFC 768 */
	} else {
		l4[12] = TCP_HEADER_LEN / 4 << 4;
		l4[13] = TCP_ACK;
	}
}

/* ---- Flows ----------------------------------------------------------------- */

/*
 * So long that nearly all flows occur, and that the caches hold no more of the
 * sequence itself than of any other stream.
 */
enum { LENGTH_MIN = 1 << 20, LENGTH_PER_FLOW = 4, SEED = 1 };

static const double zipf_exponent = 1.1;

static uint32_t length_for(uint32_t flows)
{
	uint32_t length = LENGTH_MIN;

	while (length < flows * LENGTH_PER_FLOW)
		length *= 2;
	return length;
}

static size_t mapped_size(const struct bpf_map *map)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t size =
		(size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);

	return (size + page - 1) / page * page;
}

static void *map_pages(const struct bpf_map *map)
{
	void *pages = mmap(NULL, mapped_size(map), PROT_READ | PROT_WRITE,
			   MAP_SHARED, bpf_map__fd(map), 0);

	return pages == MAP_FAILED ? NULL : pages;
}

static void unmap_pages(const struct bpf_map *map, void *pages)
{
	if (pages)
		munmap(pages, mapped_size(map));
}

static int load_spread_programs(struct spread *spread, uint32_t max_flows)
{
	struct spread_bpf *skel = spread->skel = spread_bpf__open();
	int err;

	if (!skel)
		return -errno;
	bpf_map__set_max_entries(skel->maps.sequence,
				 spread->capacity / LINE_NUMBERS);
	bpf_map__set_max_entries(skel->maps.cursors, spread->n_cpus);
	/* One line more: where CPUs have flows of their own, the last may be above all. */
	bpf_map__set_max_entries(skel->maps.sent,
				 max_flows / 2 / LINE_NUMBERS + 1);
	err = spread_bpf__load(skel);
	if (err)
		return err;
	spread->numbers = map_pages(skel->maps.sequence);
	spread->cursors = map_pages(skel->maps.cursors);
	spread->sent = map_pages(skel->maps.sent);
	return spread->numbers && spread->cursors && spread->sent ? 0 : -errno;
}

int spread_open(struct spread *spread, uint32_t max_flows)
{
	int err;

	*spread = (struct spread){ .n_cpus = libbpf_num_possible_cpus() };
	spread->capacity = 2 * length_for(max_flows) + max_flows;
	spread->capacity = (spread->capacity + LINE_NUMBERS - 1) /
			   LINE_NUMBERS * LINE_NUMBERS;
	err = load_spread_programs(spread, max_flows);
	if (!err)
		return 0;
	fprintf(stderr, "netobsctl bench: cannot load BPF programs: %s%s\n",
		strerror(-err),
		err == -EPERM ?
			": run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON" :
			"");
	spread_close(spread);
	return err;
}

void spread_unmap(struct spread *spread)
{
	unmap_pages(spread->skel->maps.sequence, TAKE_PTR(spread->numbers));
}

void spread_close(struct spread *spread)
{
	if (!spread->skel)
		return;
	spread_unmap(spread);
	unmap_pages(spread->skel->maps.sent, spread->sent);
	unmap_pages(spread->skel->maps.cursors, spread->cursors);
	spread_bpf__destroy(spread->skel);
	*spread = (struct spread){ 0 };
}

/* Where in the numbers an order begins. */
static uint32_t find_first(const struct spread *spread, enum order order)
{
	switch (order) {
	case ORDER_UNIFORM:
		return 0;
	case ORDER_ZIPF:
		return spread->length;
	default:
		return 2 * spread->length;
	}
}

int spread_prepare(struct spread *spread, uint32_t flows, uint32_t n_cpus,
		   bool with_zipf)
{
	uint32_t *each;

	spread->flows = flows;
	spread->room = max_u64(flows, n_cpus);
	spread->length = length_for(flows);
	each = spread->numbers + find_first(spread, ORDER_EACH);
	sequence_permute(each, spread->room, SEED);
	sequence_uniform(spread->numbers + find_first(spread, ORDER_UNIFORM),
			 spread->length, flows, SEED);
	if (!with_zipf)
		return 0;
	/* Frequent flows are spread over the tables as all others are. */
	return sequence_zipf(spread->numbers + find_first(spread, ORDER_ZIPF),
			     spread->length, each, flows, zipf_exponent, SEED);
}

int spread_aim(const struct spread *spread, int prog_fd)
{
	uint32_t slot = 0;

	return bpf_map_update_elem(bpf_map__fd(spread->skel->maps.measured),
				   &slot, &prog_fd, BPF_ANY);
}

void spread_start(struct spread *spread, uint32_t cpu, enum order order)
{
	struct cursor_state *cursor = &spread->cursors[cpu];
	bool is_once = order == ORDER_EACH;

	*cursor = (struct cursor_state){
		.first = find_first(spread, order),
		.mask = is_once ? UINT32_MAX : spread->length - 1,
		.position = is_once ? 0 : cursor->position,
		.is_talk = is_talk(spread->traffic),
	};
}

void spread_start_part(struct spread *spread, uint32_t cpu, enum order order,
		       uint32_t part, uint32_t parts)
{
	uint32_t share = max_u64(spread->flows / parts, 1);

	spread_start(spread, cpu, order);
	spread->cursors[cpu].share = share;
	spread->cursors[cpu].base = part * share;
}

void spread_write(const struct spread *spread, uint8_t *frame, uint32_t flow)
{
	if (is_talk(spread->traffic))
		talk_write(frame, is_ipv6(spread->traffic), flow,
			   &spread->sent[flow / 2]);
	else
		memcpy(frame + source_end(spread->traffic), &flow, sizeof(flow));
}

void spread_take(const struct spread *spread, uint32_t cpu, uint32_t *ret_flows,
		 uint32_t n)
{
	struct cursor_state *cursor = &spread->cursors[cpu];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t position = cursor->position++ & cursor->mask;
		uint32_t flow = spread->numbers[cursor->first + position];

		ret_flows[i] = cursor->share ?
				       cursor->base + flow % cursor->share :
				       flow;
	}
}

int spread_run(const struct spread *spread, uint32_t n, uint32_t *ret_ns)
{
	uint8_t frame[FRAME];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
		    .data_size_in = sizeof(frame), .repeat = n);
	int err;

	frame_make(spread->traffic, frame);
	err = bpf_prog_test_run_opts(bpf_program__fd(spread->skel->progs.spread),
				     &opts);
	if (!err && ret_ns)
		*ret_ns = opts.duration;
	return err;
}

int spread_empty_fd(const struct spread *spread, bool is_second)
{
	return bpf_program__fd(is_second ? spread->skel->progs.empty2 :
					   spread->skel->progs.empty);
}
