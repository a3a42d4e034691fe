/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Alerts of a service are judged by the turns of their client and service since then, and by norms of the configuration. */
#ifndef NETOBS_SERVICE_DIAGNOSES_H
#define NETOBS_SERVICE_DIAGNOSES_H

#include "service/metrics/metrics.h"
#include "service_config.h"

/**
 * Read verdicts, JSON lines, which replace those before.
 *
 * @param ret_why  on failure: FILE:LINE and what is wrong there, or FILE and why it cannot be read
 * @return 0; < 0: there is a line that is no norm, or no verdict at all
 */
int norms_read(struct norms *norms, const char *path, char *ret_why, size_t size);

/** Add all to a diagnosis. @return 0; -ENOMEM */
int norms_add(const struct norms *norms, struct netobs_diagnosis *diagnosis);

struct diagnosed {
	struct netobs_alert alert;
	struct netobs_diagnosis *diagnosis;
	int64_t due_ms, end_ms; /* it is judged; however few turns there are */
};

struct diagnoses {
	struct diagnose_config config; /* the norms are its own */
	struct diagnosed *list;
	uint32_t n, capacity;
	struct diagnosis_totals totals;
	bool has_warned; /* of alerts without a verdict */
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
