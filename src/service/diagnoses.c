/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "diagnoses.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock_ms.h"
#include "base/util.h"

/* Records of each type, of an alert; times after a judgement of too few turns, and until records have come */
enum { RECORDS_MAX = 1024, AGAIN_MS = 1000, LATE_MS = 500 };

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
	struct diagnosed one = { *alert, NULL, due_ms,
				 due_ms + config->for_ms - LATE_MS };

	if (!array_reserve(&all->list, all->n, &all->capacity, sizeof(one), 4) ||
	    netobs_diagnosis_new(&opts, &one.diagnosis))
		return false;
	for (uint32_t i = 0; config->norms_file && i < config->n_norms; i++)
		netobs_diagnosis_add(one.diagnosis, 0, &config->norms[i].record);
	all->list[all->n++] = one;
	return true;
}

static void refuse(struct diagnoses *all)
{
	if (!all->undiagnosed++)
		all->on_log(NETOBS_LOG_WARNING,
			    "alerts without a verdict are counted: there are more than max of [diagnose], or no turns",
			    all->user);
}

void diagnoses_alert(struct diagnoses *all, const struct netobs_alert *alert)
{
	if (!all->config.is_enabled || diagnoses_find(all, alert))
		return;
	if (all->n >= all->config.max || alert->protocol != IPPROTO_TCP ||
	    !begin(all, alert))
		refuse(all);
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

/* Nothing is known of the time before. The connection is still traced: an answer that is missing counts. */
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
	all->verdicts += verdict.record.sz != 0;
	if (verdict.record.sz)
		all->on_record(&verdict.record, all->user);
	else
		refuse(all);
}

void diagnoses_dispatch(struct diagnoses *all, int64_t now)
{
	for (uint32_t i = all->n; i--;)
		if (now >= all->list[i].due_ms)
			judge(all, &all->list[i], now);
}

void diagnoses_commit(struct diagnoses *all, struct diagnose_config *config)
{
	free(all->config.norms);
	all->config = *config;
	config->norms = NULL;
}

void diagnoses_done(struct diagnoses *all)
{
	while (all->n)
		netobs_diagnosis_free(all->list[--all->n].diagnosis);
	free(TAKE_PTR(all->list));
	free(TAKE_PTR(all->config.norms));
}
