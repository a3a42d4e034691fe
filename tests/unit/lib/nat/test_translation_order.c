/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What makes room in a full table: what has ended, then what has had no answer. */
#include "nat/translation_table.h"

#include "base/clock.h"
#include "bpf/parse/headers.h"
#include "lib_seed.h"
#include "lib_test.h"

#include <arpa/inet.h>
#include <sys/socket.h>

enum {
	NUMBERS = 100, /* conversations of the random test, */
	PLACES = 64,   /* and places for them */
	STEPS = 200000,
	FLOOD = 1000000,
	REAL = 1000,
};

/* Of a flood, the addresses; else a client. */
enum { IS_FLOOD = 1 << 24 };

static struct nat_event event_of(uint32_t number, uint8_t dir, int64_t at_ns)
{
	const uint32_t server = htonl(0xc0000201), router = htonl(0xc6336401);

	return (struct nat_event){
		.time_ns = (uint64_t)at_ns,
		.tuples = { { .src = { htonl(0x0a000000 + number) },
			      .dst = { server },
			      .src_port = htons(1024),
			      .dst_port = htons(80),
			      .family = AF_INET,
			      .proto = IP_PROTO_TCP },
			    { .src = { server },
			      .dst = { router + (htonl(number & 0xff0000)) },
			      .src_port = htons(80),
			      .dst_port = htons(number & 0xffff),
			      .family = AF_INET,
			      .proto = IP_PROTO_TCP } },
		.ifindex = 4,
		.from_ifindex = 3,
		.dir = dir,
	};
}

static void report(struct translation_table *table, uint32_t number,
		   uint8_t dir, int64_t at_ns)
{
	const struct nat_event event = event_of(number, dir, at_ns);

	translation_table_note(table, &event);
}

static struct translation *find(const struct translation_table *table,
				uint32_t number)
{
	const struct nat_event event = event_of(number, 0, 0);

	return translation_table_find(table, &event);
}

/* An entry of @number's flow is read. */
static void use(struct translation_table *table, uint32_t number, uint8_t dir,
		uint32_t marks, int64_t at_ns)
{
	const struct flow_tally tally = { .packets = 1,
					  .first_ns = (uint64_t)at_ns,
					  .last_ns = (uint64_t)at_ns,
					  .attrs.marks = marks };
	const struct translation *translation = find(table, number);

	translation_use(table, translation_node(table, translation, dir * SIDES),
			&tally);
}

static void begin(struct translation_table *table)
{
	assert_int_equal(translation_table_init(table), 0);
}

TEST_FIXTURE(struct translation_table, begin, translation_table_done)

#define CASE(name) \
	TEST_OF(name, struct translation_table *table, set_up, tear_down)

/* ---- One after the other ----------------------------------------------------------- */

/* Faces of what is lost before its entries are read are nobody's. */
CASE(what_is_lost_leaves_its_faces_unclear)
{
	struct translation lost;
	struct nat_event event = event_of(0, 0, 0);
	struct face_key key;

	table->max = 4;
	table->unread_ns = 0;
	lost = translation_of_event(&event);
	key = (struct face_key){ .tuple = translation_tuple(&lost, AFTER),
				 .proto = IP_PROTO_TCP,
				 .side = AFTER };
	for (uint32_t i = 0; i < 4; i++)
		report(table, i, NAT_ORIGINAL, 1000 + i);
	assert_false(translation_table_has_lost(table, &key));
	report(table, 4, NAT_ORIGINAL, 1004);
	assert_null(find(table, 0));
	assert_true(translation_table_has_lost(table, &key));
	/* Also while the generation of the report is read, and then no more. */
	translation_table_begin(table, 2000);
	assert_true(translation_table_has_lost(table, &key));
	translation_table_begin(table, 3000);
	assert_false(translation_table_has_lost(table, &key));
}

/* ---- A flood ------------------------------------------------------------------------ */

/* @is_answered: the server of a flood is there. */
static void flood(struct translation_table *table, bool is_answered)
{
	int64_t now_ns = NSEC_PER_SEC;
	uint32_t n_real = 0;

	for (uint32_t i = 0; i < FLOOD; i++, now_ns += NSEC_PER_SEC / FLOOD) {
		report(table, IS_FLOOD + i, NAT_ORIGINAL, now_ns);
		if (is_answered)
			report(table, IS_FLOOD + i, NAT_REPLY, now_ns);
		if (i % (FLOOD / REAL))
			continue;
		/* It is answered before the next one comes. */
		if (n_real)
			report(table, n_real - 1, NAT_REPLY, now_ns);
		report(table, n_real++, NAT_ORIGINAL, now_ns);
		/* Each tenth part is read. */
		if (n_real % (REAL / 10))
			continue;
		for (uint32_t real = n_real - REAL / 10; real < n_real; real++)
			use(table, real, NAT_ORIGINAL, TCP_SYN | TCP_ACK, now_ns);
		table->drains++;
	}
	assert_int_equal(n_real, REAL);
	for (uint32_t real = 0; real < REAL; real++)
		assert_non_null(find(table, real));
	assert_int_equal(table->known, TRANSLATIONS_MAX);
	assert_int_equal(table->n, TRANSLATIONS_MAX);
	assert_int_equal(table->refused, 0);
}

CASE(a_flood_pushes_out_no_conversation)
{
	flood(table, false);
}

CASE(a_flood_with_answers_pushes_out_no_conversation)
{
	flood(table, true);
}

/* ---- Compared with a simple model ---------------------------------------------------- */

struct model_entry {
	bool is_known, is_answered, goes_on, lasts, has_ended, was_refused;
	int64_t first_ns, last_ns;
	uint32_t turn; /* when it had a packet last, or ended */
};

struct model {
	struct model_entry entries[NUMBERS];
	uint32_t turn, n, refused;
};

static int stage_of(const struct model_entry *entry)
{
	if (entry->has_ended)
		return STAGE_ENDED;
	if (entry->lasts || (entry->is_answered && entry->goes_on))
		return STAGE_SETTLED;
	return entry->is_answered ? STAGE_ANSWERED : STAGE_ASKED;
}

static uint32_t count_stage(const struct model *model, int stage,
			    struct model_entry **ret_oldest)
{
	uint32_t n = 0;

	*ret_oldest = NULL;
	for (uint32_t i = 0; i < NUMBERS; i++) {
		const struct model_entry *entry = &model->entries[i];

		if (!entry->is_known || stage_of(entry) != stage)
			continue;
		n++;
		if (!*ret_oldest || entry->turn < (*ret_oldest)->turn)
			*ret_oldest = (struct model_entry *)entry;
	}
	return n;
}

static struct model_entry *choose(const struct model *model, int64_t now_ns)
{
	struct model_entry *ended, *asked, *answered, *settled;
	const uint32_t n_ended = count_stage(model, STAGE_ENDED, &ended);
	const uint32_t n_asked = count_stage(model, STAGE_ASKED, &asked);
	const uint32_t n_answered = count_stage(model, STAGE_ANSWERED, &answered);

	count_stage(model, STAGE_SETTLED, &settled);
	if (n_ended)
		return ended;
	if (n_asked + n_answered < PLACES / 4 && settled &&
	    settled->last_ns < now_ns - TRANSLATION_KEEP_S * NSEC_PER_SEC)
		return settled;
	return n_asked >= n_answered ? asked : answered;
}

/* False: there is no room. */
static bool enter(struct model *model, struct model_entry *entry, int64_t now_ns)
{
	struct model_entry *first = NULL;

	if (model->n == PLACES) {
		first = choose(model, now_ns);
		if (!first) {
			model->refused += !entry->was_refused;
			entry->was_refused = true;
			return false;
		}
		first->is_known = false;
		model->n--;
	}
	*entry = (struct model_entry){ .is_known = true,
				       .was_refused = entry->was_refused,
				       .first_ns = now_ns };
	model->n++;
	return true;
}

static void model_report(struct model *model, uint32_t number, uint8_t dir,
			 int64_t now_ns)
{
	struct model_entry *entry = &model->entries[number];

	if (!entry->is_known) {
		if (!enter(model, entry, now_ns))
			return;
		entry->is_answered = dir == NAT_REPLY;
	} else {
		if (entry->has_ended) {
			entry->is_answered = entry->goes_on = entry->lasts =
				false;
			entry->first_ns = now_ns;
		}
		entry->has_ended = false;
		entry->goes_on |= entry->is_answered && dir == NAT_ORIGINAL;
		entry->is_answered |= dir == NAT_REPLY;
		entry->lasts |= now_ns - entry->first_ns >= TRANSLATION_GRACE_NS;
	}
	entry->last_ns = now_ns;
	entry->turn = ++model->turn;
}

static void step(struct translation_table *table, struct model *model,
		 bool may_end, int64_t now_ns)
{
	const uint32_t number = (uint32_t)test_below(NUMBERS);
	struct model_entry *entry = &model->entries[number];
	const int what = test_below(8);
	struct model_entry *ended;

	count_stage(model, STAGE_ENDED, &ended);
	if (what == 0 && ended && test_below(2)) {
		/* Its last packets are read, and it stays the first one. */
		use(table, (uint32_t)(ended - model->entries), NAT_ORIGINAL,
		    TCP_ACK, ended->last_ns);
	} else if (what == 0 && may_end && entry->is_known && !entry->has_ended) {
		translation_table_end(table, find(table, number), now_ns);
		entry->has_ended = true;
		entry->turn = ++model->turn;
	} else if (what == 1 && entry->is_known && !entry->has_ended) {
		translation_table_sign(table, find(table, number),
				       SIGN_ANSWERED | SIGN_LASTS);
		if (!entry->is_answered || !entry->lasts)
			entry->turn = ++model->turn;
		entry->is_answered = entry->lasts = true;
	} else if (what > 1) {
		const uint8_t dir = what > 4 ? NAT_REPLY : NAT_ORIGINAL;

		report(table, number, dir, now_ns);
		model_report(model, number, dir, now_ns);
	}
}

CASE(random_reports_leave_what_a_simple_model_has)
{
	struct model model = { .turn = 0 };
	int64_t now_ns = NSEC_PER_SEC;

	table->max = PLACES;
	for (uint32_t i = 0; i < STEPS; i++) {
		now_ns += 1 + test_random() % (test_below(8) ? NSEC_PER_MSEC :
							       NSEC_PER_SEC);
		if (!test_below(5000))
			now_ns += 2 * TRANSLATION_KEEP_S * NSEC_PER_SEC;
		/* At times, none ends: all places are for those that are settled. */
		step(table, &model, i / 20000 % 2, now_ns);
		assert_int_equal(table->known, model.n);
		assert_int_equal(table->refused, model.refused);
		if (i % 16)
			continue;
		for (uint32_t number = 0; number < NUMBERS; number++)
			assert_int_equal(find(table, number) != NULL,
					 model.entries[number].is_known);
	}
	assert_true(model.refused > 0);
}
