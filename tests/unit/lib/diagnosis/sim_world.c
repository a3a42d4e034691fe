// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Configurations, and the records of what has happened. */
#include "sim_hosts.h"

#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKET_NS = 100 * SIM_MS, BUCKETS = 128, SECONDS = 32 };

#define SECOND_NS (1000LL * SIM_MS)

/* ---- Numbers ------------------------------------------------------------------------------- */

double sim_unit(struct sim *sim)
{
	uint64_t mixed = sim->random += 0x9e3779b97f4a7c15; /* splitmix64 */

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	return (double)((mixed ^ mixed >> 31) >> 11) * 0x1p-53;
}

uint32_t sim_below(struct sim *sim, uint32_t n)
{
	return (uint32_t)(sim_unit(sim) * n);
}

int64_t sim_some(struct sim *sim, int64_t mean)
{
	return (int64_t)(-(double)mean * log(1 - sim_unit(sim)));
}

/* ---- Faults -------------------------------------------------------------------------------- */

enum { BIG_THERE = 1, BIG_BACK = 2, SHORT = 4, SOMETIMES = 8 };

#define TURNS (1 << SIM_TCP | 1 << SIM_UDP)
#define STREAMS (1 << SIM_TCP | 1 << SIM_STREAM)
#define ALL (TURNS | STREAMS)
#define PLACE(place) NETOBS_PLACE_##place
#define CAUSE(cause) NETOBS_CAUSE_##cause

static const struct {
	uint8_t kinds, place, cause, needs;
	int16_t often; /* in a turn, in tenths */
} faults[SIM_FAULTS] = {
	{ ALL, PLACE(CLIENT_PROCESS), CAUSE(THINKS), 0, 10 },
	{ ALL, PLACE(SERVER_PROCESS), CAUSE(THINKS), 0, 10 },
	{ ALL, PLACE(CLIENT_PROCESS), CAUSE(STOPPED), 0, 0 },
	{ ALL, PLACE(SERVER_PROCESS), CAUSE(STOPPED), 0, 0 },
	{ ALL, PLACE(CLIENT_PROCESS), CAUSE(READS), 0, 10 },
	{ ALL, PLACE(SERVER_PROCESS), CAUSE(READS), 0, 10 },
	{ ALL, PLACE(CLIENT_HOST), CAUSE(CPU), 0, 20 },
	{ ALL, PLACE(SERVER_HOST), CAUSE(CPU), 0, 20 },
	{ ALL, PLACE(CLIENT_HOST), CAUSE(QDISC), 0, 10 },
	{ ALL, PLACE(SERVER_HOST), CAUSE(QDISC), 0, 10 },
	{ TURNS, PLACE(CLIENT_HOST), CAUSE(STACK), 0, 10 },
	{ TURNS, PLACE(SERVER_HOST), CAUSE(STACK), 0, 10 },
	{ STREAMS, PLACE(CLIENT_HOST), CAUSE(SEND_BUFFER), BIG_THERE, 10 },
	{ STREAMS, PLACE(SERVER_HOST), CAUSE(SEND_BUFFER), BIG_BACK, 10 },
	{ STREAMS, PLACE(CLIENT_HOST), CAUSE(RECEIVE_BUFFER), BIG_BACK, 10 },
	{ STREAMS, PLACE(SERVER_HOST), CAUSE(RECEIVE_BUFFER), BIG_THERE, 10 },
	{ 1 << SIM_UDP, PLACE(CLIENT_HOST), CAUSE(RECEIVE_BUFFER), SOMETIMES, 0 },
	{ 1 << SIM_UDP, PLACE(SERVER_HOST), CAUSE(RECEIVE_BUFFER), SOMETIMES, 0 },
	{ ALL, PLACE(CLIENT_HOST), CAUSE(DROP), SOMETIMES, 0 },
	{ ALL, PLACE(SERVER_HOST), CAUSE(DROP), SOMETIMES, 0 },
	{ 1 << SIM_TCP, PLACE(CLIENT_HOST), CAUSE(CONNTRACK), SHORT, 0 },
	{ 1 << SIM_TCP, PLACE(SERVER_HOST), CAUSE(CONNTRACK), SHORT, 0 },
	{ 1 << SIM_TCP, PLACE(SERVER_PROCESS), CAUSE(ACCEPT), SHORT, 3 },
	{ ALL, PLACE(NETWORK), CAUSE(DELAY), 0, 10 },
	{ ALL, PLACE(NETWORK), CAUSE(DELAY), 0, 10 },
	{ ALL, PLACE(NETWORK), CAUSE(QUEUE), 0, 10 },
	{ ALL, PLACE(NETWORK), CAUSE(QUEUE), 0, 10 },
	{ ALL, PLACE(NETWORK), CAUSE(LOSS), SOMETIMES, 0 },
	{ ALL, PLACE(NETWORK), CAUSE(LOSS), SOMETIMES, 0 },
	{ 1 << SIM_TCP, PLACE(NETWORK), CAUSE(REORDERING), BIG_THERE, 10 },
	{ 1 << SIM_TCP, PLACE(NETWORK), CAUSE(REORDERING), BIG_BACK, 10 },
	{ 1 << SIM_TCP, PLACE(NETWORK), CAUSE(MTU), BIG_THERE, 0 },
	{ 1 << SIM_TCP, PLACE(NETWORK), CAUSE(MTU), BIG_BACK, 0 },
	{ TURNS, PLACE(NETWORK), CAUSE(LINK), 0, 0 },
	{ TURNS, PLACE(NETWORK), CAUSE(LINK), 0, 0 },
};

uint8_t sim_process(int side)
{
	return side ? NETOBS_PLACE_SERVER_PROCESS : NETOBS_PLACE_CLIENT_PROCESS;
}

uint8_t sim_host(int side)
{
	return side ? NETOBS_PLACE_SERVER_HOST : NETOBS_PLACE_CLIENT_HOST;
}

struct sim_fault *sim_find(struct sim *sim, uint8_t place, uint8_t cause,
			   int64_t at)
{
	for (uint32_t i = 0; i < sim->n_faults; i++)
		if (sim->faults[i].place == place &&
		    sim->faults[i].cause == cause && at >= sim->since_ns)
			return &sim->faults[i];
	return NULL;
}

int64_t sim_hit(struct sim *sim, uint8_t place, uint8_t cause, int64_t at)
{
	struct sim_fault *fault = sim_find(sim, place, cause, at);
	int64_t ns;

	if (!fault || sim_unit(sim) >= fault->chance)
		return 0;
	ns = sim_some(sim, fault->ns);
	fault->added_ns += ns;
	return ns;
}

/* The side whose host has it last, or first, on the way of a stream. */
static int way_of_stream(uint8_t place, uint8_t cause)
{
	const bool is_client = place == NETOBS_PLACE_CLIENT_PROCESS ||
			       place == NETOBS_PLACE_CLIENT_HOST;
	const bool reads = cause == NETOBS_CAUSE_READS ||
			   cause == NETOBS_CAUSE_RECEIVE_BUFFER;

	return is_client == reads;
}

static double packets_of(const struct sim *sim, int direction)
{
	return (double)sim->bytes[direction] / 1448;
}

bool sim_add_fault(struct sim *sim, uint32_t number)
{
	struct sim_fault *fault = &sim->faults[sim->n_faults];
	const int64_t base = sim->way_ns[0] + sim->way_ns[1] +
			     sim->thinks_ns[0] + sim->thinks_ns[1];
	const double share = .1 + .5 * sim_unit(sim);
	const double more = (double)base * share / (1 - share); /* a turn */
	const uint8_t needs = faults[number].needs;

	if (!(faults[number].kinds >> sim->kind & 1))
		return false;
	*fault = (struct sim_fault){ .number = (uint8_t)number,
				     .place = faults[number].place,
				     .cause = faults[number].cause,
				     .variant = (uint8_t)sim_below(sim, 252),
				     .chance = 1,
				     .ns = 200 * SIM_MS };
	if (faults[number].often)
		fault->ns = (int64_t)(more * 10 / faults[number].often);
	if (fault->cause == NETOBS_CAUSE_STOPPED)
		fault->ns = (int64_t)(700 * SIM_MS * share);
	for (int d = 0; d < 2; d++)
		if (needs >> d & 1)
			sim->bytes[d] = 30000 + sim_below(sim, 30000);
	if (needs & SHORT)
		sim->turns = 2;
	if (needs & SHORT && !faults[number].often)
		fault->chance = fmin(.4, more * 2 / SECOND_NS);
	if (needs & SOMETIMES)
		fault->chance = fmin(.2, more / (250. * SIM_MS) /
						 (2 + packets_of(sim, 0) +
						  packets_of(sim, 1)));
	if (fault->cause == NETOBS_CAUSE_REORDERING) {
		fault->chance = .1;
		fault->ns = (sim->way_ns[0] + sim->way_ns[1]) * 2;
	}
	if (sim->kind == SIM_STREAM) {
		fault->chance = share + .1;
		sim->way = way_of_stream(fault->place, fault->cause);
		fault->variant += (fault->variant & 1) != sim->way;
	}
	sim->n_faults++;
	return true;
}

void sim_draw(struct sim *sim, uint32_t seed, enum sim_kind kind)
{
	*sim = (struct sim){ .seed = seed, .kind = kind, .random = seed };
	sim->begin_ns = 1700000000 * SECOND_NS + (int64_t)(sim_unit(sim) * 1e15);
	sim->since_ns = sim->begin_ns + 5 * SECOND_NS;
	sim->until_ns = sim->since_ns + 5 * SECOND_NS;
	sim->offset_ns = (int64_t)((sim_unit(sim) - .5) * 160 * SIM_MS);
	sim->drift = (sim_unit(sim) - .5) * 2e-4;
	sim->turns = 6 + sim_below(sim, 12);
	sim->is_noisy = sim_below(sim, 2);
	sim->has_gso = sim_below(sim, 2);
	sim->has_accept = sim_below(sim, 4);
	sim->client = (uint8_t)(1 + sim_below(sim, 200));
	sim->service = (uint8_t)(1 + sim_below(sim, 200));
	sim->way = sim_below(sim, 2);
	for (int i = 0; i < 2; i++) {
		sim->has_nat[i] = sim_below(sim, 2);
		sim->way_ns[i] = 500 * SIM_US + sim_below(sim, 7500 * SIM_US);
		sim->bytes[i] = sim_below(sim, 3) ? 100 + sim_below(sim, 1200) :
						    3000 + sim_below(sim, 20000);
		sim->thinks_ns[i] =
			(3 - i) * SIM_MS + sim_below(sim, 15 * SIM_MS);
	}
	sim->hosts[0] = sim_below(sim, NETOBS_DIAGNOSIS_HOSTS_MAX);
	sim->hosts[1] = (sim->hosts[0] + 1 + sim_below(sim, 60)) %
			NETOBS_DIAGNOSIS_HOSTS_MAX;
}

/* ---- Records ------------------------------------------------------------------------------- */

int64_t sim_clock(const struct sim *sim, int side, int64_t ns)
{
	if (!side || !ns)
		return ns;
	return ns + sim->offset_ns +
	       (int64_t)(sim->drift * (double)(ns - sim->begin_ns)) +
	       (sim->step_ns && ns >= sim->step_at_ns ? sim->step_ns : 0);
}

static void *add_record(struct sim *sim, int side, const void *record,
			size_t size, uint32_t type)
{
	struct netobs_record *copy = malloc(size);

	if (sim->n == sim->room) {
		sim->room = sim->room ? 2 * sim->room : 1024;
		sim->records = reallocarray(sim->records, sim->room,
					    sizeof(struct netobs_record *));
		sim->makers = reallocarray(sim->makers, sim->room,
					   sizeof(unsigned int));
		sim->turns_of =
			reallocarray(sim->turns_of, sim->room, sizeof(uint32_t));
	}
	if (!copy || !sim->records || !sim->makers || !sim->turns_of)
		abort();
	memcpy(copy, record, size);
	copy->sz = size;
	copy->type = type;
	copy->time_ns = sim_clock(sim, side, copy->time_ns);
	sim->turns_of[sim->n] = sim->turn;
	sim->makers[sim->n] = sim->hosts[side];
	sim->records[sim->n++] = copy;
	return copy;
}

static void set_address(uint8_t address[16], uint8_t net, uint8_t host)
{
	memset(address, 0, 16);
	address[10] = address[11] = 0xff;
	address[12] = net;
	address[13] = net == 10 ? 1 : 0;
	address[14] = 2;
	address[15] = host;
}

/* @is_inner: at the socket behind NAT */
static void set_end(const struct sim *sim, int side, bool is_inner,
		    uint8_t address[16], uint16_t *port)
{
	is_inner &= sim->has_nat[side];
	set_address(address,
		    is_inner ? 10 :
		    side     ? 198 :
			       192,
		    side ? sim->service : sim->client);
	if (side)
		*port = is_inner ? 8080 : (uint16_t)(80 + sim->service);
	else
		*port = is_inner ? sim->connection.port :
				   sim->connection.wire_port;
}

struct netobs_turn sim_turn(const struct sim *sim, int side, int direction,
			    uint32_t bytes)
{
	const struct sim_connection *connection = &sim->connection;
	const bool is_tcp = sim->kind != SIM_UDP;
	struct netobs_turn turn = {
		.record.has = (side == direction ? NETOBS_TURN_HAS_SEND :
						   NETOBS_TURN_HAS_READ) |
			      NETOBS_TURN_HAS_PROCESS | NETOBS_TURN_HAS_THREADS |
			      (is_tcp ? NETOBS_TURN_HAS_INITIATOR |
						NETOBS_TURN_HAS_OFFSET :
					0),
		.connection = connection->id * 2 + 1000U * (uint32_t)side,
		.offset = connection->offset[direction] + !is_tcp,
		.bytes = bytes,
		.netns_inode = 10U + (uint32_t)side,
		.protocol = is_tcp ? IPPROTO_TCP : IPPROTO_UDP,
		.direction = (uint8_t)direction,
		.kind = bytes ? NETOBS_TURN_MESSAGE : NETOBS_TURN_CONNECT,
		.one_of = 1,
		.uplink_ifindex = 2,
		.uplink_netns_inode = 20U + (uint32_t)side,
		.uplink = "eth0",
		.pid = 100 + (uint32_t)side,
		.tid = 200 + (uint32_t)side,
		.attempts = side != direction,
	};

	if (is_tcp)
		turn.seq = connection->seq[direction] - !bytes +
			   (uint32_t)connection->offset[direction];
	else
		turn.ip_id = 1 +
			     (uint32_t)turn.offset * 7 %
				     (sim->n_data ? sim->n_data : 65000) +
			     (uint32_t)direction;
	if (is_tcp && bytes && side == direction)
		turn.record.has |= NETOBS_TURN_HAS_LIMITS;
	strcpy(turn.command, side ? "server" : "client");
	set_end(sim, direction, side == direction, turn.src, &turn.src_port);
	set_end(sim, !direction, side != direction, turn.dst, &turn.dst_port);
	set_end(sim, direction, false, turn.wire_src, &turn.wire_src_port);
	set_end(sim, !direction, false, turn.wire_dst, &turn.wire_dst_port);
	return turn;
}

static const size_t stamps[] = {
	offsetof(struct netobs_turn, written_ns),
	offsetof(struct netobs_turn, sent_ns),
	offsetof(struct netobs_turn, out_ns),
	offsetof(struct netobs_turn, in_ns),
	offsetof(struct netobs_turn, segment_ns),
	offsetof(struct netobs_turn, ready_ns),
	offsetof(struct netobs_turn, read_ns),
	offsetof(struct netobs_turn, acked_ns),
	offsetof(struct netobs_turn, answer_ns),
};

/* What is known of it at a time: 0: all. */
static void deliver_until(struct sim *sim, int side,
			  const struct netobs_turn *turn, int64_t until)
{
	struct netobs_turn *copy =
		add_record(sim, side, turn, sizeof(*turn), NETOBS_RECORD_TURN);
	const int64_t begin = turn->record.time_ns;
	int64_t last = until ? until : begin;

	for (size_t i = 0; i < sizeof(stamps) / sizeof(*stamps); i++) {
		int64_t *at = (int64_t *)((char *)copy + stamps[i]);

		if (until && *at > until)
			*at = 0;
		last = *at > last ? *at : last;
		*at = sim_clock(sim, side, *at);
	}
	copy->end_ns = turn->kind == NETOBS_TURN_SLICE ?
			       sim_clock(sim, side, turn->end_ns) :
			       sim_clock(sim, side, last);
	if (!until)
		copy->record.has |= NETOBS_TURN_HAS_END;
	for (int i = 0; until && !copy->sent_ns && i < NETOBS_TURN_LIMITS; i++)
		copy->limit_ns[i] =
			(uint64_t)((double)turn->limit_ns[i] *
				   (double)(until - begin) /
				   (double)(turn->sent_ns - begin + 1));
	if (!until)
		return;
	memset(copy->thread_ns, 0, sizeof(copy->thread_ns));
	copy->record.has &= ~(uint32_t)NETOBS_TURN_HAS_THREADS;
}

/* With what is known after each second, which the last record replaces. */
void sim_deliver(struct sim *sim, int side, struct netobs_turn *turn)
{
	int64_t last = turn->record.time_ns;

	for (size_t i = 0; i < sizeof(stamps) / sizeof(*stamps); i++) {
		const int64_t at = *(int64_t *)((char *)turn + stamps[i]);

		last = at > last ? at : last;
	}
	for (int64_t at = turn->record.time_ns + SECOND_NS; at < last;
	     at += SECOND_NS)
		deliver_until(sim, side, turn, at);
	deliver_until(sim, side, turn, 0);
}

void sim_count_turn(struct sim *sim, int64_t from, int64_t until)
{
	if (from < sim->since_ns || from >= sim->until_ns)
		return;
	sim->took_ns += until - from;
	sim->n_turns++;
}

/* ---- Queues and hosts ------------------------------------------------------------------------ */

void sim_note_wait(struct sim *sim, int side, int kind, int64_t at, int64_t ns)
{
	for (int64_t i = (at - sim->begin_ns) / BUCKET_NS;
	     ns > 0 && i < BUCKETS; i++) {
		uint64_t *wait = &sim->waits[side][kind][i];
		const int64_t room = BUCKET_NS - (int64_t)*wait;
		const int64_t add = ns < room ? ns : room;

		*wait += (uint64_t)add;
		ns -= add;
	}
}

struct netobs_host *sim_counters(struct sim *sim, int side, int64_t at)
{
	const int64_t i = (at - sim->begin_ns) / SECOND_NS;

	return &sim->counted[side][i < SECONDS ? i : SECONDS - 1];
}

/* @return whether others have filled it */
static bool has_rival(struct sim *sim, int side, int kind, int64_t at)
{
	const struct sim_fault *fault =
		kind == NETOBS_QUEUE_UPLINK ?
			sim_find(sim, NETOBS_PLACE_NETWORK, NETOBS_CAUSE_QUEUE,
				 at + BUCKET_NS) :
			sim_find(sim, sim_host(side),
				 kind == NETOBS_QUEUE_CPU ? NETOBS_CAUSE_CPU :
							    NETOBS_CAUSE_QDISC,
				 at + BUCKET_NS);

	if (fault && kind == NETOBS_QUEUE_UPLINK)
		return fault->variant % 2 != side;
	return fault && (kind == NETOBS_QUEUE_CPU || fault->variant & 1);
}

static void add_queue(struct sim *sim, int side, int kind, int64_t at,
		      uint64_t wait)
{
	const bool is_filled = has_rival(sim, side, kind, at);
	const double rival = is_filled ?
				     .6 + .35 * sim_unit(sim) :
				     (sim->is_noisy ? .4 : .05) * sim_unit(sim);
	struct netobs_queue queue = {
		.record.time_ns = at,
		.end_ns = sim_clock(sim, side, at + BUCKET_NS),
		.waited_ns = wait,
		.amount = kind == NETOBS_QUEUE_CPU ? wait : wait / 150,
		.kind = (uint8_t)kind,
		.n_shares = 2,
		.tid = 200U + (uint32_t)side,
		.pid = 100U + (uint32_t)side,
		.ifindex = 2,
		.netns_inode = 20U + (uint32_t)side,
		.interface = "eth0",
	};
	struct netobs_queue_share *shares = queue.shares;
	const bool is_first = rival > .5;

	shares[!is_first].amount = (uint64_t)(rival * (double)queue.amount);
	shares[!is_first].pid = SIM_RIVAL;
	strcpy(shares[!is_first].command, "rival");
	shares[is_first].amount = queue.amount - shares[!is_first].amount;
	shares[is_first].pid = kind == NETOBS_QUEUE_UPLINK ? 0 : queue.pid;
	shares[is_first].is_traced = kind != NETOBS_QUEUE_CPU;
	for (int i = 0; i < 2 && kind != NETOBS_QUEUE_CPU; i++) {
		shares[i].protocol = IPPROTO_TCP;
		set_address(shares[i].src, 192,
			    shares[i].is_traced ? sim->client : SIM_OTHER);
		set_address(shares[i].dst, 198, sim->service);
		shares[i].src_port = 5000;
		shares[i].dst_port = 5201;
	}
	if (kind == NETOBS_QUEUE_UPLINK)
		shares[!is_first].pid = 0;
	add_record(sim, side, &queue, sizeof(queue), NETOBS_RECORD_QUEUE);
}

static void add_host(struct sim *sim, int side, int64_t at)
{
	const struct sim_fault *link = sim_find(
		sim, NETOBS_PLACE_NETWORK, NETOBS_CAUSE_LINK, at + SECOND_NS);
	struct netobs_host host = *sim_counters(sim, side, at);
	const int64_t since = at - sim->since_ns;

	host.record.time_ns = at;
	host.end_ns = sim_clock(sim, side, at + SECOND_NS);
	host.netns_inode = 20U + (uint32_t)side;
	host.accept_limit = side ? 4 : 0;
	/* Of others in the namespace. */
	host.listen_overflows += sim->is_noisy && !sim_below(sim, 4);
	host.conntrack_drops += sim->is_noisy && !sim_below(sim, 4);
	host.udp_buffer_errors += sim->is_noisy && !sim_below(sim, 4);
	strcpy(host.uplink, "eth0");
	strcpy(host.host, side ? "hostb" : "hosta");
	strcpy(host.kernel, "6.18.0");
	/* It is down for a while each 1.5 s, which may be in the next second as well. */
	for (int64_t flap = 200 * SIM_MS; link && flap < 6 * SECOND_NS;
	     flap += 1500 * SIM_MS)
		if (link->variant % 2 == side)
			host.carrier_changes +=
				(flap >= since && flap < since + SECOND_NS) +
				(flap + link->ns >= since &&
				 flap + link->ns < since + SECOND_NS);
	add_record(sim, side, &host, sizeof(host), NETOBS_RECORD_HOST);
}

void sim_end(struct sim *sim)
{
	for (int side = 0; side < 2; side++) {
		for (int kind = 0; kind < NETOBS_QUEUE_KINDS; kind++)
			for (int i = 0; i < BUCKETS; i++)
				if (sim->waits[side][kind][i] > SIM_MS)
					add_queue(sim, side, kind,
						  sim->begin_ns +
							  i * (int64_t)BUCKET_NS,
						  sim->waits[side][kind][i]);
		for (int64_t at = sim->begin_ns; at < sim->until_ns;
		     at += SECOND_NS)
			add_host(sim, side, at);
	}
}

void sim_clear(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->n; i++)
		free(sim->records[i]);
	free(sim->records);
	free(sim->makers);
	free(sim->turns_of);
	sim->records = NULL;
	sim->makers = NULL;
	sim->turns_of = NULL;
	sim->n = sim->room = 0;
}
