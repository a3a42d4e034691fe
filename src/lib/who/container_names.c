// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "containers.h"

#include "base/clock.h"
#include "base/slots.h"
#include "base/util.h"
#include "base/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/queue.h>

enum {
	START_MS = 500, /* how long the start waits for the first containers */
	PAUSE_MS = 20, /* least time from the start of one lookup to that of the next, */
	PAUSES = 4, /* and after one, this many times its duration */
	/* A search that failed is repeated after 20 ms, then twice as much each time. */
	RETRY_MIN_MS = 20,
	RETRY_MAX_MS = 300000,
	/* Attempts for a container that is not asked for: 40 s. */
	RETRIES = 11,
	REFRESH_MS = 60000,
	/* Attempts after which a container that was asked for has no file: 1.3 s. */
	UNKNOWN_RETRIES = 6,
	LOGGED_MAX = 16, /* files that cannot be read */
	ID_KEY = CONTAINER_ID_SIZE - 1,
};

struct named_container {
	TAILQ_ENTRY(named_container) by_use;
	char id[CONTAINER_ID_SIZE];
	bool is_found;
	bool is_wanted;	  /* asked for since it was last read */
	bool is_unlisted; /* no directory is known that has it */
	uint32_t retries;
	int64_t due_ns; /* when it may be read again */
	struct container_facts facts;
};

TAILQ_HEAD(containers_by_use, named_container);

/*
 * A piece of work for a thread: list containers, and read the files of some. It owns all data that
 * it needs.
 */
struct container_lookup {
	char *root;
	int inotify_fd; /* watches the listed directories; -1: none */
	bool lists;
	uint32_t room; /* for containers of the list; others of it are left out */
	struct slots known; /* ID_KEY of containers that need not be listed */
	struct container_query *queries;
	uint32_t n, capacity;
	struct container_errors errors;
	char places[CONTAINER_PLACES_TEXT_MAX];
	int64_t took_ns;
};

struct container_names {
	uint32_t users;
	const struct log *log; /* NULL: closed */
	char *root;
	struct worker *worker;
	int inotify_fd; /* -1: not available */
	int timer;
	bool is_list_due;
	struct container_error logged[LOGGED_MAX];
	uint32_t n_logged;
	bool has_told_places;
	int64_t rested_ns;  /* when more work may begin, CLOCK_BOOTTIME */
	int64_t armed_ns;   /* when the timer expires; 0: never */
	struct slots table; /* pointers to containers, by ID_KEY of their IDs */
	struct containers_by_use by_use; /* last used first */
};

static loop_fn on_names_read, on_directory, on_names_due;

/* ---- The table ----------------------------------------------------------------------------- */

static void remove_oldest(struct container_names *names)
{
	struct named_container *gone =
		TAILQ_LAST(&names->by_use, containers_by_use);

	slots_remove(&names->table, gone->id);
	TAILQ_REMOVE(&names->by_use, gone, by_use);
	free(gone);
}

/* Add a container that is not in the table. @return NULL: no memory */
static struct named_container *add_container(struct container_names *names,
					     const char *id)
{
	struct named_container *one;

	if (names->table.n == CONTAINERS_MAX)
		remove_oldest(names);
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	snprintf(one->id, sizeof(one->id), "%s", id);
	if (!slots_set_pointer(&names->table, one->id, ID_KEY, one)) {
		free(one);
		return NULL;
	}
	TAILQ_INSERT_HEAD(&names->by_use, one, by_use);
	return one;
}

/* ---- What a thread does -------------------------------------------------------------------- */

static void free_lookup(void *arg)
{
	struct container_lookup *lookup = arg;

	if (!lookup)
		return;
	close_fd(&lookup->inotify_fd);
	free(lookup->root);
	slots_free(&lookup->known);
	free(lookup->queries);
	free(lookup);
}

/* NULL: no memory */
static struct container_lookup *new_lookup(const char *root, int inotify_fd,
					   uint32_t room)
{
	struct container_lookup *lookup = calloc(1, sizeof(*lookup));

	if (!lookup)
		return NULL;
	lookup->room = room;
	lookup->inotify_fd =
		inotify_fd < 0 ? -1 : fcntl(inotify_fd, F_DUPFD_CLOEXEC, 0);
	lookup->root = strdup(root);
	if (lookup->root)
		return lookup;
	free_lookup(lookup);
	return NULL;
}

static struct container_query *add_query(struct container_lookup *lookup,
					 const char *id)
{
	struct container_query *query;

	if (!array_reserve(&lookup->queries, lookup->n, &lookup->capacity,
			   sizeof(*lookup->queries), 16))
		return NULL;
	query = &lookup->queries[lookup->n++];
	*query = (struct container_query){ 0 };
	snprintf(query->id, sizeof(query->id), "%s", id);
	return query;
}

/* A container may have directories in two places of a storage: it is listed once. */
static void list_query(const char *id, void *ctx)
{
	struct container_lookup *lookup = ctx;
	const uint32_t n = lookup->known.n;
	struct container_query *query;

	if (!lookup->room)
		return;
	slots_get(&lookup->known, id, ID_KEY, ID_KEY);
	if (lookup->known.n == n)
		return;
	query = add_query(lookup, id);
	if (!query)
		return;
	query->is_listed = true;
	lookup->room--;
}

static void look_up(struct container_lookup *lookup, struct container_files *files)
{
	if (lookup->lists)
		container_places_list(files, lookup->inotify_fd, list_query,
				      lookup);
	if (lookup->n)
		qsort(lookup->queries, lookup->n, sizeof(*lookup->queries),
		      container_query_compare);
	container_places_find(files, lookup->queries, lookup->n);
}

static void run_lookup(void *arg)
{
	struct container_lookup *lookup = arg;
	const int64_t start_ns = clock_boot_ns();
	struct container_files files;
	const int err = container_files_open(lookup->root, &files);

	if (err) {
		container_errors_add(&lookup->errors, err, lookup->root);
		return;
	}
	look_up(lookup, &files);
	lookup->errors = files.errors;
	container_places_text(&files, lookup->places, sizeof(lookup->places));
	container_files_close(&files);
	lookup->took_ns = clock_boot_ns() - start_ns;
}

/* ---- Reading ------------------------------------------------------------------------------ */

/* Found containers are read again while in use; others for a while, even if they are not. */
static bool is_to_be_read(const struct named_container *one)
{
	return one->is_wanted || (!one->is_found && one->retries < RETRIES);
}

static void add_known(const struct container_names *names,
		      struct container_lookup *lookup)
{
	const struct named_container *one;

	TAILQ_FOREACH(one, &names->by_use, by_use)
		slots_get(&lookup->known, one->id, ID_KEY, ID_KEY);
}

/* Listed containers get only free places; those that were asked for may evict others. NULL: no memory */
static struct container_lookup *make_lookup(const struct container_names *names,
					    int64_t now_ns)
{
	const struct named_container *one;
	struct container_lookup *lookup = new_lookup(
		names->root, names->inotify_fd, CONTAINERS_MAX - names->table.n);

	if (!lookup)
		return NULL;
	TAILQ_FOREACH(one, &names->by_use, by_use)
		if (is_to_be_read(one) && one->due_ns <= now_ns)
			add_query(lookup, one->id);
	lookup->lists = names->is_list_due;
	if (lookup->lists)
		add_known(names, lookup);
	return lookup;
}

/* @return when the next work is due; 0: none is */
static int64_t next_due_ns(const struct container_names *names)
{
	int64_t due_ns = names->is_list_due ? 1 : 0;
	const struct named_container *one;

	TAILQ_FOREACH(one, &names->by_use, by_use)
		if (is_to_be_read(one) && (!due_ns || one->due_ns < due_ns))
			due_ns = max_i64(one->due_ns, 1);
	return due_ns;
}

static void arm_timer(struct container_names *names, int64_t due_ns)
{
	names->armed_ns = due_ns ? max_i64(due_ns, names->rested_ns) : 0;
	loop_set_timer(names->timer, names->armed_ns);
}

/* Arm the timer for work that is due at @due_ns. */
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

	names->rested_ns = now_ns + PAUSE_MS * NSEC_PER_MSEC;
	if (!lookup || worker_start(names->worker, lookup)) {
		free_lookup(lookup);
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

/* Log once where names are looked for, unless it is known why there are none. */
static void tell_places(struct container_names *names, const char *id,
			const char *places)
{
	if (names->has_told_places || names->n_logged)
		return;
	names->has_told_places = true;
	log_warning(names->log,
		    "names of containers: there is none of %.12s in %s", id,
		    places);
}

static void take_query(struct container_names *names,
		       const struct container_query *query, const char *places,
		       int64_t now_ns)
{
	struct named_container *one = slots_pointer(&names->table, query->id);

	if (!one && query->is_listed && names->table.n < CONTAINERS_MAX)
		one = add_container(names, query->id);
	if (!one)
		return;
	one->is_wanted = false;
	/* A container whose files are gone keeps its names. */
	if (query->is_found) {
		one->facts = query->facts;
		one->is_found = true;
	}
	if (!one->is_found && one->is_unlisted && one->retries == UNKNOWN_RETRIES)
		tell_places(names, one->id, places);
	one->due_ns = now_ns + (one->is_found ? REFRESH_MS * NSEC_PER_MSEC :
						retry_ns(one->retries));
	one->retries++;
}

static bool is_logged(const struct container_names *names,
		      const struct container_error *error)
{
	for (uint32_t i = 0; i < names->n_logged; i++)
		if (container_error_equal(&names->logged[i], error))
			return true;
	return false;
}

/* Log each cause once. */
static void log_errors(struct container_names *names,
		       const struct container_errors *errors)
{
	for (uint32_t i = 0; i < errors->n && names->n_logged < LOGGED_MAX; i++) {
		const struct container_error *error = &errors->list[i];

		if (is_logged(names, error))
			continue;
		names->logged[names->n_logged++] = *error;
		log_warning(names->log,
			    "names of containers: cannot read %s: %s%s%s",
			    error->path, strerror(-error->error),
			    error->error == -EACCES ?
				    " (it takes CAP_DAC_READ_SEARCH)" :
				    "",
			    names->n_logged == LOGGED_MAX ?
				    "; of other files, this is not logged" :
				    "");
	}
}

static void take_lookup(struct container_names *names)
{
	struct container_lookup *lookup = worker_take(names->worker);
	const int64_t now_ns = clock_boot_ns();

	if (!lookup)
		return;
	log_errors(names, &lookup->errors);
	for (uint32_t i = 0; i < lookup->n; i++)
		take_query(names, &lookup->queries[i], lookup->places, now_ns);
	names->rested_ns =
		max_i64(names->rested_ns, now_ns + PAUSES * lookup->took_ns);
	free_lookup(lookup);
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

/* @return whether a directory may have been created, or a watched one is gone */
static bool is_about_directories(const char *events, size_t len)
{
	const uint32_t bits = IN_ISDIR | IN_DELETE_SELF | IN_MOVE_SELF |
			      IN_Q_OVERFLOW;
	struct inotify_event event;

	for (size_t i = 0; i + sizeof(event) <= len;
	     i += sizeof(event) + event.len) {
		memcpy(&event, events + i, sizeof(event));
		if (event.mask & bits)
			return true;
	}
	return false;
}

/* The event's container is not read: the next list has it. */
static int on_directory(void *ctx, int fd)
{
	struct container_names *names = ctx;
	char events[4096];
	bool is_due = false;
	ssize_t len;

	while ((len = read(fd, events, sizeof(events))) > 0)
		is_due |= is_about_directories(events, (size_t)len);
	if (!is_due)
		return 0;
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

static int start_names(struct container_names *names, const char *root,
		       struct loop *loop)
{
	int err;

	names->root = strdup(root ?: "/");
	if (!names->root)
		return -ENOMEM;
	err = worker_new(run_lookup, free_lookup, &names->worker);
	err = err ?: watch_names(names, loop);
	if (err)
		return err;
	start_lookup(names);
	worker_wait(names->worker, START_MS);
	take_lookup(names);
	return 0;
}

int container_names_open(const char *root, struct loop *loop,
			 const struct log *log,
			 struct container_names **ret_names)
{
	struct container_names *names = calloc(1, sizeof(*names));
	int err;

	if (!names)
		return -ENOMEM;
	names->users = 1;
	names->log = log;
	names->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	names->is_list_due = true;
	TAILQ_INIT(&names->by_use);
	err = start_names(names, root, loop);
	if (err)
		container_names_close(names);
	else
		*ret_names = names;
	return err;
}

void container_names_close(struct container_names *names)
{
	if (!names)
		return;
	worker_free(TAKE_PTR(names->worker));
	close_fd(&names->inotify_fd);
	names->log = NULL;
	container_names_leave(names);
}

struct container_names *container_names_share(struct container_names *names)
{
	if (names)
		names->users++;
	return names;
}

void container_names_leave(struct container_names *names)
{
	if (!names || --names->users)
		return;
	while (names->table.n)
		remove_oldest(names);
	slots_free(&names->table);
	free(names->root);
	free(names);
}

uint32_t container_names_count(const struct container_names *names)
{
	return names->table.n;
}

/* ---- Questions ---------------------------------------------------------------------------- */

/* A container that no list had is in a new place, such as that of another runtime: list again. */
static struct named_container *add_asked(struct container_names *names,
					 const char *id)
{
	struct named_container *one = add_container(names, id);

	names->is_list_due = true;
	if (one)
		one->is_unlisted = true;
	return one;
}

/* NULL: the container's names are not known. */
static const struct container_facts *find_facts(struct container_names *names,
						const char *id)
{
	const int64_t now_ns = clock_boot_ns();
	struct named_container *one = slots_pointer(&names->table, id);

	if (!one && names->log)
		one = add_asked(names, id);
	if (!one)
		return NULL;
	TAILQ_REMOVE(&names->by_use, one, by_use);
	TAILQ_INSERT_HEAD(&names->by_use, one, by_use);
	if (names->log && !one->is_wanted && one->due_ns <= now_ns) {
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

	if (!names || strlen(cgroup->container_id) != CONTAINER_ID_SIZE - 1)
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
