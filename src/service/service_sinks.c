/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service_sinks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/netobs.h>

enum { HAND_OVER_MS = 500 }; /* a collector that is there has answered */

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

static int open_service_sink(struct service_sinks *sinks, const char *name,
			     const char *spec, enum service_sink_state state)
{
	struct service_sink *sink = &sinks->sinks[sinks->n];
	struct output *output = &sinks->outputs[sinks->n], chosen;
	int r;

	*sink = (struct service_sink){
		.name = strdup(name),
		.spec = strdup(spec),
		.state = state,
		.types = types_of(spec),
	};
	if (!sink->name || !sink->spec) {
		free(sink->name);
		free(sink->spec);
		return -ENOMEM;
	}
	chosen = output_of(sink->spec);
	*output = sinks->pattern;
	output->kind = chosen.kind;
	output->spec = chosen.spec;
	output->is_stdout = chosen.is_stdout;
	output->name = sink->name;
	output->is_idle = state != SERVICE_SINK_IN_USE;
	sinks->n++;
	r = output_open(output);
	if (r < 0) {
		log_line(sinks, NETOBS_LOG_ERROR, name, "it cannot be opened");
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

/* @return the index of the sink in use, or prepared; n: there is none */
static size_t find_sink(const struct service_sinks *sinks,
			const struct service_item *item)
{
	size_t i = 0;

	while (i < sinks->n && (sinks->sinks[i].state == SERVICE_SINK_LEAVING ||
				!is_same_item(sinks, i, item)))
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

/* @return the index of the sink whose place @item of @config takes; n: there is none */
static size_t find_predecessor(const struct service_sinks *sinks,
			       const struct service_config *config,
			       const struct service_item *item)
{
	for (size_t i = 0; i < sinks->n; i++) {
		const struct service_sink *sink = &sinks->sinks[i];

		if ((sink->state == SERVICE_SINK_LEAVING ||
		     !is_sink_wanted(sinks, i, config)) &&
		    service_specs_collide(sink->spec, item->text))
			return i;
	}
	return sinks->n;
}

int service_sinks_prepare(struct service_sinks *sinks,
			  const struct service_config *config)
{
	sinks->pattern.sampling = config->flows.sampling_interval;
	sinks->pattern.sampling_mode = config->flows.sampling_mode;
	for (size_t i = 0; i < config->n_sinks; i++) {
		const struct service_item *item = &config->sinks[i];
		int r;

		if (find_sink(sinks, item) < sinks->n ||
		    find_predecessor(sinks, config, item) < sinks->n)
			continue;
		r = open_service_sink(sinks, item->name, item->text,
				      SERVICE_SINK_NEW);
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

/* The oldest may have to go before it has delivered all. */
static void limit_leaving(struct service_sinks *sinks)
{
	size_t leaving = 0;

	for (size_t i = sinks->n; i-- > 0;)
		if (sinks->sinks[i].state == SERVICE_SINK_LEAVING &&
		    ++leaving > SERVICE_LEAVING_MAX)
			close_sink(sinks, i);
}

/*
 * A spool in memory ends with its sink, so all of its records are sent first. A spool on disk
 * passes its records to the successor; only those in flight are waited for, as they would be
 * sent again.
 */
static int replace_sink(struct service_sinks *sinks, size_t old,
			const struct service_item *item)
{
	char *name = strdup(sinks->sinks[old].name);
	char *spec = strdup(sinks->sinks[old].spec);
	int r;

	output_finish_all(&sinks->outputs[old], 1,
			  spec && output_spec_option(spec, "spool=disk") ?
				  HAND_OVER_MS :
				  OUTPUT_FINISH_MS);
	close_sink(sinks, old);
	r = open_service_sink(sinks, item->name, item->text, SERVICE_SINK_IN_USE);
	if (r < 0 && name && spec &&
	    !open_service_sink(sinks, name, spec, SERVICE_SINK_IN_USE))
		log_line(sinks, NETOBS_LOG_WARNING, name,
			 "it keeps its previous options");
	free(name);
	free(spec);
	return r;
}

/* Open the sinks that had to wait until their predecessors are closed. */
static int open_successors(struct service_sinks *sinks,
			   const struct service_config *config)
{
	int result = 0;

	for (size_t i = 0; i < config->n_sinks; i++) {
		const struct service_item *item = &config->sinks[i];
		size_t old = find_predecessor(sinks, config, item);
		int r;

		if (find_sink(sinks, item) < sinks->n)
			continue;
		r = old < sinks->n ?
			    replace_sink(sinks, old, item) :
			    open_service_sink(sinks, item->name, item->text,
					      SERVICE_SINK_IN_USE);
		result = result ?: r;
	}
	return result;
}

int service_sinks_commit(struct service_sinks *sinks,
			 const struct service_config *config)
{
	int r;

	for (size_t i = 0; i < sinks->n; i++) {
		struct service_sink *sink = &sinks->sinks[i];

		if (sink->state == SERVICE_SINK_NEW)
			sink->state = SERVICE_SINK_IN_USE;
		else if (!is_sink_wanted(sinks, i, config))
			sink->state = SERVICE_SINK_LEAVING;
		sinks->outputs[i].is_idle = sink->state == SERVICE_SINK_LEAVING;
	}
	r = open_successors(sinks, config);
	limit_leaving(sinks);
	return r;
}

/* ---- Records --------------------------------------------------------------------- */

void service_sinks_flow(struct service_sinks *sinks,
			const struct netobs_flow *flow)
{
	for (size_t i = 0; i < sinks->n; i++)
		if (sinks->sinks[i].state == SERVICE_SINK_IN_USE)
			output_flow(&sinks->outputs[i], flow);
}

void service_sinks_record(struct service_sinks *sinks,
			  const struct netobs_record *record)
{
	for (size_t i = 0; i < sinks->n; i++) {
		struct service_sink *sink = &sinks->sinks[i];

		if (sink->state != SERVICE_SINK_IN_USE ||
		    !(sink->types >> record->type & 1))
			continue;
		output_record(&sinks->outputs[i], record);
		sink->has_prompt = true;
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
		} else if (sinks->sinks[i].state == SERVICE_SINK_IN_USE &&
			   sinks->outputs[i].error) {
			result = sinks->outputs[i].error;
		}
	}
	return result;
}

bool service_sinks_close(struct service_sinks *sinks)
{
	bool is_complete = true;

	output_finish_all(sinks->outputs, sinks->n, OUTPUT_FINISH_MS);
	while (sinks->n)
		is_complete &= close_sink(sinks, sinks->n - 1);
	return is_complete;
}
