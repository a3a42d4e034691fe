/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Implements netobsctl run: a context and its sinks, by a configuration that may change. */
#ifndef NETOBS_SERVICE_SERVICE_H
#define NETOBS_SERVICE_SERVICE_H

#include "service/metrics/metrics.h"
#include "service_config.h"
#include "service_observers.h"
#include "service_sinks.h"
#include "service_trace.h"

#include <netobs/series.h>

struct control;
struct json;
struct netobs;

/* ---- Groups: counters for metrics, and records at the end of each interval ------------ */

struct service_group {
	char *name, *by,
		*networks; /* the latter as service_config.networks_text */
	uint32_t most;	   /* series */
	uint32_t histograms;
	uint32_t counts; /* observed values: enum metrics_group_counts, or-ed */
	bool has_records;
	struct netobs_series *series;
};

struct service_groups {
	struct service_group groups[SERVICE_GROUPS_MAX];
	size_t n;
	struct metrics_group metrics[SERVICE_GROUPS_MAX]; /* groups with metrics */
	size_t n_metrics;
};

/**
 * Use the groups of @config. Unchanged groups keep their counts, others begin at 0. The interval of
 * removed groups ends.
 *
 * @param take  gets the records of removed groups
 *
 * @return 0; -errno: one is missing
 */
int service_groups_commit(struct service_groups *groups,
			  const struct service_config *config, int64_t time_ns,
			  void (*take)(const struct netobs_record *record,
				       void *user),
			  void *user);

/** @record: a flow or a session */
void service_groups_add(struct service_groups *groups,
			const struct netobs_record *record);

/** End an interval. @take gets the records of groups with records = yes. */
void service_groups_interval(struct service_groups *groups, int64_t time_ns,
			     void (*take)(const struct netobs_record *record,
					  void *user),
			     void *user);

/** Add "groups" to the status, unless there are none. */
void service_groups_json(const struct service_groups *groups, struct json *json);

void service_groups_clear(struct service_groups *groups);

/* ---- The service ---------------------------------------------------------------------- */

enum service_reload {
	SERVICE_RELOAD_NONE,
	SERVICE_RELOAD_OPENING,	    /* new sinks are opened */
	SERVICE_RELOAD_CHANGING,    /* the library works */
	SERVICE_RELOAD_HANDING_OVER /* sinks are replaced */
};

struct service_reloads {
	uint64_t total, failed;
	int64_t last_ms;
	bool is_last_fine;
};

struct service {
	const char *path; /* path of the configuration; NULL: the default */
	struct service_config *config; /* in use */
	/* A configuration that is being applied, which new log messages are about; or NULL. */
	struct service_config *next;
	bool is_reload_due;
	enum service_reload reload; /* current step of a reload */
	int reload_result;	    /* of the steps so far */
	struct netobs *ctx;
	struct service_sinks sinks;
	struct service_observers observers;
	struct session_queue waiting; /* for the end of a drain */
	struct service_trace trace;
	struct service_groups groups;
	struct metrics *metrics;
	struct metrics_source metrics_source;
	struct control *control;
	struct service_reloads reloads;
	int64_t started_ms, in_use_ms; /* the latter of the configuration */
	struct conf first; /* the first configuration: settings that cannot change are used from it */
	int log_level;
	bool has_levels; /* put levels before lines on stderr, for the journal */
	bool is_stopped; /* the context has stopped */
};

/**
 * Run a service until a signal ends it.
 *
 * @param path  of the configuration; NULL: the default
 * @return an exit status
 */
int service_run(const char *path);

void service_log(int level, const char *message, void *service);
void service_log_error(const char *message, void *service);
void service_log_warning(const char *message, void *service);

/* @choice: of log_level; < 0: the default */
void service_log_set_level(struct service *service, int choice);

/* Report to the service manager what is observed, and losses. */
void service_notify_status(const struct service *service);

/** @return whether @fd is the journal, which reads the level of a line from "<N>": sd-daemon(3) */
bool service_log_is_journal(int fd);

/** Add the members of the status to an open object: docs/control.md. @user: the service */
void service_status_add(struct json *json, void *user);

/* ---- The control socket of a service: docs/control.md ---------------------------------- */

/**
 * Without a configured path, the socket is optional: another service may use the default path.
 *
 * @return 0; < 0: cannot listen at the configured path, which was logged
 */
int service_open_control(struct service *service);

/* ---- The metrics of a service ---------------------------------------------------------- */

/** An address that is in use is reported before programs are attached. @return 0; < 0: which was logged */
int service_open_metrics(struct service *service);

/** Answer requests for metrics; when metrics_fd() polls readable. */
void service_serve_metrics(struct service *service);

/* Use the present sinks and rules for the metrics. */
void service_refresh_metrics(struct service *service);

/* ---- Service matching ------------------------------------------------------------------ */

/* Checks a configuration for types of records without a sink or a source, and for names without records. */

/*
 * Call @warn for each type of records that is made but that no sink takes, and for each that a sink
 * takes but that is not made.
 */
void service_match_sinks(const struct service_config *config,
			 void (*warn)(const char *line, void *user), void *user);

/** Call @warn where names of containers are looked for, and no record can have one. */
void service_match_names(const struct service_config *config,
			 void (*warn)(const char *line, void *user), void *user);

/* ---- Service records ------------------------------------------------------------------- */

/* Records, alerts and intervals that the library delivers to a service, and the options for them. */

/* Fill @opts of the context by @config, with callbacks that pass all to groups, sinks, rules and metrics. */
void service_fill_options(struct service *service,
			  const struct service_config *config,
			  struct netobs_opts *opts);

/* Set the callbacks of the observers beside the context, and of the sinks. */
void service_set_callbacks(struct service *service);

/*
 * Deliver waiting sessions, in order, up to the first one whose conversation is not known before the drain
 * ends.
 */
void service_deliver_known_sessions(struct service *service);

/* Deliver all sessions that wait, also those whose conversations are not known before a drain ends. */
void service_deliver_sessions(struct service *service);

/* Deliver the records of groups for the interval that ends now. */
void service_end_groups_interval(struct service *service);

/**
 * Apply the groups of the configuration in use. Unchanged groups keep their counts; the previous sinks get the last
 * records of the others.
 *
 * @return 0; < 0: some are missing, which was logged
 */
int service_commit_groups(struct service *service);

/* ---- Service reload -------------------------------------------------------------------- */

/*
 * Reads the configuration of a service, and replaces it. The new one is read and checked, its sinks
 * are opened, its observers and the change of the context prepared, beside the one in use; all of
 * this may fail without a trace. The last step puts it in the place of the old one. Only a sink that
 * needs the spool or the file of its predecessor is opened later, once that has been closed.
 */

/**
 * @param leaves_filters  as for service_config_read()
 * @return NULL: it is wrong, which was logged
 */
struct service_config *service_read_config(struct service *service,
					   bool leaves_filters);

/* @config: or NULL */
void service_free_config(struct service_config *config);

/** Set the rules of @config. @return 0; < 0: the previous rules stay, which was logged */
int service_set_alerts(struct service *service,
		       const struct service_config *config);

/**
 * Read the configuration again, once an earlier reload is over, and apply it. If that fails,
 * the previous configuration stays in use. Nothing waits for it: service_tend() works in steps.
 */
void service_reload(struct service *service);

/** Continue with a reload, if there is one: after each dispatch. */
void service_tend(struct service *service);

/** @return milliseconds until the next dispatch and call of service_tend(); -1: no limit */
int service_rest(const struct service *service);

#endif
