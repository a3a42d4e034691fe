/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "store.h"

#include "base/util.h"

#include <errno.h>
#include <netobs/probe.h>
#include <netobs/stats.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (!all[i].is_kept)
			continue;
		store->kept |= all[i].bit;
		len += snprintf(names + len, sizeof(names) - len, "%s%s",
				len ? ", " : "", all[i].name);
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
