// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Turns: each moment is drawn by one clock, and becomes stamps by the clock of the host that sees it. */
#include "sim_hosts.h"

#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum { MSS = 1448, MTU = 1300, WINDOW = 3, BUFFER = 4, CWND_MOST = 64 };

#define RTO_NS (200LL * SIM_MS)
#define SYN_NS (1000LL * SIM_MS)

/* ---- Processes ----------------------------------------------------------------------------- */

/* @return how long a process is stopped that works in this time: now and then, for a while */
static int64_t stop(struct sim *sim, int side, int64_t from, int64_t until)
{
	const int64_t period = 700 * SIM_MS;
	struct sim_fault *fault =
		sim_find(sim, sim_process(side), NETOBS_CAUSE_STOPPED, until);
	int64_t begin = sim->since_ns + period / 7, left;

	if (!fault || until < begin)
		return 0;
	begin += (until - begin) / period * period;
	left = begin + fault->ns - (from > begin ? from : begin);
	if (left <= 0)
		return 0;
	fault->added_ns += left;
	return left;
}

/* A process runs and sleeps. @return when it is done */
static int64_t work(struct sim *sim, int side, int64_t at, int64_t run,
		    int64_t sleep, uint64_t states[NETOBS_THREAD_STATES])
{
	const int64_t wait = sim_hit(sim, sim_host(side), NETOBS_CAUSE_CPU, at);
	const bool is_busy = sim->is_noisy && sim_unit(sim) < .02;
	const int64_t little = sim_some(sim, is_busy ? SIM_MS : 15 * SIM_US);
	const int64_t end = at + run + sleep + wait + little;
	const int64_t stopped = stop(sim, side, at, end);

	sim_note_wait(sim, side, NETOBS_QUEUE_CPU, at, wait);
	states[NETOBS_THREAD_RUN] += (uint64_t)run;
	states[NETOBS_THREAD_SLEEP] += (uint64_t)sleep;
	states[NETOBS_THREAD_WAIT] += (uint64_t)(wait + little);
	states[NETOBS_THREAD_STOP] += (uint64_t)stopped;
	return end + stopped;
}

/* From the read to the answer. */
static int64_t think(struct sim *sim, int side, struct netobs_turn *turn)
{
	const struct sim_fault *fault = sim_find(
		sim, sim_process(side), NETOBS_CAUSE_THINKS, turn->read_ns);
	const int64_t longer = sim_hit(sim, sim_process(side),
				       NETOBS_CAUSE_THINKS, turn->read_ns);
	const bool runs = fault && fault->variant & 1;
	int64_t mean = sim->thinks_ns[side];

	turn->answer_ns = work(sim, side, turn->read_ns,
			       sim_some(sim, mean / 5) + (runs ? longer : 0),
			       sim_some(sim, mean * 4 / 5) + (runs ? 0 : longer),
			       turn->thread_ns[NETOBS_TURN_THINKING]);
	return turn->answer_ns;
}

/* ---- The network ---------------------------------------------------------------------------- */

/* What all packets of a round trip have. */
struct trip {
	int64_t qdisc, way, stack;
};

static int64_t trip_ns(const struct trip *trip)
{
	return trip->qdisc + trip->way + trip->stack;
}

static struct trip draw_trip(struct sim *sim, int d, int64_t at)
{
	const struct sim_fault *delay = sim_find(sim, NETOBS_PLACE_NETWORK,
						 NETOBS_CAUSE_DELAY, at),
			       *queue = sim_find(sim, NETOBS_PLACE_NETWORK,
						 NETOBS_CAUSE_QUEUE, at);
	const int64_t longer = sim_hit(sim, sim_host(d), NETOBS_CAUSE_QDISC, at);
	struct trip trip = {
		.qdisc = longer + sim_some(sim, 10 * SIM_US),
		.way = sim->way_ns[d] + sim_some(sim, sim->way_ns[d] / 20),
		.stack = 4 * SIM_US + sim_some(sim, 8 * SIM_US) +
			 sim_hit(sim, sim_host(!d), NETOBS_CAUSE_STACK, at),
	};

	sim_note_wait(sim, d, NETOBS_QUEUE_QDISC, at, longer);
	sim_note_wait(sim, !d, NETOBS_QUEUE_UPLINK, at + trip.way, SIM_MS);
	if (delay && (delay->variant % 3 == 2 || delay->variant % 3 == d))
		trip.way += sim_hit(sim, delay->place, delay->cause, at);
	if (queue && queue->variant % 2 == d)
		trip.way += sim_hit(sim, queue->place, queue->cause, at);
	return trip;
}

static bool is_down(const struct sim *sim, const struct sim_fault *fault,
		    int64_t at)
{
	const int64_t since = at - sim->since_ns - 200 * SIM_MS;

	return since > 0 && since % (1500 * SIM_MS) < fault->ns;
}

enum fate { PASSES, DROPPED_OUT, LOST, DROPPED_IN };

/* What a fault does to a packet. */
static enum fate fate_by(struct sim *sim, const struct sim_fault *fault, int d,
			 int64_t at, uint32_t bytes, uint32_t attempt)
{
	const enum fate dropped = fault->place == sim_host(d) ? DROPPED_OUT :
								DROPPED_IN;
	const bool is_hit = attempt < 4 && sim_unit(sim) < fault->chance;

	switch (fault->cause) {
	case NETOBS_CAUSE_DROP:
		return is_hit && fault->variant % 2 == d ? dropped : PASSES;
	case NETOBS_CAUSE_RECEIVE_BUFFER:
		return is_hit && sim->kind == SIM_UDP && dropped == DROPPED_IN ?
			       DROPPED_IN :
			       PASSES;
	case NETOBS_CAUSE_CONNTRACK:
		return is_hit && !bytes ? dropped : PASSES;
	case NETOBS_CAUSE_LOSS:
		return is_hit ? LOST : PASSES;
	case NETOBS_CAUSE_QUEUE:
		return attempt < 4 && fault->variant % 4 == d &&
				       sim_unit(sim) < .002 ?
			       LOST :
			       PASSES;
	case NETOBS_CAUSE_MTU:
		return bytes > MTU ? LOST : PASSES;
	case NETOBS_CAUSE_LINK:
		return is_down(sim, fault, at) ? LOST : PASSES;
	default:
		return PASSES;
	}
}

static enum fate fate_of(struct sim *sim, int d, int64_t at, uint32_t bytes,
			 uint32_t attempt)
{
	enum fate fate = PASSES;

	for (uint32_t i = 0; i < sim->n_faults && fate == PASSES; i++) {
		if (at < sim->since_ns)
			continue;
		fate = fate_by(sim, &sim->faults[i], d, at, bytes, attempt);
		if (fate != PASSES)
			sim->lost_by = i;
	}
	if (fate == PASSES && sim->is_noisy && !attempt && sim_unit(sim) < .0005) {
		sim->lost_by = SIM_NOISE + (at + SYN_NS < sim->since_ns);
		return LOST;
	}
	return fate;
}

static void note_drop(struct sim *sim, int side, struct netobs_turn *turn,
		      uint32_t bytes, int64_t at)
{
	const uint8_t cause = sim->faults[sim->lost_by].cause;
	struct netobs_host *counted = sim_counters(sim, side, at);

	turn->dropped_bytes += bytes;
	turn->drops++;
	turn->drop_reason = 9;
	counted->conntrack_drops += cause == NETOBS_CAUSE_CONNTRACK;
	counted->udp_buffer_errors += cause == NETOBS_CAUSE_RECEIVE_BUFFER;
	strcpy(turn->drop_cause, cause == NETOBS_CAUSE_RECEIVE_BUFFER ?
					 "SKB_DROP_REASON_SOCKET_RCVBUFF" :
					 "SKB_DROP_REASON_NETFILTER_DROP");
	strcpy(turn->drop_function,
	       cause == NETOBS_CAUSE_CONNTRACK	    ? "nf_hook_slow" :
	       cause == NETOBS_CAUSE_RECEIVE_BUFFER ? "udp_queue_rcv_one_skb" :
						      "nft_do_chain");
}

/* A packet leaves one host, and comes to the other one. @bytes: 0: a SYN */
static enum fate count_packet(struct sim *sim, int d, struct netobs_turn *sent,
			      struct netobs_turn *came, int64_t at,
			      uint32_t bytes, uint32_t attempt)
{
	const enum fate fate = fate_of(sim, d, at, bytes, attempt);
	const uint32_t n = bytes ?: 1;

	sent->sent_bytes += n;
	sent->attempts++;
	if (fate == DROPPED_OUT) {
		note_drop(sim, d, sent, n, at);
		return fate;
	}
	sent->out_bytes += n;
	sent->largest_sent = n > sent->largest_sent ? n : sent->largest_sent;
	if (sim->has_gso && bytes > MTU)
		sent->largest_sent = sent->bytes < 60000 ? sent->bytes : 60000;
	if (fate == LOST)
		return fate;
	came->in_bytes += n;
	came->largest_in = n > came->largest_in ? n : came->largest_in;
	if (sim->has_gso && bytes > MTU)
		came->largest_in = (uint32_t)(came->in_bytes < 20000 ?
						      came->in_bytes :
						      20000);
	if (fate == DROPPED_IN)
		note_drop(sim, !d, came, n, at);
	else
		came->segment_bytes += bytes;
	return fate;
}

/* ---- Messages of TCP ------------------------------------------------------------------------ */

struct flight {
	int d;
	struct netobs_turn *sent, *came;
	struct trip trip;
	int64_t last_ns,
		without_ns; /* when all has come, also if nothing had been lost */
	bool has_lost;
};

/* The first packet of a message that comes to a host, at its uplink. */
static void begin_at(struct netobs_turn *came, int64_t ns)
{
	if (!came->record.time_ns || ns < came->record.time_ns)
		came->record.time_ns = ns;
}

/* A packet is sent until it arrives. Later packets show soon that it was lost, or TCP waits for a timeout. */
static void send_packet(struct sim *sim, struct flight *flight, int64_t first,
			uint32_t bytes, bool is_followed)
{
	const struct trip *trip = &flight->trip;
	const int64_t rtt = sim->way_ns[0] + sim->way_ns[1];
	struct netobs_turn *sent = flight->sent, *came = flight->came;
	struct sim_fault *late = sim_find(sim, NETOBS_PLACE_NETWORK,
					  NETOBS_CAUSE_REORDERING, first);
	int64_t at = first, in = 0;

	sent->attempts = 0;
	for (uint32_t attempt = 0;; attempt++) {
		const enum fate fate = count_packet(sim, flight->d, sent, came,
						    at, bytes, attempt);

		if (fate == DROPPED_IN && !in)
			in = at + trip->qdisc + trip->way;
		if (fate == DROPPED_IN)
			begin_at(came, in);
		if (fate == PASSES)
			break;
		at += !attempt && is_followed ?
			      rtt + 2 * SIM_MS :
			      RTO_NS << (attempt < 3 ? attempt : 3);
		if (attempt == 1 && bytes > MTU)
			bytes = sim->connection.mss = MTU / 2;
	}
	if (late && is_followed && sim_unit(sim) < late->chance) {
		at += sim_some(sim, late->ns);
		sim->lost_by = (uint32_t)(late - sim->faults);
		count_packet(sim, flight->d, sent, came, first, bytes, 4);
	}
	sent->sent_ns = first;
	sent->part_ns[NETOBS_JOURNEY_RECOVERY] = (uint64_t)(at - first);
	sent->out_ns = at + trip->qdisc;
	begin_at(came, sent->out_ns + trip->way);
	came->in_ns = in ?: sent->out_ns + trip->way;
	came->segment_ns = sent->out_ns + trip->way + trip->stack;
	flight->has_lost |= at > first;
	if (came->segment_ns > flight->last_ns)
		flight->last_ns = came->segment_ns;
	if (came->segment_ns - (at - first) > flight->without_ns)
		flight->without_ns = came->segment_ns - (at - first);
}

/* How many packets may be on their way. */
static uint32_t room_of(struct sim *sim, int d, int64_t at, uint32_t *ret_limit)
{
	const bool has_window =
		sim_find(sim, sim_host(!d), NETOBS_CAUSE_RECEIVE_BUFFER, at);
	const bool has_buffer =
		sim_find(sim, sim_host(d), NETOBS_CAUSE_SEND_BUFFER, at);
	uint32_t room = sim->connection.cwnd[d];

	*ret_limit = NETOBS_TURN_CWND;
	if (has_window && WINDOW < room) {
		*ret_limit = NETOBS_TURN_WINDOW;
		room = WINDOW;
	}
	if (has_buffer && BUFFER < room) {
		*ret_limit = NETOBS_TURN_BUFFER;
		room = BUFFER;
	}
	return room;
}

/* TCP waits for acknowledgments of a round. @return when it sends again */
static int64_t wait_for_room(struct sim *sim, struct flight *flight,
			     int64_t now, uint32_t limit)
{
	const int d = flight->d;
	const int64_t lost = flight->last_ns - flight->without_ns;
	const struct trip back = draw_trip(sim, !d, flight->last_ns);
	const int64_t slow = sim_hit(sim, sim_process(!d), NETOBS_CAUSE_READS,
				     flight->last_ns);
	const int64_t next = flight->last_ns + trip_ns(&back);
	uint64_t *states = flight->came->thread_ns[NETOBS_TURN_READING];

	flight->sent->limit_ns[limit] += (uint64_t)(next - now - lost);
	flight->sent->limit_ns[NETOBS_TURN_RECOVERY] += (uint64_t)lost;
	flight->sent->limit_ns[NETOBS_TURN_WINDOW] += (uint64_t)slow;
	states[NETOBS_THREAD_SLEEP] += (uint64_t)slow;
	states[NETOBS_THREAD_RUN] += 4 * SIM_US;
	return next + slow;
}

static void end_round(struct sim *sim, struct flight *flight)
{
	uint32_t *cwnd = &sim->connection.cwnd[flight->d];

	sim->faults[sim->lost_by].added_ns +=
		flight->last_ns - flight->without_ns;
	*cwnd = flight->has_lost ? *cwnd / 2 : 2 * *cwnd;
	*cwnd = *cwnd < 2 ? 2 : *cwnd > CWND_MOST ? CWND_MOST : *cwnd;
}

/* Rounds of packets, until all @bytes have been sent. @return when all have come to the receiver */
static int64_t send_rounds(struct sim *sim, struct flight *flight,
			   uint32_t bytes, int64_t now)
{
	const uint32_t cwnd = sim->connection.cwnd[flight->d];
	uint32_t rounds = 0, needed = 0, limit = 0, of = 0;
	const int64_t from = now;

	for (uint32_t n = bytes / MSS + 1, may = cwnd; n; needed++, may *= 2)
		n -= n < may ? n : may;
	for (uint32_t left = bytes, n; left; rounds++) {
		const uint32_t room = room_of(sim, flight->d, now, &limit);

		of = limit == NETOBS_TURN_CWND ? of : limit;
		flight->trip = draw_trip(sim, flight->d, now);
		flight->last_ns = flight->without_ns = 0;
		flight->has_lost = false;
		for (uint32_t i = 0; i < room && left; i++, left -= n) {
			const uint32_t mss = sim->connection.mss;

			n = left < mss ? left : mss;
			send_packet(sim, flight, now + i * 8 * SIM_US, n,
				    i + 3 < room && left > 3 * mss);
		}
		end_round(sim, flight);
		if (left)
			now = wait_for_room(sim, flight, now, limit);
	}
	for (uint32_t i = 0; i < sim->n_faults && rounds > needed && of; i++)
		if (sim->faults[i].cause ==
		    (of == NETOBS_TURN_WINDOW ? NETOBS_CAUSE_RECEIVE_BUFFER :
						NETOBS_CAUSE_SEND_BUFFER))
			sim->faults[i].added_ns +=
				(now - from) * (rounds - needed) / (rounds - 1);
	return flight->last_ns;
}

static void fill_parts(struct netobs_turn *sent, struct netobs_turn *came,
		       const struct trip *trip)
{
	const int64_t begin = sent->record.time_ns;

	sent->limit_ns[NETOBS_TURN_OTHER] = (uint64_t)(sent->sent_ns - begin);
	for (int limit = 0; limit < NETOBS_TURN_OTHER; limit++)
		sent->limit_ns[NETOBS_TURN_OTHER] -= sent->limit_ns[limit];
	sent->part_ns[NETOBS_JOURNEY_TCP] = (uint64_t)(sent->sent_ns - begin);
	sent->part_ns[NETOBS_JOURNEY_QDISC] = (uint64_t)trip->qdisc;
	if (sent->acked_ns)
		sent->part_ns[NETOBS_JOURNEY_NETWORK] =
			(uint64_t)(sent->acked_ns - sent->out_ns);
	came->part_ns[NETOBS_JOURNEY_STACK] = (uint64_t)trip->stack;
	came->part_ns[NETOBS_JOURNEY_GAP] =
		(uint64_t)(came->ready_ns - came->segment_ns);
	came->part_ns[NETOBS_JOURNEY_READER] =
		(uint64_t)(came->read_ns - came->ready_ns);
}

/* The message can be read; it is, after a while. */
static void read_message(struct sim *sim, struct netobs_turn *came, int d,
			 int64_t accepted)
{
	const int64_t slow = sim_hit(sim, sim_process(!d), NETOBS_CAUSE_READS,
				     came->ready_ns);
	const int64_t closed =
		accepted > came->ready_ns ? accepted - came->ready_ns : 0;

	came->read_ns = work(sim, !d, came->ready_ns, sim_some(sim, 20 * SIM_US),
			     slow + closed, came->thread_ns[NETOBS_TURN_READING]);
}

/* @return the record of the host that reads it; that of the other one is delivered */
static struct netobs_turn send_message(struct sim *sim, int d, int64_t at,
				       int64_t accepted)
{
	const uint32_t mean = sim->bytes[d];
	const uint32_t bytes = mean / 2 + 1 + sim_below(sim, mean);
	struct netobs_turn sent = sim_turn(sim, d, d, bytes),
			   came = sim_turn(sim, !d, d, bytes);
	struct flight flight = { .d = d, .sent = &sent, .came = &came };
	uint64_t *states = sent.thread_ns[NETOBS_TURN_WRITING];
	const int64_t copies = 4 * SIM_US + sim_some(sim, 15 * SIM_US);

	sent.record.time_ns = at;
	came.ready_ns =
		send_rounds(sim, &flight, bytes, at + 1 + sim_some(sim, 3000));
	sent.acked_ns = came.ready_ns + sim->way_ns[!d] + 30 * SIM_US;
	sent.written_ns = at + copies;
	states[NETOBS_THREAD_RUN] = (uint64_t)copies;
	if (sent.limit_ns[NETOBS_TURN_BUFFER] && sent.sent_ns > sent.written_ns) {
		states[NETOBS_THREAD_SLEEP] =
			(uint64_t)(sent.sent_ns - sent.written_ns);
		sent.written_ns = sent.sent_ns;
	}
	read_message(sim, &came, d, accepted);
	fill_parts(&sent, &came, &flight.trip);
	sim->connection.offset[d] += bytes;
	sim_deliver(sim, d, &sent);
	return came;
}

/* ---- Connections of TCP --------------------------------------------------------------------- */

/* @return when the client may write; *ret_accepted: when the server may read */
static int64_t connect_hosts(struct sim *sim, int64_t at, int64_t *ret_accepted)
{
	struct netobs_turn sent = sim_turn(sim, 0, 0, 0),
			   came = sim_turn(sim, 1, 0, 0);
	const struct sim_fault *full = sim_find(sim, NETOBS_PLACE_SERVER_PROCESS,
						NETOBS_CAUSE_ACCEPT, at);
	struct trip trip = draw_trip(sim, 0, at), back;
	bool is_full = full && sim_unit(sim) < .3;
	uint64_t states[NETOBS_THREAD_STATES];

	came.attempts = 0;
	sent.record.time_ns = sent.sent_ns = at;
	for (uint32_t attempt = 0;; attempt++) {
		const enum fate fate =
			count_packet(sim, 0, &sent, &came, at, 0, attempt);
		struct sim_fault *by = &sim->faults[sim->lost_by];

		came.attempts += fate == PASSES || fate == DROPPED_IN;
		sent.out_ns = at + trip.qdisc;
		if (fate == PASSES || fate == DROPPED_IN)
			begin_at(&came, sent.out_ns + trip.way);
		if (fate == PASSES && !is_full)
			break;
		by->added_ns += SYN_NS << (attempt < 2 ? attempt : 2);
		sim_counters(sim, 1, at)->listen_overflows += is_full;
		sim_counters(sim, 1, at)->listen_drops += is_full;
		is_full = false;
		at += SYN_NS << (attempt < 2 ? attempt : 2);
	}
	back = draw_trip(sim, 1, at);
	came.in_ns = came.record.time_ns;
	came.answer_ns = at + trip_ns(&trip) + 10 * SIM_US;
	sent.in_ns = came.answer_ns + back.qdisc + back.way;
	came.ready_ns = sent.in_ns + 20 * SIM_US + sim->way_ns[0];
	came.read_ns = *ret_accepted =
		work(sim, 1, came.ready_ns, 5 * SIM_US,
		     sim_hit(sim, NETOBS_PLACE_SERVER_PROCESS,
			     NETOBS_CAUSE_ACCEPT, came.ready_ns),
		     states);
	if (*ret_accepted > came.ready_ns + SIM_MS && full)
		sim_counters(sim, 1, came.ready_ns)->accept_queue = 5;
	came.read_ns = sim->has_accept ? came.read_ns : 0;
	sim_deliver(sim, 0, &sent);
	sim_deliver(sim, 1, &came);
	return sent.in_ns + 40 * SIM_US;
}

static void open_connection(struct sim *sim)
{
	struct sim_connection *connection = &sim->connection;

	*connection = (struct sim_connection){
		.id = connection->id + 1,
		.port = (uint16_t)(32768 + sim_below(sim, 28000)),
		.seq = { sim_below(sim, UINT32_MAX), sim_below(sim, UINT32_MAX) },
		.cwnd = { 10, 10 },
		.mss = MSS,
	};
	connection->wire_port = sim->has_nat[0] ?
					(uint16_t)(1024 + sim_below(sim, 30000)) :
					connection->port;
}

/* Turns of a connection, until it is closed. @return when the next one begins */
static int64_t talk_tcp(struct sim *sim, int64_t at)
{
	const uint32_t n = 1 + sim_below(sim, 2 * sim->turns);
	int64_t accepted, begin = at;

	open_connection(sim);
	at = connect_hosts(sim, at, &accepted);
	for (uint32_t i = 0; i < n && at < sim->until_ns;
	     i++, begin = at, sim->turn++) {
		struct netobs_turn request = send_message(sim, 0, at, accepted),
				   answer;

		at = think(sim, 1, &request);
		sim_deliver(sim, 1, &request);
		answer = send_message(sim, 1, at, 0);
		at = think(sim, 0, &answer);
		sim_count_turn(sim, begin, at);
		if (i + 1 == n || at >= sim->until_ns) {
			answer.answer_ns = 0;
			memset(answer.thread_ns[NETOBS_TURN_THINKING], 0,
			       sizeof(answer.thread_ns[0]));
		}
		sim_deliver(sim, 0, &answer);
	}
	return at;
}

/* ---- Datagrams ------------------------------------------------------------------------------ */

/* @return whether it was read; @ret_came is delivered, if not */
static bool send_datagram(struct sim *sim, int d, int64_t at,
			  struct netobs_turn *ret_came)
{
	const uint32_t bytes = 20 + sim_below(sim, 1200);
	const struct trip trip = draw_trip(sim, d, at);
	struct netobs_turn sent = sim_turn(sim, d, d, bytes),
			   came = sim_turn(sim, !d, d, bytes);
	const enum fate fate = count_packet(sim, d, &sent, &came, at, bytes, 0);

	sent.record.time_ns = sent.sent_ns = at;
	sent.out_ns = fate == DROPPED_OUT ? 0 : at + trip.qdisc;
	came.record.time_ns = came.in_ns = at + trip.qdisc + trip.way;
	sim->connection.offset[d]++;
	if (fate == PASSES) {
		came.segment_ns = 0;
		came.ready_ns = came.in_ns + trip.stack;
		read_message(sim, &came, d, 0);
		came.segment_ns = came.ready_ns;
	}
	fill_parts(&sent, &came, &trip);
	came.segment_ns = 0;
	memset(sent.limit_ns, 0, sizeof(sent.limit_ns));
	sim_deliver(sim, d, &sent);
	if (fate == DROPPED_IN)
		sim_deliver(sim, !d, &came);
	*ret_came = came;
	return fate == PASSES;
}

/* The client asks again, if no answer comes. */
static int64_t talk_udp(struct sim *sim, int64_t at)
{
	const int64_t patience = 250 * SIM_MS;

	open_connection(sim);
	for (uint32_t i = 0; i < 4 * sim->turns && at < sim->until_ns;
	     i++, sim->turn++) {
		const int64_t begin = at;
		struct netobs_turn request, answer;
		bool is_read = send_datagram(sim, 0, at, &request);

		if (is_read) {
			at = think(sim, 1, &request);
			sim_deliver(sim, 1, &request);
			is_read = send_datagram(sim, 1, at, &answer);
		}
		if (is_read) {
			at = think(sim, 0, &answer);
			sim_deliver(sim, 0, &answer);
		} else {
			sim->faults[sim->lost_by].added_ns += patience;
			at = begin + patience > at ? begin + patience : at;
		}
		sim_count_turn(sim, begin, at);
	}
	return at;
}

void sim_run(struct sim *sim)
{
	int64_t at = sim->begin_ns;

	while (sim->kind == SIM_TCP && at < sim->until_ns)
		at = talk_tcp(sim, at);
	while (sim->kind == SIM_UDP && at < sim->until_ns)
		at = talk_udp(sim, at);
	if (sim->kind == SIM_STREAM)
		sim_stream(sim);
	sim_end(sim);
}
