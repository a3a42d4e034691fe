/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Alerts of a service are judged by the turns of their client and service since then, and by norms of the configuration. */
#ifndef NETOBS_SERVICE_DIAGNOSES_H
#define NETOBS_SERVICE_DIAGNOSES_H

#include "service_config.h"

struct diagnosed {
	struct netobs_alert alert;
	struct netobs_diagnosis *diagnosis;
	int64_t due_ms, end_ms; /* it is judged; however few turns there are */
};

struct diagnoses {
	struct diagnose_config config; /* the norms are its own */
	struct diagnosed *list;
	uint32_t n, capacity;
	uint64_t verdicts, undiagnosed; /* alerts with a verdict, and without */
	void (*on_record)(const struct netobs_record *record, void *user);
	void (*on_log)(int level, const char *message, void *user);
	void *user;
};

/* Take the norms of @config, for later alerts. */
void diagnoses_commit(struct diagnoses *all, struct diagnose_config *config);

/* Begin to diagnose an alert, unless one of its client and service is being diagnosed. */
void diagnoses_alert(struct diagnoses *all, const struct netobs_alert *alert);

/** @return the diagnosis of an alert's client and service; NULL: there is none now */
const struct diagnosed *diagnoses_find(const struct diagnoses *all,
				       const struct netobs_alert *alert);

/* Take a record of the tracer, of any type. */
void diagnoses_record(struct diagnoses *all, const struct netobs_record *record);

/* Judge the alerts that are due: on_record() gets the verdicts. @now: INT64_MAX: all are, as no record follows */
void diagnoses_dispatch(struct diagnoses *all, int64_t now);

void diagnoses_done(struct diagnoses *all);

#endif
