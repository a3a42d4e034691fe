/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "store.h"

#include "control_group.h"
#include "base/text.h"
#include "base/util.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <netobs/probe.h>
#include <netobs/stats.h>
#include <stdio.h>
#include <unistd.h>

enum {
	/* A page of 4 KiB has no whole number of buckets; so many fill pages. */
	L1_BUCKETS_UNIT = 64,
	/* 5120 flows per CPU; 1.3 MiB, over both generations. */
	L1_BUCKETS_MAX = 5 * L1_BUCKETS_UNIT,
	L1_TOTAL_MAX = 64 << 20, /* bytes, over all CPUs and both generations */
	/*
	 * 1 MiB per CPU: 20 ms of 800,000 packets a second that miss L1. The overflow
	 * table takes those after that.
	 */
	LOG_SLOTS_MAX = 16384,
	LOG_SLOTS_MIN = 1024,	  /* a page of 64 KiB */
	LOG_TOTAL_MAX = 32 << 20, /* bytes */
	ENTRIES_MIN = 8 << 20,	  /* bytes: few, but both generations' */
	OVERFLOW_PART = 4,	  /* of limited memory: one in so many */
	CONNECTIONS_DEFAULT = 1 << 16,
	CONNECTIONS_MIN = 1 << 10,
	CONNECTIONS_PART = 8, /* of limited memory: one in so many */
	/* 256 KiB per CPU: a quarter of a second of the segments that a busy one times. */
	LEAVING_BUCKETS = 1 << 12,
	LEAVING_BUCKETS_MAX = 1 << 16,
};

/* Fewer on machines with very many CPUs. */
static uint32_t choose_l1_buckets(uint32_t n_cpus)
{
	uint32_t buckets = L1_TOTAL_MAX / GENERATIONS / n_cpus /
			   sizeof(struct flow_bucket) / L1_BUCKETS_UNIT *
			   L1_BUCKETS_UNIT;

	return min_u64(max_u64(buckets, L1_BUCKETS_UNIT), L1_BUCKETS_MAX);
}

/* A power of two. */
static uint32_t choose_log_slots(uint32_t n_cpus)
{
	uint32_t slots = LOG_SLOTS_MAX;

	while (slots > LOG_SLOTS_MIN &&
	       slots * n_cpus > LOG_TOTAL_MAX / sizeof(struct log_slot))
		slots /= 2;
	return slots;
}

/* A power of two; as many as asked for, else as memory allows. */
static uint32_t choose_conn_buckets(const struct store_options *options)
{
	const uint64_t room = min_u64(options->opts->max_memory ?: UINT64_MAX,
				      memory_room(""));
	const uint32_t max = options->opts->max_connections;
	uint32_t n = CONNECTIONS_MIN;

	if (!options->opts->rtt)
		return 0;
	while (n < (max ?: CONNECTIONS_DEFAULT) &&
	       (max ||
		connections_bytes_most(2 * n / CONN_WAYS, options->has_alerts) <=
			room / CONNECTIONS_PART))
		n *= 2;
	return n / CONN_WAYS;
}

/* A replay sees an hour of packets in a second, too fast for adding parts: one part has all bodies. */
static uint32_t choose_part_bits(const struct store *store)
{
	return store->conn_buckets ?
		       conn_parts_bits(store->conn_buckets * CONN_WAYS,
				       store->options.clock == CLOCK_PACKET) :
		       0;
}

/* From /sys, which a chroot may lack. */
static int count_cpus(const struct store *store)
{
	int n;

	log_borrow_libbpf(store->log);
	n = libbpf_num_possible_cpus();
	log_return_libbpf();
	if (n < 0)
		log_error(store->log, "cannot count CPUs: %s", strerror(-n));
	return n;
}

int store_choose_sizes(struct store *store)
{
	const int n = count_cpus(store);

	if (n < 0)
		return n;
	store->n_cpus = (uint32_t)n * store->lanes;
	store->l1_buckets = choose_l1_buckets(store->n_cpus);
	store->log_slots = store->options.log_slots ?:
				   choose_log_slots(store->n_cpus);
	store->conn_buckets = choose_conn_buckets(&store->options);
	store->part_bits = choose_part_bits(store);
	if (store->conn_buckets && store->options.clock == CLOCK_HOST)
		store->leaving_buckets =
			min_u64((uint64_t)LEAVING_BUCKETS * store->n_cpus,
				LEAVING_BUCKETS_MAX);
	return 0;
}

/* @return bytes that the table of connections may still grow by */
static uint64_t coming_bytes(const struct store *store)
{
	const struct conn_parts *parts = &store->connections.parts;

	return conn_parts_bytes_most(parts) - conn_parts_bytes(parts);
}

/* Check max_memory. @ret_max: bytes of it left for entries; 0: no limit */
static int check_max_memory(const struct store *store, uint64_t *ret_max)
{
	uint64_t fixed = store_bytes(store) + coming_bytes(store);
	uint64_t max = store->options.opts->max_memory;
	uint64_t least = fixed + ENTRIES_MIN;

	if (max && max < least) {
		log_error(store->log,
			  "max_memory: too little memory for %u CPUs; the least is %llu MiB",
			  store->n_cpus, (unsigned long long)(least >> 20) + 1);
		return -EINVAL;
	}
	*ret_max = max ? max - fixed : 0;
	return 0;
}

static unsigned long long in_mib(uint64_t bytes)
{
	return bytes >> 20;
}

/* Limit @max to what the memory control groups leave; existing maps are charged already. */
static int limit_to_groups(struct store *store, uint64_t *max)
{
	uint64_t room = memory_room(""), coming = coming_bytes(store);
	struct memory_plan plan;

	if (room == UINT64_MAX)
		return 0;
	plan = memory_plan(room - min_u64(room, coming));
	if (!plan.entry_bytes) {
		log_error(store->log,
			  "the memory control group leaves %llu MiB: %llu MiB are the least",
			  in_mib(room), in_mib(memory_room_least()));
		return -ENOMEM;
	}
	if (*max > plan.entry_bytes)
		log_warning(store->log,
			    "max_memory: the memory control group leaves less: %llu MiB for flows",
			    in_mib(plan.entry_bytes));
	else
		log_info(store->log,
			 "the memory control group leaves %llu MiB, of which new flows may take %llu MiB",
			 in_mib(room), in_mib(plan.entry_bytes));
	*max = *max ? min_u64(*max, plan.entry_bytes) : plan.entry_bytes;
	store->process_bytes = plan.process_bytes;
	return 0;
}

int store_limit_memory(struct store *store)
{
	int err = check_max_memory(store, &store->entry_bytes);

	err = err ?: limit_to_groups(store, &store->entry_bytes);
	store->overflow_bytes = store->entry_bytes / OVERFLOW_PART;
	store->entry_bytes -= store->overflow_bytes;
	return err;
}

/* ---- Tables of an earlier process ---------------------------------------------------- */

static int load_adopted(struct store *store, const struct conn_part *first,
			const struct pinned_state *state)
{
	static const struct log silent;
	struct rates rates; /* a copy to try, as samplers cannot be reset yet */
	uint32_t new;
	int err;

	store->l1_buckets = state->l1_buckets;
	store->log_slots = state->log_slots;
	store->secret = state->secret;
	rates_adopt(&store->rates, state->rates);
	rates = store->rates;
	err = store_number_rates(store, &rates, &new);
	err = err ?: overflow_adopt(&store->overflow, store->options.pinned);
	if (err)
		return err;
	err = flow_maps_load(store, first, store->options.pinned, &silent);
	store->maps.log = store->log;
	return err;
}

static struct count count_drained(const struct pinned_books *books)
{
	struct count seen = books->drained[0].seen;

	count_add(&seen, &books->drained[1].seen);
	return seen;
}

static void begin_after(struct store *store, struct pinned_state *state)
{
	const struct pinned_books *books = &state->books[state->current & 1];

	memcpy(store->counted_before, books->drained, sizeof(books->drained));
	store->unclaimed_before = books->unclaimed;
	store->unreported_before = books->unreported;
	store->is_adopted = true;
	state->seen_drained = count_drained(books);
	state->owner = getpid();
}

bool store_adopt(struct store *store, const struct conn_part *first)
{
	struct pinned *pinned = store->options.pinned;
	struct store fresh = *store;
	int err = -ESTALE;

	if (!pinned->state && !pinned->had_links) {
		pinned_discard(pinned); /* what a killed 'netobsctl detach' left */
		return false;
	}
	if (pinned_is_readable(pinned) && pinned->state->n_cpus == store->n_cpus &&
	    pinned->state->lanes == store->lanes)
		err = load_adopted(store, first, pinned->state);
	if (!err) {
		begin_after(store, pinned->state);
		return true;
	}
	log_warning(store->log,
		    "persist: %s: the tables cannot be read (%s); packets in them are lost",
		    pinned->path,
		    !pinned->state		? "they are incomplete" :
		    !pinned_is_readable(pinned) ? "they are another version's" :
						  strerror(-err));
	overflow_done(&store->overflow);
	*store = fresh;
	pinned_discard(pinned);
	return false;
}

/* @return the kinds of attachments that are disabled */
static uint32_t attach_kinds(const struct netobs_opts *opts)
{
	const uint64_t disabled = opts->disable_features;

	return (disabled >> NETOBS_FEATURE_TCX & 1 ? PINNED_NO_TCX : 0) |
	       (disabled >> NETOBS_FEATURE_CLSACT & 1 ? PINNED_NO_CLSACT : 0);
}

void store_note_kept(struct store *store)
{
	const struct netobs_opts *opts = store->options.opts;
	const struct pinned_state *state = store->options.pinned->state;
	const bool is_sized =
		overflow_choose_room(opts->max_flows, store->overflow_bytes) ==
		state->overflow_room;
	const struct {
		uint32_t bit;
		const char *name;
		bool is_kept;
	} all[] = {
		{ NETOBS_KEPT_MAX_FLOWS, "max_flows",
		  !is_sized && opts->max_flows != state->max_flows },
		{ NETOBS_KEPT_MAX_MEMORY, "max_memory",
		  !is_sized && opts->max_memory != state->max_memory },
		{ NETOBS_KEPT_ATTACH, "attach",
		  attach_kinds(opts) != state->attach_kinds },
		{ NETOBS_KEPT_ATTACH_ORDER, "attach_order",
		  opts->attach_order != state->attach_order },
	};
	char names[64] = "";

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (!all[i].is_kept)
			continue;
		store->kept |= all[i].bit;
		text_append(names, sizeof(names), "%s%s", *names ? ", " : "",
			    all[i].name);
	}
	if (store->kept)
		log_warning(store->log,
			    "persist: %s: tables and links of an earlier process stay as they are until 'netobsctl detach'",
			    names);
}

void store_publish(struct store *store)
{
	const struct netobs_opts *opts = store->options.opts;
	struct pinned_state state = {
		.n_cpus = store->n_cpus,
		.lanes = store->lanes,
		.l1_buckets = store->l1_buckets,
		.log_slots = store->log_slots,
		.overflow_room = store->overflow.room,
		.overflow_part = store->overflow.part,
		.max_flows = opts->max_flows,
		.max_memory = opts->max_memory,
		.attach_order = opts->attach_order,
		.attach_kinds = attach_kinds(opts),
		.has_rules = true,
		.secret = store->secret,
	};
	int err = pinned_put_maps(store->options.pinned, store->maps.object);

	memcpy(state.rates, store->rates.numbers, sizeof(state.rates));
	err = err ?: overflow_pin(&store->overflow, store->options.pinned);
	err = err ?: pinned_publish(store->options.pinned, &state);
	if (!err)
		return;
	log_warning(store->log,
		    "persist: cannot pin maps: %s; packets that pass between two runs will not be counted",
		    strerror(-err));
	pinned_remove(store->options.pinned);
	store->options.pinned = NULL;
}

void store_note_drained(const struct store *store, uint32_t generation,
			const struct counters *counted,
			const struct count *unreported)
{
	const struct pinned *pinned = store->options.pinned;
	struct pinned_state *state = pinned ? pinned->state : NULL;
	struct pinned_books books;

	if (!state)
		return;
	books = state->books[state->current & 1];
	books.drained[generation] = *counted;
	counters_add(&books.drained[generation],
		     &store->counted_before[generation], sizeof(*counted));
	books.unclaimed = store_unclaimed(store);
	count_add(&books.unclaimed, &store->unclaimed_before);
	books.unreported = *unreported;
	state->books[!(state->current & 1)] = books;
	__atomic_store_n(&state->current, !(state->current & 1),
			 __ATOMIC_SEQ_CST);
	state->seen_drained = count_drained(&books);
}
