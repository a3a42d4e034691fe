/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service_sinks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/netobs.h>

#include "base/clock_ms.h"

enum {
	STEP_MS = 20,  /* work per call, then others have their turn */
	LOOK_MS = 100, /* between looks at sinks that are handed over */
	AWAY_MS = 500, /* a collector that is there has answered, or is known to be away */
};

/* ---- One sink -------------------------------------------------------------------- */

static void log_line(const struct service_sinks *sinks, int level,
		     const char *name, const char *what)
{
	char text[4096];

	snprintf(text, sizeof(text), "sink \"%s\": %s", name, what);
	sinks->pattern.on_log(level, text, sinks->pattern.user);
}

static void remove_sink(struct service_sinks *sinks, size_t at)
{
	const size_t behind = --sinks->n - at;

	output_done(&sinks->outputs[at]);
	free(sinks->sinks[at].name);
	free(sinks->sinks[at].spec);
	memmove(&sinks->outputs[at], &sinks->outputs[at + 1],
		behind * sizeof(*sinks->outputs));
	memmove(&sinks->sinks[at], &sinks->sinks[at + 1],
		behind * sizeof(*sinks->sinks));
}

/* @return whether all of its records were delivered */
static bool close_sink(struct service_sinks *sinks, size_t at)
{
	bool is_complete = output_close(&sinks->outputs[at]);

	if (sinks->outputs[at].stats)
		log_line(sinks, NETOBS_LOG_INFO, sinks->sinks[at].name,
			 sinks->outputs[at].stats);
	remove_sink(sinks, at);
	return is_complete;
}

static uint32_t types_of(const char *spec)
{
	uint32_t types = 0;
	const char *name;

	for (unsigned int i = 0; (name = netobs_record_type_name(i)); i++)
		types |= (uint32_t)output_spec_takes(spec, name) << i;
	return types;
}

static void set_sink_state(struct service_sinks *sinks, size_t at,
			   enum service_sink_state state)
{
	sinks->sinks[at].state = state;
	sinks->outputs[at].is_prepared = state == SERVICE_SINK_NEW;
	sinks->outputs[at].is_leaving = state == SERVICE_SINK_LEAVING ||
					state == SERVICE_SINK_HANDING_OVER;
}

static bool takes_records(const struct service_sink *sink)
{
	return sink->state == SERVICE_SINK_IN_USE ||
	       sink->state == SERVICE_SINK_HANDING_OVER;
}

static void log_unopened(const struct service_sinks *sinks,
			 const struct service_item *item)
{
	char text[4096];

	if (!item->place.file) {
		log_line(sinks, NETOBS_LOG_ERROR, item->name,
			 "it cannot be opened");
		return;
	}
	snprintf(text, sizeof(text), "%s:%u:%u: sink \"%s\" cannot be opened",
		 item->place.file, item->place.line, item->place.column,
		 item->name);
	sinks->pattern.on_log(NETOBS_LOG_ERROR, text, sinks->pattern.user);
}

static void set_output(struct output *output, const struct service_sinks *sinks,
		       const struct service_sink *sink)
{
	const struct output chosen = output_of(sink->spec);

	*output = sinks->pattern;
	output->kind = chosen.kind;
	output->spec = chosen.spec;
	output->is_stdout = chosen.is_stdout;
	output->name = sink->name;
}

static int open_service_sink(struct service_sinks *sinks,
			     const struct service_item *item,
			     enum service_sink_state state)
{
	struct service_sink *sink = &sinks->sinks[sinks->n];
	struct output *output = &sinks->outputs[sinks->n];
	int r = sink_totals_reserve(&sinks->totals, item->name);

	if (r < 0)
		return r;
	*sink = (struct service_sink){
		.name = strdup(item->name),
		.spec = strdup(item->text),
		.types = types_of(item->text),
	};
	if (!sink->name || !sink->spec) {
		free(sink->name);
		free(sink->spec);
		return -ENOMEM;
	}
	set_output(output, sinks, sink);
	set_sink_state(sinks, sinks->n++, state);
	r = output_open(output);
	if (r < 0) {
		log_unopened(sinks, item);
		remove_sink(sinks, sinks->n - 1);
	}
	return r;
}

/* ---- Replacing them -------------------------------------------------------------- */

/* A sink announces the sampling that it was opened with. */
static bool is_same_item(const struct service_sinks *sinks, size_t i,
			 const struct service_item *item)
{
	const struct service_sink *sink = &sinks->sinks[i];
	const struct output *output = &sinks->outputs[i];

	return !strcmp(sink->name, item->name) &&
	       !strcmp(sink->spec, item->text) &&
	       output->sampling == sinks->pattern.sampling &&
	       output->sampling_mode == sinks->pattern.sampling_mode;
}

/* @return the index of the sink in use, or prepared; n: not found */
static size_t find_sink(const struct service_sinks *sinks,
			const struct service_item *item)
{
	size_t i = 0;

	while (i < sinks->n &&
	       (sinks->outputs[i].is_leaving || !is_same_item(sinks, i, item)))
		i++;
	return i;
}

static bool is_sink_wanted(const struct service_sinks *sinks, size_t sink,
			   const struct service_config *config)
{
	for (size_t i = 0; i < config->n_sinks; i++)
		if (is_same_item(sinks, sink, &config->sinks[i]))
			return true;
	return false;
}

/* @return the index of the sink that @item of @config replaces; n: none */
static size_t find_predecessor(const struct service_sinks *sinks,
			       const struct service_config *config,
			       const struct service_item *item)
{
	for (size_t i = 0; i < sinks->n; i++)
		if ((sinks->outputs[i].is_leaving ||
		     !is_sink_wanted(sinks, i, config)) &&
		    service_specs_collide(sinks->sinks[i].spec, item->text))
			return i;
	return sinks->n;
}

int service_sinks_prepare(struct service_sinks *sinks,
			  const struct service_config *config)
{
	const int64_t end_ms = now_ms() + STEP_MS;

	sinks->pattern.sampling = config->flows.opts.sampling;
	sinks->pattern.sampling_mode = config->flows.opts.sampling_mode;
	for (size_t i = 0; i < config->n_sinks; i++) {
		const struct service_item *item = &config->sinks[i];
		int r;

		if (find_sink(sinks, item) < sinks->n ||
		    find_predecessor(sinks, config, item) < sinks->n)
			continue;
		if (now_ms() >= end_ms)
			return -EINPROGRESS;
		r = open_service_sink(sinks, item, SERVICE_SINK_NEW);
		if (r == 0)
			continue;
		service_sinks_abandon(sinks);
		return r;
	}
	return 0;
}

void service_sinks_abandon(struct service_sinks *sinks)
{
	for (size_t i = sinks->n; i-- > 0;)
		if (sinks->sinks[i].state == SERVICE_SINK_NEW)
			close_sink(sinks, i);
}

/* ---- From one sink to the next ----------------------------------------------------- */

/*
 * A spool on disk passes its records to the successor; only those that were sent are waited for, as
 * they would be sent again. What waits in memory ends with the sink, so all of it is sent first.
 */
static bool has_handed_over(struct service_sinks *sinks, size_t at)
{
	struct output *output = &sinks->outputs[at];

	if (sinks->sinks[at].shares_spool)
		return output_settle(output);
	output_interval(output);
	return !output_is_pending(output);
}

/* A collector that is away confirms nothing soon. */
static bool has_outage(const struct output *output)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };

	return output->sink && netobs_sink_stats_get(output->sink, &stats) == 0 &&
	       stats.outage_ns;
}

static bool is_overdue(const struct service_sinks *sinks, size_t at)
{
	const int64_t ms = now_ms() - sinks->handover.began_ms;

	return ms >= OUTPUT_FINISH_MS ||
	       (ms >= AWAY_MS && sinks->sinks[at].shares_spool &&
		has_outage(&sinks->outputs[at]));
}

static void begin_handover(struct service_sinks *sinks, size_t at,
			   const struct service_item *item)
{
	if (sinks->sinks[at].state == SERVICE_SINK_HANDING_OVER)
		return;
	set_sink_state(sinks, at, SERVICE_SINK_HANDING_OVER);
	sinks->sinks[at].shares_spool =
		service_specs_share_spool(sinks->sinks[at].spec, item->text);
}

/* -EINPROGRESS: it has one more predecessor. */
static int replace_sink(struct service_sinks *sinks, size_t old,
			const struct service_config *config,
			const struct service_item *item)
{
	char *name = strdup(sinks->sinks[old].name);
	char *spec = strdup(sinks->sinks[old].spec);
	const struct service_item previous = { .name = name, .text = spec };
	int r = -EINPROGRESS;

	sinks->outputs[old].has_successor = sinks->sinks[old].shares_spool;
	close_sink(sinks, old);
	if (find_predecessor(sinks, config, item) == sinks->n)
		r = open_service_sink(sinks, item, SERVICE_SINK_IN_USE);
	if (r < 0 && r != -EINPROGRESS && name && spec &&
	    !open_service_sink(sinks, &previous, SERVICE_SINK_IN_USE))
		log_line(sinks, NETOBS_LOG_WARNING, name,
			 "it keeps its previous options");
	free(name);
	free(spec);
	return r;
}

/* Open a sink that had to wait until its predecessor is closed. -EINPROGRESS: that is open. */
static int open_successor(struct service_sinks *sinks,
			  const struct service_config *config,
			  const struct service_item *item)
{
	size_t old = find_predecessor(sinks, config, item);

	if (find_sink(sinks, item) < sinks->n)
		return 0;
	if (old == sinks->n)
		return open_service_sink(sinks, item, SERVICE_SINK_IN_USE);
	begin_handover(sinks, old, item);
	if (!has_handed_over(sinks, old) && !is_overdue(sinks, old))
		return -EINPROGRESS;
	return replace_sink(sinks, old, config, item);
}

/* The oldest may have to go before it has delivered all. @return whether one was closed */
static bool limit_leaving(struct service_sinks *sinks)
{
	size_t leaving = 0;

	for (size_t i = sinks->n; i-- > 0;) {
		if (sinks->sinks[i].state != SERVICE_SINK_LEAVING ||
		    ++leaving <= SERVICE_LEAVING_MAX)
			continue;
		close_sink(sinks, i);
		return true;
	}
	return false;
}

void service_sinks_commit(struct service_sinks *sinks,
			  const struct service_config *config)
{
	sinks->handover = (struct service_handover){ .began_ms = now_ms() };
	for (size_t i = 0; i < sinks->n; i++) {
		if (sinks->sinks[i].state == SERVICE_SINK_NEW)
			set_sink_state(sinks, i, SERVICE_SINK_IN_USE);
		else if (!is_sink_wanted(sinks, i, config))
			set_sink_state(sinks, i, SERVICE_SINK_LEAVING);
	}
	/* Replace all sinks at once: each takes records until its successor is open. */
	for (size_t i = 0; i < config->n_sinks; i++) {
		size_t old = find_predecessor(sinks, config, &config->sinks[i]);

		if (old < sinks->n &&
		    find_sink(sinks, &config->sinks[i]) == sinks->n)
			begin_handover(sinks, old, &config->sinks[i]);
	}
}

int service_sinks_proceed(struct service_sinks *sinks,
			  const struct service_config *config)
{
	struct service_handover *handover = &sinks->handover;
	const int64_t end_ms = now_ms() + STEP_MS;
	bool is_waiting = false;

	handover->is_hurried = true;
	for (size_t n = 0; n < config->n_sinks; n++) {
		const size_t i = (handover->next + n) % config->n_sinks;
		int r;

		if (handover->is_over[i])
			continue;
		if (now_ms() >= end_ms) {
			handover->next = i;
			return -EINPROGRESS;
		}
		r = open_successor(sinks, config, &config->sinks[i]);
		is_waiting |= r == -EINPROGRESS;
		if (r == -EINPROGRESS)
			continue;
		handover->is_over[i] = true;
		handover->result = handover->result ?: r;
	}
	while (limit_leaving(sinks))
		if (now_ms() >= end_ms)
			return -EINPROGRESS;
	handover->is_hurried = false;
	return is_waiting ? -EINPROGRESS : handover->result;
}

int service_sinks_rest(const struct service_sinks *sinks)
{
	return sinks->handover.is_hurried ? 0 : LOOK_MS;
}

/* ---- Records --------------------------------------------------------------------- */

void service_sinks_record(struct service_sinks *sinks,
			  const struct netobs_record *record)
{
	for (size_t i = 0; i < sinks->n; i++) {
		struct service_sink *sink = &sinks->sinks[i];

		if (!takes_records(sink) || !(sink->types >> record->type & 1))
			continue;
		output_record(&sinks->outputs[i], record);
		sink->has_prompt |= record->type != NETOBS_RECORD_FLOW;
	}
}

void service_sinks_flush_prompt(struct service_sinks *sinks)
{
	for (size_t i = 0; i < sinks->n; i++) {
		if (!sinks->sinks[i].has_prompt)
			continue;
		output_interval(&sinks->outputs[i]);
		sinks->sinks[i].has_prompt = false;
	}
}

int service_sinks_reopen(struct service_sinks *sinks)
{
	int result = 0;

	for (size_t i = 0; i < sinks->n; i++) {
		int r = output_reopen(&sinks->outputs[i]);

		if (r < 0)
			log_line(sinks, NETOBS_LOG_ERROR, sinks->sinks[i].name,
				 "its file cannot be opened again");
		result = result ?: r;
	}
	return result;
}

void service_sinks_interval(struct service_sinks *sinks)
{
	for (size_t i = 0; i < sinks->n; i++)
		output_interval(&sinks->outputs[i]);
}

int service_sinks_tend(struct service_sinks *sinks)
{
	int result = 0;

	for (size_t i = sinks->n; i-- > 0;) {
		if (sinks->sinks[i].state == SERVICE_SINK_LEAVING) {
			if (!output_is_pending(&sinks->outputs[i]))
				close_sink(sinks, i);
		} else if (takes_records(&sinks->sinks[i]) &&
			   sinks->outputs[i].error) {
			result = sinks->outputs[i].error;
		}
	}
	return result;
}

int service_sinks_finish(struct service_sinks *sinks)
{
	const int64_t end_ms = now_ms() + STEP_MS;

	for (size_t i = 0; i < sinks->n; i++) {
		if (sinks->sinks[i].is_finishing)
			continue;
		if (now_ms() >= end_ms)
			return -EINPROGRESS;
		output_finish(&sinks->outputs[i]);
		sinks->sinks[i].is_finishing = true;
	}
	return 0;
}

bool service_sinks_are_pending(const struct service_sinks *sinks)
{
	for (size_t i = 0; i < sinks->n; i++)
		if (output_is_pending(&sinks->outputs[i]))
			return true;
	return false;
}

bool service_sinks_close(struct service_sinks *sinks)
{
	bool is_complete = true;

	while (sinks->n)
		is_complete &= close_sink(sinks, sinks->n - 1);
	return is_complete;
}
