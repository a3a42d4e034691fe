// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The edges of random conversations between many hosts, of which several report each, with losses,
 * NAT and several interfaces, are what the hosts have sent.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include <netobs/session.h>

#include "base/conversation.h"
#include "base/util.h"
#include "reports/services.h"

enum {
	HOSTS = 40,
	ROUTERS = 4,
	EDGES = 1000,
	TALKS_MAX = 5,	 /* of an edge */
	RECORDS_MAX = 6, /* of a direction */
	REPORTS_MAX = EDGES * TALKS_MAX * (2 * RECORDS_MAX * 3 * 2 + 4),
	TCP = 6,
	SYN = 2,
	ACK = 16,
};

/* What is true of an edge. */
struct truth {
	struct edge_key key;
	uint64_t packets[EDGE_WAYS], bytes[EDGE_WAYS];
	uint64_t connections, refused, resets;
};

struct told {
	uint32_t reporter;
	struct service_report report;
};

struct world {
	struct truth truths[EDGES];
	uint32_t n_truths;
	struct told *told;
	uint32_t n_told;
	uint16_t next_port; /* of clients, and of NAT */
};

/* A way that packets take: before NAT, and behind it. */
struct path {
	struct flow_face before, behind; /* from the client to the service */
	uint32_t client, server, router; /* who may report it */
	bool has_nat, is_old;
};

static bool chance(uint32_t percent)
{
	return test_below(100) < percent;
}

static void set_addr(uint8_t addr[16], uint8_t net, uint32_t host)
{
	memset(addr, 0, 16);
	addr[10] = addr[11] = 0xff;
	addr[12] = 10;
	addr[13] = net;
	addr[15] = (uint8_t)(host + 1);
}

/* ---- Reports ----------------------------------------------------------------------------- */

static struct service_report *tell(struct world *world, uint32_t reporter)
{
	struct told *told = &world->told[world->n_told++];

	assert_true(world->n_told <= REPORTS_MAX);
	*told = (struct told){ .reporter = reporter };
	return &told->report;
}

static uint64_t id_of(const struct flow_face *face)
{
	return conversation_id(&(struct conversation){ .src = face->src,
						       .dst = face->dst,
						       .src_port = face->src_port,
						       .dst_port = face->dst_port,
						       .proto = face->proto });
}

/* As the router has it: packets come in with one face, and leave with the other. */
static void add_nat(const struct path *path, enum edge_way way,
		    struct service_report *report)
{
	const struct flow_face behind =
		way == TO_SERVICE ? path->behind : flow_face_back(&path->before);

	report->others[report->n_others++] = behind;
	report->conversation_id = id_of(&path->before);
}

static void tell_record(struct world *world, const struct path *path,
			uint32_t reporter, const struct service_report *record,
			enum edge_way way)
{
	struct service_report *report = tell(world, reporter);

	*report = *record;
	if (reporter == path->router && path->has_nat)
		add_nat(path, way, report);
}

/* The face that an observer sees. */
static struct flow_face face_of(const struct path *path, uint32_t reporter,
				enum edge_way way)
{
	struct flow_face face = reporter == path->server ? path->behind :
							   path->before;

	if (way == TO_SERVICE)
		return face;
	if (reporter == path->router)
		face = path->behind;
	return flow_face_back(&face);
}

static void tell_way(struct world *world, const struct path *path,
		     enum edge_way way, struct truth *truth)
{
	const uint32_t observers[] = { path->client, path->router, path->server };
	const uint32_t complete = observers[test_below(3)];
	const uint32_t n = 1 + test_below(RECORDS_MAX);

	for (uint32_t i = 0; i < n; i++) {
		struct service_report record = {
			.kind = REPORT_FLOW,
			.packets = 1 + test_below(1000),
			.bytes = 40 + test_below(1000000),
			.start_ms = 1000000 + 100 * i,
			.end_ms = 1000090 + 100 * i,
			.has_combined = true,
			.tcp_flags = ACK,
		};

		if (!i && !path->is_old) {
			record.tcp_flags |= SYN;
			record.tcp_combined =
				way == TO_CLIENT ? NETOBS_TCP_SYN_ACK : 0;
		}
		truth->packets[way] += record.packets;
		truth->bytes[way] += record.bytes;
		for (size_t k = 0; k < 3; k++) {
			/* What becomes of NAT, the router has said once at least. */
			const bool is_needed = observers[k] == complete ||
					       (k == 1 && path->has_nat && !i);

			if (!is_needed && chance(40))
				continue;
			record.face = face_of(path, observers[k], way);
			tell_record(world, path, observers[k], &record, way);
		}
	}
}

static void tell_sessions(struct world *world, const struct path *path,
			  struct truth *truth)
{
	static const uint8_t endings[] = { NETOBS_SESSION_FIN,
					   NETOBS_SESSION_RESET,
					   NETOBS_SESSION_ABORTED,
					   NETOBS_SESSION_REFUSED };
	const uint8_t ended = endings[test_below(sizeof(endings))];
	struct service_report *report = tell(world, path->client);

	*report = (struct service_report){ .kind = REPORT_SESSION,
					   .face = path->before,
					   .opened = NETOBS_SESSION_ACTIVE,
					   .ended = ended };
	truth->connections++;
	truth->refused += ended == NETOBS_SESSION_REFUSED;
	truth->resets += ended == NETOBS_SESSION_RESET ||
			 ended == NETOBS_SESSION_ABORTED;
	if (ended == NETOBS_SESSION_REFUSED || chance(30))
		return;
	report = tell(world, path->server);
	*report = (struct service_report){ .kind = REPORT_SESSION,
					   .face = flow_face_back(&path->behind),
					   .opened = NETOBS_SESSION_PASSIVE,
					   .ended = ended };
}

/* ---- The world --------------------------------------------------------------------------- */

static struct truth *truth_of(struct world *world, const struct edge_key *key)
{
	for (uint32_t i = 0; i < world->n_truths; i++)
		if (!memcmp(&world->truths[i].key, key, sizeof(*key)))
			return &world->truths[i];
	world->truths[world->n_truths] = (struct truth){ .key = *key };
	return &world->truths[world->n_truths++];
}

/* From a client to a service, or to the address of a router that has it. */
static struct path make_path(bool has_low_port)
{
	const uint32_t client = test_below(HOSTS), router = test_below(ROUTERS);
	const uint32_t server = (client + 1 + test_below(HOSTS - 1)) % HOSTS;
	const uint16_t port = (uint16_t)((has_low_port ? 1 : 60000) +
					 server * 8 + test_below(3));
	struct path path = { .client = client,
			     .server = server,
			     .router = HOSTS + router,
			     .is_old = has_low_port && chance(20) };
	const bool has_dnat = chance(25), has_snat = chance(25);

	path.before.proto = TCP;
	set_addr(path.before.src, 0, client);
	set_addr(path.before.dst, 0, server);
	path.before.dst_port = port;
	path.behind = path.before;
	if (has_dnat) {
		set_addr(path.before.dst, 1, router);
		path.before.dst_port = (uint16_t)(port + 4);
	}
	if (has_snat)
		set_addr(path.behind.src, 2, router);
	path.has_nat = has_dnat || has_snat;
	return path;
}

static void talk(struct world *world, struct path *path, struct truth *truth)
{
	const bool has_snat = memcmp(path->before.src, path->behind.src, 16);

	path->before.src_port = path->behind.src_port = world->next_port++;
	if (has_snat)
		path->behind.src_port = world->next_port++;
	tell_way(world, path, TO_SERVICE, truth);
	tell_way(world, path, TO_CLIENT, truth);
	tell_sessions(world, path, truth);
}

static void shuffle(struct world *world)
{
	for (uint32_t i = world->n_told; i > 1; i--) {
		const uint32_t other = test_below(i);
		const struct told told = world->told[i - 1];

		world->told[i - 1] = world->told[other];
		world->told[other] = told;
	}
}

static struct world *make_world(void)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world->told = calloc(REPORTS_MAX, sizeof(*world->told));
	assert_non_null(world->told);
	world->next_port = 20000;
	for (uint32_t i = 0; i < EDGES; i++) {
		struct path path = make_path(chance(80));
		struct edge_key key = { .port = path.before.dst_port,
					.proto = TCP };
		struct truth *truth;

		memcpy(key.client, path.before.src, sizeof(key.client));
		memcpy(key.service, path.before.dst, sizeof(key.service));
		truth = truth_of(world, &key);
		for (uint32_t n = 1 + test_below(TALKS_MAX); n; n--)
			talk(world, &path, truth);
	}
	shuffle(world);
	return world;
}

static void free_world(struct world *world)
{
	free(world->told);
	free(world);
}

static struct conversations *report_all(const struct world *world)
{
	struct conversations *all = conversations_new();
	char identity[16];

	assert_non_null(all);
	for (uint32_t i = 0; i < HOSTS + ROUTERS; i++) {
		uint32_t reporter;

		snprintf(identity, sizeof(identity), "host %u", i);
		assert_int_equal(conversations_reporter(all, identity, identity,
							&reporter),
				 0);
		assert_int_equal(reporter, i);
	}
	for (uint32_t i = 0; i < world->n_told; i++)
		assert_int_equal(conversations_add(all, world->told[i].reporter,
						   &world->told[i].report),
				 0);
	return all;
}

/* ---- Tests ------------------------------------------------------------------------------- */

static void assert_edge(const struct edge *edge, struct world *world)
{
	const uint32_t before = world->n_truths;
	const struct truth *truth = truth_of(world, &edge->key);
	const struct edge_counts *counts = &edge->sum.counts;

	assert_int_equal(world->n_truths, before);
	for (int way = 0; way < EDGE_WAYS; way++) {
		assert_int_equal(counts->packets[way], truth->packets[way]);
		assert_int_equal(counts->bytes[way], truth->bytes[way]);
	}
	assert_int_equal(counts->connections, truth->connections);
	assert_int_equal(counts->refused, truth->refused);
	assert_int_equal(counts->resets, truth->resets);
}

static uint64_t truth_bytes(const struct truth *truth)
{
	return truth->bytes[TO_SERVICE] + truth->bytes[TO_CLIENT];
}

static int by_truth(const void *a, const void *b)
{
	const struct truth *one = a, *other = b;

	if (truth_bytes(one) != truth_bytes(other))
		return truth_bytes(one) < truth_bytes(other) ? 1 : -1;
	return memcmp(&one->key, &other->key, sizeof(one->key));
}

/* All edges, then those with most bytes, whatever comes first. */
TEST(edges_are_what_the_hosts_have_sent_with_an_exact_remainder)
{
	struct world *world = make_world();
	struct edges edges = { .max = EDGES_MAX };
	struct edge_sum sum, truth = { 0 };

	assert_true(world->n_truths > EDGES / 2);

	for (uint32_t i = 0; i < world->n_truths; i++)
		for (int way = 0; way < EDGE_WAYS; way++) {
			truth.counts.packets[way] +=
				world->truths[i].packets[way];
			truth.counts.bytes[way] += world->truths[i].bytes[way];
		}
	qsort(world->truths, world->n_truths, sizeof(*world->truths), by_truth);
	for (int round = 0; round < 3; round++) {
		struct conversations *all = report_all(world);

		assert_int_equal(conversations_take(all, &edges), 0);
		assert_int_equal(edges.all.n,
				 min_u64(edges.max, world->n_truths));
		assert_int_equal(edges.n_others, world->n_truths - edges.all.n);
		edges_sort(&edges);
		sum = edges.others;
		for (uint32_t i = 0; i < edges.all.n; i++) {
			const struct edge *edge = edge_at(&edges, i);

			assert_memory_equal(&edge->key, &world->truths[i].key,
					    sizeof(edge->key));
			assert_edge(edge, world);
			assert_int_equal(edge->missing_bytes, 0);
			edge_sum_add(&sum, &edge->sum);
		}
		assert_memory_equal(sum.counts.packets, truth.counts.packets,
				    sizeof(truth.counts.packets));
		assert_memory_equal(sum.counts.bytes, truth.counts.bytes,
				    sizeof(truth.counts.bytes));
		assert_int_equal(conversations_totals(all)->shared_packets, 0);
		assert_true(conversations_totals(all)->repeated_packets > 0);
		edges_clear(&edges);
		edges.max = 2 + test_below(world->n_truths);
		conversations_free(all);
		shuffle(world);
	}
	edges_free(&edges);
	free_world(world);
}

/* A flow; the router has it with another source, and at the interface behind NAT with the first one. */
static void add_flow(struct conversations *all, uint32_t reporter,
		     const struct flow_face *face, const struct flow_face *before,
		     uint64_t packets, bool is_behind)
{
	struct service_report report = { .kind = REPORT_FLOW,
					 .face = *face,
					 .packets = packets,
					 .bytes = 100 * packets,
					 .start_ms = 1,
					 .end_ms = 2 };
	const struct flow_face own = *face;

	if (before) {
		report.face = is_behind ? own : *before;
		report.others[report.n_others++] = is_behind ? *before : own;
		report.conversation_id = id_of(before);
	}
	assert_int_equal(conversations_add(all, reporter, &report), 0);
}

static struct conversations *two_reporters(void)
{
	struct conversations *all = conversations_new();
	uint32_t reporter;

	assert_non_null(all);
	assert_int_equal(conversations_reporter(all, "a", "A", &reporter), 0);
	assert_int_equal(conversations_reporter(all, "b", "B", &reporter), 0);
	assert_int_equal(conversations_reporter(all, "a", "again", &reporter), 0);
	assert_int_equal(reporter, 0);
	assert_string_equal(conversations_reporter_name(all, 1), "B");
	return all;
}

TEST(a_tuple_that_nat_used_twice_counts_where_that_was_seen)
{
	struct conversations *all = two_reporters();
	struct edges edges = { .max = EDGES_MAX };
	struct flow_face behind = { .src_port = 40000,
				    .dst_port = 80,
				    .proto = TCP };
	struct flow_face one, other;

	set_addr(behind.src, 2, 0);
	set_addr(behind.dst, 0, 9);
	one = other = behind;
	set_addr(one.src, 0, 1);
	set_addr(other.src, 0, 2);
	add_flow(all, 1, &behind, NULL, 30, false); /* both, at the server */
	add_flow(all, 0, &behind, &one, 10, false);
	add_flow(all, 0, &behind, &other, 20, true);
	assert_int_equal(conversations_take(all, &edges), 0);
	edges_sort(&edges);
	assert_int_equal(edges.all.n, 2);
	assert_memory_equal(edge_at(&edges, 0)->key.client, other.src, 16);
	assert_int_equal(edge_packets(&edge_at(&edges, 0)->sum), 20);
	assert_memory_equal(edge_at(&edges, 1)->key.client, one.src, 16);
	assert_int_equal(edge_packets(&edge_at(&edges, 1)->sum), 10);
	assert_int_equal(conversations_totals(all)->shared_packets, 30);
	edges_free(&edges);
	conversations_free(all);
}

TEST(round_trips_of_a_host_are_added_up_and_those_of_hosts_are_not)
{
	struct conversations *all = two_reporters();
	struct edges edges = { .max = EDGES_MAX };
	struct flow_face face = { .src_port = 40000, .dst_port = 80, .proto = TCP };
	struct service_report report = { .kind = REPORT_FLOW,
					 .packets = 1,
					 .rtt_samples = 10 };

	set_addr(face.src, 0, 1);
	set_addr(face.dst, 0, 2);
	for (uint32_t reporter = 0; reporter < 2; reporter++) {
		report.face = face;
		report.rtt_ns = reporter ? 1000 : 9000;
		assert_int_equal(conversations_add(all, reporter, &report), 0);
		report.face = flow_face_back(&face);
		report.rtt_ns = reporter ? 9000 : 1000;
		assert_int_equal(conversations_add(all, reporter, &report), 0);
	}
	assert_int_equal(conversations_take(all, &edges), 0);
	assert_int_equal(edges.all.n, 1);
	assert_int_equal(edge_rtt_ns(&edge_at(&edges, 0)->sum.counts), 10000);
	assert_int_equal(edge_at(&edges, 0)->sum.hosts, 2);
	edges_free(&edges);
	conversations_free(all);
}

TEST(what_accepts_is_the_service_whatever_its_port)
{
	struct conversations *all = two_reporters();
	struct edges edges = { .max = EDGES_MAX };
	struct flow_face face = { .src_port = 1000,
				  .dst_port = 50000,
				  .proto = TCP };
	struct service_report report = { .kind = REPORT_FLOW,
					 .packets = 1,
					 .tcp_flags = SYN | ACK,
					 .has_combined = true,
					 .tcp_combined = NETOBS_TCP_SYN_ACK };

	set_addr(face.src, 0, 1);
	set_addr(face.dst, 0, 2);
	report.face = flow_face_back(&face);
	assert_int_equal(conversations_add(all, 0, &report), 0);
	report = (struct service_report){ .kind = REPORT_FLOW, .packets = 1 };
	face.src_port = 1001; /* its beginning was not seen */
	report.face = face;
	assert_int_equal(conversations_add(all, 0, &report), 0);
	assert_int_equal(conversations_take(all, &edges), 0);
	assert_int_equal(edges.all.n, 1);
	assert_int_equal(edge_at(&edges, 0)->key.port, 50000);
	assert_int_equal(edge_at(&edges, 0)->sum.evidence, EVIDENCE_ACCEPTS);
	assert_int_equal(edge_at(&edges, 0)->sum.counts.conversations, 2);
	edges_free(&edges);
	conversations_free(all);
}

/* Its packets count. */
TEST(a_flow_without_both_times_has_no_part_in_the_span)
{
	static const int64_t times[][2] = {
		{ 0, 0 }, { 0, 5000 }, { 1, 0 }, { 9000, 8000 }, { 3000, 4000 },
	};
	struct conversations *all = two_reporters();
	struct edges edges = { .max = EDGES_MAX };
	struct service_report report = { .kind = REPORT_FLOW,
					 .face = { .proto = TCP },
					 .packets = 1 };

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		report.start_ms = times[i][0];
		report.end_ms = times[i][1];
		assert_int_equal(conversations_add(all, 0, &report), 0);
	}
	assert_int_equal(conversations_totals(all)->start_ms, 3000);
	assert_int_equal(conversations_totals(all)->end_ms, 4000);
	assert_int_equal(conversations_take(all, &edges), 0);
	assert_int_equal(edges.all.n, 1);
	assert_int_equal(edge_at(&edges, 0)->sum.start_ms, 3000);
	assert_int_equal(edge_at(&edges, 0)->sum.end_ms, 4000);
	assert_int_equal(edge_packets(&edge_at(&edges, 0)->sum), 5);
	edges_free(&edges);
	conversations_free(all);
}

/* Of a broadcast, all hosts report the same tuple. */
TEST(a_conversation_of_many_hosts_counts_once)
{
	enum { MANY = 20000 };
	struct conversations *all = conversations_new();
	struct edges edges = { .max = EDGES_MAX };
	struct service_report report = {
		.kind = REPORT_FLOW,
		.face = { .src_port = 40000, .dst_port = 53, .proto = 17 },
		.start_ms = 1000,
		.end_ms = 2000,
	};
	char identity[24];

	assert_non_null(all);
	set_addr(report.face.src, 0, 1);
	set_addr(report.face.dst, 0, 2);
	for (report.packets = 1; report.packets <= MANY; report.packets++) {
		uint32_t reporter;

		snprintf(identity, sizeof(identity), "host %d",
			 (int)report.packets);
		assert_int_equal(conversations_reporter(all, identity, identity,
							&reporter),
				 0);
		assert_int_equal(conversations_add(all, reporter, &report), 0);
	}
	assert_int_equal(conversations_take(all, &edges), 0);
	assert_int_equal(edges.all.n, 1);
	assert_int_equal(edge_packets(&edge_at(&edges, 0)->sum), MANY);
	assert_int_equal(edge_at(&edges, 0)->sum.counts.repeated_packets,
			 (uint64_t)MANY * (MANY - 1) / 2);
	edges_free(&edges);
	conversations_free(all);
}

/* ---- Edges that come again --------------------------------------------------------------- */

enum { RETURNING = 60 };

/* A connection of an edge; some sockets are connected to themselves. */
static uint64_t add_returning(struct conversations *all, uint32_t edge,
			      uint16_t port)
{
	struct service_report report = {
		.kind = REPORT_FLOW,
		.face = { .src_port = port, .dst_port = 80, .proto = TCP },
		.packets = 1,
		.bytes = 1 + (test_random() >> 44 >> test_below(20)),
		.tcp_flags = SYN,
		.has_combined = true,
		.start_ms = 1,
		.end_ms = 2,
	};

	set_addr(report.face.src, 0, edge);
	set_addr(report.face.dst, 1, 0);
	if (edge % 16 == 0) {
		memcpy(report.face.dst, report.face.src, 16);
		report.face.src_port = report.face.dst_port;
	}
	assert_int_equal(conversations_add(all, 0, &report), 0);
	return report.bytes;
}

/* What an edge has, and may lack, against what it had. */
static void check_returning(const struct edges *edges,
			    const uint64_t truths[RETURNING])
{
	uint64_t total = edge_bytes(&edges->others), truth = 0;
	bool is_shown[RETURNING] = { 0 };

	assert_true(edges->all.n <= edges->max);
	for (uint32_t i = 0; i < edges->all.n; i++) {
		const struct edge *edge = edge_at(edges, i);
		const uint64_t bytes = edge_bytes(&edge->sum);
		const uint32_t number = edge->key.client[15] - 1;

		assert_in_range(truths[number], bytes,
				bytes + edge->missing_bytes);
		is_shown[number] = true;
		total += bytes;
	}
	for (uint32_t i = 0; i < RETURNING; i++) {
		if (!is_shown[i])
			assert_true(truths[i] <= edges->evicted_bytes);
		truth += truths[i];
	}
	assert_int_equal(total, truth);
}

static void try_returning(void)
{
	struct conversations *all = two_reporters();
	struct edges edges = { .max = 2 + test_below(RETURNING) };
	uint64_t truths[RETURNING] = { 0 };
	uint16_t port = 20000;

	for (uint32_t calls = 1 + test_below(8); calls; calls--) {
		for (uint32_t n = test_below(100); n; n--) {
			const uint32_t edge =
				test_below(1 + test_below(RETURNING));

			truths[edge] += add_returning(all, edge, port++);
		}
		assert_int_equal(conversations_take(all, &edges), 0);
		check_returning(&edges, truths);
	}
	edges_free(&edges);
	conversations_free(all);
}

/* NETOBS_TEST_CASES: how many. */
TEST(an_edge_that_comes_again_says_what_it_may_lack)
{
	const char *cases = getenv("NETOBS_TEST_CASES");

	for (int i = cases ? atoi(cases) : 100; i > 0; i--)
		try_returning();
}
