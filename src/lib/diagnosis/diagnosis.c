// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Diagnoses, and the records that they keep. */
#include "diagnosis_state.h"

#include "record/any.h"

#include <errno.h>

enum {
	MAX_TURNS = 65536,
	MAX_NORMS = 4096,
	TURNS_BEFORE = 10, /* of an alarm, to know what was normal */
};

int netobs_diagnosis_new(const struct netobs_diagnosis_opts *opts,
			 struct netobs_diagnosis **ret_diagnosis)
{
	struct netobs_diagnosis *diagnosis;

	if (!ret_diagnosis || (opts && opts->sz < sizeof(*opts)) ||
	    (opts && opts->max_turns > SLOTS_MAX))
		return -EINVAL;
	diagnosis = calloc(1, sizeof(*diagnosis));
	if (!diagnosis)
		return -ENOMEM;
	diagnosis->max_turns = opts && opts->max_turns ? opts->max_turns :
							 MAX_TURNS;
	*ret_diagnosis = diagnosis;
	return 0;
}

void netobs_diagnosis_free(struct netobs_diagnosis *diagnosis)
{
	if (!diagnosis)
		return;
	slots_free(&diagnosis->turns);
	slots_free(&diagnosis->queues);
	slots_free(&diagnosis->hosts);
	slots_free(&diagnosis->norms);
	free(diagnosis);
}

/* ---- Room ------------------------------------------------------------------------------------- */

static const struct netobs_record *record_of(const void *item)
{
	return (const struct netobs_record *)((const struct kept_key *)item + 1);
}

static int compare_times(const void *a, const void *b)
{
	const int64_t x = record_of(a)->time_ns, y = record_of(b)->time_ns;

	return x > y ? -1 : x < y;
}

/* The older half goes, so that this is rare. */
static void make_room(struct netobs_diagnosis *diagnosis, struct slots *slots)
{
	qsort(slots->items, slots->n, slots->item_size, compare_times);
	diagnosis->left_out += slots->n - slots->n / 2;
	slots->n /= 2;
	slots_rehash(slots);
}

/* @return the item, whose record is to be filled; NULL: no memory */
static void *keep(struct netobs_diagnosis *diagnosis, struct slots *slots,
		  const struct kept_key *key, uint32_t item_size)
{
	uint32_t index;

	if (slots->n >= diagnosis->max_turns)
		make_room(diagnosis, slots);
	index = slots_get(slots, key, sizeof(*key), item_size);
	return index == SLOT_NONE ? NULL : slots_at(slots, index);
}

/* ---- Records ---------------------------------------------------------------------------------- */

#define SPAN_MAX (86400 * NSEC_PER_SEC)

static bool is_time(int64_t ns)
{
	return ns >= 0 && ns <= DIAGNOSIS_TIME_MAX;
}

/* @return the end of what a record tells; its time, if it has none */
static int64_t end_of(const struct netobs_record *record)
{
	switch (record->type) {
	case NETOBS_RECORD_QUEUE:
		return ((const struct netobs_queue *)record)->end_ns;
	case NETOBS_RECORD_HOST:
		return ((const struct netobs_host *)record)->end_ns;
	default:
		return record->time_ns;
	}
}

static bool are_spans(const uint64_t *ns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ns[i] > (uint64_t)SPAN_MAX)
			return false;
	return true;
}

static bool is_possible(const struct netobs_turn *turn)
{
	const int64_t stamps[] = { turn->written_ns, turn->sent_ns,
				   turn->out_ns,     turn->in_ns,
				   turn->segment_ns, turn->ready_ns,
				   turn->read_ns,    turn->acked_ns,
				   turn->answer_ns,  turn->end_ns };

	for (size_t i = 0; i < ARRAY_SIZE(stamps); i++)
		if (!is_time(stamps[i]))
			return false;
	return turn->end_ns - turn->record.time_ns < SPAN_MAX &&
	       turn->kind < NETOBS_TURN_KINDS && turn->direction < 2 &&
	       are_spans(turn->part_ns, ARRAY_SIZE(turn->part_ns)) &&
	       are_spans(turn->limit_ns, ARRAY_SIZE(turn->limit_ns)) &&
	       are_spans(turn->thread_ns[0],
			 sizeof(turn->thread_ns) / sizeof(uint64_t)) &&
	       turn->unread_ns <= (uint64_t)SPAN_MAX;
}

/* What ended stays so: records may come in any order. */
static bool is_older(const struct netobs_turn *kept,
		     const struct netobs_turn *turn)
{
	return kept->record.sz && kept->record.has & NETOBS_TURN_HAS_END &&
	       !(turn->record.has & NETOBS_TURN_HAS_END);
}

static int add_turn(struct netobs_diagnosis *diagnosis, uint32_t host,
		    const struct netobs_turn *turn)
{
	/* A slice in which nothing is sent begins at the offset of the one before. */
	const struct kept_key key = { .connection = turn->connection,
				      .at = turn->kind == NETOBS_TURN_SLICE ?
						    turn->record.time_ns :
						    turn->offset,
				      .host = host,
				      .direction = turn->direction,
				      .kind = turn->kind };
	struct kept_turn *kept =
		keep(diagnosis, &diagnosis->turns, &key, sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	if (is_older(&kept->turn, turn) ||
	    (!(turn->record.has & NETOBS_TURN_HAS_END) &&
	     kept->turn.end_ns > turn->end_ns))
		return 0;
	kept->turn = *turn;
	return 0;
}

static int add_queue(struct netobs_diagnosis *diagnosis, uint32_t host,
		     const struct netobs_queue *queue)
{
	const struct kept_key key = {
		.connection = (uint64_t)queue->netns_inode << 32 |
			      (queue->kind == NETOBS_QUEUE_CPU ? queue->tid :
								 queue->ifindex),
		.at = queue->record.time_ns,
		.host = host,
		.kind = queue->kind,
	};
	struct kept_queue *kept =
		keep(diagnosis, &diagnosis->queues, &key, sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	kept->queue = *queue;
	kept->queue.n_shares =
		(uint16_t)min_u64(queue->n_shares, NETOBS_QUEUE_SHARES_MAX);
	return 0;
}

static int add_host(struct netobs_diagnosis *diagnosis, uint32_t host,
		    const struct netobs_host *record)
{
	const struct kept_key key = { .connection = record->netns_inode,
				      .at = record->record.time_ns,
				      .host = host };
	struct kept_host *kept =
		keep(diagnosis, &diagnosis->hosts, &key, sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	kept->host = *record;
	return 0;
}

/* @return whether it says what is normal: it is no alarm, or has enough of a time before */
static bool is_norm(const struct netobs_verdict *verdict)
{
	return !verdict->place || verdict->is_stream ||
	       verdict->turns_before >= TURNS_BEFORE;
}

/* What is normal according to an alarm is the time before it. */
static void keep_before(struct netobs_verdict *alarm)
{
	alarm->turn_ns = alarm->turn_before_ns;
	for (uint32_t i = 0; i < alarm->n_parts && i < PARTS; i++)
		alarm->parts[i].now_ns = alarm->parts[i].before_ns;
}

static int add_norm(struct netobs_diagnosis *diagnosis,
		    const struct netobs_verdict *verdict)
{
	struct norm_key key = { .port = verdict->server_port,
				.protocol = verdict->protocol };
	struct netobs_verdict *norm;
	uint32_t index;

	if (!is_norm(verdict))
		return -ENODATA;
	memcpy(key.server, verdict->server, sizeof(key.server));
	if (diagnosis->norms.n >= MAX_NORMS &&
	    slots_find(&diagnosis->norms, &key) == SLOT_NONE) {
		diagnosis->left_out++;
		return 0;
	}
	index = slots_get(&diagnosis->norms, &key, sizeof(key),
			  sizeof(struct norm));
	if (index == SLOT_NONE)
		return -ENOMEM;
	norm = &((struct norm *)slots_at(&diagnosis->norms, index))->verdict;
	*norm = *verdict;
	if (norm->place)
		keep_before(norm);
	return 0;
}

int netobs_diagnosis_add(struct netobs_diagnosis *diagnosis, unsigned int host,
			 const struct netobs_record *record)
{
	union any_record copy;

	if (!diagnosis || !record || host >= NETOBS_DIAGNOSIS_HOSTS_MAX)
		return -EINVAL;
	record = record_view(record, &copy);
	if (!record)
		return -EINVAL;
	if (!is_time(record->time_ns) || !is_time(end_of(record)) ||
	    (record->type == NETOBS_RECORD_TURN &&
	     !is_possible((const void *)record))) {
		diagnosis->left_out++;
		return 0;
	}
	switch (record->type) {
	case NETOBS_RECORD_TURN:
		return add_turn(diagnosis, host, (const void *)record);
	case NETOBS_RECORD_QUEUE:
		return add_queue(diagnosis, host, (const void *)record);
	case NETOBS_RECORD_HOST:
		return add_host(diagnosis, host, (const void *)record);
	case NETOBS_RECORD_VERDICT:
		return add_norm(diagnosis, (const void *)record);
	default:
		return 0;
	}
}
