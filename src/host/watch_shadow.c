// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What may hide packets from the programs, looked for from time to time. */
#include "host.h"

#include "base/clock.h"
#include "base/util.h"

#include <stdio.h>
#include <string.h>

/* More often it is looked for only after attaching. */
enum { LOOK_INTERVAL_MS = 5000 };

static void look_at(struct watch *watch, struct place *place, struct netif *netif)
{
	int link = netif_link_kind(netif);
	struct hook_job *job;

	if (link < 0)
		return;
	job = hook_job_new(HOOK_LOOK, netif->ifindex, place->ns);
	if (!job)
		return;
	job->place = place->index;
	job->incarnation = netif->incarnation;
	for (int d = NETOBS_INGRESS; d <= NETOBS_EGRESS; d++) {
		job->programs[d] = shared_fd_ref(place->programs[link][d]);
		job->priorities[d] = netif->attachment.hooks[d].filter.priority;
	}
	watch->n_looking++;
	attacher_add(&watch->attacher, job);
}

void watch_look(struct watch *watch)
{
	int64_t now = clock_boot_ns();

	if (watch->n_looking ||
	    now - watch->looked_ns < LOOK_INTERVAL_MS * NSEC_PER_MSEC)
		return;
	watch->looked_ns = now;
	for (uint32_t i = 0; i < watch->n_places; i++) {
		struct netifs *netifs = &watch->places[i].netifs;

		for (uint32_t k = 0; k < netifs->count; k++)
			if (is_attached(&netifs->items[k].attachment))
				look_at(watch, &watch->places[i],
					&netifs->items[k]);
	}
	attacher_go(&watch->attacher);
}

static void describe(const struct netobs_shadow *shadow, char *text, size_t size)
{
	if (shadow->kind == NETOBS_SHADOW_CLSACT)
		snprintf(text, size, "clsact filter '%s' of priority %u",
			 shadow->name, shadow->priority);
	else
		snprintf(text, size, "%s program '%s' (id %u)",
			 shadow->kind == NETOBS_SHADOW_XDP ? "XDP" : "tcx",
			 shadow->name, shadow->program_id);
}

static void report(const struct watch *watch, const char *name,
		   const struct netobs_shadow *shadow)
{
	bool is_asked_for = watch->attach.order == NETOBS_ATTACH_LAST;
	const char *way = shadow->direction == NETOBS_EGRESS ? "egress" :
							       "ingress";
	char what[64], more[32] = "";

	if (!shadow->kind) {
		log_info(watch->log,
			 "%s: no program hides packets on %s any more", name,
			 way);
		return;
	}
	describe(shadow, what, sizeof(what));
	if (shadow->others)
		snprintf(more, sizeof(more), " and %u more", shadow->others);
	log_write(watch->log, is_asked_for ? NETOBS_LOG_INFO : NETOBS_LOG_WARNING,
		  "%s: %s%s, before netobs on %s, may hide packets from it",
		  name, what, more, way);
}

static bool is_same(const struct netobs_shadow *a, const struct netobs_shadow *b)
{
	return a->kind == b->kind && a->program_id == b->program_id &&
	       a->priority == b->priority && a->others == b->others;
}

void watch_note_shadows(const struct watch *watch, struct netif *netif,
			const struct hook_job *job)
{
	for (int d = NETOBS_INGRESS; d <= NETOBS_EGRESS; d++) {
		if (!watch->attach.directions[d] ||
		    is_same(&netif->shadows[d], &job->shadows[d]))
			continue;
		netif->shadows[d] = job->shadows[d];
		report(watch, netif->name, &netif->shadows[d]);
	}
}

uint32_t watch_count_shadowed(const struct watch *watch)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < watch->n_places; i++) {
		const struct netifs *netifs = &watch->places[i].netifs;

		for (uint32_t k = 0; k < netifs->count; k++)
			n += !!netifs->items[k].shadows[NETOBS_INGRESS].kind +
			     !!netifs->items[k].shadows[NETOBS_EGRESS].kind;
	}
	return n;
}
