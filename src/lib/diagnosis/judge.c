// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A verdict for each client and service. */
#include "base/top_n.h"
#include "diagnosis_state.h"

#include <errno.h>

/* Verdicts of a judgement: those with the least blame are left out. */
enum { VERDICTS_MAX = 1024 };

struct window {
	int64_t before_ns, since_ns, until_ns;
	uint32_t host; /* whose clock it is by */
};

/* ---- Names --------------------------------------------------------------------------------------- */

static void name_socket(struct netobs_verdict *verdict, int end,
			const struct netobs_turn *turn, bool is_sender)
{
	const bool has_both = turn->record.has & NETOBS_TURN_HAS_SEND &&
			      turn->record.has & NETOBS_TURN_HAS_READ;
	const uint32_t pid = has_both && !is_sender ? turn->reader_pid :
						      turn->pid;
	const char *command = has_both && !is_sender ? turn->reader_command :
						       turn->command;
	const uint8_t *client = (end == CLIENT) == is_sender ? turn->src :
							       turn->dst;
	const bool is_client = end == CLIENT;

	if (pid) {
		*(is_client ? &verdict->client_pid : &verdict->server_pid) = pid;
		memcpy(is_client ? verdict->client_command :
				   verdict->server_command,
		       command, sizeof(verdict->client_command));
	}
	if (!is_client)
		return;
	/* As the client sees it: NAT may be on the way. */
	memcpy(verdict->client, client, sizeof(verdict->client));
	memcpy(verdict->server, client == turn->src ? turn->dst : turn->src,
	       sizeof(verdict->server));
	verdict->server_port = is_sender ? turn->dst_port : turn->src_port;
}

static void name_alert(struct netobs_verdict *verdict,
		       const struct netobs_turn *turn)
{
	if (!turn || turn->alert_ns <= verdict->alert_ns)
		return;
	verdict->alert_ns = turn->alert_ns;
	memcpy(verdict->alert, turn->alert, sizeof(verdict->alert));
}

static void name_ends(const struct talk *talk, const struct evidence *evidence,
		      struct netobs_verdict *verdict)
{
	const struct message *last = NULL;

	for (uint32_t i = 0; i < talk->n; i++) {
		const struct message *message = &talk->messages[i];

		if (message->s)
			name_socket(verdict, message->from, message->s, true);
		if (message->r)
			name_socket(verdict, !message->from, message->r, false);
		name_alert(verdict, message->s);
		name_alert(verdict, message->r);
		/* Messages are by tuple. */
		verdict->connections += !last ||
					memcmp(&last->tuple, &message->tuple,
					       sizeof(last->tuple));
		last = message;
	}
	memcpy(verdict->client_host, evidence->sums[CLIENT].host,
	       sizeof(verdict->client_host));
	memcpy(verdict->server_host, evidence->sums[SERVER].host,
	       sizeof(verdict->server_host));
}

/* ---- A client and a service -------------------------------------------------------------------------- */

static const struct netobs_verdict *
find_norm(const struct talk *talk, const struct netobs_verdict *verdict)
{
	struct norm_key key = { .port = verdict->server_port,
				.protocol = verdict->protocol };
	uint32_t index;

	memcpy(key.server, verdict->server, sizeof(key.server));
	index = slots_find(&talk->diagnosis->norms, &key);
	return index == SLOT_NONE ?
		       NULL :
		       &((struct norm *)slots_at(&talk->diagnosis->norms, index))
				->verdict;
}

/* How long slices tell of a time before or in the window, and how long their sender had something to send. */
struct slices {
	int64_t ns[2], busy_ns[2], all_ns[2]; /* with bytes; and with or without */
	uint32_t turns[2]; /* that are known of all hosts that are heard */
	uint32_t messages[2];
};

static bool is_whole(const struct talk *talk, const struct message *message)
{
	return (message->s || !talk_hears(talk, message->from)) &&
	       (message->r || !talk_hears(talk, !message->from));
}

static void add_message(const struct talk *talk, const struct message *message,
			struct slices *slices)
{
	const struct netobs_turn *turn = message->s ?: message->r;
	const bool is_now = message->time_ns >= talk->since_ns;
	int64_t ns = turn->end_ns - turn->record.time_ns;

	slices->messages[is_now] += turn->kind == NETOBS_TURN_MESSAGE;
	if (turn->kind == NETOBS_TURN_MESSAGE)
		slices->turns[is_now] += message->from == CLIENT &&
					 is_whole(talk, message);
	if (turn->kind != NETOBS_TURN_SLICE)
		return;
	slices->all_ns[is_now] += ns;
	slices->ns[is_now] += turn->bytes ? ns : 0;
	if (turn->record.has & NETOBS_TURN_HAS_LIMITS)
		slices->busy_ns[is_now] += max_i64(
			0, ns - (int64_t)turn->limit_ns[NETOBS_TURN_IDLE]);
}

/* What tells most of a window: turns; else the sender's limits, if it had something to send in most of the time; else
 * how long bytes take. */
static int (*choose_rule(const struct talk *talk))(struct account *account)
{
	struct slices slices = { 0 };
	const int64_t before_ns = talk->since_ns - talk->before_ns,
		      now_ns = talk->until_ns - talk->since_ns;

	for (uint32_t i = 0; i < talk->n; i++)
		if (talk->messages[i].time_ns < talk->until_ns)
			add_message(talk, &talk->messages[i], &slices);
	if (slices.turns[1] >= 10 ||
	    (slices.turns[0] >= 10 && slices.busy_ns[0] < before_ns / 4))
		return turns_make;
	if (slices.busy_ns[1] > now_ns / 2 && slices.messages[0] >= 10 &&
	    slices.messages[1])
		return ways_make;
	if (slices.busy_ns[1] > now_ns / 2 ||
	    (slices.busy_ns[0] > before_ns / 4 && slices.all_ns[1] > now_ns / 4))
		return streams_make;
	return slices.ns[1] > now_ns / 2 ? ways_make : turns_make;
}

static void fill_drops(const struct account *account,
		       struct netobs_verdict *verdict)
{
	verdict->lost_bytes = account->lost_bytes;
	verdict->dropped = account->dropped;
	if (!account->dropping)
		return;
	memcpy(verdict->drop_cause, account->dropping->drop_cause,
	       sizeof(verdict->drop_cause));
	memcpy(verdict->drop_function, account->dropping->drop_function,
	       sizeof(verdict->drop_function));
}

static uint64_t stopped_in(const struct netobs_turn *turn)
{
	return turn->thread_ns[NETOBS_TURN_READING][NETOBS_THREAD_STOP] +
	       turn->thread_ns[NETOBS_TURN_THINKING][NETOBS_THREAD_STOP];
}

/* The sender's host queues messages, and may drop them. */
static void add_sent(struct account *account, const struct message *message,
		     uint32_t n[ENDS][2])
{
	const bool is_now = message->time_ns >= account->talk->since_ns;
	const struct netobs_turn *s = message->s;
	const int end = message->from;

	if (is_now && account_dropped(s))
		account->drops_of[end] = s;
	account->queued_ns[end][is_now] +=
		(int64_t)min_u64(s->part_ns[NETOBS_JOURNEY_QDISC], INT32_MAX);
	n[end][is_now]++;
}

/* How large packets were before, and whether the server's process is stopped now. */
static void add_received(struct account *account, const struct message *message)
{
	const struct netobs_turn *r = message->r;
	uint32_t *largest = &account->largest[message->from];

	if (message->time_ns < account->talk->since_ns)
		*largest = (uint32_t)max_u64(*largest, r->largest_in);
	else if (account_dropped(r))
		account->drops_at[!message->from] = r;
	if (message->time_ns >= account->talk->since_ns && message->from == CLIENT)
		account->stopped_ns += (int64_t)min_u64(stopped_in(r), INT32_MAX);
}

/* What messages tell of others. */
static void find_common(struct account *account)
{
	const struct talk *talk = account->talk;
	uint32_t n[ENDS][2] = { { 0 } };

	for (uint32_t i = 0; i < talk->n; i++) {
		const struct message *message = &talk->messages[i];

		if (message->time_ns >= talk->until_ns)
			continue;
		if (message->s && message->s->kind != NETOBS_TURN_CONNECT)
			add_sent(account, message, n);
		if (message->r)
			add_received(account, message);
	}
	for (int end = 0; end < ENDS; end++)
		for (int is_now = 0; is_now < 2; is_now++)
			account->queued_ns[end][is_now] /=
				(int64_t)max_u64(n[end][is_now], 1);
}

static int judge_turns(struct talk *talk, struct netobs_verdict *verdict)
{
	struct evidence evidence;
	struct account account = { .talk = talk, .evidence = &evidence };
	int (*make)(struct account * account) = choose_rule(talk);
	int ret;

	evidence_collect(talk, &evidence);
	name_ends(talk, &evidence, verdict);
	find_common(&account);
	verdict->is_stream = make == streams_make;
	ret = make(&account);
	if (!ret) {
		blame_judge(&account, find_norm(talk, verdict), verdict);
		fill_drops(&account, verdict);
		verdict->missing_points = evidence.missing_points;
		evidence_blame(talk, &evidence, verdict);
	}
	free(account.turns);
	return ret;
}

/* The window by the clock of the client's host. */
static void set_window(struct talk *talk, const struct window *window)
{
	const bool is_servers = talk->hosts[CLIENT] != window->host &&
				talk->hosts[SERVER] == window->host;
	const int64_t ahead = is_servers ? talk->clocks.offset_ns : 0;

	talk->before_ns = window->before_ns - ahead;
	talk->since_ns = window->since_ns - ahead;
	talk->until_ns = window->until_ns - ahead;
}

static int judge_talk(const struct netobs_diagnosis *diagnosis,
		      const struct window *window, struct entry *entries,
		      uint32_t n, struct netobs_verdict *verdict)
{
	struct talk talk = { .diagnosis = diagnosis };
	int ret;

	*verdict = (struct netobs_verdict){
		.record = { .sz = sizeof(*verdict),
			    .type = NETOBS_RECORD_VERDICT,
			    .time_ns = window->since_ns },
		.end_ns = window->until_ns,
		.server_port = entries->tuple.server_port,
		.protocol = entries->tuple.protocol,
	};
	memcpy(verdict->client, entries->tuple.client, sizeof(verdict->client));
	memcpy(verdict->server, entries->tuple.server, sizeof(verdict->server));
	set_window(&talk, window);
	ret = join_messages(&talk, entries, n);
	if (!ret) {
		set_window(&talk, window);
		verdict->clock_ns = talk.clocks.offset_ns;
		verdict->clock_bound_ns = talk.clocks.bound_ns;
		ret = judge_turns(&talk, verdict);
	}
	free(talk.messages);
	return ret;
}

/* ---- All ------------------------------------------------------------------------------------------------ */

static int compare_verdicts(const void *a, const void *b, void *arg)
{
	const struct netobs_verdict *x = a, *y = b;

	(void)arg;
	if (x->blamed_ns != y->blamed_ns)
		return x->blamed_ns > y->blamed_ns ? -1 : 1;
	return memcmp(x->client, y->client, sizeof(x->client));
}

/* Times that are not given are those of the first and the last record. */
static int find_window(const struct entry *entries, uint32_t n,
		       struct window *window)
{
	int64_t first = INT64_MAX, last = 0;

	window->host = NO_HOST;
	for (uint32_t i = 0; i < n; i++) {
		window->host = entries[i].host < window->host ? entries[i].host :
								window->host;
		first = min_i64(first, entries[i].turn->record.time_ns);
		last = max_i64(last, entries[i].turn->end_ns);
	}
	window->before_ns = window->before_ns ?: first;
	window->since_ns = window->since_ns ?: first;
	window->until_ns = window->until_ns ?: last;
	window->before_ns = min_i64(window->before_ns, window->since_ns);
	return window->until_ns > window->since_ns ? 0 : -EINVAL;
}

static int judge_all(const struct netobs_diagnosis *diagnosis,
		     const struct window *window, struct entry *entries,
		     uint32_t n, struct top_n *verdicts)
{
	struct netobs_verdict verdict;
	int ret = 0;

	for (uint32_t from = 0, until; !ret && from < n; from = until) {
		until = from + 1;
		while (until < n &&
		       join_is_same_talk(&entries[from], &entries[until]))
			until++;
		ret = judge_talk(diagnosis, window, entries + from,
				 until - from, &verdict);
		if (!ret && (verdict.turns || verdict.is_stream))
			ret = top_n_add(verdicts, &verdict);
	}
	top_n_sort(verdicts);
	return ret;
}

int netobs_diagnosis_judge(struct netobs_diagnosis *diagnosis, int64_t since_ns,
			   int64_t until_ns, int64_t before_ns,
			   void (*on_verdict)(const struct netobs_verdict *verdict,
					      void *user),
			   void *user)
{
	struct window window = { before_ns, since_ns, until_ns, NO_HOST };
	struct top_n verdicts = { .compare = compare_verdicts,
				  .item_size = sizeof(struct netobs_verdict),
				  .most = VERDICTS_MAX };
	cleanup_free struct entry *entries = NULL;
	uint32_t n;
	int ret;

	if (!diagnosis || !on_verdict || since_ns < 0 || until_ns < 0 ||
	    until_ns > DIAGNOSIS_TIME_MAX || before_ns < 0 ||
	    (until_ns && until_ns <= since_ns) ||
	    since_ns > DIAGNOSIS_TIME_MAX || (since_ns && before_ns > since_ns))
		return -EINVAL;
	entries = join_entries(diagnosis, &n);
	if (!entries)
		return diagnosis->turns.n ? -ENOMEM : 0;
	ret = find_window(entries, n, &window);
	if (!ret)
		ret = judge_all(diagnosis, &window, entries, n, &verdicts);
	for (size_t i = 0; !ret && i < verdicts.n; i++)
		on_verdict(top_n_at(&verdicts, i), user);
	ret = ret ?: (int)verdicts.n;
	top_n_free(&verdicts);
	return ret;
}
