/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A record has the addresses of its own translation, or none. */
#include "nat/translations.h"

#include "base/clock.h"
#include "bpf/parse/headers.h"
#include "bpf/store/hash.h"
#include "nat/translation_table.h"
#include "host/host.h"
#include "lib_addr.h"
#include "lib_test.h"

#include <netobs/flow.h>
#include <sys/socket.h>

enum { CLIENT_SIDE = 3, SERVER_SIDE = 4, CLIENT_PORT = 40000, SECOND = 1000 };

/* Without a warning about what is left out. */
#define REPORT(from, back, at, ...) \
	(&(struct report){          \
		.original = (from), .reply = (back), .ms = (at), ##__VA_ARGS__ })
#define SEEN(tuple, at, goes, first, last, ...) \
	(&(struct seen){ .ends = (tuple),       \
			 .ifindex = (at),       \
			 .leaves = (goes),      \
			 .first_ms = (first),   \
			 .last_ms = (last),     \
			 ##__VA_ARGS__ })

struct ends4 {
	const char *src, *dst;
	uint16_t src_port, dst_port; /* of ICMP: identifier; type << 8 | code */
};

static struct nat_tuple tuple_of(const struct ends4 *ends, uint8_t proto)
{
	return nat_tuple_of(ends->src, ends->src_port, ends->dst,
			    ends->dst_port, proto);
}

struct report {
	struct ends4 original, reply;
	int64_t ms;
	uint8_t proto; /* 0: UDP */
	uint16_t zone;
	uint16_t netns;	   /* 0: 1 */
	uint32_t from, to; /* interfaces; 0: CLIENT_SIDE, SERVER_SIDE */
};

static void add(struct translations *translations, const struct report *report)
{
	const uint8_t proto = report->proto ?: IP_PROTO_UDP;
	const struct nat_event event = {
		.time_ns = (uint64_t)report->ms * NSEC_PER_MSEC,
		.tuples = { tuple_of(&report->original, proto),
			    tuple_of(&report->reply, proto) },
		.ifindex = report->to ?: SERVER_SIDE,
		.from_ifindex = report->from ?: CLIENT_SIDE,
		.netns = report->netns ?: 1,
		.zone = report->zone,
		.dir = NAT_ORIGINAL,
	};

	translation_table_note(&translations->table, &event);
}

static struct ip_addr address4(const char *text)
{
	struct ip_addr addr;

	set_addr(addr.bytes, text);
	return addr;
}

struct seen {
	struct ends4 ends;
	uint32_t ifindex;
	bool leaves;
	int64_t first_ms, last_ms;
	uint8_t proto; /* 0: UDP */
	uint8_t tunnel;
	uint32_t marks;
};

static struct flow_entry entry_of(const struct seen *seen)
{
	return (struct flow_entry){
		.key = { .src = address4(seen->ends.src),
			 .dst = address4(seen->ends.dst),
			 .src_port = seen->ends.src_port,
			 .dst_port = seen->ends.dst_port,
			 .ifindex = seen->ifindex,
			 .netns = 1,
			 .proto = seen->proto ?: IP_PROTO_UDP,
			 .flags = seen->leaves ? KEY_EGRESS : 0,
			 .tunnel = seen->tunnel & 7 },
		.tally = { .first_ns = (uint64_t)seen->first_ms * NSEC_PER_MSEC,
			   .last_ns = (uint64_t)seen->last_ms * NSEC_PER_MSEC,
			   .attrs.marks = seen->marks },
	};
}

static struct netobs_flow record_of(struct translations *translations,
				    const struct seen *seen, size_t n)
{
	uint64_t data[FLOW_EXTRA_BYTES_MAX / sizeof(uint64_t)] = { 0 };
	const struct flow_extra *extra = &translations->extra;
	struct netobs_flow record = { .sz = sizeof(record) };

	if (!seen->proto || seen->proto == IP_PROTO_TCP)
		record.has = NETOBS_HAS_PORTS;
	for (size_t i = 0; i < n; i++) {
		const struct flow_entry entry = entry_of(&seen[i]);

		extra->note(data, &entry, extra->ctx);
	}
	extra->fill(data, &record, extra->ctx);
	return record;
}

static void assert_address(const uint8_t addr[16], const char *text)
{
	const struct ip_addr wanted = address4(text);

	assert_memory_equal(addr, wanted.bytes, sizeof(wanted.bytes));
}

static void assert_none(const struct netobs_flow *record)
{
	assert_false(record->has & (NETOBS_HAS_XLAT | NETOBS_HAS_ORIG |
				    NETOBS_HAS_XLAT_PORTS |
				    NETOBS_HAS_ORIG_PORTS | NETOBS_HAS_ZONE));
}

/* The record of one entry; NULL: it has no such addresses. */
static struct netobs_flow expect(struct translations *t, const struct seen *seen,
				 const struct ends4 *xlat,
				 const struct ends4 *orig)
{
	const struct netobs_flow record = record_of(t, seen, 1);

	if (!xlat && !orig)
		assert_none(&record);
	assert_int_equal(!(record.has & NETOBS_HAS_XLAT), !xlat);
	assert_int_equal(!(record.has & NETOBS_HAS_ORIG), !orig);
	if (xlat) {
		assert_address(record.xlat_src, xlat->src);
		assert_address(record.xlat_dst, xlat->dst);
	}
	if (xlat && record.has & NETOBS_HAS_PORTS) {
		assert_true(record.has & NETOBS_HAS_XLAT_PORTS);
		assert_int_equal(record.xlat_src_port, xlat->src_port);
		assert_int_equal(record.xlat_dst_port, xlat->dst_port);
	}
	if (orig) {
		assert_address(record.orig_src, orig->src);
		assert_address(record.orig_dst, orig->dst);
		assert_true(record.has & NETOBS_HAS_ORIG_PORTS);
		assert_int_equal(record.orig_src_port, orig->src_port);
		assert_int_equal(record.orig_dst_port, orig->dst_port);
	}
	return record;
}

/* DNAT from a public address to a server, and masquerading towards it. */
static const struct ends4 asked = { "10.0.0.2", "192.0.2.1", CLIENT_PORT, 80 };
static const struct ends4 sent = { "10.1.0.1", "10.1.0.2", 50000, 8080 };
static const struct ends4 answered = { "10.1.0.2", "10.1.0.1", 8080, 50000 };
static const struct ends4 received = { "192.0.2.1", "10.0.0.2", 80, CLIENT_PORT };

/* Another client of the same server. */
static const struct ends4 other = { "10.0.0.9", "192.0.2.1", 1111, 80 };

static void begin(struct translations *translations)
{
	assert_int_equal(translations_init(translations,
					   &(struct translations_options){
						   .knows_zones = true }),
			 0);
}

TEST_FIXTURE(struct translations, begin, translations_close)

/* Calls of calloc() up to the one that fails; 0: none does. */
static uint32_t calls_left;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return calls_left && !--calls_left ? NULL : __real_calloc(n, size);
}

TEST(without_memory_there_is_no_table)
{
	struct translation_table table;
	uint32_t n = 0;
	int err;

	do {
		calls_left = ++n;
		err = translation_table_init(&table);
		assert_int_equal(err, calls_left ? 0 : -ENOMEM);
	} while (err);
	calls_left = 0;
	assert_true(n > 2);
	translation_table_done(&table);
}

TEST(reports_of_all_cpus_are_counted)
{
	struct nat_counters cpus[] = { { .reported = 2, .lost = 1 },
				       { .reported = 0, .lost = 3 } };
	const struct nat nat = { .counters = cpus, .n_cpus = ARRAY_SIZE(cpus) };

	assert_int_equal(nat_count(&nat).reported, 2);
	assert_int_equal(nat_count(&nat).lost, 4);
}

#define CASE(name) TEST_OF(name, struct translations *t, set_up, tear_down)

CASE(a_report_names_all_four_faces)
{
	struct netobs_flow record;

	add(t, REPORT(asked, answered, SECOND, .zone = 7));
	record = expect(t, SEEN(asked, CLIENT_SIDE, false, SECOND, SECOND),
			&sent, NULL);
	assert_int_equal(record.zone_id, 7);
	expect(t, SEEN(sent, SERVER_SIDE, true, SECOND, SECOND), NULL, &asked);
	expect(t, SEEN(answered, SERVER_SIDE, false, SECOND, SECOND), &received,
	       NULL);
	expect(t, SEEN(received, CLIENT_SIDE, true, SECOND, SECOND), NULL,
	       &answered);
	assert_int_equal(t->table.known, 1);
}

CASE(the_other_way_through_an_interface_is_another_face)
{
	add(t, REPORT(asked, answered, SECOND));
	expect(t, SEEN(asked, CLIENT_SIDE, true, SECOND, SECOND), NULL, NULL);
	expect(t, SEEN(sent, SERVER_SIDE, false, SECOND, SECOND), NULL, NULL);
}

CASE(other_flows_have_none)
{
	struct seen seen[] = {
		*SEEN(asked, CLIENT_SIDE, false, SECOND, SECOND),
		*SEEN(asked, CLIENT_SIDE, false, SECOND, SECOND,
		      .proto = IP_PROTO_TCP),
		*SEEN(asked, CLIENT_SIDE, false, SECOND, SECOND,
		      .tunnel = TUNNEL_VXLAN),
	};

	seen[0].ends.src_port++;
	add(t, REPORT(asked, answered, SECOND));
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		expect(t, &seen[i], NULL, NULL);
	assert_int_equal(t->ambiguous, 0);
}

/* As at the end of an interval. */
static void drain(struct translations *t, int n)
{
	while (n--)
		translations_settle(t);
}

/* Two hosts behind one address use the same port in turn. */
CASE(a_tuple_used_again_is_that_of_its_time)
{
	static const struct ends4 other_received = { "192.0.2.1", "10.0.0.9",
						     80, 1111 };

	for (int64_t ms = 100 * SECOND; ms < 150 * SECOND; ms += 2 * SECOND) {
		const struct seen first =
			*SEEN(answered, SERVER_SIDE, false, ms, ms + 500);
		const struct seen second = *SEEN(answered, SERVER_SIDE, false,
						 ms + 1000, ms + 1500);

		add(t, REPORT(asked, answered, ms));
		add(t, REPORT(asked, answered, ms + 500));
		drain(t, 2);
		expect(t, &first, &received, NULL);
		add(t, REPORT(other, answered, ms + 1000));
		add(t, REPORT(other, answered, ms + 1500));
		drain(t, 2);
		expect(t, &second, &other_received, NULL);
	}
	assert_int_equal(t->ambiguous, 0);
}

/* The same within one interval: a report dates the begin of a time only. */
CASE(two_users_of_a_tuple_in_an_interval_are_none)
{
	for (int64_t ms = 100 * SECOND; ms < 150 * SECOND; ms += 2 * SECOND) {
		add(t, REPORT(asked, answered, ms));
		add(t, REPORT(other, answered, ms + 1000));
		drain(t, 1);
		expect(t, SEEN(answered, SERVER_SIDE, false, ms, ms + 1500),
		       NULL, NULL);
		if (ms == 100 * SECOND)
			continue;
		expect(t, SEEN(answered, SERVER_SIDE, false, ms, ms), NULL, NULL);
	}
}

/* The process was found where the packets of one of them went on. */
CASE(of_two_users_of_a_tuple_no_process_is_named)
{
	static const struct netobs_process process = { .pid = 7 };
	uint64_t data[FLOW_EXTRA_BYTES_MAX / sizeof(uint64_t)] = { 0 };
	const struct flow_extra *extra = &t->extra;
	const struct flow_entry entry =
		entry_of(SEEN(answered, SERVER_SIDE, false, SECOND, 2 * SECOND));

	for (int users = 1; users <= 2; users++) {
		struct netobs_flow record = { .sz = sizeof(record),
					      .has = NETOBS_HAS_PORTS,
					      .src_process = &process,
					      .dst_process = &process };

		add(t, REPORT(users == 1 ? asked : other, answered,
			      users * SECOND));
		extra->note(data, &entry, extra->ctx);
		extra->fill(data, &record, extra->ctx);
		assert_ptr_equal(record.src_process, &process);
		assert_ptr_equal(record.dst_process,
				 users == 1 ? &process : NULL);
	}
}

CASE(entries_of_two_translations_make_a_record_of_none)
{
	const struct seen seen[] = {
		*SEEN(answered, SERVER_SIDE, false, 100 * SECOND, 101 * SECOND),
		*SEEN(answered, SERVER_SIDE, false, 120 * SECOND, 121 * SECOND),
	};
	struct netobs_flow record;

	add(t, REPORT(asked, answered, 100 * SECOND));
	add(t, REPORT(other, answered, 120 * SECOND));
	record = record_of(t, seen, 2);
	assert_none(&record);
	assert_int_equal(t->ambiguous, 1);
}

CASE(interfaces_distinguish_zones)
{
	static const struct ends4 sent2 = { "10.1.0.1", "10.1.0.2", 50001, 8080 };
	static const struct ends4 answered2 = { "10.1.0.2", "10.1.0.1", 8080,
						50001 };
	struct netobs_flow record;

	add(t, REPORT(asked, answered, SECOND, .zone = 1, .from = 8));
	add(t, REPORT(asked, answered2, SECOND, .zone = 2, .from = 9));
	record = expect(t, SEEN(asked, 8, false, SECOND, SECOND), &sent, NULL);
	assert_int_equal(record.zone_id, 1);
	record = expect(t, SEEN(asked, 9, false, SECOND, SECOND), &sent2, NULL);
	assert_int_equal(record.zone_id, 2);
	/* Elsewhere it may be of a connection that is not translated. */
	expect(t, SEEN(asked, 5, false, SECOND, SECOND), NULL, NULL);
}

CASE(a_translation_stays_with_a_flow_that_is_not_reported_any_more)
{
	add(t, REPORT(asked, answered, SECOND));
	for (int64_t ms = SECOND; ms < 600 * SECOND; ms += 5 * SECOND) {
		expect(t, SEEN(asked, CLIENT_SIDE, false, ms, ms + 5 * SECOND),
		       &sent, NULL);
		expect(t, SEEN(received, CLIENT_SIDE, true, ms, ms + 5 * SECOND),
		       NULL, &answered);
		translations_settle(t);
	}
	expect(t, SEEN(asked, CLIENT_SIDE, false, 700 * SECOND, 701 * SECOND),
	       NULL, NULL);
}

/* A program reports it once in an interval, and another CPU's after a pause. */
CASE(a_pause_within_an_interval_changes_nothing)
{
	for (int64_t ms = 100 * SECOND; ms < 500 * SECOND; ms += 100 * SECOND) {
		add(t, REPORT(asked, answered, ms));
		add(t, REPORT(asked, answered, ms + 20 * SECOND));
		translations_settle(t);
		for (int64_t pause = 0; pause <= 40; pause += 20)
			expect(t,
			       SEEN(asked, CLIENT_SIDE, false,
				    ms + pause * SECOND, ms + pause * SECOND),
			       &sent, NULL);
		translations_release(t);
	}
}

CASE(a_connection_that_begins_has_no_translation_of_an_earlier_one)
{
	add(t, REPORT(asked, answered, 100 * SECOND, .proto = IP_PROTO_TCP));
	expect(t,
	       SEEN(asked, CLIENT_SIDE, false, 105 * SECOND, 106 * SECOND,
		    .proto = IP_PROTO_TCP),
	       &sent, NULL);
	expect(t,
	       SEEN(asked, CLIENT_SIDE, false, 107 * SECOND, 108 * SECOND,
		    .proto = IP_PROTO_TCP, .marks = TCP_SYN),
	       NULL, NULL);
	add(t, REPORT(asked, answered, 107 * SECOND, .proto = IP_PROTO_TCP));
	expect(t,
	       SEEN(asked, CLIENT_SIDE, false, 107 * SECOND, 108 * SECOND,
		    .proto = IP_PROTO_TCP, .marks = TCP_SYN),
	       &sent, NULL);
}

CASE(what_was_translated_and_is_not_any_more_has_none)
{
	static const struct ends4 plain = { "192.0.2.1", "10.0.0.2", 80,
					    CLIENT_PORT };

	add(t, REPORT(asked, answered, SECOND));
	add(t, REPORT(asked, plain, 30 * SECOND));
	expect(t, SEEN(asked, CLIENT_SIDE, false, 30 * SECOND, 31 * SECOND),
	       NULL, NULL);
	assert_int_equal(t->ambiguous, 0);
}

/* The reply has a type of its own, and the identifier may change. */
CASE(pings_have_addresses_and_no_ports)
{
	static const struct ends4 request = { "10.0.0.2", "192.0.2.1", 77,
					      8 << 8 };
	static const struct ends4 reply = { "192.0.2.1", "198.51.100.1", 99, 0 };
	static const struct ends4 out = { "198.51.100.1", "192.0.2.1", 0, 8 << 8 };
	static const struct ends4 back = { "192.0.2.1", "10.0.0.2", 0, 0 };
	struct seen seen = *SEEN(request, CLIENT_SIDE, false, SECOND, SECOND,
				 .proto = IP_PROTO_ICMP);
	struct netobs_flow record;

	add(t, REPORT(request, reply, SECOND, .proto = IP_PROTO_ICMP));
	seen.ends.src_port = 0;
	record = expect(t, &seen, &out, NULL);
	assert_false(record.has & NETOBS_HAS_XLAT_PORTS);
	seen.ends = reply;
	seen.ends.src_port = 0;
	seen.ifindex = SERVER_SIDE;
	expect(t, &seen, &back, NULL);
}

/* As pings of very many hosts behind one address do: lists are long, and work is not. */
CASE(a_face_of_very_many_is_none)
{
	struct report report = *REPORT(asked, answered, SECOND);
	char source[INET_ADDRSTRLEN];

	report.original.src = source;
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < TRANSLATIONS_MAX; i++) {
			snprintf(source, sizeof(source), "%u.%u.%u.%u",
				 10 + round, i >> 16, i >> 8 & 255, i & 255);
			add(t, &report);
		}
		expect(t,
		       SEEN(answered, SERVER_SIDE, false, report.ms, report.ms),
		       NULL, NULL);
		assert_int_equal(t->ambiguous, round + 1);
		report.ms += (TRANSLATION_KEEP_S + 1) * SECOND;
	}
}

/* Two networks with the same addresses, each of which has those of the other one behind NAT. */
CASE(translations_that_lead_back_to_each_other_have_no_origin)
{
	static const struct ends4 one = { "10.1.0.2", "10.9.0.1", 1, 2 };
	static const struct ends4 two = { "10.2.0.2", "10.9.0.1", 1, 2 };
	static const struct ends4 one_back = { "10.9.0.1", "10.1.0.2", 2, 1 };
	static const struct ends4 two_back = { "10.9.0.1", "10.2.0.2", 2, 1 };
	struct netns netns[] = { { .index = 0 }, { .index = 1 }, { .index = 2 } };
	const struct host host = { .netns = netns, .n_netns = ARRAY_SIZE(netns) };
	struct flow_entry entry =
		entry_of(SEEN(one, CLIENT_SIDE, false, SECOND, SECOND));
	struct tuple tuple;
	struct origin origin;
	uint32_t node;

	entry.key.netns = 0;
	add(t, REPORT(one, two_back, SECOND, .netns = 1));
	origin = search_origin(&host, &t->table, &entry);
	assert_false(origin.is_ambiguous);
	assert_int_equal(origin.hops, 0);
	add(t, REPORT(two, one_back, SECOND, .netns = 2));
	origin = search_origin(&host, &t->table, &entry);
	assert_true(origin.is_ambiguous);
	assert_int_equal(origin.hops, 0);
	assert_memory_equal(&origin.tuple.src, &entry.key.src,
			    sizeof(entry.key.src));
	node = translation_node(&t->table, &t->table.list[0],
				SIDES * NAT_ORIGINAL + AFTER);
	assert_false(search_conversation(&host, &t->table, &entry, node, &tuple));
}

static void add_netif(struct netns *netns, uint32_t ifindex,
		      enum link_type type, uint32_t level)
{
	struct netif *netif = netifs_ensure(&netns->netifs, ifindex);

	assert_non_null(netif);
	netif->type = type;
	netif->stack = level ? SERVER_SIDE : ifindex;
	netif->level = level;
}

/* What left by a macvlan comes in below it, and tc sends it on; what tc redirected leaves by an ifb. */
CASE(what_is_sent_back_here_keeps_its_origin)
{
	enum { LOWER = 5, IFB, OTHER };
	static const struct {
		uint32_t ifindex;
		uint8_t flags;
		uint32_t hops;
	} cases[] = { { LOWER, 0, 1 },
		      { IFB, KEY_EGRESS, 1 },
		      { OTHER, 0, 0 },
		      { OTHER, KEY_EGRESS, 0 },
		      { OTHER, KEY_EGRESS | KEY_AGAIN, 1 },
		      { SERVER_SIDE, 0, 1 } };
	struct netns netns[] = { { .index = 0 }, { .index = 1, .domain = 1 } };
	const struct host host = { .netns = netns, .n_netns = ARRAY_SIZE(netns) };
	struct netif *macvlan;

	add_netif(&netns[1], SERVER_SIDE, LINK_TYPE_MACVLAN, 2);
	add_netif(&netns[1], LOWER, LINK_TYPE_PAIR, 1);
	add_netif(&netns[1], IFB, LINK_TYPE_IFB, 0);
	add_netif(&netns[1], OTHER, LINK_TYPE_PAIR, 0);
	macvlan = host_find(&host, 1, SERVER_SIDE);
	macvlan->link = LOWER;
	macvlan->link_netns = 1;
	host_find(&host, 1, LOWER)->is_origin = true;
	add(t, REPORT(asked, answered, SECOND));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct flow_entry entry = entry_of(
			SEEN(sent, cases[i].ifindex, false, SECOND, SECOND));
		struct origin origin;

		entry.key.flags |= cases[i].flags;
		origin = search_origin(&host, &t->table, &entry);
		assert_false(origin.is_ambiguous);
		assert_int_equal(origin.hops, cases[i].hops);
	}
	netifs_done(&netns[1].netifs);
}

/* What leaves and was counted nowhere came in by an interface that does not count, now or before. */
CASE(what_changes_its_way_in_keeps_its_origin)
{
	enum { COUNTED = 5, COUNTED_TOO };
	static const struct {
		uint32_t from, hops;
	} reports[] = {
		{ COUNTED, 0 },	    { COUNTED_TOO, 0 }, { COUNTED, 0 },
		{ CLIENT_SIDE, 1 }, { COUNTED, 1 },	{ COUNTED_TOO, 1 },
		{ COUNTED, 1 },	    { CLIENT_SIDE, 1 },
	};
	struct netns netns[] = { { .index = 0 }, { .index = 1, .domain = 1 } };
	const struct host host = { .netns = netns, .n_netns = ARRAY_SIZE(netns) };

	for (uint32_t ifindex = CLIENT_SIDE; ifindex <= COUNTED_TOO; ifindex++) {
		add_netif(&netns[1], ifindex, LINK_TYPE_PAIR, 0);
		host_find(&host, 1, ifindex)->is_origin = ifindex >= COUNTED;
	}
	for (size_t i = 0; i < ARRAY_SIZE(reports); i++) {
		struct flow_entry entry =
			entry_of(SEEN(sent, SERVER_SIDE, true, SECOND, SECOND));

		add(t, REPORT(asked, answered, SECOND, .from = reports[i].from));
		assert_int_equal(search_origin(&host, &t->table, &entry).hops,
				 reports[i].hops);
		entry.key.flags |= KEY_AGAIN;
		assert_int_equal(search_origin(&host, &t->table, &entry).hops, 1);
	}
	netifs_done(&netns[1].netifs);
}

/* Another one is at the place of that which the first flow has had. */
CASE(flows_joined_after_their_translation_is_gone_have_none)
{
	struct translation_table *table = &t->table;
	uint64_t data[2][FLOW_EXTRA_BYTES_MAX / sizeof(uint64_t)] = { 0 };
	const struct flow_extra *extra = &t->extra;
	struct netobs_flow record = { .sz = sizeof(record),
				      .has = NETOBS_HAS_PORTS };

	for (int i = 0; i < 2; i++) {
		const struct flow_entry entry = entry_of(
			SEEN(answered, SERVER_SIDE, false, SECOND, SECOND));

		add(t, REPORT(i ? other : asked, answered, SECOND));
		extra->note(data[i], &entry, extra->ctx);
		if (!i)
			translation_table_remove(table, &table->list[0], 0);
	}
	extra->join(data[1], data[0], extra->ctx);
	extra->fill(data[1], &record, extra->ctx);
	assert_none(&record);
}

/* An entry finds the same when it is announced and when it is delivered. */
CASE(reports_during_a_drain_count_after_it)
{
	enum { LATER = 1 << 17 };
	struct nat_event event = {
		.time_ns = SECOND * NSEC_PER_MSEC,
		.tuples = { tuple_of(&asked, IP_PROTO_UDP),
			    tuple_of(&answered, IP_PROTO_UDP) },
		.ifindex = SERVER_SIDE,
		.from_ifindex = CLIENT_SIDE,
	};

	translations_settle(t);
	for (int i = 0; i < LATER + 7; i++) {
		event.tuples[0].src[0]++;
		translations_note(t, &event);
	}
	assert_int_equal(t->table.known, 0);
	translations_release(t);
	assert_int_equal(t->table.known, LATER);
	assert_int_equal(t->late, 7);
	event.tuples[0].src[0]++;
	translations_note(t, &event);
	assert_int_equal(t->table.known, LATER + 1);
}

/* What is reported during a drain is used from its end on: an alert can wait for that. */
CASE(a_conversation_is_known_when_the_drain_has_ended)
{
	const struct flow_entry entry = entry_of(
		SEEN(asked, CLIENT_SIDE, false, 2 * SECOND, 2 * SECOND));
	const struct flow_entry after =
		entry_of(SEEN(sent, SERVER_SIDE, true, 2 * SECOND, 2 * SECOND));
	const struct nat_event event = {
		.time_ns = 2 * SECOND * NSEC_PER_MSEC,
		.tuples = { tuple_of(&asked, IP_PROTO_UDP),
			    tuple_of(&answered, IP_PROTO_UDP) },
		.ifindex = SERVER_SIDE,
		.from_ifindex = CLIENT_SIDE,
		.netns = 1,
	};
	uint64_t id = 0, same = 0;

	translations_settle(t);
	assert_int_equal(conversation_at(t, &after, &id), 0);
	translations_note(t, &event);
	assert_true(translations_wait(t));
	assert_int_equal(conversation_at(t, &entry, &id), -EAGAIN);
	assert_int_equal(conversation_at(t, &after, &id), -EAGAIN);
	translations_release(t);
	assert_false(translations_wait(t));
	assert_int_equal(conversation_at(t, &entry, &id), 0);
	assert_int_equal(conversation_at(t, &after, &same), 0);
	assert_true(id);
	assert_true(id == same);
}

/* ---- Tunnels that pass ---------------------------------------------------------------- */

/* Later than TRANSLATION_SLACK_NS: a SYN outside would be that of a connection of its own. */
enum { LATER_MS = 2 * SECOND };

static const struct hash_secret secret = { .outer = { 3, 5, 7, 11, 13, 17, 19,
						      23 } };

static void begin_again(struct translations *translations)
{
	static const struct translations_options options = {
		.joins_faces = true,
		.tunnel_addrs_fd = -1,
		.secret = &secret,
	};

	translations_close(translations);
	assert_int_equal(translations_init(translations, &options), 0);
}

static uint32_t outer_hash_of(const struct ends4 *ends)
{
	const struct flow_key key = { .src = address4(ends->src),
				      .dst = address4(ends->dst) };

	return hash_addrs(&key, secret.outer);
}

/* @outer: the outer packet of a connection that begins in a tunnel; the kernel knows its addresses */
static struct flow_entry enter(struct translations *t, const struct seen *outer)
{
	struct flow_entry entry = entry_of(outer);
	const uint32_t hash = outer_hash_of(&outer->ends);
	__typeof__(&t->tunnels.slots[0]) slot =
		&t->tunnels.slots[hash % TUNNELS_CACHED];

	slot->key = (struct tunnel_key){ .hash = hash };
	slot->addrs = (struct tunnel_addrs){ entry.key.src, entry.key.dst };
	slot->is_known = true;
	entry.outer_src_port = outer->ends.src_port;
	entry.outer_dst_port = outer->ends.dst_port;
	entry.key.outer_hash = hash;
	entry.key.proto = IP_PROTO_TCP;
	entry.key.src = address4("172.16.0.1");
	entry.key.dst = address4("172.16.0.2");
	entry.key.src_port = 1000;
	entry.key.dst_port = 2000;
	entry.tally.attrs.marks = TCP_SYN;
	return entry;
}

/* The entry counts with these outer addresses, and its inner tuple as it is. */
static void expect_outer(struct translations *t, const struct flow_entry *entry,
			 const struct ends4 *wanted)
{
	struct flow_key key = entry->key, own = entry->key;

	assert_true(t->extra.find_key(entry, true, &key, t->extra.ctx));
	own.outer_hash = outer_hash_of(wanted);
	assert_memory_equal(&key, &own, sizeof(key));
}

static void expect_passing(struct translations *t, const struct seen *outer,
			   const struct ends4 *wanted)
{
	const struct flow_entry entry = enter(t, outer);
	struct flow_entry fragment = entry;

	expect_outer(t, &entry, wanted);
	fragment.key.flags |= KEY_NO_TRANSPORT;
	expect_outer(t, &fragment, wanted);
}

static struct ends4 without_ports(struct ends4 ends)
{
	ends.src_port = ends.dst_port = 0;
	return ends;
}

CASE(a_tunnel_that_passes_counts_with_its_first_outer_addresses)
{
	static const struct {
		uint8_t tunnel, proto;
	} cases[] = {
		{ TUNNEL_VXLAN, IP_PROTO_UDP },
		{ TUNNEL_GENEVE, IP_PROTO_UDP },
		{ TUNNEL_GTPU, IP_PROTO_UDP },
		{ TUNNEL_GRE, IP_PROTO_GRE },
		{ TUNNEL_IPIP, IP_PROTO_IPIP },
		{ TUNNEL_IPIP, IP_PROTO_IPV6 },
		{ TUNNEL_SRV6, IP_PROTO_ETHERNET },
		{ TUNNEL_ERSPAN, IP_PROTO_GRE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const bool has_ports = cases[i].proto == IP_PROTO_UDP;
		const struct ends4 from = has_ports ? asked :
						      without_ports(asked);
		const struct ends4 to = has_ports ? sent : without_ports(sent);
		const struct ends4 back = has_ports ? answered :
						      without_ports(answered);
		const struct ends4 end = has_ports ? received :
						     without_ports(received);
		const uint8_t tunnel = cases[i].tunnel;

		begin_again(t);
		expect_passing(t,
			       SEEN(to, SERVER_SIDE, true, LATER_MS, LATER_MS,
				    .tunnel = tunnel),
			       &to);
		add(t, REPORT(from, back, SECOND, .proto = cases[i].proto));
		expect_passing(t,
			       SEEN(from, CLIENT_SIDE, false, LATER_MS,
				    LATER_MS, .tunnel = tunnel),
			       &from);
		expect_passing(t,
			       SEEN(to, SERVER_SIDE, true, LATER_MS, LATER_MS,
				    .tunnel = tunnel),
			       &from);
		expect_passing(t,
			       SEEN(back, SERVER_SIDE, false, LATER_MS,
				    LATER_MS, .tunnel = tunnel),
			       &back);
		expect_passing(t,
			       SEEN(end, CLIENT_SIDE, true, LATER_MS, LATER_MS,
				    .tunnel = tunnel),
			       &back);
	}
}

CASE(a_tunnel_is_not_translated_with_others)
{
	const struct seen gre = *SEEN(sent, SERVER_SIDE, true, SECOND, SECOND,
				      .tunnel = TUNNEL_GRE);
	const struct seen vxlan = *SEEN(sent, SERVER_SIDE, true, SECOND, SECOND,
					.tunnel = TUNNEL_VXLAN);
	struct flow_entry entry;

	begin_again(t);
	add(t, REPORT(asked, answered, SECOND));
	expect_passing(t, &gre, &sent);
	expect_passing(t, &vxlan, &asked);
	/* Newer tunnels have evicted its addresses. */
	entry = enter(t, &vxlan);
	entry.outer_check++;
	expect_outer(t, &entry, &sent);
}

CASE(a_tunnel_of_several_translations_counts_where_it_came_in)
{
	const struct seen seen = *SEEN(sent, SERVER_SIDE, true, SECOND, SECOND,
				       .tunnel = TUNNEL_VXLAN);
	struct host host = { 0 };
	struct flow_entry entry;
	struct flow_key key;

	begin_again(t);
	entry = enter(t, &seen);
	key = entry.key;
	add(t, REPORT(asked, answered, SECOND));
	add(t, REPORT(other, answered, SECOND));
	expect_outer(t, &entry, &sent);
	t->host = &host;
	assert_false(t->extra.find_key(&entry, true, &key, t->extra.ctx));
	assert_true(t->extra.find_key(&entry, false, &key, t->extra.ctx));
	host.is_filtered = true;
	assert_true(t->extra.find_key(&entry, true, &key, t->extra.ctx));
	assert_memory_equal(&key, &entry.key, sizeof(key));
}

CASE(a_tunnel_through_two_routers_counts_with_its_first_outer_addresses)
{
	static const struct ends4 inside = { "10.9.9.9", "192.0.2.1", 1234, 80 };
	static const struct ends4 inside_back = { "192.0.2.1", "10.0.0.2", 80,
						  CLIENT_PORT };
	struct netns netns[] = { { .index = 0 }, { .index = 1 }, { .index = 2 } };
	const struct host host = { .netns = netns, .n_netns = ARRAY_SIZE(netns) };

	begin_again(t);
	t->host = &host;
	add(t, REPORT(inside, inside_back, SECOND, .netns = 2));
	add(t, REPORT(asked, answered, SECOND));
	expect_passing(t,
		       SEEN(asked, CLIENT_SIDE, false, SECOND, SECOND,
			    .tunnel = TUNNEL_GENEVE),
		       &inside);
}
