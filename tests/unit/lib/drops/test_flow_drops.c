// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Each drop is in one record, waiting, or outside, and in a record of its flow only. */
#include "drops/flow_drops.h"

#include "bpf/parse/headers.h"
#include "host/host.h"
#include "lib_seed.h"
#include "lib_test.h"

#include <netobs/drop.h>
#include <netobs/flow.h>

enum { NETNS = 100, OTHER_NETNS = 101, IFINDEX = 7, OTHER_IFINDEX = 8 };

static const struct log silent;

struct fixture {
	struct host host;
	struct flow_drops drops;
};

static void open_drops(struct fixture *f)
{
	f->host = (struct host){ .log = &silent };
	flow_drops_init(&f->drops, &f->host, &(struct flow_drops_options){ 0 },
			&silent);
}

static void close_drops(struct fixture *f)
{
	flow_drops_close(&f->drops);
}

TEST_FIXTURE(struct fixture, open_drops, close_drops)

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

static void assert_identity(const struct flow_drops *drops)
{
	const struct flow_drop_counts *counts = &drops->counts;
	struct count sum = { 0 };

	count_add(&sum, &counts->in_flows);
	count_add(&sum, &counts->pending);
	count_add(&sum, &counts->no_flow);
	count_add(&sum, &counts->no_tuple);
	count_add(&sum, &counts->no_room);
	assert_int_equal(sum.packets, counts->all.packets);
	assert_int_equal(sum.bytes, counts->all.bytes);
}

/* 10.0.0.@n, port @n */
static void set_end(uint8_t addr[16], uint16_t *port, uint8_t n)
{
	memset(addr, 0, 16);
	addr[10] = addr[11] = 0xff;
	addr[12] = 10;
	addr[15] = n;
	*port = n;
}

static struct netobs_drop drop_of(uint8_t src, uint8_t dst, uint64_t packets)
{
	struct netobs_drop drop = {
		.record = { .sz = sizeof(drop),
			    .type = NETOBS_RECORD_DROP,
			    .has = NETOBS_DROP_HAS_ADDRS | NETOBS_DROP_HAS_PORTS |
				   NETOBS_DROP_HAS_REASON },
		.protocol = IP_PROTO_UDP,
		.kind = NETOBS_DROP_LOSS,
		.reason = 3,
		.netns_inode = NETNS,
		.ifindex = IFINDEX,
		.packets = packets,
		.bytes = packets * 100,
		.last_ns = 1,
	};

	set_end(drop.src, &drop.src_port, src);
	set_end(drop.dst, &drop.dst_port, dst);
	return drop;
}

static const struct netobs_point point = { .netns_inode = NETNS,
					   .ifindex = IFINDEX };

static struct netobs_flow flow_of(uint8_t src, uint8_t dst)
{
	struct netobs_flow flow = { .sz = sizeof(flow),
				    .has = NETOBS_HAS_PORTS,
				    .proto = IP_PROTO_UDP,
				    .n_points = 1,
				    .point_size = sizeof(point),
				    .points = &point };

	set_end(flow.src, &flow.src_port, src);
	set_end(flow.dst, &flow.dst_port, dst);
	return flow;
}

static void fill(struct fixture *f, struct netobs_flow *flow)
{
	f->drops.extra.fill(NULL, flow, f->drops.extra.ctx);
	assert_identity(&f->drops);
}

static void note(struct fixture *f, const struct netobs_drop *drop)
{
	flow_drops_note(&f->drops, drop);
	assert_identity(&f->drops);
}

static void assert_has(const struct netobs_flow *flow, uint64_t packets)
{
	assert_int_equal(!!(flow->has & NETOBS_HAS_DROPS), packets > 0);
	assert_int_equal(flow->drop_packets, packets);
	assert_int_equal(flow->drop_bytes, packets * 100);
}

CASE(a_record_takes_the_drops_of_its_tuple_once)
{
	struct netobs_flow flow = flow_of(1, 2), back = flow_of(2, 1),
			   again = flow_of(1, 2);
	struct netobs_drop first = drop_of(1, 2, 5), last = drop_of(1, 2, 7),
			   other = drop_of(1, 3, 9);

	last.reason = 4;
	last.last_ns = 2;
	note(f, &last);
	note(f, &first);
	note(f, &other);
	fill(f, &back);
	assert_has(&back, 0);
	fill(f, &flow);
	assert_has(&flow, 12);
	assert_true(flow.has & NETOBS_HAS_DROP_REASON);
	assert_int_equal(flow.drop_reason, 4);
	assert_string_equal(flow.drop_cause, "SKB_DROP_REASON_4");
	fill(f, &again);
	assert_has(&again, 0);
	assert_int_equal(f->drops.counts.pending.packets, 9);
}

/* The last one decides, also where the kernel states none. */
CASE(a_reason_is_that_of_the_last_drop)
{
	struct netobs_drop known = drop_of(1, 2, 1), unknown = drop_of(1, 2, 1);
	struct netobs_flow flow = flow_of(1, 2);

	unknown.record.has &= ~(uint32_t)NETOBS_DROP_HAS_REASON;
	unknown.last_ns = 9;
	note(f, &unknown);
	note(f, &known);
	fill(f, &flow);
	assert_has(&flow, 2);
	assert_false(flow.has & NETOBS_HAS_DROP_REASON);
}

CASE(benign_ones_are_apart)
{
	struct netobs_drop drop = drop_of(1, 2, 5);
	struct netobs_flow flow = flow_of(1, 2);

	drop.kind = NETOBS_DROP_BENIGN;
	note(f, &drop);
	drop.kind = NETOBS_DROP_UNSPECIFIED;
	note(f, &drop);
	fill(f, &flow);
	assert_has(&flow, 5);
	assert_int_equal(f->drops.counts.benign.packets, 5);
	assert_int_equal(f->drops.counts.all.packets, 5);
}

TEST(interfaces_decide_where_each_has_records)
{
	const struct {
		uint32_t ifindex;
		bool per_interface, is_taken;
	} rows[] = {
		{ IFINDEX, true, true },
		{ 0, true, true },
		{ OTHER_IFINDEX, true, false },
		{ OTHER_IFINDEX, false, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct netobs_drop drop = drop_of(1, 2, 5);
		struct netobs_flow flow = flow_of(1, 2);
		struct fixture f = { 0 };

		open_drops(&f);
		f.drops.options.per_interface = rows[i].per_interface;
		drop.ifindex = rows[i].ifindex;
		note(&f, &drop);
		fill(&f, &flow);
		assert_has(&flow, rows[i].is_taken ? 5 : 0);
		flow_drops_close(&f.drops);
	}
}

CASE(tuples_before_and_after_translation_are_the_flows)
{
	struct netobs_drop before = drop_of(5, 6, 1), own = drop_of(1, 2, 2),
			   after = drop_of(3, 4, 4), other = drop_of(3, 2, 8);
	struct netobs_flow flow = flow_of(1, 2);

	flow.has |= NETOBS_HAS_XLAT | NETOBS_HAS_XLAT_PORTS | NETOBS_HAS_ORIG |
		    NETOBS_HAS_ORIG_PORTS;
	set_end(flow.xlat_src, &flow.xlat_src_port, 3);
	set_end(flow.xlat_dst, &flow.xlat_dst_port, 4);
	set_end(flow.orig_src, &flow.orig_src_port, 5);
	set_end(flow.orig_dst, &flow.orig_dst_port, 6);
	note(f, &before);
	note(f, &own);
	note(f, &after);
	note(f, &other);
	fill(f, &flow);
	assert_has(&flow, 7);
}

/* The tuple with which it came into its namespace. */
static void set_origin(struct netobs_drop *drop, uint8_t src, uint8_t dst)
{
	drop->record.has |= NETOBS_DROP_HAS_ORIG | NETOBS_DROP_HAS_ORIG_PORTS;
	set_end(drop->orig_src, &drop->orig_src_port, src);
	set_end(drop->orig_dst, &drop->orig_dst_port, dst);
}

/* Between two translations, a packet has a tuple that no record has. */
CASE(a_drop_is_found_by_the_tuple_with_which_it_came_in)
{
	struct netobs_drop drop = drop_of(1, 4, 5), other = drop_of(1, 4, 3);
	struct netobs_flow flow = flow_of(1, 2), another = flow_of(1, 3);

	set_origin(&drop, 1, 2);
	set_origin(&other, 1, 3);
	note(f, &drop);
	note(f, &other);
	fill(f, &flow);
	assert_has(&flow, 5);
	fill(f, &another);
	assert_has(&another, 3);
	assert_int_equal(f->drops.n_waiting, 0);
}

CASE(a_drop_with_two_tuples_is_taken_once)
{
	struct netobs_drop drop = drop_of(3, 4, 5), plain = drop_of(3, 4, 2);
	struct netobs_flow inside = flow_of(1, 2), outside = flow_of(3, 4);

	set_origin(&drop, 1, 2);
	note(f, &drop);
	note(f, &drop);
	note(f, &plain);
	assert_int_equal(f->drops.n_waiting, 2);
	fill(f, &inside);
	assert_has(&inside, 10);
	fill(f, &outside);
	assert_has(&outside, 2);
	note(f, &drop);
	outside = flow_of(3, 4);
	fill(f, &outside);
	assert_has(&outside, 5);
	inside = flow_of(1, 2);
	fill(f, &inside);
	assert_has(&inside, 0);
}

/* NAT of another namespace has added that much to both ends. */
enum { LED = 50, INDEX = 3 };

static bool find_key(const struct flow_entry *entry, bool is_further,
		     struct flow_key *key, void *ctx)
{
	const uint8_t src = key->src.bytes[15], dst = key->dst.bytes[15];

	(void)is_further;
	(void)ctx;
	assert_int_equal(entry->key.netns, INDEX);
	if (src < LED || dst < LED)
		return true;
	set_end(key->src.bytes, &key->src_port, src - LED);
	set_end(key->dst.bytes, &key->dst_port, dst - LED);
	return true;
}

static struct netns followed = { .index = INDEX, .inode = NETNS };
static const struct flow_extra nat = { .find_key = find_key };

static void open_behind_nat(struct fixture *f)
{
	open_drops(f);
	f->host.netns = &followed;
	f->host.n_netns = 1;
	f->drops.options.nat = &nat;
}

CASE(types_of_icmp_are_ports)
{
	struct netobs_drop drop = drop_of(1, 2, 5);
	struct netobs_flow flow = flow_of(1, 2);

	drop.protocol = flow.proto = IP_PROTO_ICMP;
	drop.src_port = flow.src_port = flow.dst_port = 0;
	drop.dst_port = 3 << 8 | 1;
	flow.has = NETOBS_HAS_ICMP;
	flow.icmp_type = 3;
	flow.icmp_code = 1;
	note(f, &drop);
	fill(f, &flow);
	assert_has(&flow, 5);
}

CASE(what_has_no_tuple_is_outside)
{
	struct netobs_drop drop = drop_of(1, 2, 1);

	drop.record.has = NETOBS_DROP_HAS_REASON;
	note(f, &drop);
	drop.record.has |= NETOBS_DROP_HAS_ADDRS;
	note(f, &drop);
	drop.record.has |= NETOBS_DROP_HAS_PORTS;
	drop.netns_inode = 0;
	note(f, &drop);
	assert_int_equal(f->drops.counts.no_tuple.packets, 3);
	drop.record.has = NETOBS_DROP_HAS_REST;
	note(f, &drop);
	assert_int_equal(f->drops.counts.no_room.packets, 1);
}

CASE(more_than_there_is_room_for_are_counted)
{
	enum { MORE = 100 };
	struct netobs_drop drop = drop_of(1, 2, 1);
	struct netobs_flow flow = flow_of(1, 2);

	for (uint32_t i = 0; i < FLOW_DROPS_MAX + MORE; i++) {
		drop.src_port = (uint16_t)i;
		drop.src[12] = (uint8_t)(i >> 16);
		flow_drops_note(&f->drops, &drop);
	}
	assert_identity(&f->drops);
	assert_int_equal(f->drops.counts.no_room.packets, MORE);
	assert_int_equal(f->drops.n_waiting, FLOW_DROPS_MAX);
	/* The oldest ones made room. */
	flow.src_port = MORE - 1;
	flow.src[12] = 0;
	fill(f, &flow);
	assert_has(&flow, 0);
	flow.src_port = MORE;
	fill(f, &flow);
	assert_has(&flow, 1);
}

CASE(what_is_dropped_all_the_time_takes_a_few_places)
{
	enum { INTERVALS = 1000, WAIT = 360 };
	struct netobs_drop drop = drop_of(1, 2, 1);
	struct netobs_flow flow = flow_of(1, 2);

	for (int i = 0; i < INTERVALS; i++) {
		f->drops.flip_ns = i;
		note(f, &drop);
		flow_drops_expire(&f->drops, i - WAIT);
		assert_in_range(f->drops.n_waiting, 1, 6);
	}
	/* None goes before its time, nor long after it. */
	assert_in_range(f->drops.counts.pending.packets, WAIT, WAIT * 5 / 4 + 1);
	fill(f, &flow);
	assert_in_range(flow.drop_packets, WAIT, WAIT * 5 / 4 + 1);
}

/* ---- A model -------------------------------------------------------------------------- */

enum { FLOWS = 12, STEPS = 3000, KEEP = 3 };

/* The model: packets that wait, by flow, namespace and generation. */
struct model {
	uint64_t waiting[FLOWS][2][STEPS + 1];
	uint64_t in_flows, no_flow;
};

static void model_fill(struct model *model, struct fixture *f, int at, int now)
{
	struct netobs_flow flow = flow_of((uint8_t)at, (uint8_t)(at / 2));
	uint64_t sum = 0;

	for (int step = 0; step <= now; step++) {
		sum += model->waiting[at][0][step];
		model->waiting[at][0][step] = 0;
	}
	fill(f, &flow);
	assert_has(&flow, sum);
	model->in_flows += sum;
}

/* Those of earlier generations are over. */
static void model_expire(struct model *model, struct fixture *f, int end)
{
	flow_drops_expire(&f->drops, end);
	assert_identity(&f->drops);
	for (int at = 0; end >= 0 && at < FLOWS; at++)
		for (int netns = 0; netns < 2; netns++) {
			model->no_flow += model->waiting[at][netns][end];
			model->waiting[at][netns][end] = 0;
		}
}

TEST(random_drops_are_as_in_a_model)
{
	struct model *model = calloc(1, sizeof(*model));
	struct fixture f = { 0 };

	assert_non_null(model);
	open_behind_nat(&f);
	for (int now = 0; now < STEPS; now++) {
		const int at = test_below(FLOWS), netns = test_below(4) == 0;
		bool is_led;
		struct netobs_drop drop = drop_of((uint8_t)at, (uint8_t)(at / 2),
						  1 + test_below(9));

		f.drops.flip_ns = now;
		drop.netns_inode = netns ? OTHER_NETNS : NETNS;
		/* By which of its tuples a record finds it makes no difference. */
		switch (test_below(3)) {
		case 0: /* no record has this one */
			set_origin(&drop, 99, (uint8_t)test_below(FLOWS));
			break;
		case 1: /* led back where the namespace is followed */
			is_led = !netns && test_below(2);
			set_origin(&drop, (uint8_t)(at + is_led * LED),
				   (uint8_t)(at / 2 + is_led * LED));
			set_end(drop.src, &drop.src_port,
				(uint8_t)(100 + test_below(FLOWS)));
			break;
		default:
			break;
		}
		note(&f, &drop);
		model->waiting[at][netns][now] += drop.packets;
		if (test_below(3) == 0)
			model_fill(model, &f, test_below(FLOWS), now);
		model_expire(model, &f, now - KEEP);
		assert_int_equal(f.drops.counts.in_flows.packets,
				 model->in_flows);
		assert_int_equal(f.drops.counts.no_flow.packets, model->no_flow);
	}
	flow_drops_close(&f.drops);
	assert_int_equal(f.drops.n_waiting, 0);
	free(model);
}
