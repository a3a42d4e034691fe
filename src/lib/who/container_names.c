// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "container_names.h"

#include "base/clock.h"
#include "base/util.h"
#include "base/worker.h"
#include "container_places.h"
#include "container_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

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
	LOGGED_MAX = 16, /* files that cannot be read */
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
	int64_t rested_ns; /* when more work may begin, CLOCK_BOOTTIME */
	int64_t armed_ns;  /* when the timer expires; 0: never */
	struct container_table table;
};

static loop_fn on_names_read, on_directory, on_names_due;

/* ---- Reading ------------------------------------------------------------------------------ */

/* Found containers are read again while in use; others for a while, even if they are not. */
static bool is_to_be_read(const struct named_container *one)
{
	return one->is_wanted || (!one->is_found && one->retries < RETRIES);
}

static void add_known(const struct container_names *names,
		      struct container_lookup *lookup)
{
	lookup->known = calloc(names->table.count ?: 1, sizeof(*lookup->known));
	if (!lookup->known)
		return;
	for (const struct named_container *one = names->table.newest; one;
	     one = one->older)
		memcpy(lookup->known[lookup->n_known++], one->id,
		       sizeof(one->id));
}

/* Listed containers get only free places; those that were asked for may evict others. NULL: no memory */
static struct container_lookup *make_lookup(const struct container_names *names,
					    int64_t now_ns)
{
	struct container_lookup *lookup =
		container_lookup_new(names->root, names->inotify_fd,
				     CONTAINER_TABLE_MAX - names->table.count);

	if (!lookup)
		return NULL;
	for (const struct named_container *one = names->table.newest; one;
	     one = one->older)
		if (is_to_be_read(one) && one->due_ns <= now_ns)
			container_lookup_add(lookup, one->id);
	lookup->lists = names->is_list_due;
	if (lookup->lists)
		add_known(names, lookup);
	return lookup;
}

/* @return when the next work is due; 0: none is */
static int64_t next_due_ns(const struct container_names *names)
{
	int64_t due_ns = names->is_list_due ? 1 : 0;

	for (const struct named_container *one = names->table.newest; one;
	     one = one->older)
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
	struct named_container *one =
		container_table_find(&names->table, query->id);

	if (!one && query->is_listed && names->table.count < CONTAINER_TABLE_MAX)
		one = container_table_add(&names->table, query->id);
	if (!one)
		return;
	one->is_wanted = false;
	/* A container whose files are gone keeps its names. */
	if (query->is_found) {
		one->facts = query->facts;
		one->is_found = true;
	}
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
	for (uint32_t i = 0; i < lookup->n; i++)
		take_query(names, &lookup->queries[i], now_ns);
	log_errors(names, &lookup->errors);
	names->rested_ns =
		max_i64(names->rested_ns, now_ns + PAUSES * lookup->took_ns);
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

/* Whether a directory may have been created, or a watched one is gone. */
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
	err = worker_new(container_lookup_run, container_lookup_free,
			 &names->worker);
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
	container_table_init(&names->table);
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
	container_table_clear(&names->table);
	free(names->root);
	free(names);
}

uint32_t container_names_count(const struct container_names *names)
{
	return names->table.count;
}

/* ---- Questions ---------------------------------------------------------------------------- */

/* A container that no list had is in a new place, such as that of another runtime: list again. */
static struct named_container *add_asked(struct container_names *names,
					 const char *id)
{
	names->is_list_due = true;
	return container_table_add(&names->table, id);
}

/* NULL: the container's names are not known. */
static const struct container_facts *find_facts(struct container_names *names,
						const char *id)
{
	const int64_t now_ns = clock_boot_ns();
	struct named_container *one = container_table_find(&names->table, id);

	if (!one && names->log)
		one = add_asked(names, id);
	if (!one)
		return NULL;
	container_table_use(&names->table, one);
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
