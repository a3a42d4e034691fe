/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The public functions of series, and which groups have one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <netobs/series.h>

#include "base/hash.h"
#include "base/sized.h"
#include "base/util.h"
#include "candidates.h"
#include "group_record.h"
#include "record/any.h"
#include "series_table.h"
#include "server.h"
#include "table.h"

enum {
	DEFAULT_SERIES = 500,
	NAME_MAX_LEN = sizeof(((struct netobs_group_record *)NULL)->name) - 1,
	/* For each series, as long as there are not more than this many. */
	CANDIDATES_EACH = 8,
	CANDIDATES_MANY = 8192,
	SCORE_OF = 16, /* intervals: a score loses one part of so many with each */
	TEXTS_EACH = 1024, /* candidates whose text may be that of a series */
	/* Groups that get a series at once, so that a call takes no long time: part of all. */
	ENTERING = 32,
	ENTERING_MIN = 16
};

struct netobs_series {
	struct group_keys keys;
	char name[NAME_MAX_LEN + 1];
	struct series_table table;
	struct candidates candidates;
	struct netobs_series_row other, left;
	struct netobs_group_sum other_sum; /* of this interval */
	struct servers servers;
	uint32_t secret[GROUP_VALUE_MAX / sizeof(uint32_t)];
	/* For the end of an interval: */
	struct candidate **heaviest;
	struct series_slot **lightest;
};

/* ---- Life ---------------------------------------------------------------------------- */

static int fill_series(struct netobs_series *series, size_t most)
{
	const struct group_keys *keys = &series->keys;
	const size_t some = min_u64(CANDIDATES_EACH * most, CANDIDATES_MANY);
	int err = series_table_init(&series->table, keys, most);

	if (!err)
		err = candidates_init(&series->candidates, keys->size,
				      keys->value_size,
				      some > 2 * most ? some : 2 * most);
	if (err)
		return err;
	series->heaviest =
		calloc(series->candidates.n, sizeof(*series->heaviest));
	series->lightest = calloc(most, sizeof(*series->lightest));
	series->other.sz = series->left.sz = sizeof(series->other);
	series->other.kind = NETOBS_SERIES_OTHER;
	series->left.kind = NETOBS_SERIES_LEFT;
	if (!series->heaviest || !series->lightest)
		return -ENOMEM;
	return getrandom(series->secret, sizeof(series->secret), 0) < 0 ? -errno :
									  0;
}

static int check_series(const struct netobs_series_opts *opts,
			struct group_keys *ret_keys, const struct log *log)
{
	char why[NETOBS_ERROR_MAX] = "series need a key";

	if (!opts->keys ||
	    group_keys_parse(opts->keys, ret_keys, why, sizeof(why)) < 0 ||
	    !ret_keys->n)
		log_error(log, "keys: %s", why);
	else if (opts->max_series > NETOBS_SERIES_MAX)
		log_error(log, "max_series: more than %d", NETOBS_SERIES_MAX);
	else if (opts->name && strlen(opts->name) > NAME_MAX_LEN)
		log_error(log, "name: more than %d bytes", (int)NAME_MAX_LEN);
	else
		return 0;
	return -EINVAL;
}

static int new_series(const struct netobs_series_opts *opts,
		      const struct log *log, struct netobs_series **ret_series)
{
	struct group_keys keys = { 0 };
	struct netobs_series *series;
	int err = check_series(opts, &keys, log);

	if (err)
		return err;
	series = calloc(1, sizeof(*series));
	if (!series)
		return -ENOMEM;
	series->keys = keys;
	memcpy(series->name, opts->name ?: "", strlen(opts->name ?: ""));
	err = group_keys_set_networks(&series->keys, opts->networks);
	err = err ?: fill_series(series, opts->max_series ?: DEFAULT_SERIES);
	if (err < 0)
		netobs_series_free(series);
	else
		*ret_series = series;
	return err;
}

int netobs_series_new(const struct netobs_series_opts *opts,
		      struct netobs_series **ret_series)
{
	struct netobs_series_opts known = { 0 };
	struct log_error error = { 0 };
	const struct log log = { .error = &error };
	int err;

	if (!opts || !ret_series)
		return -EINVAL;
	err = sized_check(opts, sizeof(known), &log);
	memcpy(&known, opts, min_u64(opts->sz, sizeof(known)));
	if (!err)
		err = new_series(&known, &log, ret_series);
	err = log_keep_error(&log, "series", err);
	if (err < 0)
		log_copy_error(&log, known.error);
	return err;
}

void netobs_series_free(struct netobs_series *series)
{
	if (!series)
		return;
	series_table_free(&series->table);
	group_keys_done(&series->keys);
	candidates_free(&series->candidates);
	free(series->heaviest);
	free(series->lightest);
	free(series);
}

/* ---- Flows --------------------------------------------------------------------------- */

static void count_in_row(struct netobs_series_row *row,
			 const struct netobs_group_sum *sum)
{
	row->flows += sum->flows;
	row->packets += sum->packets;
	row->bytes += sum->bytes;
}

static void add_to_series(struct netobs_series *series, const uint8_t *bytes,
			  const struct netobs_group_sum *sum)
{
	struct series_table *table = &series->table;
	const uint64_t hash =
		hash_bytes(bytes, series->keys.size, series->secret);
	struct series_value *value = series_table_find(table, hash, bytes);
	struct series_slot *slot;

	if (!value && !series_table_is_full(table))
		value = series_table_open(table, hash, bytes);
	if (!value) {
		count_in_row(&series->other, sum);
		netobs_group_sum_add(&series->other_sum, sum);
		candidates_add(&series->candidates, hash, bytes, sum->bytes);
		return;
	}
	slot = &table->slots[value->slot];
	slot->interval_bytes += sum->bytes;
	count_in_row(&slot->row, sum);
	netobs_group_sum_add(&value->sum, sum);
}

static void add_end(struct netobs_series *series,
		    const struct netobs_flow *flow, enum flow_end server,
		    enum flow_end end, const struct netobs_group_sum *sum)
{
	_Alignas(uint64_t) uint8_t bytes[GROUP_VALUE_MAX];

	if (!group_keys_count(&series->keys, flow, end))
		return;
	group_keys_fill(&series->keys, flow, server, end, bytes);
	add_to_series(series, bytes, sum);
}

int netobs_series_add(struct netobs_series *series, const struct netobs_flow *flow)
{
	struct netobs_group_sum sum;
	union any_record copy;
	enum flow_end server;

	flow = series && flow ? flow_view(flow, &copy) : NULL;
	if (!flow)
		return -EINVAL;
	server = server_find(&series->servers, flow);
	sum = sum_of_flow(flow);
	add_end(series, flow, server, FLOW_DESTINATION, &sum);
	if (series->keys.flags & NETOBS_GROUP_BOTH_ENDS) {
		sum.sent_packets = sum.packets;
		sum.sent_bytes = sum.bytes;
	}
	add_end(series, flow, server, FLOW_SOURCE, &sum);
	return 0;
}

/* ---- The end of an interval ---------------------------------------------------------- */

struct takers {
	int64_t time_ns;
	void (*take)(const struct netobs_group_record *record, void *user);
	void *user;
	int n;
};

static void report_sum(const struct netobs_series *series, const uint8_t *value,
		       const struct netobs_group_sum *sum, struct takers *takers)
{
	struct netobs_group_record record;

	if (!takers->take || !sum->flows)
		return;
	group_record_fill(&record, &series->keys, value, sum);
	record.record.time_ns = takers->time_ns;
	memcpy(record.name, series->name, sizeof(record.name));
	takers->take(&record, takers->user);
	takers->n++;
}

static void report_interval(struct netobs_series *series, struct takers *takers)
{
	const struct series_table *table = &series->table;

	for (size_t i = 0; i < table->n_values; i++) {
		struct series_value *value = series_table_at(table, i);

		report_sum(series, value->value, &value->sum, takers);
		value->sum = (struct netobs_group_sum){ 0 };
	}
	report_sum(series, NULL, &series->other_sum, takers);
	series->other_sum = (struct netobs_group_sum){ 0 };
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = *(const struct candidate *const *)a;
	const struct candidate *right = *(const struct candidate *const *)b;

	return (left->bytes < right->bytes) - (left->bytes > right->bytes);
}

static int compare_slots(const void *a, const void *b)
{
	const struct series_slot *left = *(struct series_slot *const *)a;
	const struct series_slot *right = *(struct series_slot *const *)b;

	return (left->score > right->score) - (left->score < right->score);
}

static size_t sort_candidates(struct netobs_series *series)
{
	size_t n = 0;

	for (size_t i = 0; i < series->candidates.n; i++) {
		struct candidate *candidate =
			candidates_at(&series->candidates, i);

		if (candidate->bytes)
			series->heaviest[n++] = candidate;
	}
	if (n)
		qsort(series->heaviest, n, sizeof(*series->heaviest),
		      compare_candidates);
	return n;
}

/* Of SCORE_OF intervals; that of a younger series is what it had if it went on like this. */
static void add_to_score(struct series_slot *slot)
{
	const uint64_t bytes = slot->interval_bytes;

	slot->interval_bytes = 0;
	if (slot->age == SCORE_OF) {
		slot->score += bytes - slot->score / SCORE_OF;
		return;
	}
	slot->score = slot->score / SCORE_OF * slot->age + bytes;
	slot->age++;
	slot->score = slot->score * SCORE_OF / slot->age;
}

static void add_to_scores(struct netobs_series *series)
{
	for (size_t i = 0; i < series->table.most_slots; i++)
		if (series_table_has(&series->table, i))
			add_to_score(&series->table.slots[i]);
}

static size_t sort_slots(struct netobs_series *series)
{
	struct series_table *table = &series->table;
	size_t n = 0;

	for (size_t i = 0; i < table->most_slots; i++) {
		struct series_slot *slot = &table->slots[i];

		if (!series_table_has(table, i))
			continue;
		series->lightest[n++] = slot;
	}
	if (n)
		qsort(series->lightest, n, sizeof(*series->lightest),
		      compare_slots);
	return n;
}

/* Both are of SCORE_OF intervals, so that one heavy interval alone is not enough. */
static bool is_heavier(const struct candidate *candidate,
		       const struct series_slot *slot)
{
	return candidate->bytes / 2 > slot->score;
}

static void close_series(struct netobs_series *series, struct series_slot *slot)
{
	series->left.flows += slot->row.flows;
	series->left.packets += slot->row.packets;
	series->left.bytes += slot->row.bytes;
	series_table_close(&series->table, slot);
}

static struct series_value *open_value(struct netobs_series *series,
				       struct candidate *candidate)
{
	struct series_value *value = series_table_open(
		&series->table, candidate->hash, candidate->value);
	struct series_slot *slot;

	if (!value)
		return NULL;
	slot = &series->table.slots[value->slot];
	slot->score += candidate->bytes;
	slot->age = slot->age ?: SCORE_OF;
	candidate->bytes = 0;
	return value;
}

/* Candidates that look like a series belong to it. @return how many others remain */
static size_t join_series(struct netobs_series *series, size_t n)
{
	const struct series_table *table = &series->table;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct candidate *candidate = series->heaviest[i];

		if (i < TEXTS_EACH && table->n_values < table->most_values &&
		    series_table_find_text(table, candidate->value))
			open_value(series, candidate);
		else
			series->heaviest[kept++] = candidate;
	}
	return kept;
}

/* A value that has its text, but no room, must not open it again. */
static bool may_enter(const struct netobs_series *series,
		      const struct candidate *candidate,
		      const struct series_slot *slot)
{
	return is_heavier(candidate, slot) &&
	       !series_table_find_text(&series->table, candidate->value);
}

static void choose_series(struct netobs_series *series)
{
	struct series_table *table = &series->table;
	const size_t most = table->most_slots / ENTERING + ENTERING_MIN;
	size_t n, n_slots, leaving = 0;

	add_to_scores(series);
	n = join_series(series, sort_candidates(series));
	n_slots = sort_slots(series);
	while (leaving < n && leaving < n_slots && leaving < most &&
	       may_enter(series, series->heaviest[leaving],
			 series->lightest[leaving]))
		close_series(series, series->lightest[leaving++]);
	if (leaving)
		series_table_settle(table, series->secret);
	for (size_t i = 0; i < leaving; i++)
		open_value(series, series->heaviest[i]);
	candidates_decay(&series->candidates, SCORE_OF);
}

int netobs_series_end_interval(
	struct netobs_series *series, int64_t time_ns,
	void (*take)(const struct netobs_group_record *record, void *user),
	void *user)
{
	struct takers takers = { time_ns, take, user, 0 };

	if (!series)
		return -EINVAL;
	series_table_drop_idle(&series->table, series->secret);
	report_interval(series, &takers);
	choose_series(series);
	return takers.n;
}

/* ---- Rows ---------------------------------------------------------------------------- */

int netobs_series_each(const struct netobs_series *series,
		       void (*take)(const struct netobs_series_row *row,
				    void *user),
		       void *user)
{
	if (!series || !take)
		return -EINVAL;
	for (size_t i = 0; i < series->table.most_slots; i++)
		if (series_table_has(&series->table, i))
			take(&series->table.slots[i].row, user);
	take(&series->other, user);
	take(&series->left, user);
	return (int)series->table.n_slots + 2;
}
