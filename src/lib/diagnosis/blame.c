// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What takes longer than is normal. The norm of a part is the most that it took in a turn before, or a shift of
 * its mean that chance does not explain. Where nothing is known of the time before, the time that parts take
 * counts as it is, but for that of the client's process.
 */
#include "diagnosis_state.h"

#include <netinet/in.h>
#include <netobs/trace.h>

enum {
	ENOUGH = 10,	   /* turns */
	MARGIN = 12,	   /* tenths of the norm */
	LEAST_NS = 500000, /* less is no blame */
	SIGMAS = 4,	   /* of a shift that chance does not explain */
	SIGMAS_MORE = 2,
	TRIMMED = 20, /* one of so many values, the largest, is no evidence of a shift */
	LEAST_SHARE = 6, /* per cent of the window */
	CLEAR_SHARE = 3, /* with less than that, nothing is longer for certain */
	CERTAIN_SHARE = 60,
	LIKELY_SHARE = 40,
	SECOND_SHARE = 20,
	STREAM_SHARE = 20,
	GROWN_SHARE = 25, /* of the time of a stream: what grew so much is trouble, if the rate is lower at all */
	LOWER_SHARE = 3,
};

static double max_double(double a, double b)
{
	return a > b ? a : b;
}

/* What a part took, in turns of one time. */
struct sample {
	int64_t *ns;
	uint32_t n;
	double mean, variance; /* without the largest values */
};

struct part_sums {
	int64_t most[2]; /* before: of turns, of handshakes */
	double sums[2];	 /* before, now */
	double blamed;
};

struct judgement {
	struct account *account;
	const struct netobs_verdict *norm;
	struct part_sums parts[PARTS];
	double turns[2]; /* weighted; handshakes count only where there is nothing else */
	uint32_t n[2];
	double all_ns[2]; /* of all turns */
	bool has_before;
	bool has_grown; /* streams: a part that is not there without a reason */
};

static const struct netobs_verdict_part *
find_norm(const struct judgement *judgement, struct part_key key)
{
	const struct netobs_verdict *norm = judgement->norm;

	for (uint32_t i = 0; norm && i < norm->n_parts && i < PARTS; i++)
		if (norm->parts[i].place == key.place &&
		    norm->parts[i].cause == key.cause)
			return &norm->parts[i];
	return NULL;
}

/* ---- Sums ---------------------------------------------------------------------------------------- */

static void add_turn(struct judgement *judgement, const struct turn *turn)
{
	const struct account *account = judgement->account;

	judgement->all_ns[turn->is_now] +=
		(double)(turn->end_ns - turn->begin_ns) * turn->weight;
	if (!turn->is_connect)
		judgement->turns[turn->is_now] += turn->weight;
	for (uint32_t i = 0; i < account->n_parts; i++) {
		struct part_sums *part = &judgement->parts[i];

		part->sums[turn->is_now] += (double)turn->ns[i] * turn->weight;
		/* If there is nothing before, it may become a norm itself. */
		if (!turn->is_now || !judgement->has_before)
			part->most[turn->is_connect] = max_i64(
				part->most[turn->is_connect], turn->ns[i]);
	}
}

/* A window with nothing but handshakes is judged by these. */
static void count_connects(struct judgement *judgement)
{
	const struct account *account = judgement->account;

	for (uint32_t i = 0; i < account->n && !judgement->n[1]; i++)
		judgement->turns[1] += account->turns[i].is_now;
	if (!judgement->n[1])
		judgement->n[1] = (uint32_t)judgement->turns[1];
}

/* ---- Norms ------------------------------------------------------------------------------------------ */

/* @return the most that is normal; INT64_MAX: anything is, as nothing is known of it */
static int64_t norm_of(const struct judgement *judgement, uint32_t i,
		       bool is_connect)
{
	const struct part_key key = judgement->account->parts[i];
	int64_t most = judgement->parts[i].most[is_connect];

	if (judgement->norm) {
		const struct netobs_verdict_part *part =
			find_norm(judgement, key);

		most = part ? (int64_t)min_u64(part->most_ns,
					       3600 * NSEC_PER_SEC) :
			      0;
	} else if (!judgement->has_before) {
		return key.place == NETOBS_PLACE_CLIENT_PROCESS &&
				       key.cause == NETOBS_CAUSE_THINKS ?
			       INT64_MAX :
			       LEAST_NS;
	} else if (is_connect) {
		most = max_i64(most, judgement->parts[i].most[0]);
	}
	return max_i64(most * MARGIN / 10, LEAST_NS);
}

static int compare_ns(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void describe(struct sample *sample)
{
	const uint32_t n =
		sample->n - sample->n / TRIMMED - (sample->n >= ENOUGH);
	double sum = 0, squares = 0;

	qsort(sample->ns, sample->n, sizeof(*sample->ns), compare_ns);
	for (uint32_t i = 0; i < n; i++)
		sum += (double)sample->ns[i];
	sample->mean = sum / n;
	for (uint32_t i = 0; i < n; i++)
		squares += ((double)sample->ns[i] - sample->mean) *
			   ((double)sample->ns[i] - sample->mean);
	sample->variance = squares / (n - 1) / n;
}

/* @return what a turn took in part @i; PARTS: in all of them but the pauses of the client, which differ most */
static int64_t taken(const struct account *account, const struct turn *turn,
		     uint32_t i)
{
	int64_t sum = 0;

	if (i < PARTS)
		return turn->ns[i];
	for (i = 0; i < account->n_parts; i++)
		if (account->parts[i].place != NETOBS_PLACE_CLIENT_PROCESS)
			sum += turn->ns[i];
	return sum;
}

/* @return by how much a turn takes longer in a part, the mean; 0: chance may explain it. @values: room for all turns */
static double shift_of(const struct judgement *judgement, uint32_t i,
		       double sigmas, int64_t *values)
{
	const struct account *account = judgement->account;
	struct sample samples[2] = { { .ns = values } };
	double shift;

	for (int is_now = 0; is_now < 2; is_now++) {
		struct sample *sample = &samples[is_now];

		sample->ns = is_now ? values + samples[0].n : values;
		for (uint32_t k = 0; k < account->n; k++)
			if (account->turns[k].is_now == is_now &&
			    !account->turns[k].is_connect)
				sample->ns[sample->n++] =
					taken(account, &account->turns[k], i);
		if (sample->n < ENOUGH)
			return 0;
		describe(sample);
	}
	shift = samples[1].mean - samples[0].mean;
	return shift > LEAST_NS && shift * shift > sigmas * sigmas *
							   (samples[0].variance +
							    samples[1].variance) ?
		       shift :
		       0;
}

static void blame_part(struct judgement *judgement, uint32_t i, double sigmas,
		       int64_t *values)
{
	const struct account *account = judgement->account;
	struct part_sums *part = &judgement->parts[i];

	for (uint32_t k = 0; k < account->n; k++) {
		const struct turn *turn = &account->turns[k];
		const int64_t norm = norm_of(judgement, i, turn->is_connect);

		if (turn->is_now && turn->ns[i] > norm)
			part->blamed +=
				(double)(turn->ns[i] - norm) * turn->weight;
	}
	if (judgement->has_before && !judgement->norm)
		part->blamed = max_double(part->blamed,
					  shift_of(judgement, i, sigmas, values) *
						  judgement->turns[1]);
}

/* If turns are longer beyond chance, it takes less to say of what. */
static void blame_parts(struct judgement *judgement, int64_t *values)
{
	const double sigmas = shift_of(judgement, PARTS, SIGMAS, values) > 0 ?
				      SIGMAS_MORE :
				      SIGMAS;

	for (uint32_t i = 0; i < judgement->account->n_parts; i++)
		blame_part(judgement, i, sigmas, values);
}

/* Streams: a state grew in its share of the time, and the rate fell. If none grew by much, the largest has more
 * to do, or the same with less. */
static void blame_shares(struct judgement *judgement)
{
	struct account *account = judgement->account;
	double most = 0;

	for (uint32_t i = 0; i < account->n_parts; i++) {
		struct part_sums *part = &judgement->parts[i];
		const double before =
			judgement->all_ns[0] > 0 ?
				part->sums[0] / judgement->all_ns[0] :
				0;

		part->blamed = max_double(
			0, part->sums[1] - before * judgement->all_ns[1]);
		most = max_double(most, part->blamed);
		judgement->has_grown |=
			account->parts[i].cause != NETOBS_CAUSE_DELAY &&
			account->parts[i].cause != NETOBS_CAUSE_QDISC &&
			part->blamed * 100 > GROWN_SHARE * judgement->all_ns[1];
	}
	account->is_largest = most * 100 < STREAM_SHARE * judgement->all_ns[1];
	for (uint32_t i = 0; i < account->n_parts && account->is_largest; i++)
		judgement->parts[i].blamed = judgement->parts[i].sums[1];
}

/* ---- The verdict -------------------------------------------------------------------------------------- */

static void fill_part(const struct judgement *judgement, uint32_t i,
		      struct netobs_verdict_part *part)
{
	const struct part_sums *sums = &judgement->parts[i];
	const struct part_key key = judgement->account->parts[i];
	const struct netobs_verdict_part *norm = find_norm(judgement, key);

	part->place = key.place;
	part->cause = key.cause;
	part->blamed_ns = (uint64_t)sums->blamed;
	if (judgement->turns[1] > 0)
		part->now_ns = (uint64_t)(sums->sums[1] / judgement->turns[1]);
	if (judgement->turns[0] > 0)
		part->before_ns = (uint64_t)(sums->sums[0] / judgement->turns[0]);
	part->most_ns = (uint64_t)max_i64(sums->most[0], sums->most[1]);
	if (norm) {
		part->before_ns = norm->now_ns;
		part->most_ns = norm->most_ns;
	}
}

static int compare_parts(const void *a, const void *b)
{
	const struct netobs_verdict_part *x = a, *y = b;

	return x->place != y->place ? x->place - y->place : x->cause - y->cause;
}

static void fill_parts(const struct judgement *judgement,
		       struct netobs_verdict *verdict)
{
	verdict->n_parts = (uint16_t)judgement->account->n_parts;
	for (uint32_t i = 0; i < verdict->n_parts; i++)
		fill_part(judgement, i, &verdict->parts[i]);
	qsort(verdict->parts, verdict->n_parts, sizeof(*verdict->parts),
	      compare_parts);
	for (uint32_t i = 0; i < verdict->n_parts; i++)
		verdict->all_blamed_ns += verdict->parts[i].blamed_ns;
}

/* Find the place with most blame, and the cause with most of that. @other_than: a place that does not count */
static uint64_t find_place(const struct netobs_verdict *verdict,
			   uint8_t other_than, uint8_t *ret_place,
			   uint8_t *ret_cause)
{
	uint64_t places[NETOBS_PLACES] = { 0 }, most = 0, best = 0;

	for (uint32_t i = 0; i < verdict->n_parts; i++)
		places[verdict->parts[i].place] += verdict->parts[i].blamed_ns;
	for (unsigned int place = 1; place < NETOBS_PLACES; place++) {
		if (place == other_than || places[place] <= most)
			continue;
		most = places[place];
		*ret_place = (uint8_t)place;
	}
	for (uint32_t i = 0; i < verdict->n_parts; i++)
		if (most && verdict->parts[i].place == *ret_place &&
		    verdict->parts[i].blamed_ns > best) {
			best = verdict->parts[i].blamed_ns;
			*ret_cause = verdict->parts[i].cause;
		}
	return most;
}

static uint64_t blamed_on(const struct netobs_verdict *verdict, uint8_t place,
			  uint8_t cause)
{
	for (uint32_t i = 0; i < verdict->n_parts; i++)
		if (verdict->parts[i].place == place &&
		    verdict->parts[i].cause == cause)
			return verdict->parts[i].blamed_ns;
	return 0;
}

/* A lossy link leaves others a larger share, but not more bytes. */
static bool have_others_grown(const struct account *account)
{
	const struct evidence *evidence = account->evidence;
	const struct talk *talk = account->talk;
	const double before_ns =
		(double)max_i64(talk->since_ns - talk->before_ns, 1);
	const double now_ns = (double)(talk->until_ns - talk->since_ns);

	for (int end = 0; end < ENDS; end++)
		if (evidence_is_full(evidence, end) &&
		    (double)evidence->others[end][1] / now_ns >
			    2 * (double)evidence->others[end][0] / before_ns)
			return true;
	return false;
}

/* What the parts of the network do not tell by themselves. */
static void refine_network(const struct account *account,
			   struct netobs_verdict *verdict)
{
	const struct evidence *evidence = account->evidence;
	const bool is_full = evidence_is_full(evidence, SERVER) ||
			     evidence_is_full(evidence, CLIENT);
	const uint64_t delay =
		blamed_on(verdict, NETOBS_PLACE_NETWORK, NETOBS_CAUSE_DELAY);

	if (verdict->place != NETOBS_PLACE_NETWORK)
		return;
	/* What waits while the link is down arrives later. */
	if (evidence->sums[CLIENT].carrier_changes +
		    evidence->sums[SERVER].carrier_changes &&
	    verdict->cause == NETOBS_CAUSE_DELAY)
		verdict->cause = NETOBS_CAUSE_LINK;
	if (is_full &&
	    (verdict->cause == NETOBS_CAUSE_DELAY ||
	     (verdict->cause == NETOBS_CAUSE_LOSS &&
	      (delay * 10 > verdict->blamed_ns || have_others_grown(account)))))
		verdict->cause = NETOBS_CAUSE_QUEUE;
	else if (verdict->cause == NETOBS_CAUSE_LOSS && account->n_whole &&
		 2 * account->large_ns > account->lost_ns)
		verdict->cause = NETOBS_CAUSE_MTU;
}

static bool is_observed(uint8_t cause)
{
	return cause != NETOBS_CAUSE_THINKS && cause != NETOBS_CAUSE_STACK &&
	       cause != NETOBS_CAUSE_DELAY && cause != NETOBS_CAUSE_REORDERING;
}

/* @return what is missing that could name another place */
static uint32_t doubts_of(const struct netobs_verdict *verdict)
{
	uint32_t doubts = NETOBS_MISSING_HOST | NETOBS_MISSING_BEFORE |
			  NETOBS_MISSING_TURNS | NETOBS_MISSING_CLOCK;

	switch (verdict->place) {
	case NETOBS_PLACE_CLIENT_PROCESS:
	case NETOBS_PLACE_SERVER_PROCESS:
		return doubts | NETOBS_MISSING_THREADS | NETOBS_MISSING_COUNTERS;
	case NETOBS_PLACE_NETWORK:
		return doubts | NETOBS_MISSING_COUNTERS;
	default:
		return doubts | NETOBS_MISSING_THREADS | NETOBS_MISSING_LIMITS |
		       NETOBS_MISSING_COUNTERS;
	}
}

/* COMPAT(<6.3): a host does not see what becomes of datagrams that have arrived. */
static bool is_unseen(const struct account *account,
		      const struct netobs_verdict *verdict)
{
	return verdict->protocol == IPPROTO_UDP &&
	       account->evidence->missing_points >> NETOBS_TRACE_READY & 1;
}

static uint8_t certainty_of(const struct account *account,
			    const struct netobs_verdict *verdict,
			    double window_ns)
{
	const double share = verdict->all_blamed_ns ?
				     100.0 * (double)verdict->blamed_ns /
					     (double)verdict->all_blamed_ns :
				     0;
	const uint32_t lacks = verdict->missing & doubts_of(verdict);

	if (verdict->missing & NETOBS_MISSING_BEFORE ||
	    is_unseen(account, verdict))
		return NETOBS_NOT_SURE;
	if (share >= CERTAIN_SHARE && !account->is_ways &&
	    is_observed(verdict->cause) && !lacks && !account->is_largest &&
	    (double)verdict->blamed_ns * 100 >= LEAST_SHARE * window_ns)
		return NETOBS_CERTAIN;
	return share >= LIKELY_SHARE && !(lacks & NETOBS_MISSING_TURNS) ?
		       NETOBS_LIKELY :
		       NETOBS_NOT_SURE;
}

/* Nothing takes longer: that is certain where enough is known of both times. */
static void acquit(struct netobs_verdict *verdict, double window_ns)
{
	const uint32_t lacks = NETOBS_MISSING_BEFORE | NETOBS_MISSING_TURNS;

	verdict->place = NETOBS_PLACE_NONE;
	verdict->cause = NETOBS_CAUSE_NONE;
	verdict->second_place = verdict->second_cause = 0;
	verdict->blamed_ns = 0;
	if (verdict->missing & lacks)
		verdict->certainty = NETOBS_NOT_SURE;
	else if (verdict->missing &
			 (NETOBS_MISSING_HOST | NETOBS_MISSING_CLOCK |
			  NETOBS_MISSING_RECORDS | NETOBS_MISSING_LIMITS) ||
		 (double)verdict->all_blamed_ns * 100 > CLEAR_SHARE * window_ns)
		verdict->certainty = NETOBS_LIKELY;
	else
		verdict->certainty = NETOBS_CERTAIN;
}

/* What much of the blamed time lacks could name another place. */
static uint32_t find_unknown(const struct account *account,
			     const struct netobs_verdict *verdict)
{
	const double much = (double)verdict->all_blamed_ns / 4;

	return ((double)account->unseen_ns > much ? NETOBS_MISSING_THREADS : 0) |
	       ((double)account->unlimited_ns > much ? NETOBS_MISSING_LIMITS : 0) |
	       ((double)account->assumed_ns > much ? NETOBS_MISSING_COUNTERS : 0);
}

static void find_missing(const struct judgement *judgement,
			 struct netobs_verdict *verdict)
{
	const struct account *account = judgement->account;
	const struct talk *talk = account->talk;

	verdict->missing |= account->missing | find_unknown(account, verdict);
	if (!talk_hears(talk, CLIENT) || !talk_hears(talk, SERVER))
		verdict->missing |= NETOBS_MISSING_HOST;
	if (!judgement->has_before && !judgement->norm)
		verdict->missing |= NETOBS_MISSING_BEFORE;
	if (judgement->n[1] < ENOUGH && !verdict->is_stream && !account->is_ways)
		verdict->missing |= NETOBS_MISSING_TURNS;
	for (int end = 0; end < ENDS; end++) {
		if (!talk_hears(talk, end))
			continue;
		if (!account->evidence->has_host[end])
			verdict->missing |= NETOBS_MISSING_COUNTERS;
		if (!account->evidence->has_queues[end])
			verdict->missing |= NETOBS_MISSING_QUEUES;
	}
	if (account->evidence->missing_points)
		verdict->missing |= NETOBS_MISSING_POINTS;
	if (!(verdict->missing & NETOBS_MISSING_HOST) &&
	    talk->hosts[CLIENT] != talk->hosts[SERVER] && !talk->clocks.bound_ns)
		verdict->missing |= NETOBS_MISSING_CLOCK;
	/* Most of what is called lost has no record at the other host: it may have come there, and be unknown. */
	if (2 * account->guess_ns > account->lost_ns)
		verdict->missing |= NETOBS_MISSING_HOST;
	if (talk->diagnosis->left_out)
		verdict->missing |= NETOBS_MISSING_RECORDS;
}

/* Trouble of a stream is a rate that is lower by a fifth, or lower for a reason that is new. */
static bool is_slower(const struct judgement *judgement,
		      struct netobs_verdict *verdict)
{
	const struct account *account = judgement->account;
	const struct talk *talk = account->talk;
	const int share = judgement->has_grown ? LOWER_SHARE : STREAM_SHARE;
	const int64_t before_ns =
		talk->since_ns - max_i64(account->first_ns, talk->before_ns);
	const int64_t now_ns = talk->until_ns - talk->since_ns;

	verdict->rate = (uint64_t)((double)account->bytes[1] * NSEC_PER_SEC /
				   (double)max_i64(now_ns, 1));
	if (before_ns > 0)
		verdict->rate_before =
			(uint64_t)((double)account->bytes[0] * NSEC_PER_SEC /
				   (double)before_ns);
	return (double)verdict->rate <
	       (double)verdict->rate_before * (100 - share) / 100;
}

static void sum_turns(struct judgement *judgement, struct netobs_verdict *verdict)
{
	struct account *account = judgement->account;

	for (uint32_t i = 0; i < account->n; i++)
		judgement->n[account->turns[i].is_now] +=
			!account->turns[i].is_connect;
	judgement->has_before = judgement->n[0] >=
				(account->is_ways ? 1 : ENOUGH);
	for (uint32_t i = 0; i < account->n; i++)
		add_turn(judgement, &account->turns[i]);
	count_connects(judgement);
	verdict->turns = judgement->n[1];
	verdict->turns_before = judgement->n[0];
	if (verdict->is_stream) {
		/* Parts are of a second. */
		judgement->turns[0] = judgement->all_ns[0] / NSEC_PER_SEC;
		judgement->turns[1] = judgement->all_ns[1] / NSEC_PER_SEC;
		judgement->has_before = judgement->all_ns[0] >= NSEC_PER_SEC;
		verdict->turns = (uint32_t)judgement->turns[1];
		verdict->turns_before = (uint32_t)judgement->turns[0];
	}
	if (judgement->turns[1] > 0)
		verdict->turn_ns =
			(uint64_t)(judgement->all_ns[1] / judgement->turns[1]);
	if (judgement->turns[0] > 0)
		verdict->turn_before_ns =
			(uint64_t)(judgement->all_ns[0] / judgement->turns[0]);
	if (judgement->norm)
		verdict->turn_before_ns = judgement->norm->turn_ns;
}

static void name_place(const struct account *account, bool is_trouble,
		       double window_ns, struct netobs_verdict *verdict)
{
	uint64_t second;

	verdict->blamed_ns =
		find_place(verdict, 0, &verdict->place, &verdict->cause);
	if (!is_trouble ||
	    (double)verdict->blamed_ns * 100 < LEAST_SHARE * window_ns) {
		acquit(verdict, window_ns);
		/* What clients do between connections is in no turn. */
		if (2 * account->n_last > verdict->turns)
			verdict->certainty = (uint8_t)min_u64(verdict->certainty,
							      NETOBS_LIKELY);
		return;
	}
	second = find_place(verdict, verdict->place, &verdict->second_place,
			    &verdict->second_cause);
	if (second * 100 < SECOND_SHARE * verdict->all_blamed_ns)
		verdict->second_place = verdict->second_cause = 0;
	refine_network(account, verdict);
	verdict->certainty = certainty_of(account, verdict, window_ns);
}

void blame_judge(struct account *account, const struct netobs_verdict *norm,
		 struct netobs_verdict *verdict)
{
	struct judgement judgement = { .account = account, .norm = norm };
	cleanup_free int64_t *values = malloc((account->n + 1) * sizeof(*values));
	const struct talk *talk = account->talk;
	double window_ns = (double)(talk->until_ns - talk->since_ns);

	if (!values)
		return;
	sum_turns(&judgement, verdict);
	if (verdict->is_stream)
		blame_shares(&judgement);
	else
		blame_parts(&judgement, values);
	fill_parts(&judgement, verdict);
	find_missing(&judgement, verdict);
	window_ns = max_double(window_ns, judgement.all_ns[1]);
	name_place(account, !verdict->is_stream || is_slower(&judgement, verdict),
		   window_ns, verdict);
}
