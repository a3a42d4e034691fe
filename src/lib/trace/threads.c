// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Programs at switches of threads report the changes of watched ones to a ring; each thread has a list of its
 * last changes. Beside that, maps have who ran while a watched thread waited for a CPU.
 */
#include "threads.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/slots.h"
#include "base/util.h"
#include "bpf/sched.h"
#include "engine/control_group.h"
#include "engine/map.h"
#include "engine/program_set.h"
#include "sched.skel.h"
#include "thread_sums.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	REPORT_MS = 250, /* between records */
	IDLE_MS = 60000, /* a process is watched on */
	KEPT_MS = 10000, /* changes are kept */
	GONE_MS = 2000,	 /* those of a thread that has ended */
	OPEN_MS = 1000, /* a thread that is waiting has a record after this time */
	PROCESS_THREADS = 64,
	WAIT_PARTS = 100, /* a wait of less than this part of the time has no record */
};

struct thread {
	uint32_t tid; /* first: the key */
	uint32_t pid;
	int64_t begin_ns; /* watched since */
	int64_t gone_ns;  /* 0: it has not ended */
	struct thread_times times;
	int64_t report_ns;  /* its last record is of the time until then */
	uint32_t group;	    /* that was throttled last, by its inode; 0: none */
	uint32_t throttled; /* its counter then */
};

struct process {
	uint32_t pid; /* first: the key */
	int64_t seen_ns;
};

enum { POINTS = 4 };

struct threads {
	threads_fn *on_queue;
	void *ctx;
	const struct log *log;
	struct program_set set;
	struct attach_point points[POINTS];
	struct sched_control *control; /* mapped */
	struct ring_buffer *ring;
	int threads_fd, shares_fd, cpus_fd;
	bool is_attached, is_broken;
	int64_t read_ns;   /* all changes until then have been read */
	int64_t report_ns; /* of the last records */
	uint64_t lost;	   /* changes, so far */
	uint64_t room;	   /* of thread_times_add() */
	struct slots threads, processes;
	struct thread_shares shares;
};

/* ---- Programs ---------------------------------------------------------------------------- */

static const struct log silent;

/* The tracepoint has the state from Linux 5.18 on. */
static const char *const switches[] = { "netobs_sc_switch", "netobs_sc_swold" };

static int prepare_sched(struct bpf_object *object, void *ctx)
{
	struct bpf_map *cpus = bpf_object__find_map_by_name(object, "sched_cpus");

	(void)ctx;
	return cpus ? bpf_map__set_max_entries(
			      cpus, (uint32_t)libbpf_num_possible_cpus()) :
		      -ENOENT;
}

static int load_programs(struct threads *threads, const char *program,
			 const struct log *log)
{
	threads->points[0].program = program;
	threads->points[1].program = "netobs_sc_wake";
	threads->points[2].program = "netobs_sc_move";
	threads->points[3].program = "netobs_sc_fork";
	threads->set = (struct program_set){
		.name = "sched_bpf",
		.elf = sched_bpf__elf_bytes,
		.doing = "load BPF programs about threads",
		.log = log,
		.points_only = true,
		.points = threads->points,
		.n_points = POINTS,
		.is_idle = true,
		.prepare = prepare_sched,
	};
	return program_set_ref(&threads->set);
}

static struct thread *find_thread(const struct threads *threads, uint32_t tid)
{
	return slots_item(&threads->threads, &tid);
}

static struct process *find_process(const struct threads *threads, uint32_t pid)
{
	return slots_item(&threads->processes, &pid);
}

/* NULL: there are too many, or there is no memory. */
static struct thread *get_thread(struct threads *threads, uint32_t tid)
{
	if (threads->threads.n == SCHED_THREADS_MAX)
		return NULL;
	return slots_add(&threads->threads, &tid, sizeof(tid),
			 sizeof(struct thread));
}

/* The programs watch it already. @return whether user space does, too */
static bool add_made(struct threads *threads, const struct sched_change *change)
{
	struct thread *thread = NULL;

	if (find_process(threads, change->pid))
		thread = get_thread(threads, change->tid);
	if (!thread)
		return false;
	thread_times_clear(&thread->times, &threads->room);
	thread->pid = change->pid;
	thread->begin_ns = thread->report_ns = (int64_t)change->at_ns;
	thread->gone_ns = 0;
	thread_times_add(&thread->times, &threads->room, thread->begin_ns,
			 SCHED_WAIT);
	return true;
}

static int on_change(void *ctx, void *data, size_t size)
{
	const struct sched_change *change = data;
	const int64_t at_ns = (int64_t)change->at_ns;
	struct threads *threads = ctx;
	struct thread *thread = find_thread(threads, change->tid);

	(void)size;
	if (change->state == SCHED_MADE && !add_made(threads, change))
		bpf_map_delete_elem(threads->threads_fd, &change->tid);
	if (change->state == SCHED_MADE || !thread || at_ns < thread->begin_ns)
		return 0;
	if (!thread->times.n)
		thread_times_add(&thread->times, &threads->room,
				 thread->begin_ns, change->was);
	thread_times_add(&thread->times, &threads->room, at_ns, change->state);
	if (change->state == SCHED_GONE)
		thread->gone_ns = at_ns;
	return 0;
}

static int open_maps(struct threads *threads)
{
	const struct program_set *set = &threads->set;

	threads->control = program_set_mmap(set, "sched_control",
					    sizeof(*threads->control));
	threads->ring = ring_buffer__new(program_set_map_fd(set, "sched_changes"),
					 on_change, threads, NULL);
	if (!threads->control || !threads->ring)
		return -errno;
	threads->threads_fd = program_set_map_fd(set, "sched_threads");
	threads->shares_fd = program_set_map_fd(set, "sched_shares");
	threads->cpus_fd = program_set_map_fd(set, "sched_cpus");
	return 0;
}

int threads_open(struct threads **ret_threads, threads_fn *on_queue, void *ctx,
		 const struct log *log)
{
	struct threads *threads = calloc(1, sizeof(*threads));
	int err;

	if (!threads)
		return -ENOMEM;
	threads->on_queue = on_queue;
	threads->ctx = ctx;
	threads->log = log ?: &silent;
	err = load_programs(threads, switches[0], &silent);
	if (err)
		err = load_programs(threads, switches[1], threads->log);
	err = err ?: open_maps(threads);
	if (err)
		threads_close(threads);
	else
		*ret_threads = threads;
	return err;
}

/* Nobody waits at first: what the maps have is of the last time. */
static void attach(struct threads *threads, int64_t now_ns)
{
	static const struct sched_cpu none;

	for (uint32_t i = 0; i < (uint32_t)libbpf_num_possible_cpus(); i++)
		bpf_map_update_elem(threads->cpus_fd, &i, &none, BPF_ANY);
	threads->control->has_quota = false;
	threads->is_attached = !program_set_attach(&threads->set);
	threads->is_broken = !threads->is_attached;
	threads->report_ns = now_ns;
}

bool threads_are_attached(const struct threads *threads)
{
	return threads->is_attached;
}

/* ---- Changes ------------------------------------------------------------------------------ */

/* Nothing is known of the time before. What the thread does since, the programs know. */
static void begin_again(struct threads *threads, struct thread *thread)
{
	struct sched_thread now;
	enum sched_thread_state state;

	thread_times_clear(&thread->times, &threads->room);
	thread->begin_ns = clock_boot_ns();
	if (bpf_map_lookup_elem(threads->threads_fd, &thread->tid, &now))
		return;
	state = now.last & ((1 << SCHED_STATE_BITS) - 1);
	if (state != SCHED_UNKNOWN)
		thread_times_add(&thread->times, &threads->room,
				 thread->begin_ns, state);
}

/* The ring may have had no room for a change. */
static void read_changes(struct threads *threads)
{
	const int64_t now_ns = clock_boot_ns();
	uint64_t lost;

	ring_buffer__consume(threads->ring);
	lost = __atomic_load_n(&threads->control->lost, __ATOMIC_RELAXED);
	for (uint32_t i = 0; lost != threads->lost && i < threads->threads.n; i++)
		begin_again(threads, slots_at(&threads->threads, i));
	threads->lost = lost;
	threads->read_ns = now_ns;
}

bool threads_time(struct threads *threads, uint32_t tid, int64_t from_ns,
		  int64_t until_ns, uint64_t ret_ns[NETOBS_THREAD_STATES])
{
	const struct thread *thread;
	struct process *process;

	if (threads->is_attached && until_ns > threads->read_ns)
		read_changes(threads);
	thread = find_thread(threads, tid);
	if (!thread || until_ns > threads->read_ns)
		return false;
	process = find_process(threads, thread->pid);
	if (process)
		process->seen_ns = max_i64(process->seen_ns, until_ns);
	return thread_times_sum(&thread->times, from_ns, until_ns, ret_ns);
}

/* ---- Watched threads ----------------------------------------------------------------------- */

static void set_bit(__u64 *bits, uint32_t tid)
{
	__atomic_or_fetch(&bits[tid / 64 % (SCHED_BITS / 64)],
			  1ULL << (tid % 64), __ATOMIC_RELAXED);
}

/* proc_pid_stat(5): behind the command, which may have any characters. @return a letter; 0: it is gone */
static char read_state(uint32_t tid)
{
	char text[256], *end;

	io_read_proc(tid, "stat", text, sizeof(text));
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : '\0';
}

/*
 * Of a thread that has not changed since it is watched, its state now is that since then. Whether it runs or
 * waits, its next change tells.
 */
static void learn_state(struct threads *threads, struct thread *thread)
{
	const char state = read_state(thread->tid);
	struct sched_thread last;

	if (!state || strchr("XZ", state)) {
		thread->gone_ns = clock_boot_ns();
		return;
	}
	if (state == 'R' ||
	    bpf_map_lookup_elem(threads->threads_fd, &thread->tid, &last) ||
	    last.last != SCHED_UNKNOWN)
		return;
	thread_times_add(&thread->times, &threads->room, thread->begin_ns,
			 strchr("Tt", state) ? SCHED_STOP : SCHED_SLEEP);
}

static void watch_thread(struct threads *threads, uint32_t pid, uint32_t tid,
			 int64_t now_ns)
{
	const struct sched_thread unknown = { .last = SCHED_UNKNOWN };
	struct thread *thread;

	/* Another thread may have made it. */
	if (!find_thread(threads, tid))
		read_changes(threads);
	thread = get_thread(threads, tid);
	if (!thread)
		return;
	if (now_ns > thread->gone_ns) /* another one has the number */
		thread->gone_ns = 0;
	if (thread->pid)
		return;
	thread->pid = pid;
	thread->report_ns = now_ns;
	bpf_map_update_elem(threads->threads_fd, &tid, &unknown, BPF_ANY);
	set_bit(threads->control->bits, tid);
	thread->begin_ns = clock_boot_ns();
	learn_state(threads, thread);
}

static void watch_others(struct threads *threads, uint32_t pid, int64_t now_ns)
{
	const struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	for (int n = 0; dir && n < PROCESS_THREADS && (entry = readdir(dir));) {
		const uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (!tid)
			continue;
		watch_thread(threads, pid, tid, now_ns);
		n++;
	}
	if (dir)
		closedir(dir);
}

void threads_watch(struct threads *threads, uint32_t pid, uint32_t tid,
		   int64_t now_ns)
{
	struct process *process;
	bool is_new;

	if (!threads->is_attached && !threads->is_broken)
		attach(threads, now_ns);
	if (threads->is_broken || !pid)
		return;
	process = slots_add(&threads->processes, &pid, sizeof(pid),
			    sizeof(*process));
	if (!process)
		return;
	is_new = !process->seen_ns;
	process->seen_ns = now_ns;
	watch_thread(threads, pid, tid, now_ns);
	if (is_new)
		watch_others(threads, pid, now_ns);
}

static void forget_thread(struct threads *threads, struct thread *thread)
{
	const uint32_t tid = thread->tid;

	thread_times_clear(&thread->times, &threads->room);
	bpf_map_delete_elem(threads->threads_fd, &tid);
	slots_remove(&threads->threads, &tid);
}

/* Threads whose numbers have the same lower bits share one. */
static void set_bits(struct threads *threads)
{
	__u64 bits[SCHED_BITS / 64] = { 0 };

	for (uint32_t i = 0; i < threads->threads.n; i++) {
		const struct thread *thread = slots_at(&threads->threads, i);

		set_bit(bits, thread->tid);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(bits); i++)
		__atomic_store_n(&threads->control->bits[i], bits[i],
				 __ATOMIC_RELAXED);
}

/* Threads that have ended stay for some time: questions about them may follow. */
static bool is_over(const struct threads *threads, const struct thread *thread,
		    int64_t now_ns)
{
	return (thread->gone_ns &&
		now_ns - thread->gone_ns > GONE_MS * NSEC_PER_MSEC) ||
	       !find_process(threads, thread->pid);
}

static void forget_idle(struct threads *threads, int64_t now_ns)
{
	const uint32_t n = threads->threads.n;

	for (uint32_t i = threads->processes.n; i--;) {
		const struct process process =
			*(struct process *)slots_at(&threads->processes, i);

		if (now_ns - process.seen_ns > IDLE_MS * NSEC_PER_MSEC)
			slots_remove(&threads->processes, &process.pid);
	}
	for (uint32_t i = n; i--;) {
		struct thread *thread = slots_at(&threads->threads, i);

		if (is_over(threads, thread, now_ns))
			forget_thread(threads, thread);
		else
			thread_times_cut(&thread->times,
					 now_ns - KEPT_MS * NSEC_PER_MSEC);
	}
	if (threads->threads.n != n)
		set_bits(threads);
	if (threads->threads.n)
		return;
	program_set_detach_all(&threads->set);
	threads->is_attached = false;
}

/* ---- Records ------------------------------------------------------------------------------- */

/* @return how long it waited for a CPU, as far as that is known */
static uint64_t waited(const struct thread *thread, int64_t from_ns,
		       int64_t until_ns)
{
	uint64_t ns[NETOBS_THREAD_STATES];

	if (thread->gone_ns)
		until_ns = min_i64(until_ns, thread->gone_ns);
	from_ns = max_i64(from_ns, thread_times_begin(&thread->times));
	return thread_times_sum(&thread->times, from_ns, until_ns, ns) ?
		       ns[NETOBS_THREAD_WAIT] :
		       0;
}

/* Keep the first @level names of a path, and of these as many bytes at the end as have room. */
static void cut_path(char *path, uint32_t level, char *ret_path, size_t size)
{
	size_t len = 0;

	while (path[len] && (path[len] != '/' || level--))
		len++;
	path[len] = '\0';
	path += len < size ? 0 : len - (size - 1);
	snprintf(ret_path, size, "%s", path);
}

/* The line of version 2 is the last one. */
static void read_group(uint32_t tid, uint32_t level, char *ret_path, size_t size)
{
	static const struct cgroup_kind v1 = { .controller = "cpu" }, v2;
	char text[CGROUP_PATH_MAX], *rest = text, *line, *path;
	const char *controllers;

	io_read_proc(tid, "cgroup", text, sizeof(text));
	while ((line = strsep(&rest, "\n")))
		if (cgroup_parse_line(line, &controllers, &path) &&
		    (cgroup_kind_has(&v1, controllers) ||
		     cgroup_kind_has(&v2, controllers))) {
			cut_path(path, level, ret_path, size);
			return;
		}
}

/* If the thread waited mostly for its group's quota, those are named who have used that up. */
static void fill_shares(struct threads *threads, struct thread *thread,
			struct netobs_queue *queue)
{
	const struct sched_share none =
		thread_shares_fill(&threads->shares, thread->tid, queue);

	queue->throttled_ns = min_u64(none.ns, queue->waited_ns);
	if (!queue->throttled_ns)
		return;
	queue->throttled = none.group.inode == thread->group ?
				   none.group.times - thread->throttled :
				   1;
	thread->group = none.group.inode;
	thread->throttled = none.group.times;
	read_group(thread->tid, none.group.level, queue->cgroup,
		   sizeof(queue->cgroup));
	if (queue->throttled_ns < queue->waited_ns / 2)
		return;
	memset(queue->shares, 0, sizeof(queue->shares));
	queue->n_shares = 0;
	queue->amount = 0;
	thread_shares_fill(&threads->shares, thread->group | SCHED_IS_GROUP,
			   queue);
}

static void report_thread(struct threads *threads, struct thread *thread,
			  uint64_t waited_ns, int64_t now_ns)
{
	struct netobs_queue queue = {
		.record = { .sz = sizeof(queue),
			    .type = NETOBS_RECORD_QUEUE,
			    .time_ns = thread->report_ns },
		.end_ns = now_ns,
		.waited_ns = waited_ns,
		.tid = thread->tid,
		.pid = thread->pid,
		.kind = NETOBS_QUEUE_CPU,
	};

	io_read_proc(thread->pid, "comm", queue.command, sizeof(queue.command));
	fill_shares(threads, thread, &queue);
	threads->on_queue(&queue, threads->ctx);
}

/* Programs note the time of others at its end: so a wait that goes on is for a later record. */
static void take_thread(struct threads *threads, struct thread *thread,
			int64_t now_ns)
{
	const int64_t time_ns = now_ns - thread->report_ns;
	uint64_t waited_ns;

	if (thread_times_state(&thread->times) == SCHED_WAIT &&
	    time_ns < OPEN_MS * NSEC_PER_MSEC)
		return;
	waited_ns = waited(thread, thread->report_ns, now_ns);
	if (waited_ns > (uint64_t)time_ns / WAIT_PARTS && threads->on_queue)
		report_thread(threads, thread, waited_ns, now_ns);
	thread->report_ns = now_ns;
}

static void report_waits(struct threads *threads, int64_t now_ns)
{
	thread_shares_read(&threads->shares, threads->shares_fd, now_ns);
	for (uint32_t i = 0; i < threads->threads.n; i++)
		take_thread(threads, slots_at(&threads->threads, i), now_ns);
}

void threads_sweep(struct threads *threads, int64_t now_ns)
{
	if (!threads->is_attached)
		return;
	read_changes(threads);
	if (now_ns - threads->report_ns < REPORT_MS * NSEC_PER_MSEC)
		return;
	report_waits(threads, now_ns);
	threads->report_ns = now_ns;
	forget_idle(threads, now_ns);
}

void threads_close(struct threads *threads)
{
	if (!threads)
		return;
	while (threads->threads.n)
		forget_thread(threads, slots_at(&threads->threads, 0));
	thread_shares_free(&threads->shares);
	slots_free(&threads->threads);
	slots_free(&threads->processes);
	ring_buffer__free(threads->ring);
	map_munmap(threads->control, sizeof(*threads->control));
	program_set_unref(&threads->set);
	free(threads);
}
