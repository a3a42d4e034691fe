// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "container_names.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/util.h"
#include "base/worker.h"
#include "container_lookup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

enum {
	START_MS = 500, /* for which the first containers are waited for */
	PAUSE_MS = 20,	/* between pieces of work, at least */
	/* A search that failed is repeated after 20 ms, then twice as much each time. */
	RETRY_MIN_MS = 20,
	RETRY_MAX_MS = 300000,
	/* So often without being asked for: 40 s. */
	RETRIES = 11,
	REFRESH_MS = 60000,
};

struct named_container {
	struct named_container *next;
	char id[CONTAINER_ID_SIZE];
	bool is_found;
	bool is_wanted; /* asked for since it was last read */
	uint32_t retries;
	int64_t due_ns; /* when it may be read again */
	int64_t used_ns;
	struct container_facts facts;
};

static loop_fn on_names_read, on_directory, on_names_due;

/* ---- The table ---------------------------------------------------------------------------- */

static struct named_container **bucket_of(const struct container_names *names,
					  const char *id)
{
	return &names->buckets[hash_bytes(id, sizeof(names->secret), names->secret) %
			       CONTAINER_NAMES_BUCKETS];
}

static struct named_container *find_named(const struct container_names *names,
					  const char *id)
{
	struct named_container *one = *bucket_of(names, id);

	while (one && strcmp(one->id, id) != 0)
		one = one->next;
	return one;
}

#define for_each_named(names, one)                                             \
	for (size_t bucket_ = 0; bucket_ < CONTAINER_NAMES_BUCKETS; bucket_++) \
		for (struct named_container *one = (names)->buckets[bucket_];  \
		     one; one = one->next)

static void remove_named(struct container_names *names,
			 struct named_container *gone)
{
	struct named_container **at = bucket_of(names, gone->id);

	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	free(gone);
	names->count--;
}

static void remove_oldest(struct container_names *names)
{
	struct named_container *oldest = NULL;

	for_each_named(names, one) if (!oldest || one->used_ns < oldest->used_ns)
		oldest = one;
	remove_named(names, oldest);
}

/* NULL without memory. */
static struct named_container *add_named(struct container_names *names,
					 const char *id)
{
	struct named_container **bucket, *one;

	if (names->count == CONTAINER_NAMES_MAX)
		remove_oldest(names);
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	snprintf(one->id, sizeof(one->id), "%s", id);
	one->used_ns = clock_boot_ns();
	bucket = bucket_of(names, id);
	one->next = *bucket;
	*bucket = one;
	names->count++;
	return one;
}

/* ---- Reading ------------------------------------------------------------------------------ */

/* Those found are read again if they are in use; others, for a while, also if they are not. */
static bool is_to_be_read(const struct named_container *one)
{
	return one->is_wanted || (!one->is_found && one->retries < RETRIES);
}

static void add_known(const struct container_names *names,
		      struct container_lookup *lookup)
{
	lookup->known = calloc(names->count ?: 1, sizeof(*lookup->known));
	if (!lookup->known)
		return;
	for_each_named(names, one) memcpy(lookup->known[lookup->n_known++],
					  one->id, sizeof(one->id));
}

/* With a full table, only those asked for are looked for. NULL: no memory */
static struct container_lookup *make_lookup(struct container_names *names,
					    int64_t now_ns)
{
	struct container_lookup *lookup = container_lookup_new(
		names->root, names->inotify_fd, CONTAINER_NAMES_MAX);

	if (!lookup)
		return NULL;
	for_each_named(names, one) if (is_to_be_read(one) && one->due_ns <= now_ns)
		container_lookup_add(lookup, one->id);
	lookup->lists = names->is_list_due;
	if (lookup->lists)
		add_known(names, lookup);
	return lookup;
}

/* @return when there is work; 0: none that is known */
static int64_t next_due_ns(const struct container_names *names)
{
	int64_t due_ns = names->is_list_due ? 1 : 0;

	for_each_named(names, one) if (is_to_be_read(one) &&
				       (!due_ns || one->due_ns < due_ns))
		due_ns = max_i64(one->due_ns, 1);
	return due_ns;
}

static void arm_timer(struct container_names *names, int64_t due_ns)
{
	names->armed_ns =
		due_ns ? max_i64(due_ns,
				 names->worked_ns + PAUSE_MS * NSEC_PER_MSEC) :
			 0;
	loop_set_timer(names->timer, names->armed_ns);
}

/* There is work, from @due_ns on. */
static void want_work(struct container_names *names, int64_t due_ns)
{
	if (!worker_is_busy(names->worker) &&
	    (!names->armed_ns || due_ns < names->armed_ns))
		arm_timer(names, due_ns);
}

static void start_lookup(struct container_names *names)
{
	const int64_t now_ns = clock_boot_ns();
	struct container_lookup *lookup = make_lookup(names, now_ns);

	names->worked_ns = now_ns;
	if (!lookup || worker_start(names->worker, lookup)) {
		container_lookup_free(lookup);
		arm_timer(names, now_ns + NSEC_PER_SEC);
		return;
	}
	names->is_list_due = false;
}

static int64_t retry_ns(uint32_t retries)
{
	return (int64_t)min_u64((uint64_t)RETRY_MIN_MS << min_u64(retries, 24),
				RETRY_MAX_MS) *
	       NSEC_PER_MSEC;
}

static void take_query(struct container_names *names,
		       const struct container_query *query, int64_t now_ns)
{
	struct named_container *one = find_named(names, query->id);

	if (!one && query->is_listed && names->count < CONTAINER_NAMES_MAX)
		one = add_named(names, query->id);
	if (!one)
		return;
	one->is_wanted = false;
	if (query->is_found) {
		one->facts = query->facts;
		one->is_found = true;
	}
	/* One that is gone has what it had. */
	one->due_ns = now_ns + (one->is_found ? REFRESH_MS * NSEC_PER_MSEC :
						retry_ns(one->retries));
	one->retries++;
}

static void complain_once(struct container_names *names,
			  const struct container_lookup *lookup)
{
	if (!lookup->error || names->has_complained)
		return;
	names->has_complained = true;
	log_warning(names->log, "names of containers: cannot read %s: %s%s",
		    lookup->path, strerror(-lookup->error),
		    lookup->error == -EACCES ? " (it takes CAP_DAC_READ_SEARCH)" :
					       "");
}

static void take_lookup(struct container_names *names)
{
	struct container_lookup *lookup = worker_take(names->worker);
	const int64_t now_ns = clock_boot_ns();

	if (!lookup)
		return;
	for (uint32_t i = 0; i < lookup->n; i++)
		take_query(names, &lookup->queries[i], now_ns);
	complain_once(names, lookup);
	container_lookup_free(lookup);
	arm_timer(names, next_due_ns(names));
}

/* ---- The loop ----------------------------------------------------------------------------- */

static int on_names_read(void *ctx, int fd)
{
	(void)fd;
	take_lookup(ctx);
	return 0;
}

static int on_names_due(void *ctx, int fd)
{
	struct container_names *names = ctx;

	(void)fd;
	names->armed_ns = 0;
	if (!worker_is_busy(names->worker))
		start_lookup(names);
	return 0;
}

/* Which container has come is not read: the next list has it. */
static int on_directory(void *ctx, int fd)
{
	struct container_names *names = ctx;
	char events[4096];

	while (read(fd, events, sizeof(events)) > 0)
		;
	names->is_list_due = true;
	want_work(names, clock_boot_ns());
	return 0;
}

static int watch_names(struct container_names *names, struct loop *loop)
{
	int err = loop_add_timer(loop, CLOCK_BOOTTIME, on_names_due, names,
				 &names->timer);

	if (!err)
		err = loop_watch(loop, worker_fd(names->worker), EPOLLIN,
				 on_names_read, names);
	if (!err && names->inotify_fd >= 0)
		err = loop_watch(loop, names->inotify_fd, EPOLLIN, on_directory,
				 names);
	return err;
}

int container_names_open(struct container_names *names, const char *root,
			 struct loop *loop, const struct log *log)
{
	int err;

	*names = (struct container_names){
		.log = log,
		.root = strdup(root ?: "/"),
		.inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
		.is_list_due = true,
		.buckets =
			calloc(CONTAINER_NAMES_BUCKETS, sizeof(*names->buckets)),
	};
	secret_fill(names->secret, sizeof(names->secret));
	err = names->root && names->buckets ?
		      worker_new(container_lookup_run, container_lookup_free,
				 &names->worker) :
		      -ENOMEM;
	err = err ?: watch_names(names, loop);
	if (err) {
		container_names_close(names);
		return err;
	}
	start_lookup(names);
	worker_wait(names->worker, START_MS);
	take_lookup(names);
	return 0;
}

void container_names_close(struct container_names *names)
{
	if (!names->log)
		return;
	worker_free(names->worker);
	close_fd(&names->inotify_fd);
	for (size_t i = 0; names->buckets && i < CONTAINER_NAMES_BUCKETS; i++)
		while (names->buckets[i])
			remove_named(names, names->buckets[i]);
	free(names->buckets);
	free(names->root);
	*names = (struct container_names){ 0 };
}

/* ---- Questions ---------------------------------------------------------------------------- */

/* A container that no list has had is in a place that is new, such as that of another runtime. */
static struct named_container *add_asked(struct container_names *names,
					 const char *id)
{
	names->is_list_due = true;
	return add_named(names, id);
}

/* NULL: nothing is known of it. */
static const struct container_facts *find_facts(struct container_names *names,
						const char *id)
{
	const int64_t now_ns = clock_boot_ns();
	struct named_container *one = find_named(names, id) ?:
					      add_asked(names, id);

	if (!one)
		return NULL;
	one->used_ns = now_ns;
	if (!one->is_wanted && one->due_ns <= now_ns) {
		one->is_wanted = true;
		want_work(names, now_ns);
	}
	return one->is_found ? &one->facts : NULL;
}

void container_names_fill(struct container_names *names,
			  const struct cgroup_names *cgroup,
			  const struct container_texts *to)
{
	const struct container_facts *facts;

	if (!names || !names->log ||
	    strlen(cgroup->container_id) != CONTAINER_ID_SIZE - 1)
		return;
	facts = find_facts(names, cgroup->container_id);
	if (!facts)
		return;
	strcpy(to->name, facts->name);
	strcpy(to->image, facts->image);
	if (!container_facts_are_of_pod(facts, cgroup))
		return;
	if (*facts->pod_container)
		strcpy(to->name, facts->pod_container);
	strcpy(to->pod_name, facts->pod_name);
	strcpy(to->pod_namespace, facts->pod_namespace);
}
