/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "diagnoses.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock_ms.h"
#include "base/util.h"

enum {
	RECORDS_MAX = 1024,    /* of each type, of an alert */
	AGAIN_MS = 1000,       /* between judgements of too few turns */
	LATE_MS = 500,	       /* until records of an event have come */
	LINE_BYTES = 64 << 10, /* a verdict is shorter */
	NORMS_MAX = 4096,      /* that a diagnosis keeps */
};

/* ---- Norms ----------------------------------------------------------------------------- */

/* @return what is wrong with a line; NULL: nothing */
static const char *add_line(struct norms *norms, struct netobs_diagnosis *judge,
			    const char *line)
{
	struct netobs_verdict norm;
	int err;

	if (netobs_record_parse(line, &norm, sizeof(norm)) < 0 ||
	    norm.record.type != NETOBS_RECORD_VERDICT)
		return "it is no verdict as JSON";
	if (norms->n == NORMS_MAX)
		return "there are more than 4096 verdicts";
	err = netobs_diagnosis_add(judge, 0, &norm.record);
	if (err == -ENODATA)
		return "it blames a place, and had less than ten turns before: it does not say what is normal";
	if (err || !array_reserve(&norms->list, norms->n, &norms->capacity,
				  sizeof(norm), 16))
		return strerror(ENOMEM);
	norms->list[norms->n++] = norm;
	return NULL;
}

int norms_read(struct norms *norms, const char *path, char *ret_why, size_t size)
{
	struct netobs_diagnosis *judge = NULL;
	FILE *file = fopen(path, "re");
	const char *why = file ? NULL : strerror(errno);
	cleanup_free char *line = malloc(LINE_BYTES);
	size_t number = 0;

	norms->n = 0;
	if (!line || netobs_diagnosis_new(NULL, &judge))
		why = strerror(ENOMEM);
	for (; !why && fgets(line, LINE_BYTES, file); number++)
		why = add_line(norms, judge, line);
	if (!why && ferror(file))
		why = strerror(errno);
	if (!why && !norms->n)
		why = "no verdict";
	if (file)
		fclose(file);
	netobs_diagnosis_free(judge);
	if (why && number)
		snprintf(ret_why, size, "%s:%zu: %s", path, number, why);
	else if (why)
		snprintf(ret_why, size, "%s: %s", path, why);
	return why ? -EINVAL : 0;
}

int norms_add(const struct norms *norms, struct netobs_diagnosis *diagnosis)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < norms->n; i++)
		err = netobs_diagnosis_add(diagnosis, 0, &norms->list[i].record);
	return err;
}

/* ---- Alerts ---------------------------------------------------------------------------- */

static bool is_between(const struct netobs_alert *alert, const uint8_t *client,
		       const uint8_t *server, uint16_t server_port)
{
	return server_port == alert->server_port &&
	       !memcmp(client, alert->client, sizeof(alert->client)) &&
	       !memcmp(server, alert->server, sizeof(alert->server));
}

const struct diagnosed *diagnoses_find(const struct diagnoses *all,
				       const struct netobs_alert *alert)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (is_between(&all->list[i].alert, alert->client,
			       alert->server, alert->server_port))
			return &all->list[i];
	return NULL;
}

static bool begin(struct diagnoses *all, const struct netobs_alert *alert)
{
	const struct netobs_diagnosis_opts opts = { sizeof(opts), RECORDS_MAX };
	const struct diagnose_config *config = &all->config;
	const int64_t due_ms = now_ms() + config->for_ms;
	/* The last fifth of the second time is for an alert that arrives late, and for the sinks. */
	struct diagnosed one = { *alert, NULL, due_ms,
				 due_ms + config->for_ms * 4 / 5 };

	if (!array_reserve(&all->list, all->n, &all->capacity, sizeof(one), 4) ||
	    netobs_diagnosis_new(&opts, &one.diagnosis))
		return false;
	if (config->norms_file)
		norms_add(&config->norms, one.diagnosis);
	all->list[all->n++] = one;
	return true;
}

static void refuse(struct diagnoses *all, uint64_t *counter)
{
	++*counter;
	if (!all->has_warned)
		all->on_log(NETOBS_LOG_WARNING,
			    "alerts without a verdict are counted: there are more than max of [diagnose], or no turns",
			    all->user);
	all->has_warned = true;
}

void diagnoses_alert(struct diagnoses *all, const struct netobs_alert *alert)
{
	if (!all->config.is_enabled || diagnoses_find(all, alert))
		return;
	if (alert->protocol != IPPROTO_TCP)
		refuse(all, &all->totals.not_tcp);
	else if (all->n >= all->config.max || !begin(all, alert))
		refuse(all, &all->totals.over_max);
	else
		all->totals.followed++;
}

/* NAT may give a connection other addresses at its socket than where its alert was seen. */
static bool is_turn_of(const struct netobs_alert *alert,
		       const struct netobs_turn *turn)
{
	return is_between(alert, turn->src, turn->dst, turn->dst_port) ||
	       is_between(alert, turn->dst, turn->src, turn->src_port) ||
	       (turn->alert_ns == alert->record.time_ns &&
		!strcmp(turn->alert, alert->name));
}

void diagnoses_record(struct diagnoses *all, const struct netobs_record *record)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (record->type != NETOBS_RECORD_TURN ||
		    is_turn_of(&all->list[i].alert, (const void *)record))
			netobs_diagnosis_add(all->list[i].diagnosis, 0, record);
}

/* The first one has the largest blame. */
static void keep_first(const struct netobs_verdict *verdict, void *user)
{
	struct netobs_verdict *first = user;

	if (!first->record.sz)
		*first = *verdict;
}

/* The time before an alert is unknown. The connection is still traced, so a missing answer counts as time. */
static void judge(struct diagnoses *all, struct diagnosed *one, int64_t now)
{
	const int64_t since = one->alert.record.time_ns;
	const int64_t until = clock_ns(CLOCK_REALTIME) - LATE_MS * NSEC_PER_MSEC;
	struct netobs_verdict verdict = { .record.sz = 0 };

	netobs_diagnosis_judge(one->diagnosis, since, until, since, keep_first,
			       &verdict);
	if (now < one->end_ms &&
	    (!verdict.record.sz || verdict.missing & NETOBS_MISSING_TURNS)) {
		one->due_ms = min_i64(now + AGAIN_MS, one->end_ms);
		return;
	}
	memcpy(verdict.alert, one->alert.name, sizeof(verdict.alert));
	verdict.alert_ns = since;
	netobs_diagnosis_free(one->diagnosis);
	*one = all->list[--all->n];
	if (!verdict.record.sz) {
		refuse(all, &all->totals.without_turns);
		return;
	}
	all->totals.verdicts[verdict.certainty]++;
	all->on_record(&verdict.record, all->user);
}

void diagnoses_dispatch(struct diagnoses *all, int64_t now)
{
	for (uint32_t i = all->n; i--;)
		if (now >= all->list[i].due_ms)
			judge(all, &all->list[i], now);
}

void diagnoses_commit(struct diagnoses *all, struct diagnose_config *config)
{
	free(all->config.norms.list);
	all->config = *config;
	config->norms.list = NULL;
}

void diagnoses_done(struct diagnoses *all)
{
	while (all->n)
		netobs_diagnosis_free(all->list[--all->n].diagnosis);
	free(TAKE_PTR(all->list));
	free(TAKE_PTR(all->config.norms.list));
}
