/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "hooks.h"

#include "base/clock.h"
#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

enum {
	/* Interfaces that take longer to attach to are attached to later. */
	START_WAIT_MS = 1500,
	DETACH_WAIT_MS = 2000,
	ATTACH_WAIT_MS = 8000, /* after that, for a thread that attaches */
	/* Between two searches for shadows, except after attaching. */
	LOOK_INTERVAL_MS = 5000,
	/* Longer than a packet takes from one point to the next. */
	SHIFT_MARGIN_MS = 250,
	/* The longest time that the library keeps a deleted namespace alive. */
	NAMES_CHECK_MS = 250,
};

static void on_observed_netif(void *ctx, struct netns *netns,
			      struct netif *netif, enum host_event event)
{
	struct observation *observation = ctx;

	/* Programs stay attached, for the next process. */
	if (observation->attacher.keeps && event != HOST_GONE)
		return;
	switch (event) {
	case HOST_CAME:
	case HOST_CHANGED:
		hooks_apply_selection(observation, netns, netif);
		break;
	case HOST_UNSURE:
		if (netif->hooks && netif->hooks->is_attached &&
		    !netif->hooks->job)
			hooks_put_on(observation, netns, netif);
		break;
	case HOST_GONE:
		hooks_lose(observation, netns, netif);
		break;
	}
}

static void follow_netns(struct observation *observation)
{
	const struct program_source *source = &observation->source;
	const struct host *host = observation->host;

	for (uint32_t i = 0; source->follow && i < observation->n_netns; i++) {
		const uint32_t inode = host->netns[i].inode;
		struct netns_programs *netns = &observation->netns[i];

		if (netns->inode == inode)
			continue;
		source->follow(source->ctx, (uint16_t)i, netns->inode, inode);
		netns->inode = inode;
	}
}

/* Publish the origins before attaching, so that no packet through one is missed. */
static void on_host_settled(void *ctx)
{
	struct observation *observation = ctx;
	struct origins *origins = observation->source.origins;
	struct netns *netns;

	if (origins) {
		origins_begin(origins);
		host_for_each_netif(observation->host, netns, netif)
			if (netif->is_origin)
				origins_put(origins, netns->index,
					    netif->ifindex);
		origins_end(origins);
	}
	follow_netns(observation);
	attacher_go(&observation->attacher);
}

/* Retire namespaces without selected interfaces, once no job is under way there. */
static void retire_unselected(struct observation *observation)
{
	struct host *host = observation->host;

	for (uint32_t i = 0; i < host->n_netns; i++) {
		const struct netns *netns = &host->netns[i];
		bool is_busy = i < observation->n_netns &&
			       observation->netns[i].n_jobs;

		if (!netns->is_retired && !is_busy &&
		    !selection_find(&observation->selection, netns->name))
			host_retire(host, i);
	}
}

static void collect_jobs(struct observation *observation)
{
	attacher_collect(&observation->attacher, hooks_on_job, observation);
	observation->shifted_ns = clock_boot_ns();
	retire_unselected(observation);
	if (observation->is_changed)
		host_settle(observation->host);
	observation->is_changed = false;
}

/* ---- The selection ------------------------------------------------------------------- */

/* @return whether programs will be attached or detached */
static bool apply_to_all(struct observation *observation)
{
	struct netns *netns;
	bool changes = false;

	host_for_each_netif(observation->host, netns, netif)
		if (!netif->gone_ns)
			changes |=
				hooks_apply_selection(observation, netns, netif);
	return changes;
}

static int apply_selection(struct observation *observation,
			   struct selection *selection, bool *ret_changes)
{
	int err;

	selection_done(&observation->selection);
	observation->selection = *selection;
	*selection = (struct selection){ 0 };
	*ret_changes = apply_to_all(observation);
	err = host_settle(observation->host);
	retire_unselected(observation);
	return err;
}

/* Entries that were counted earlier may belong to either selection: the flow decides. */
static void begin_shift(struct observation *observation)
{
	observation->host->is_shifting = true;
	observation->shifted_ns = clock_boot_ns();
}

static void drop_programs(const struct observation *observation,
			  struct netns_programs *programs)
{
	for (uint32_t i = 0; programs && i < observation->n_netns; i++)
		hooks_programs_done(&programs[i]);
	free(programs);
}

/* @return the previous programs, which stay attached until replace_attached() */
static struct netns_programs *take_next_netns(struct observation *observation)
{
	struct netns_programs *before = observation->netns;
	struct netns *netns;

	observation->netns = TAKE_PTR(observation->next);
	for (uint32_t i = 0; i < observation->n_netns; i++) {
		observation->netns[i].n_jobs = before[i].n_jobs;
		hooks_count_runs(&before[i], &observation->replaced);
	}
	host_for_each_netif(observation->host, netns, netif)
		if (netif->hooks) /* there may be programs for it now */
			netif->hooks->is_refused = false;
	return before;
}

static void replace_attached(struct observation *observation)
{
	struct netns *netns;

	host_for_each_netif(observation->host, netns, netif)
		hooks_replace(observation, netns, netif);
	attacher_go(&observation->attacher);
}

int observation_apply(struct observation *observation, struct selection *selection)
{
	struct netns_programs *before = NULL;
	bool changes;
	int err;

	if (observation->next)
		before = take_next_netns(observation);
	/* Interfaces that are not selected any more may have no next programs. */
	err = apply_selection(observation, selection, &changes);
	if (before)
		replace_attached(observation);
	if (changes)
		begin_shift(observation);
	drop_programs(observation, before);
	return err;
}

void observation_refuse(struct observation *observation)
{
	drop_programs(observation, TAKE_PTR(observation->next));
	retire_unselected(observation);
}

bool observation_is_settled(const struct observation *observation)
{
	return !attacher_is_busy(&observation->attacher);
}

void observation_end_shift(struct observation *observation, int64_t flip_ns)
{
	const int64_t margin_ns = SHIFT_MARGIN_MS * NSEC_PER_MSEC;

	if (observation->host->is_shifting &&
	    !attacher_is_busy(&observation->attacher) &&
	    observation->shifted_ns + margin_ns < flip_ns)
		observation->host->is_shifting = false;
}

/* ---- The loop ----------------------------------------------------------------------- */

static loop_fn on_hooks, on_names, on_links;

static int on_hooks(void *ctx, int fd)
{
	(void)fd;
	collect_jobs(ctx);
	return 0;
}

/* Repeated for new namespaces. A loop removes closed descriptors by itself. */
static int watch_netns(struct observation *observation)
{
	struct host *host = observation->host;
	int err = 0;

	for (uint32_t i = 0; !err && i < host->n_netns; i++) {
		struct netns *netns = &host->netns[i];

		if (netns->is_polled || netns->rtnl_fd < 0)
			continue;
		err = loop_watch(observation->loop, netns->rtnl_fd, EPOLLIN,
				 on_links, observation);
		netns->is_polled = !err;
	}
	return err;
}

static struct netns *find_netns(const struct host *host, int rtnl_fd)
{
	for (uint32_t i = 0; i < host->n_netns; i++)
		if (host->netns[i].rtnl_fd == rtnl_fd)
			return &host->netns[i];
	return NULL;
}

static int on_links(void *ctx, int fd)
{
	const struct observation *observation = ctx;
	struct netns *netns = find_netns(observation->host, fd);
	int err = netns ? host_update(observation->host, netns) : 0;

	if (err)
		log_error(observation->log, "following interfaces: %s",
			  strerror(-err));
	return err;
}

static int on_names(void *ctx, int fd)
{
	struct observation *observation = ctx;

	(void)fd;
	host_check_names(observation->host);
	return watch_netns(observation);
}

/* No event reports that a name means another namespace. */
static int watch_names(struct observation *observation)
{
	int err;

	if (observation->names_timer >= 0 || !host_has_names(observation->host))
		return 0;
	err = loop_add_timer(observation->loop, CLOCK_MONOTONIC, on_names,
			     observation, &observation->names_timer);
	if (!err)
		loop_repeat_timer(observation->names_timer, NAMES_CHECK_MS);
	return err;
}

int observation_watch(struct observation *observation, struct loop *loop)
{
	int err;

	observation->loop = loop;
	err = loop_watch(loop, attacher_fd(&observation->attacher), EPOLLIN,
			 on_hooks, observation);
	return err ?: watch_names(observation) ?: watch_netns(observation);
}

/* ---- Start and end ------------------------------------------------------------------ */

int observation_init(struct observation *observation, struct host *host,
		     const char *const *interfaces, const char *const *exclude)
{
	*observation = (struct observation){
		.log = host->log,
		.host = host,
		.listener = { on_observed_netif, on_host_settled, observation,
			      NULL },
		.names_timer = -1,
		.stop_fd = -1,
	};
	return selection_init(&observation->selection, interfaces, exclude,
			      host->log);
}

/* An interface that was asked for and cannot be observed is an error at start. */
static int check_attached(const struct observation *observation)
{
	const struct selection *selection = &observation->selection;
	struct netns *netns;

	host_for_each_netif(observation->host, netns, netif)
		if (hooks_are_wanted(observation, netns, netif) &&
		    !selection_find(selection, netns->name)->is_all &&
		    !netif->gone_ns && !hooks_are_on(netif))
			return observation->attach_error ?: -EOPNOTSUPP;
	return 0;
}

/* @return whether a job for an interface that was named is still under way */
static bool is_named_one_busy(const struct observation *observation)
{
	struct netns *netns;

	host_for_each_netif(observation->host, netns, netif) {
		const struct selected *selected =
			netif->hooks && netif->hooks->job ?
				selection_find(&observation->selection,
					       netns->name) :
				NULL;

		if (selected && selected_names(selected, netif))
			return true;
	}
	return false;
}

/* @return whether they are, as far as there was time; false: it is to stop */
static bool wait_attached(struct observation *observation)
{
	int64_t deadline = clock_boot_ns() + START_WAIT_MS * NSEC_PER_MSEC;
	struct pollfd fds[] = {
		{ .fd = attacher_fd(&observation->attacher), .events = POLLIN },
		{ .fd = observation->stop_fd, .events = POLLIN },
	};

	while (attacher_is_busy(&observation->attacher) &&
	       (clock_boot_ns() < deadline || is_named_one_busy(observation))) {
		poll(fds, ARRAY_SIZE(fds), 100);
		collect_jobs(observation);
		if (fds[1].revents)
			return false;
	}
	return true;
}

/* Warn if interfaces are attached to later, in the background. */
static void warn_of_delay(const struct observation *observation)
{
	const struct attacher *attacher = &observation->attacher;

	if (attacher_is_busy(attacher) && !attacher->can_expedite &&
	    observation->attach.use_tcx)
		log_warning(observation->log,
			    "more interfaces follow in the background: each takes 30 ms while grace periods "
			    "cannot be expedited (/sys/kernel/rcu_expedited)");
}

int observation_start(struct observation *observation,
		      const struct program_source *source,
		      const struct attach_options *attach_options,
		      struct shared_fd *pins)
{
	int err = attacher_init(&observation->attacher, attach_options);
	struct selection selection = observation->selection;
	bool changes; /* no packet was counted before them, unless there are pins */
	bool is_whole = true;

	observation->selection = (struct selection){ 0 };
	observation->source = *source;
	observation->attach = *attach_options;
	observation->pins = shared_fd_ref(pins);
	host_subscribe(observation->host, &observation->listener);
	err = err ?: observation_prepare(observation, &selection, false);
	if (!err)
		is_whole = adopt_links(observation, &selection);
	err = err ?: apply_selection(observation, &selection, &changes);
	selection_done(&selection);
	if (err)
		return err;
	if (!is_whole)
		begin_shift(observation);
	if (!wait_attached(observation))
		return 0;
	warn_of_delay(observation);
	err = check_attached(observation);
	if (err || observation->n_attached ||
	    attacher_is_busy(&observation->attacher))
		return err;
	if (!observation->attach_error)
		log_warning(observation->log, "no interface to observe yet");
	return observation->attach_error;
}

static void begin_leaving(struct observation *observation)
{
	if (!observation->leave_ns)
		observation->leave_ns =
			clock_boot_ns() + DETACH_WAIT_MS * NSEC_PER_MSEC;
}

void observation_leave(struct observation *observation)
{
	if (!observation->host)
		return;
	begin_leaving(observation);
	observation->attacher.keeps = true;
}

void observation_detach(struct observation *observation)
{
	struct netns *netns;

	begin_leaving(observation);
	host_for_each_netif(observation->host, netns, netif)
		hooks_take_off(observation, netns, netif);
	attacher_leave(&observation->attacher);
}

bool observation_is_detached(const struct observation *observation)
{
	const struct attacher *attacher = &observation->attacher;
	int64_t until_ns = observation->leave_ns;

	if (!attacher_is_busy(attacher))
		return true;
	if (!attacher->keeps && attacher_may_attach(attacher))
		until_ns += ATTACH_WAIT_MS * NSEC_PER_MSEC;
	return clock_boot_ns() >= until_ns;
}

void observation_done(struct observation *observation)
{
	if (!observation->host)
		return;
	if (observation->attacher.keeps)
		hooks_drop_all(observation);
	else
		observation_detach(observation);
	attacher_done(&observation->attacher, observation->leave_ns);
	drop_programs(observation, observation->netns);
	shared_fd_unref(observation->pins);
	selection_done(&observation->selection);
	*observation = (struct observation){ 0 };
}

/* ---- Shadows ------------------------------------------------------------------------ */

void observation_look(struct observation *observation)
{
	int64_t now = clock_boot_ns();
	struct netns *netns;

	if (observation->n_looking ||
	    now - observation->looked_ns < LOOK_INTERVAL_MS * NSEC_PER_MSEC)
		return;
	observation->looked_ns = now;
	hooks_answer_signs(observation);
	host_for_each_netif(observation->host, netns, netif)
		if (netif->hooks && is_attached(&netif->hooks->attachment))
			hooks_look(observation, netns, netif);
	attacher_go(&observation->attacher);
}

uint32_t observation_count_shadowed(const struct observation *observation)
{
	struct netns *netns;
	uint32_t n = 0;

	if (!observation->host) /* it failed to start */
		return 0;
	host_for_each_netif(observation->host, netns, netif) {
		const struct hooks *hooks = netif->hooks;

		n += hooks && hooks->shadows[INGRESS].kind;
		n += hooks && hooks->shadows[EGRESS].kind;
	}
	return n;
}
