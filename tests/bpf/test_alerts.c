// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Rules about connections in the kernel: random rules and random samples, compared with a model
 * that keeps all samples. Frames go through the real programs, at times that the test
 * chooses. NETOBS_TEST_SEED repeats a run.
 */
#include <netobs/alert.h>

#include "lib_seed.h"
#include "lib_test.h"

#include "alerts/alerts.h"
#include "host.h"
#include "prog_test.h"
#include "tcp_frames.h"

enum {
	CONNECTIONS = 6,
	RULES = 60, /* of the model, at most */
	MANY = 100,
	STEPS = 400,
	ROUNDS = 16,
	SERVER_PORT = 80,
	TICK = 1 << 20,
};

static const struct prog_options options = {
	.clock = CLOCK_PACKET,
	.has_egress = 1,
	.conn_buckets = 64,
	.has_alerts = 1,
};

/* ---- Frames ------------------------------------------------------------------------- */

struct client {
	uint16_t port;
	uint32_t seq, ack; /* the next ones of the client, and of the server */
	/* The least to the server and back, and of its answers. 0: none yet */
	uint64_t path_ns, least_ns;
};

/* The client's segments go out. */
static void send(struct prog *prog, const struct client *client, bool is_answer,
		 uint8_t flags, uint32_t len, uint64_t ns)
{
	const uint32_t ack = is_answer ? client->seq : client->ack;

	tcp_send(prog, (struct tcp_frame){
			       .is_answer = is_answer,
			       .egress = !is_answer,
			       .port = client->port,
			       .flags = flags,
			       .seq = is_answer ? client->ack : client->seq,
			       .ack = flags & ACK ? ack : 0,
			       .len = len,
			       .ns = ns,
		       });
}

/* ---- The model ---------------------------------------------------------------------- */

/* A sample as the programs store it: in units of 64 ns. */
struct sample {
	int connection, metric, way; /* 0: to the server */
	uint64_t ns, at_ns;
	uint64_t least_ns; /* the baseline; 0: the least of these samples */
};

struct told {
	char text[128];
	int metric;
	bool is_ratio;
	uint64_t threshold_ns; /* or the ratio */
	uint32_t needed, among;
	uint64_t hold_ticks;
	uint32_t limit; /* in a second; 0: none */
	uint64_t level_ns, level_at_ns;
	uint64_t held_until[CONNECTIONS]; /* tick */
	uint64_t fired, held, limited;
};

struct model {
	struct told rules[MANY];
	uint32_t n_rules;
	struct sample samples[CONNECTIONS * STEPS * 4];
	size_t n;
	/* What came: the rule's slot is its number. */
	uint64_t fired[MANY];
	struct alert_event last;
};

static struct model model;

static bool is_over(const struct told *rule, uint64_t ns, uint64_t least)
{
	return rule->is_ratio ? ns > rule->threshold_ns * least :
				ns > rule->threshold_ns;
}

/* Samples of the same connection, metric and way, from the newest on. */
static uint32_t count_over(const struct told *rule, size_t newest, uint64_t least)
{
	const struct sample *of = &model.samples[newest];
	uint32_t over = 0, looked = 0;

	for (size_t i = newest + 1; i-- && looked < rule->among;) {
		const struct sample *one = &model.samples[i];

		if (one->connection != of->connection ||
		    one->metric != of->metric || one->way != of->way)
			continue;
		looked++;
		over += is_over(rule, one->ns, least);
	}
	return over;
}

/* A bucket that fills with time, and of which each alert takes its share. */
static bool take_token(struct told *rule, uint64_t now_ns)
{
	uint64_t share = rule->limit ? 1000000000 / rule->limit : 0;
	uint64_t most = share * rule->limit;

	if (!rule->limit)
		return true;
	rule->level_ns += now_ns - rule->level_at_ns;
	if (rule->level_ns > most)
		rule->level_ns = most;
	rule->level_at_ns = now_ns;
	if (rule->level_ns < share)
		return false;
	rule->level_ns -= share;
	return true;
}

static void judge_sample(size_t newest)
{
	const struct sample *sample = &model.samples[newest];
	uint64_t tick = sample->at_ns / TICK,
		 least = sample->least_ns ?: UINT64_MAX;

	/* All are less than 10 s old, so the minimum is over all samples. */
	for (size_t i = 0; i <= newest && !sample->least_ns; i++) {
		const struct sample *one = &model.samples[i];

		if (one->connection == sample->connection &&
		    one->metric == sample->metric && one->way == sample->way &&
		    one->ns < least)
			least = one->ns;
	}
	for (uint32_t i = 0; i < model.n_rules; i++) {
		struct told *rule = &model.rules[i];

		if (rule->metric != sample->metric ||
		    !is_over(rule, sample->ns, least) ||
		    count_over(rule, newest, least) < rule->needed)
			continue;
		if (rule->held_until[sample->connection] > tick) {
			rule->held++;
		} else if (!take_token(rule, sample->at_ns)) {
			rule->limited++;
		} else {
			rule->fired++;
			rule->held_until[sample->connection] =
				tick + rule->hold_ticks;
		}
	}
}

static void add_sample(int connection, int metric, int way, uint64_t ns,
		       uint64_t at_ns)
{
	model.samples[model.n] = (struct sample){
		.connection = connection,
		.metric = metric,
		.way = way,
		.ns = ns / 64 * 64,
		.at_ns = at_ns,
	};
	judge_sample(model.n++);
}

/* A round-trip time to the server. */
static void add_path(struct client *client, int number, uint64_t ns,
		     uint64_t at_ns)
{
	add_sample(number, ALERT_RTT, 0, ns, at_ns);
	if (!client->path_ns || ns < client->path_ns)
		client->path_ns = ns / 64 * 64;
}

/* An answer: what is not the way is the application's, with the least way so far. */
static void add_answer(struct client *client, int number, uint64_t ns,
		       uint64_t at_ns)
{
	if (!client->least_ns || ns < client->least_ns)
		client->least_ns = ns;
	model.samples[model.n] = (struct sample){
		.connection = number,
		.metric = ALERT_APP_LATENCY,
		.ns = ns - client->path_ns,
		.at_ns = at_ns,
		.least_ns = client->least_ns - client->path_ns,
	};
	judge_sample(model.n++);
}

/* ---- Rules -------------------------------------------------------------------------- */

/* @is_plain: it needs no earlier samples */
static void make_rule(struct told *rule, bool is_plain)
{
	uint32_t hold_ms = test_below(is_plain ? 9 : 3) ? test_below(2000) : 0;

	*rule = (struct told){
		.metric = test_below(2) ? ALERT_RTT : ALERT_APP_LATENCY,
		.is_ratio = test_below(4) == 0,
		.among = 1 + test_below(ALERT_SAMPLES_MAX),
		.limit = test_below(2) ? 1 + test_below(20) : 0,
		.hold_ticks = hold_ms ? hold_ms * 1000000ULL / TICK ?: 1 : 0,
	};
	if (is_plain || test_below(2))
		rule->among = 1;
	rule->needed = 1 + test_below(rule->among);
	/* Of whole units, so that only the comparison matters. */
	rule->threshold_ns = rule->is_ratio ? 1 + test_below(6) :
					      test_below(4000) * 6400ULL;
	rule->level_ns =
		rule->limit ? 1000000000ULL / rule->limit * rule->limit : 0;
	snprintf(rule->text, sizeof(rule->text),
		 "%s > %llu%s for %u of %u hold %ums limit %u/s",
		 netobs_alert_metric_name(rule->metric),
		 (unsigned long long)rule->threshold_ns,
		 rule->is_ratio ? " * baseline" : "ns", rule->needed,
		 rule->among, hold_ms, rule->limit);
	if (!rule->limit)
		strcpy(strstr(rule->text, "limit"), "limit none");
}

/* Which the next one succeeds, as in a context. */
static struct alert_set *in_use;

static void use_rules(struct prog *prog)
{
	const struct alert_count totals[ALERT_SLOTS] = { { 0 } };
	struct alert_source sources[MANY];
	static uint16_t serial;
	char error[ALERT_ERROR_MAX] = "";
	struct alert_set *set = NULL;

	for (uint32_t i = 0; i < model.n_rules; i++)
		sources[i] = (struct alert_source){ NULL, model.rules[i].text };
	if (alert_set_new(sources, model.n_rules, &set, &error))
		fail_msg("%s", error);
	alert_set_succeed(set, in_use, totals);
	alert_set_compile(set, 1, &prog->alert_tables->tables[0]);
	prog->alert_tables->tables[0].serial = ++serial;
	prog->alert_tables->active = 0;
	alert_set_free(in_use);
	in_use = set;
}

static void on_alert(void *ctx, const struct alert_event *event)
{
	(void)ctx;
	assert_true(event->slot < MANY);
	assert_int_equal(event->metric, model.rules[event->slot].metric);
	model.fired[event->slot]++;
	model.last = *event;
}

/* Of any slot. */
static void count_alert(void *ctx, const struct alert_event *event)
{
	(void)ctx;
	assert_int_equal(event->life, in_use->entries[0].life);
	model.last = *event;
}

/* ---- Tests -------------------------------------------------------------------------- */

static void open_connection(struct prog *prog, struct client *client,
			    int number, uint64_t ns)
{
	*client = (struct client){ .port = 1000 + number, .seq = 100, .ack = 500 };
	send(prog, client, false, SYN, 0, ns);
	client->seq++;
	send(prog, client, true, SYN | ACK, 0, ns + 300000);
	add_path(client, number, 300000, ns + 300000);
	client->ack++;
	send(prog, client, false, ACK, 0, ns + 310000);
	add_sample(number, ALERT_RTT, 1, 10000, ns + 310000);
}

/*
 * A request, its acknowledgment, the answer, and its acknowledgment. For how long the client rests
 * before it is no sample.
 */
static void exchange(struct prog *prog, struct client *client, int number,
		     uint64_t ns)
{
	uint64_t rtt = 64 * (1 + test_below(300000)),
		 back = 64 * (1 + test_below(1000));
	uint64_t think = rtt + 64 * (1 + test_below(100000));

	send(prog, client, false, ACK | PSH, 10, ns);
	client->seq += 10;
	send(prog, client, true, ACK, 0, ns + rtt);
	add_path(client, number, rtt, ns + rtt);
	send(prog, client, true, ACK | PSH, 20, ns + think);
	add_answer(client, number, think, ns + think);
	client->ack += 20;
	send(prog, client, false, ACK, 0, ns + think + back);
	add_sample(number, ALERT_RTT, 1, back, ns + think + back);
}

static void compare(const struct prog *prog)
{
	for (uint32_t i = 0; i < model.n_rules; i++) {
		const struct told *rule = &model.rules[i];
		struct alert_count count = prog_alert_count(prog, i);

		if (count.fired != rule->fired || count.held != rule->held ||
		    count.limited != rule->limited || count.lost ||
		    count.broken != rule->fired + rule->held + rule->limited ||
		    model.fired[i] != rule->fired)
			fail_msg("%s: fired %llu (%llu came), held %llu, limited %llu, lost %llu, and not %llu, %llu, %llu",
				 rule->text, (unsigned long long)count.fired,
				 (unsigned long long)model.fired[i],
				 (unsigned long long)count.held,
				 (unsigned long long)count.limited,
				 (unsigned long long)count.lost,
				 (unsigned long long)rule->fired,
				 (unsigned long long)rule->held,
				 (unsigned long long)rule->limited);
	}
}

static void forget(struct prog *prog)
{
	alert_set_free(TAKE_PTR(in_use));
	memset(&model, 0, sizeof(model));
	assert_int_equal(prog_reset_alerts(prog), 0);
	prog->on_alert = on_alert;
}

/* Each exchange takes less than 32 ms; all of them together less than the 10 s of a baseline. */
TEST(random_rules_fire_as_those_of_the_model)
{
	for (int round = 0; round < ROUNDS; round++) {
		const bool are_plain = round & 1;
		struct prog *prog = prog_test_open(&options);
		struct client clients[CONNECTIONS];
		uint64_t ns = 1000000000000 + round * 100000000000;

		forget(prog);
		model.n_rules = 1 + test_below(round & 2 ? RULES : RULES / 10);
		for (uint32_t i = 0; i < model.n_rules; i++)
			make_rule(&model.rules[i], are_plain);
		use_rules(prog);
		for (int i = 0; i < CONNECTIONS; i++)
			open_connection(prog, &clients[i], i, ns += 1000000);
		for (int i = 0; i < STEPS / 2; i++) {
			int number = (int)test_below(CONNECTIONS);

			ns += 32000000 + test_below(10) * 1000000;
			exchange(prog, &clients[number], number, ns);
			prog_read_alerts(prog);
		}
		compare(prog);
	}
}

static void use_rule(struct prog *prog, const char *text)
{
	model.n_rules = 1;
	snprintf(model.rules[0].text, sizeof(model.rules[0].text), "%s", text);
	use_rules(prog);
}

/*
 * A keep-alive client that rests for 400 ms between its requests, over a way of 20 ms, and a server
 * that answers in @think_us, and acknowledges with the answer.
 */
static void keep_alive(struct prog *prog, uint16_t port, bool shakes_hands,
		       uint64_t think_us)
{
	struct client client = { .port = port, .seq = 100, .ack = 500 };
	uint64_t ns = 1000000000000;

	if (shakes_hands) {
		send(prog, &client, false, SYN, 0, ns);
		client.seq++;
		send(prog, &client, true, SYN | ACK, 0, ns + 20000000);
		client.ack++;
		send(prog, &client, false, ACK, 0, ns + 20010000);
	}
	/* For longer than a round-trip time is kept. */
	for (int i = 0; i < 80; i++) {
		send(prog, &client, false, ACK | PSH, 10, ns += 400000000);
		client.seq += 10;
		send(prog, &client, true, ACK | PSH, 20,
		     ns += 20000000 + 1000 * think_us);
		client.ack += 20;
		prog_read_alerts(prog);
	}
}

/* What the client and the way take is not the application's. */
TEST(application_latency_is_the_servers_own)
{
	static const struct {
		uint16_t port;
		bool shakes_hands;
		uint64_t think_us, fired;
	} cases[] = {
		{ 7000, true, 500, 0 },	  /* over neither */
		{ 7001, true, 2000, 80 }, /* without the way, 2 ms */
		{ 7002, false, 2000, 0 }, /* the way is not known */
		{ SERVER_PORT, true, 2000, 80 },
		{ SERVER_PORT, false, 2000, 0 }, /* nor is the client */
		{ 70, true, 2000, 80 }, /* the client has the lower port */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct prog *prog = prog_test_open(&options);

		forget(prog);
		use_rule(prog, "app_latency > 1ms hold 0s limit none");
		model.rules[0].metric = ALERT_APP_LATENCY;
		keep_alive(prog, cases[i].port, cases[i].shakes_hands,
			   cases[i].think_us);
		assert_int_equal(model.fired[0], cases[i].fired);
		if (!cases[i].fired)
			continue;
		assert_int_equal(model.last.value, 2000000 / 64);
		assert_int_equal(model.last.baseline, 2000000 / 64);
		assert_int_equal(model.last.dir, model.last.client);
	}
}

/* 1,000,000 bytes in 99.6 ms are 80.3 Mbit/s. */
TEST(the_rate_is_that_of_a_window)
{
	struct prog *prog = prog_test_open(&options);
	struct client client = { .port = 5000, .seq = 1000, .ack = 1 };
	uint64_t ns = 1000000000000;

	forget(prog);
	use_rule(prog, "rate > 80Mbit hold 0s");
	model.rules[0].metric = ALERT_RATE;
	for (int i = 0; i < 2100; i++) {
		send(prog, &client, false, ACK, 1000, ns);
		client.seq += 1000;
		/* 99 Mbit/s in the first window, and half of that later. */
		ns += i < 1300 ? 80000 : 160000;
		prog_read_alerts(prog);
	}
	assert_int_equal(model.fired[0], 1);
	assert_true(model.last.value > 1200000 && model.last.value < 1300000);
}

/* One of 20 segments is sent twice, for some seconds: 4.8 %. */
TEST(retransmissions_are_a_share_of_bytes)
{
	struct prog *prog = prog_test_open(&options);
	struct client client = { .port = 6000, .seq = 1000, .ack = 1 };
	uint64_t ns = 1000000000000;

	forget(prog);
	use_rule(prog, "retransmits > 4% hold 0s");
	model.rules[0].metric = ALERT_RETRANSMITS;
	for (int i = 0; i < 4000; i++) {
		send(prog, &client, false, ACK, 1000, ns);
		if (i >= 2000 && i % 20 == 0)
			send(prog, &client, false, ACK, 1000, ns + 1000);
		client.seq += 1000;
		ns += 1000000;
		prog_read_alerts(prog);
	}
	assert_in_range(model.fired[0], 1, 2);
	assert_in_range(model.last.value, 40001, 50000);
}

/* ---- Rules that come and go ------------------------------------------------------------ */

/* The client's samples take 1 ms each: @n of them. */
static void add_times(struct prog *prog, struct client *client, int n,
		      uint64_t *ns)
{
	for (int i = 0; i < n; i++) {
		send(prog, client, false, ACK | PSH, 10, *ns += 50000000);
		client->seq += 10;
		send(prog, client, true, ACK, 0, *ns += 1000000);
		prog_read_alerts(prog);
	}
}

static uint64_t fired_of(const struct prog *prog)
{
	return prog_alert_count(prog, in_use->entries[0].slot).fired;
}

/* A connection, with its alerts counted, and without state of earlier tests. */
static struct prog *open_counted(struct client *client, uint64_t *ret_ns)
{
	struct prog *prog = prog_test_open(&options);

	*ret_ns = 1000000000000;
	forget(prog);
	prog->on_alert = count_alert;
	open_connection(prog, client, 0, *ret_ns);
	return prog;
}

/* It is in a slot again that had a rule which was silent about the connection. */
TEST(a_new_rule_is_not_silent_for_an_earlier_one)
{
	struct client client;
	uint64_t ns, fired;
	struct prog *prog = open_counted(&client, &ns);
	uint32_t slot;

	use_rule(prog, "rtt > 500us hold 1h");
	slot = in_use->entries[0].slot;
	add_times(prog, &client, 3, &ns);
	assert_int_equal(fired_of(prog), 1);
	do {
		char text[64];

		snprintf(text, sizeof(text), "rtt > %uus hold 1h",
			 600 + test_below(300));
		use_rule(prog, text);
	} while (in_use->entries[0].slot != slot || in_use->entries[0].life == 0);
	fired = fired_of(prog);
	add_times(prog, &client, 3, &ns);
	assert_int_equal(fired_of(prog), fired + 1);
}

/* Ticks have 32 bits: after 25 days, holds that have ended seem to be in the future. */
TEST(a_hold_that_has_ended_does_not_begin_again)
{
	const uint64_t day_ns = 24ULL * 3600 * NSEC_PER_SEC;
	struct client client;
	uint64_t ns;
	struct prog *prog = open_counted(&client, &ns);

	use_rule(prog, "rtt > 500us hold 1h");
	add_times(prog, &client, 3, &ns);
	assert_int_equal(fired_of(prog), 1);
	ns += 30 * day_ns;
	add_times(prog, &client, 3, &ns);
	assert_int_equal(fired_of(prog), 2);
	/* Also of a rule that is not plain. */
	use_rule(prog, "rtt > 500us for 1 of 2 hold 1h");
	add_times(prog, &client, 3, &ns);
	assert_int_equal(fired_of(prog), 1);
	ns += 30 * day_ns;
	add_times(prog, &client, 3, &ns);
	assert_int_equal(fired_of(prog), 2);
}

/* Samples were not kept without such a rule: the earlier ones are not the newest. */
TEST(a_new_rule_has_seen_no_samples)
{
	struct client client;
	uint64_t ns;
	struct prog *prog = open_counted(&client, &ns);

	for (int i = 0; i < 300; i++) {
		uint32_t needed = 2 + test_below(4);
		char text[64];
		uint64_t fired;

		snprintf(text, sizeof(text), "rtt > 500us for %u of 6 hold 0s",
			 needed);
		use_rule(prog, text);
		fired = fired_of(prog);
		add_times(prog, &client, (int)needed - 1, &ns);
		assert_int_equal(fired_of(prog), fired);
		add_times(prog, &client, 1, &ns);
		assert_int_equal(fired_of(prog), fired + 1);
		use_rule(prog, "rate > 1Gbit");
		add_times(prog, &client, (int)test_below(3), &ns);
	}
}

TEST(without_rules_nothing_is_counted)
{
	struct prog *prog = prog_test_open(&options);
	struct client client;

	forget(prog);
	open_connection(prog, &client, 0, 1000000000000);
	for (int i = 1; i < 20; i++)
		exchange(prog, &client, 0, 1000000000000 + i * 100000000ULL);
	prog_read_alerts(prog);
	assert_int_equal(model.fired[0], 0);
	assert_int_equal(prog_alert_count(prog, 0).fired, 0);
}
