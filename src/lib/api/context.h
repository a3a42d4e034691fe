/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A context: what netobs_new() makes. */
#ifndef NETOBS_API_CONTEXT_H
#define NETOBS_API_CONTEXT_H

#include "alerts/alerts.h"
#include "base/life.h"
#include "features.h"
#include "filter/filter.h"
#include "who/containers.h"
#include "nat/mappings.h"
#include "sink/sink.h"
#include "attach/hooks.h"

/* An alert of a connection, as a program has reported it. */
struct held_alert {
	struct alert_event event;
	uint32_t pid;
	bool has_process;
	char process[16];
};

/* Alerts that wait for the end of a drain. */
struct held_alerts {
	struct held_alert *list; /* NULL: no alerts */
	uint32_t n, capacity;
};

struct netobs {
	struct life life; /* first; other objects of the library have nothing else of it */
	struct sink_source source; /* what sinks see */
	struct netobs_opts opts;
	struct host host;
	struct filter *filter;		  /* NULL: all packets */
	const struct filter *next_filter; /* during a change, if it is another */
	struct rate next_rate; /* during a change: sampling rate if there is no filter */
	bool is_replacing; /* during a change that needs other programs */
	int64_t replaced_ns; /* when programs were last replaced, CLOCK_BOOTTIME */
	struct change *change; /* the change under way; NULL: none */
	int change_result;     /* result of the last change */
	struct observation observation;
	struct pipeline pipeline;
	struct features features;     /* of the pipeline */
	struct containers containers; /* zeroes, unless they are wanted */
	struct mappings mappings; /* zeroes until the context starts, and without NETOBS_NAT */
	struct mapping_questions questions; /* about these */
	int questions_timer;
	struct alerts alerts; /* zeroes until the context starts, and without any */
	struct alert_set *alert_set; /* NULL: there are no rules */
	/* The previous rules, whose alerts may come yet; NULL: there were none. */
	struct alert_set *alert_set_before;
	struct flow_alerts flow_alerts; /* zeroes until there are such rules */
	struct held_alerts held_alerts;
	uint64_t alerts_delivered; /* alerts of all rules, also of previous ones */
	uint32_t alert_epoch;	   /* epoch of the rules' filters; 0: unknown */
	uint32_t alert_epochs;	   /* epochs so far */
	char *container_root;	   /* NULL: "/" */
	struct container_names *names; /* NULL: none are wanted */
	char *persist; /* the directory; NULL: nothing outlives the process */
	struct pinned pinned;
	struct host_listener pinned_listener;
	int timer;
	int64_t due_ns;	  /* the end of the interval, CLOCK_BOOTTIME */
	uint64_t records; /* records delivered before this netobs_dispatch() */
	bool is_early_wanted;
	bool is_behind; /* notices are not listened to meanwhile */
};

/* How long netobs_connections() has connections that ended. */
enum { CONTEXT_ENDED_S = 10 };

/* @return whether it is a context, and no other object of the library, nor NULL */
bool is_context(const struct netobs *ctx);

typedef void record_fn(const struct netobs_record *record, void *user);

/* @return on_record, if it gets records of @type; else NULL */
static inline record_fn *context_taker(const struct netobs_opts *opts,
				       enum netobs_record_type type)
{
	return opts->records >> type & 1 ? opts->on_record : NULL;
}

/* Copy the options that the caller's headers know; others keep their defaults. */
void context_copy_options(const struct netobs_opts *opts,
			  struct netobs_opts *ret_opts);

/* -EINVAL, logged, if one of them makes no sense. */
int context_check_options(const struct netobs_opts *opts, const struct log *log);

/* The source of a filter: an expression or rules, or neither. */
struct filter_source {
	const char *expression; /* or NULL */
	bool is_list;
	bool accepts_others;
	struct rate rate; /* rate of the expression, or of packets that no rule matches */
	uint32_t n_rules;
	struct filter_rule rules[FILTER_RULES_MAX];
};

/* Check the options for it; the strings stay the caller's. -EINVAL, -E2BIG: logged */
int context_read_filter(const struct netobs_opts *opts, const struct log *log,
			struct filter_source *ret_source);

/* Like filter_compile(). May take seconds, and uses nothing but its parameters. */
int context_compile_source(const struct filter_source *source,
			   const struct log *log, struct filter **ret_filter);

/* Calls context_read_filter() and context_compile_source(). */
int context_make_filter(const struct netobs_opts *opts, const struct log *log,
			struct filter **ret_filter);

/*
 * Have @filter, or the sampling of @opts, replace that of the context with the next change
 * of the observation, unless they are the same: ctx->is_replacing. May complete drains.
 *
 * @return 0; -ENOTSUP: one filter of both is NULL; -EBUSY: see filter_succeed() and
 *         rates_take(); both are logged
 */
int context_set_next(struct netobs *ctx, struct filter *filter,
		     const struct netobs_opts *opts);

/* Sinks that are opened for the context from now on report the same sampling. */
void context_set_sampling(struct netobs *ctx, const struct netobs_opts *opts);

/* -ENOTSUP, logged, if they differ in what cannot change while the context runs. */
int context_check_change(const struct netobs *ctx, const struct netobs_opts *to,
			 const struct log *log);

/* ---- Changes (context_change.c) ------------------------------------------------------ */

/* Take the programs that were loaded for a change that was begun. @return whether there were */
bool context_take_loaded(const struct netobs *ctx, uint16_t netns,
			 enum link_kind link, struct programs *ret_programs);

/* Apply the change that was begun, if it is prepared and no drain is under way. */
void context_go_on_changing(struct netobs *ctx);

/* Free the change that was begun; waits while programs are loaded for it. */
void context_abandon_change(struct netobs *ctx);

/* Apply a new length to the interval that is under way. */
void context_set_interval(struct netobs *ctx, const struct netobs_opts *opts);

/* Drop pointers to the caller's strings, which it may free now. */
void context_forget_callers(struct netobs_opts *opts);

/*
 * The process of a socket at an end of a connection, in the namespace of the interface that it was
 * seen at, or in that behind it; false: it is not known.
 */
bool context_find_process(const struct netobs *ctx, const struct flow_key *at,
			  bool is_source, int64_t now_ns,
			  struct netobs_process *ret_process);

/* ---- Rules (context_alerts.c, context_alert_records.c) ------------------------------------- */

/* Call after the pipeline is open, if there may be rules. @return 0, or -errno, which is logged */
int context_open_alerts(struct netobs *ctx);

/* Deliver alerts that are there: for some milliseconds, or all once the context has stopped. */
void context_read_alerts(struct netobs *ctx);

/* Deliver an alert that a program has reported, or let it wait for the end of a drain. @arg: the context */
void context_on_alert(void *arg, const struct alert_event *event);

/* Deliver alerts that wait, during a drain without ids. */
void context_release_alerts(struct netobs *ctx);

void context_close_alerts(struct netobs *ctx);

/* Replaces on_record of the pipeline if there may be rules about flows. @user: the context */
void context_on_flow(const struct netobs_record *passed, void *user);

/* ---- Mappings (context_mappings.c) --------------------------------------------------------- */

/* Call after the pipeline is open. @return 0, or -errno */
int context_open_mappings(struct netobs *ctx);

/* Namespaces are known: begin to ask the kernel. */
void context_start_mappings(struct netobs *ctx);

void context_close_mappings(struct netobs *ctx);

/* ---- What outlives the process (netobs_opts.persist) ------------------------------- */

/* -EINVAL: too long a path; -ENOMEM */
int context_keep_persist(const struct netobs_opts *opts, char **ret_path);

/*
 * Find what an earlier process has left. Where nothing can be pinned, this is logged, and the
 * context goes on without.
 *
 * @return 0; -EBUSY: another process uses it; -ENOMEM
 */
int context_open_pinned(struct netobs *ctx);

/* The slots of the context's rules, before the first programs are loaded. @return 0, or -errno */
int context_adopt_slots(struct netobs *ctx);
void context_note_slots(struct netobs *ctx, const struct filter *filter);

/* Programs are attached: note the namespaces and interfaces from now on. */
void context_list_pinned(struct netobs *ctx);

/* Detach, unless programs of an earlier process are attached, which go on. */
void context_undo_start(struct netobs *ctx);

/* @return whether pinned programs will count without the context */
bool context_leaves(const struct netobs *ctx);

/* Note what interfaces are called that flows left behind may have passed. */
void context_leave(struct netobs *ctx);

/* @return the rate at which packets are sampled if no rule says otherwise */
struct rate context_rate(const struct netobs_opts *opts);

/* The options of the context's parts, from those of the context. */
void context_set_times(const struct netobs_opts *opts,
		       struct merge_options *merge);
struct pipeline_options context_pipeline_options(struct netobs *ctx);

/* Open the pipeline and its features. */
int context_open_pipeline(struct netobs *ctx,
			  const struct pipeline_options *options,
			  const struct host *host);

#endif
