// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "hooks.h"

#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- Programs and jobs ---------------------------------------------------------- */

/* Pointers to others become invalid. */
static int ensure_netns(struct observation *observation, uint16_t index)
{
	const uint32_t to = observation->host->n_netns;
	const size_t size = sizeof(*observation->netns);
	uint32_t n = observation->n_netns;

	if (index < n)
		return 0;
	if (observation->next && !array_extend(&observation->next, &n, to, size))
		return -ENOMEM;
	return array_extend(&observation->netns, &observation->n_netns, to, size) ?
		       0 :
		       -ENOMEM;
}

/* Without its sign, others may take the program for one that hides packets. NULL: no memory */
static struct shared_fd *share_program(int fd)
{
	const int sign = program_sign_open(fd);
	struct shared_fd *shared = shared_fd_new(fd);

	if (shared)
		shared_fd_put_beside(shared, sign < 0 ? -1 : sign);
	else if (sign >= 0)
		close(sign);
	return shared;
}

static bool has_all_programs(const struct observation *observation,
			     struct shared_fd *const shared[2])
{
	const bool *directions = observation->attach.directions;

	return (!directions[INGRESS] || shared[INGRESS]) &&
	       (!directions[EGRESS] || shared[EGRESS]);
}

static int load_link_programs(const struct observation *observation,
			      uint16_t index, enum link_kind link, bool is_next,
			      struct shared_fd *shared[2])
{
	const struct program_source *source = &observation->source;
	struct programs programs;
	int err = source->load(source->ctx, index, link, is_next, &programs);

	if (err)
		return err;
	for (int d = INGRESS; d <= EGRESS; d++) {
		shared_fd_unref(shared[d]);
		shared[d] = programs.fds[d] < 0 ? NULL :
						  share_program(programs.fds[d]);
	}
	return has_all_programs(observation, shared) ? 0 : -ENOMEM;
}

int hooks_ensure_programs(struct observation *observation, uint16_t index,
			  enum link_kind link, bool is_next)
{
	struct shared_fd **shared;
	int err = ensure_netns(observation, index);

	if (err)
		return err;
	shared = (is_next ? observation->next : observation->netns)[index]
			 .programs[link];
	if (has_all_programs(observation, shared))
		return 0;
	return load_link_programs(observation, index, link, is_next, shared);
}

int hooks_for_each_next(const struct observation *observation,
			const struct selection *selection, hooks_next_fn *fn,
			void *ctx)
{
	struct netns *netns;

	host_for_each_netif(observation->host, netns, netif) {
		const struct selected *selected =
			hooks_are_on(netif) ?
				selection_find(selection, netns->name) :
				NULL;
		int err, link = netif_link_kind(netif);

		if (link < 0 || !selected ||
		    !selection_has(selection, selected, netif->name,
				   netif->altnames))
			continue;
		err = fn(ctx, netns->index, link);
		if (err)
			return err;
	}
	return 0;
}

static int ensure_next(void *observation, uint16_t netns, enum link_kind link)
{
	return hooks_ensure_programs(observation, netns, link, true);
}

int hooks_load_next(struct observation *observation,
		    const struct selection *selection)
{
	return hooks_for_each_next(observation, selection, ensure_next,
				   observation);
}

/* The programs of this kind of links; NULL: it has none. */
static struct shared_fd *const *
find_programs(const struct observation *observation, const struct netns *netns,
	      const struct netif *netif)
{
	int link = netif_link_kind(netif);

	return link < 0 ? NULL : observation->netns[netns->index].programs[link];
}

static bool has_programs(const struct hook_job *job,
			 struct shared_fd *const programs[2])
{
	return programs && job->programs[INGRESS] == programs[INGRESS] &&
	       job->programs[EGRESS] == programs[EGRESS];
}

static void add_job(struct observation *observation, struct hook_job *job)
{
	observation->netns[job->netns].n_jobs++;
	if (!job->pins)
		job->pins = shared_fd_ref(observation->pins);
	attacher_add(&observation->attacher, job);
}

/* A job that takes @attachment over, and undoes it. NULL: no memory. */
static struct hook_job *detach_job_new(const struct netns *netns,
				       const struct netif *netif,
				       struct shared_fd *ns)
{
	struct hook_job *job = hook_job_new(HOOK_DETACH, netif->ifindex, ns);

	if (!job)
		return NULL;
	job->netns = netns->index;
	job->attachment = netif->hooks->attachment;
	netif->hooks->attachment = ATTACHMENT_NONE;
	return job;
}

void hooks_count_runs(const struct netns_programs *netns,
		      struct program_runs *runs)
{
	for (int i = 0; i < LINK_KINDS * 2; i++) {
		const struct shared_fd *program = netns->programs[i / 2][i % 2];
		struct bpf_prog_info info = { 0 };
		uint32_t size = sizeof(info);

		if (!program ||
		    bpf_obj_get_info_by_fd(shared_fd_get(program), &info, &size))
			continue;
		runs->programs++;
		runs->runs += info.run_cnt;
		runs->ns += info.run_time_ns;
	}
}

struct program_runs hooks_all_runs(const struct observation *observation)
{
	struct program_runs runs = observation->replaced;

	runs.programs = 0;
	for (uint32_t i = 0; i < observation->n_netns; i++)
		hooks_count_runs(&observation->netns[i], &runs);
	return runs;
}

void hooks_answer_signs(const struct observation *observation)
{
	for (uint32_t n = 0; n < observation->n_netns; n++)
		for (int i = 0; i < LINK_KINDS; i++)
			for (int d = INGRESS; d <= EGRESS; d++)
				program_sign_answer(shared_fd_beside(
					observation->netns[n].programs[i][d]));
}

void hooks_programs_done(struct netns_programs *netns)
{
	for (int i = 0; i < LINK_KINDS; i++)
		for (int d = INGRESS; d <= EGRESS; d++)
			shared_fd_unref(netns->programs[i][d]);
}

/* ---- One interface ---------------------------------------------------------------- */

bool hooks_are_wanted(const struct observation *observation,
		      const struct netns *netns, const struct netif *netif)
{
	const struct selection *selection = &observation->selection;
	const struct selected *selected = selection_find(selection, netns->name);

	return !observation->leave_ns && !netns->is_retired && selected &&
	       selection_has(selection, selected, netif->name, netif->altnames);
}

bool hooks_are_on(const struct netif *netif)
{
	return netif->hooks && (netif->hooks->job || netif->hooks->is_attached);
}

/* NULL without memory. */
static struct hooks *ensure_hooks(struct observation *observation,
				  struct netif *netif)
{
	if (netif->hooks)
		return netif->hooks;
	netif->hooks = calloc(1, sizeof(*netif->hooks));
	if (!netif->hooks)
		return NULL;
	netif->hooks->incarnation = ++observation->incarnations;
	netif->hooks->attachment = ATTACHMENT_NONE;
	return netif->hooks;
}

/* A job has taken the attachment over, or nothing is attached. */
static void drop_hooks(struct observation *observation, struct netif *netif)
{
	observation->n_attached -= netif->hooks->is_attached;
	attachment_drop(&netif->hooks->attachment);
	free(TAKE_PTR(netif->hooks));
}

/* @return bits 1 << enum direction */
static uint8_t observed_directions(const struct observation *observation)
{
	const bool *directions = observation->attach.directions;

	return directions[INGRESS] << INGRESS | directions[EGRESS] << EGRESS;
}

/* Messages about an interface come often: once is enough. */
static void refuse_netif(const struct observation *observation,
			 const struct netif *netif, const char *why)
{
	struct hooks *hooks = netif->hooks;

	if (!hooks->is_refused || hooks->hardware != netif->hardware)
		log_warning(observation->log, "%s: link type %u %s, not observed",
			    netif->name, netif->hardware, why);
	hooks->is_refused = true;
	hooks->hardware = netif->hardware;
}

int hooks_put_on(struct observation *observation, const struct netns *netns,
		 struct netif *netif)
{
	struct hooks *hooks = ensure_hooks(observation, netif);
	int link = netif_link_kind(netif), err;
	struct hook_job *job;

	if (!hooks)
		return -ENOMEM;
	if (link < 0) {
		refuse_netif(observation, netif, "is not supported");
		return link;
	}
	if (hooks->is_refused && hooks->hardware == netif->hardware)
		return -EINVAL;
	err = hooks_ensure_programs(observation, netns->index, link, false);
	if (err == -EINVAL)
		refuse_netif(observation, netif, "has no programs");
	if (err)
		return err;
	job = hook_job_new(HOOK_ATTACH, netif->ifindex, netns->ns);
	if (!job)
		return -ENOMEM;
	job->netns = netns->index;
	job->incarnation = hooks->incarnation;
	for (int d = INGRESS; d <= EGRESS; d++)
		job->programs[d] = shared_fd_ref(
			observation->netns[netns->index].programs[link][d]);
	job->attachment = hooks->attachment;
	hooks->attachment = ATTACHMENT_NONE;
	hooks->job = job;
	netif->observed = observed_directions(observation);
	add_job(observation, job);
	return 0;
}

/* A job left in the queue would attach the programs twice if they are wanted again. */
static void cancel_job(struct observation *observation, struct hooks *hooks)
{
	struct hook_job *job = TAKE_PTR(hooks->job);

	if (!job || !attacher_cancel(&observation->attacher, job))
		return;
	observation->netns[job->netns].n_jobs--;
	hooks->attachment = job->attachment;
	job->attachment = ATTACHMENT_NONE;
	hook_job_free(job);
}

void hooks_take_off(struct observation *observation, const struct netns *netns,
		    struct netif *netif)
{
	struct hook_job *job = NULL;

	if (!netif->hooks)
		return;
	cancel_job(observation, netif->hooks);
	if (is_attached(&netif->hooks->attachment))
		job = detach_job_new(netns, netif, netns->ns);
	if (job)
		add_job(observation, job);
	drop_hooks(observation, netif);
}

static void note_unattached(struct observation *observation,
			    struct netif *netif, int err)
{
	/* The interface disappeared between the message and the attaching. */
	int level = err == -ENODEV ? NETOBS_LOG_DEBUG : NETOBS_LOG_ERROR;

	log_write(observation->log, level, "%s: cannot attach: %s", netif->name,
		  strerror(-err));
	observation->attach_error = err;
	netif->observed = 0;
	observation->is_changed = true;
}

void hooks_replace(struct observation *observation, const struct netns *netns,
		   struct netif *netif)
{
	struct shared_fd *const *shared;
	struct programs programs;
	int err;

	/* While a job has the attachment, it is too early: see settle_programs(). */
	if (!netif->hooks || !is_attached(&netif->hooks->attachment))
		return;
	shared = find_programs(observation, netns, netif);
	if (!shared || !has_all_programs(observation, shared))
		return;
	for (int d = INGRESS; d <= EGRESS; d++)
		programs.fds[d] = shared_fd_get(shared[d]);
	err = attachment_replace(&netif->hooks->attachment, &programs);
	if (!err)
		return;
	log_error(observation->log, "%s: cannot replace the programs: %s",
		  netif->name, strerror(-err));
	hooks_take_off(observation, netns, netif);
	err = hooks_put_on(observation, netns, netif);
	if (err)
		note_unattached(observation, netif, err);
}

bool hooks_apply_selection(struct observation *observation,
			   const struct netns *netns, struct netif *netif)
{
	bool wanted = hooks_are_wanted(observation, netns, netif);
	int err;

	if (!wanted && !hooks_are_on(netif))
		netif->observed = 0; /* an earlier process may have observed it */
	if (wanted == hooks_are_on(netif))
		return false;
	if (wanted) {
		err = hooks_put_on(observation, netns, netif);
		if (!err)
			return true;
		observation->attach_error = err;
		netif->observed = 0;
		/* An earlier process may have attached programs. */
		if (netif->hooks && is_attached(&netif->hooks->attachment))
			hooks_take_off(observation, netns, netif);
		return false;
	}
	hooks_take_off(observation, netns, netif);
	netif->observed = 0;
	log_info(observation->log, "%s: no longer observed", netif->name);
	return true;
}

bool hooks_adopt(struct observation *observation, struct netif *netif,
		 enum direction direction, struct hook *hook)
{
	struct hooks *hooks = ensure_hooks(observation, netif);

	if (!hooks)
		return false;
	hooks->attachment.hooks[direction] = *hook;
	*hook = HOOK_NONE;
	return true;
}

void hooks_remove(struct observation *observation, const struct netns *netns,
		  const struct netif *netif, enum direction direction,
		  struct hook *hook)
{
	struct hook_job *job = NULL;

	if (!ensure_netns(observation, netns->index))
		job = hook_job_new(HOOK_DETACH, netif->ifindex, netns->ns);
	if (!job)
		return;
	job->netns = netns->index;
	job->attachment.hooks[direction] = *hook;
	*hook = HOOK_NONE;
	add_job(observation, job);
}

void hooks_drop_all(struct observation *observation)
{
	struct netns *netns;

	host_for_each_netif(observation->host, netns, netif)
		if (netif->hooks)
			drop_hooks(observation, netif);
}

void hooks_lose(struct observation *observation, const struct netns *netns,
		struct netif *netif)
{
	struct hook_job *job = NULL;
	bool was_attached;

	if (!netif->hooks)
		return;
	was_attached = netif->hooks->is_attached;
	cancel_job(observation, netif->hooks);
	link_pins_remove(observation->pins, netns->index, netif->ifindex,
			 &netif->hooks->attachment);
	/* The interface took its filters with it; links are left, and closing takes a while. */
	attachment_forget_filters(&netif->hooks->attachment);
	if (has_link(&netif->hooks->attachment))
		job = detach_job_new(netns, netif, NULL);
	if (job)
		add_job(observation, job);
	drop_hooks(observation, netif);
	if (was_attached)
		log_info(observation->log, "%s: gone", netif->name);
}

void hooks_look(struct observation *observation, const struct netns *netns,
		const struct netif *netif)
{
	struct shared_fd *const *programs =
		find_programs(observation, netns, netif);
	struct hook_job *job;

	if (!programs)
		return;
	job = hook_job_new(HOOK_LOOK, netif->ifindex, netns->ns);
	if (!job)
		return;
	job->netns = netns->index;
	job->incarnation = netif->hooks->incarnation;
	for (int d = INGRESS; d <= EGRESS; d++) {
		job->programs[d] = shared_fd_ref(programs[d]);
		job->priorities[d] =
			netif->hooks->attachment.hooks[d].filter.priority;
	}
	observation->n_looking++;
	add_job(observation, job);
}

/* ---- Jobs that are done ------------------------------------------------------------ */

static void note_shadows(const struct observation *observation,
			 const struct netif *netif, const struct hook_job *job)
{
	bool is_asked_for = observation->attach.order == NETOBS_ATTACH_LAST;
	int level = is_asked_for ? NETOBS_LOG_INFO : NETOBS_LOG_WARNING;
	struct netobs_shadow *shadows = netif->hooks->shadows;

	for (int d = INGRESS; d <= EGRESS; d++) {
		if (!observation->attach.directions[d] ||
		    shadow_is_same(&shadows[d], &job->shadows[d]))
			continue;
		shadows[d] = job->shadows[d];
		shadow_log(observation->log, level, netif->name, &shadows[d]);
	}
}

static void keep_attachment(struct observation *observation,
			    const struct netif *netif,
			    struct attachment *attachment)
{
	struct hooks *hooks = netif->hooks;

	hooks->attachment = *attachment;
	*attachment = ATTACHMENT_NONE;
	if (hooks->is_attached)
		return;
	hooks->is_attached = true;
	observation->n_attached++;
	log_info(observation->log, "%s: observing", netif->name);
}

/* Handle the result of a HOOK_ATTACH job. */
static void settle_attach(struct observation *observation, struct netif *netif,
			  struct hook_job *job)
{
	netif->hooks->job = NULL;
	if (job->pin_err)
		log_warning(observation->log,
			    "%s: cannot pin: %s; after this process, packets pass uncounted",
			    netif->name, strerror(-job->pin_err));
	if (!job->err) {
		keep_attachment(observation, netif, &job->attachment);
		return;
	}
	drop_hooks(observation, netif);
	note_unattached(observation, netif, job->err);
}

static struct netif *find_owner(const struct observation *observation,
				const struct hook_job *job)
{
	struct netns *netns = &observation->host->netns[job->netns];
	struct netif *netif = netifs_find(&netns->netifs, job->ifindex);

	return netif && netif->hooks &&
			       netif->hooks->incarnation == job->incarnation ?
		       netif :
		       NULL;
}

/* The job may have begun before other programs replaced those that it knows. */
static void settle_programs(struct observation *observation,
			    const struct netns *netns, struct netif *netif,
			    const struct hook_job *job)
{
	if (has_programs(job, find_programs(observation, netns, netif)))
		note_shadows(observation, netif, job);
	else
		hooks_replace(observation, netns, netif);
}

void hooks_on_job(void *ctx, struct hook_job *job)
{
	struct observation *observation = ctx;
	const struct netns *netns = &observation->host->netns[job->netns];
	struct netif *netif = NULL;

	observation->netns[job->netns].n_jobs--;
	if (job->work != HOOK_DETACH)
		netif = find_owner(observation, job);
	if (job->work == HOOK_LOOK)
		observation->n_looking--;
	if (netif && job->work == HOOK_ATTACH)
		settle_attach(observation, netif, job);
	if (netif && netif->hooks && !job->err)
		settle_programs(observation, netns, netif, job);
	if (!is_attached(&job->attachment)) {
		hook_job_free(job);
		return;
	}
	/* The interface disappeared or was deselected while the job ran: detach. */
	job->work = HOOK_DETACH;
	add_job(observation, job);
}
