// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What threads do, of processes that this test makes: beside the times that the kernel has of them in schedstat,
 * which are of other clocks. So a difference may be 2 %, and a tick.
 */
#include "lib_test.h"
#include "lib_wait.h"

#include "base/clock.h"
#include "engine/control_group.h"
#include "bpf/sched.h"
#include "trace/threads.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { QUEUES_MAX = 256, CPU_MS = 20, ROUNDS = 4, QUOTA_US = 10000 };

/* A process that does what it gets by a pipe, and sleeps until then. */
struct worker {
	pid_t pid;
	int commands, answers;
};

struct fixture {
	struct threads *threads;
	struct worker worker, rival;
	struct netobs_queue queues[QUEUES_MAX];
	uint32_t n;
	char group[2 * CGROUP_PATH_MAX]; /* its directory; "": none */
	char root[CGROUP_PATH_MAX]; /* that has got its controller from this test; "": none */
};

static void keep_queue(struct netobs_queue *queue, void *ctx)
{
	struct fixture *f = ctx;

	if (f->n < QUEUES_MAX)
		f->queues[f->n++] = *queue;
}

/* ---- Workers ------------------------------------------------------------------------------ */

static void spin(int64_t ms)
{
	const int64_t end_ns = clock_thread_ns() + ms * NSEC_PER_MSEC;

	while (clock_thread_ns() < end_ns)
		;
}

/* A command is the time of a CPU that it takes, in ms. */
static void work(int commands, int answers)
{
	uint32_t ms;

	while (read(commands, &ms, sizeof(ms)) == sizeof(ms)) {
		spin(ms);
		if (write(answers, &ms, sizeof(ms)) != sizeof(ms))
			break;
	}
	_exit(0);
}

/* All on one CPU. */
static void pin(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}

static char state_of(pid_t pid)
{
	char path[64], text[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	return strrchr(text, ')')[2];
}

static void start(struct worker *worker)
{
	int commands[2], answers[2];

	assert_int_equal(pipe2(commands, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
	worker->pid = fork();
	assert_true(worker->pid >= 0);
	if (!worker->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin();
		close(commands[1]);
		work(commands[0], answers[1]);
	}
	close(commands[0]);
	close(answers[1]);
	worker->commands = commands[1];
	worker->answers = answers[0];
	await(state_of(worker->pid) == 'S');
}

static void stop(struct worker *worker)
{
	kill(worker->pid, SIGKILL);
	assert_int_equal(waitpid(worker->pid, NULL, 0), worker->pid);
	close(worker->commands);
	close(worker->answers);
}

static void command(const struct worker *worker, uint32_t ms)
{
	assert_int_equal(write(worker->commands, &ms, sizeof(ms)), sizeof(ms));
}

/* Wait for a moment. */
static bool has_answered(const struct worker *worker)
{
	struct pollfd fd = { .fd = worker->answers, .events = POLLIN };
	uint32_t ms;

	if (!poll(&fd, 1, 1))
		return false;
	assert_int_equal(read(worker->answers, &ms, sizeof(ms)), sizeof(ms));
	return true;
}

/* What the kernel has counted of a worker that sleeps. */
struct truth {
	int64_t at_ns;
	uint64_t run_ns, wait_ns;
};

static struct truth read_truth(const struct worker *worker)
{
	struct truth truth;
	char path[64];
	FILE *file;

	await(state_of(worker->pid) == 'S');
	snprintf(path, sizeof(path), "/proc/%d/schedstat", worker->pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%" SCNu64 "%" SCNu64, &truth.run_ns,
				&truth.wait_ns),
			 2);
	fclose(file);
	truth.at_ns = clock_boot_ns();
	return truth;
}

__attribute__((format(printf, 3, 4))) static void
write_group(const char *group, const char *name, const char *format, ...)
{
	char path[2 * CGROUP_PATH_MAX + 64];
	va_list args;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	file = fopen(path, "we");
	if (!file)
		fail_msg("%s: %s", path, strerror(errno));
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	assert_int_equal(fclose(file), 0);
}

/* ---- The fixture --------------------------------------------------------------------------- */

/* Again and again: a loaded machine may take longer than a thread stays watched. */
static void watch(struct fixture *f)
{
	threads_watch(f->threads, (uint32_t)f->worker.pid,
		      (uint32_t)f->worker.pid, clock_boot_ns());
	assert_true(threads_are_attached(f->threads));
}

static void sweep(struct fixture *f)
{
	watch(f);
	threads_sweep(f->threads, clock_boot_ns());
}

static void open_fixture(struct fixture *f)
{
	static const struct log silent;

	assert_int_equal(threads_open(&f->threads, keep_queue, f, &silent), 0);
	assert_false(threads_are_attached(f->threads));
	start(&f->worker);
	start(&f->rival);
}

static void close_fixture(struct fixture *f)
{
	stop(&f->worker);
	stop(&f->rival);
	threads_close(f->threads);
	if (*f->group)
		assert_int_equal(rmdir(f->group), 0);
	if (*f->root)
		write_group(f->root, "cgroup.subtree_control", "-cpu");
}

TEST_FIXTURE(struct fixture, open_fixture, close_fixture)

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

/* The states of the worker, which are known, and sum up to the time. */
static void get_times(struct fixture *f, int64_t from_ns, int64_t until_ns,
		      uint64_t ret_ns[NETOBS_THREAD_STATES])
{
	uint64_t sum = 0;

	assert_true(threads_time(f->threads, (uint32_t)f->worker.pid, from_ns,
				 until_ns, ret_ns));
	for (int i = 0; i < NETOBS_THREAD_STATES; i++)
		sum += ret_ns[i];
	assert_int_equal(sum, until_ns - from_ns);
}

static void assert_about(const char *what, uint64_t found_ns, uint64_t truth_ns,
			 int64_t all_ns)
{
	const uint64_t off_ns = found_ns > truth_ns ? found_ns - truth_ns :
						      truth_ns - found_ns;

	if (off_ns > (uint64_t)(all_ns / 50 + TICK_NS))
		fail_msg("%s: %" PRIu64 " ns instead of %" PRIu64
			 " ns, of %" PRId64,
			 what, found_ns, truth_ns, all_ns);
}

static void work_while_watched(struct fixture *f)
{
	command(&f->worker, CPU_MS);
	while (!has_answered(&f->worker))
		sweep(f);
}

/*
 * Have the worker work and sleep in turns, and add up what it does in each: on a loaded machine, all of them may take
 * longer than its changes are kept.
 */
static struct truth work_in_turns(struct fixture *f,
				  uint64_t ret_ns[NETOBS_THREAD_STATES])
{
	struct truth from = read_truth(&f->worker), sum = { 0 };

	memset(ret_ns, 0, NETOBS_THREAD_STATES * sizeof(*ret_ns));
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t ns[NETOBS_THREAD_STATES];
		struct truth until;

		work_while_watched(f);
		usleep(10000);
		until = read_truth(&f->worker);
		get_times(f, from.at_ns, until.at_ns, ns);
		for (int state = 0; state < NETOBS_THREAD_STATES; state++)
			ret_ns[state] += ns[state];
		sum.at_ns += until.at_ns - from.at_ns;
		sum.run_ns += until.run_ns - from.run_ns;
		sum.wait_ns += until.wait_ns - from.wait_ns;
		from = until;
	}
	return sum;
}

/* ---- Cases --------------------------------------------------------------------------------- */

CASE(a_thread_runs_waits_and_sleeps_as_the_kernel_counts)
{
	uint64_t ns[NETOBS_THREAD_STATES];
	struct truth truth;

	watch(f);
	command(&f->rival, 60000);
	truth = work_in_turns(f, ns);
	assert_about("run", ns[NETOBS_THREAD_RUN], truth.run_ns, truth.at_ns);
	assert_about("wait", ns[NETOBS_THREAD_WAIT], truth.wait_ns, truth.at_ns);
	assert_int_equal(ns[NETOBS_THREAD_STOP], 0);
}

/* For a moment, at least. */
static bool is_off_cpu(struct fixture *f)
{
	uint64_t ns[NETOBS_THREAD_STATES];
	const int64_t now_ns = clock_boot_ns();

	get_times(f, now_ns - 1, now_ns, ns);
	return !ns[NETOBS_THREAD_RUN] && !ns[NETOBS_THREAD_WAIT];
}

CASE(a_thread_is_stopped_by_a_signal)
{
	uint64_t ns[NETOBS_THREAD_STATES];
	int64_t before_ns, stopped_ns, until_ns;

	watch(f);
	before_ns = clock_boot_ns();
	assert_int_equal(kill(f->worker.pid, SIGSTOP), 0);
	/* It has the state before it leaves its CPU. */
	await(state_of(f->worker.pid) == 'T' && is_off_cpu(f));
	stopped_ns = clock_boot_ns();
	usleep(50000);
	until_ns = clock_boot_ns();
	assert_int_equal(kill(f->worker.pid, SIGCONT), 0);
	await(state_of(f->worker.pid) == 'S');
	get_times(f, stopped_ns, until_ns, ns);
	assert_int_equal(ns[NETOBS_THREAD_STOP], until_ns - stopped_ns);
	get_times(f, before_ns, clock_boot_ns(), ns);
	assert_true(ns[NETOBS_THREAD_STOP] >= (uint64_t)(until_ns - stopped_ns));
	assert_true(ns[NETOBS_THREAD_SLEEP] > 0);
}

/* From now on. @return since when */
static int64_t assert_is_stopped(struct fixture *f)
{
	uint64_t ns[NETOBS_THREAD_STATES];
	const int64_t from_ns = clock_boot_ns();

	usleep(1000);
	get_times(f, from_ns, clock_boot_ns(), ns);
	assert_int_equal(ns[NETOBS_THREAD_RUN] + ns[NETOBS_THREAD_WAIT] +
				 ns[NETOBS_THREAD_SLEEP],
			 0);
	return from_ns;
}

CASE(a_thread_that_is_stopped_already_is_known_to_be)
{
	assert_int_equal(kill(f->worker.pid, SIGSTOP), 0);
	await(state_of(f->worker.pid) == 'T');
	watch(f);
	assert_is_stopped(f);
}

/* As if the ring had had no room for a change. */
static void lose_a_change(void)
{
	static struct sched_control control;
	const uint32_t zero = 0;
	int found = -1;

	for (int fd = 0; fd < 1024; fd++) {
		struct bpf_map_info info = { 0 };
		uint32_t len = sizeof(info);

		if (!bpf_obj_get_info_by_fd(fd, &info, &len) &&
		    !strcmp(info.name, "sched_control"))
			found = fd;
	}
	assert_int_equal(bpf_map_lookup_elem(found, &zero, &control), 0);
	control.lost++;
	assert_int_equal(bpf_map_update_elem(found, &zero, &control, BPF_ANY), 0);
}

CASE(a_thread_is_known_to_be_stopped_after_a_change_is_lost)
{
	uint64_t ns[NETOBS_THREAD_STATES];
	const int64_t before_ns = clock_boot_ns();
	int64_t from_ns;

	watch(f);
	assert_int_equal(kill(f->worker.pid, SIGSTOP), 0);
	await(state_of(f->worker.pid) == 'T' && is_off_cpu(f));
	lose_a_change();
	assert_false(threads_time(f->threads, (uint32_t)f->worker.pid,
				  before_ns, clock_boot_ns(), ns));
	from_ns = assert_is_stopped(f);
	assert_int_equal(kill(f->worker.pid, SIGCONT), 0);
	await(state_of(f->worker.pid) == 'S');
	get_times(f, from_ns, clock_boot_ns(), ns);
	assert_true(ns[NETOBS_THREAD_STOP] > 0 && ns[NETOBS_THREAD_SLEEP] > 0);
}

CASE(nothing_is_known_of_a_thread_that_is_not_watched)
{
	uint64_t ns[NETOBS_THREAD_STATES];
	const int64_t now_ns = clock_boot_ns();

	watch(f);
	assert_false(threads_time(f->threads, (uint32_t)f->rival.pid, now_ns,
				  clock_boot_ns(), ns));
	assert_false(threads_time(f->threads, (uint32_t)f->worker.pid,
				  now_ns - NSEC_PER_SEC, clock_boot_ns(), ns));
	assert_false(threads_time(f->threads, (uint32_t)f->worker.pid, now_ns,
				  now_ns + 60 * NSEC_PER_SEC, ns));
}

CASE(programs_are_detached_once_nothing_is_watched)
{
	const int64_t now_ns = clock_boot_ns();

	watch(f);
	threads_sweep(f->threads, now_ns + 59 * NSEC_PER_SEC);
	assert_true(threads_are_attached(f->threads));
	threads_sweep(f->threads, now_ns + 61 * NSEC_PER_SEC);
	assert_false(threads_are_attached(f->threads));
}

/* ---- Quotas -------------------------------------------------------------------------------- */

/* A group has the controller if the one above passes it on, as that of systemd does. */
static void pass_on_controller(struct fixture *f, const char *root)
{
	char path[2 * CGROUP_PATH_MAX], text[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", root);
	file = fopen(path, "re");
	assert_non_null(file);
	fgets(text, sizeof(text), file);
	fclose(file);
	if (strstr(text, "cpu ") || strstr(text, "cpu\n"))
		return;
	write_group(root, "cgroup.subtree_control", "+cpu");
	snprintf(f->root, sizeof(f->root), "%s", root);
}

/* Put both workers into a new group with a quota. */
static void limit_workers(struct fixture *f)
{
	static const struct cgroup_kind v1 = { "cgroup", "cpu" },
					v2 = { "cgroup2", NULL };
	struct cgroup_mount mount;
	const bool is_v1 = cgroup_mount_find("", &v1, &mount);

	if (!is_v1) {
		assert_true(cgroup_mount_find("", &v2, &mount));
		pass_on_controller(f, mount.point);
	}
	snprintf(f->group, sizeof(f->group), "%s/netobs-threads-%d",
		 mount.point, getpid());
	assert_int_equal(mkdir(f->group, 0755), 0);
	if (is_v1)
		write_group(f->group, "cpu.cfs_quota_us", "%d", QUOTA_US);
	else
		write_group(f->group, "cpu.max", "%d 100000", QUOTA_US);
	write_group(f->group, "cgroup.procs", "%d", f->worker.pid);
	write_group(f->group, "cgroup.procs", "%d", f->rival.pid);
}

static uint64_t count_throttled(const struct fixture *f)
{
	char path[2 * CGROUP_PATH_MAX + 64], name[64];
	uint64_t value, times = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpu.stat", f->group);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fscanf(file, "%63s %" SCNu64, name, &value) == 2)
		if (!strcmp(name, "nr_throttled"))
			times = value;
	fclose(file);
	return times;
}

/* Of all processes that ran meanwhile, which may be others than these two. */
static const struct netobs_queue_share *
find_share(const struct netobs_queue *queue, pid_t pid)
{
	for (int i = 0; i < queue->n_shares; i++)
		if (queue->shares[i].pid == (uint32_t)pid)
			return &queue->shares[i];
	return NULL;
}

CASE(who_ran_meanwhile_is_named)
{
	uint64_t ns[NETOBS_THREAD_STATES], waited_ns = 0, amount = 0;
	bool has_rival = false;
	struct truth truth;

	watch(f);
	command(&f->rival, 60000);
	truth = work_in_turns(f, ns);
	threads_sweep(f->threads, clock_boot_ns() + NSEC_PER_SEC);
	for (uint32_t i = 0; i < f->n; i++) {
		const struct netobs_queue *queue = &f->queues[i];
		const struct netobs_queue_share *share =
			find_share(queue, f->rival.pid);

		assert_int_equal(queue->kind, NETOBS_QUEUE_CPU);
		assert_int_equal(queue->tid, f->worker.pid);
		assert_string_equal(queue->command,
				    program_invocation_short_name);
		if (share)
			assert_string_equal(share->command,
					    program_invocation_short_name);
		has_rival |= share || queue->rest;
		waited_ns += queue->waited_ns;
		amount += queue->amount;
	}
	assert_true(has_rival);
	assert_about("waited", waited_ns, ns[NETOBS_THREAD_WAIT], truth.at_ns);
	assert_about("shares", amount, ns[NETOBS_THREAD_WAIT], truth.at_ns);
}

/* The quota is for both: the rival has its part of it. */
CASE(a_group_that_has_used_up_its_quota_is_named)
{
	uint64_t ns[NETOBS_THREAD_STATES], times = 0;
	const char *end = NULL;
	struct truth from, until;
	bool has_rival = false;

	limit_workers(f);
	watch(f);
	command(&f->rival, 60000);
	/* The quota is known once it has been counted. */
	await_by(count_throttled(f) >= 5, (sweep(f), usleep(1000)));
	from = read_truth(&f->worker);
	work_while_watched(f);
	until = read_truth(&f->worker);
	threads_sweep(f->threads, clock_boot_ns() + NSEC_PER_SEC);
	get_times(f, from.at_ns, until.at_ns, ns);
	assert_about("run", ns[NETOBS_THREAD_RUN], until.run_ns - from.run_ns,
		     until.at_ns - from.at_ns);
	assert_int_equal(ns[NETOBS_THREAD_STOP], 0);
	for (uint32_t i = 0; i < f->n; i++) {
		const struct netobs_queue *queue = &f->queues[i];

		times += queue->throttled;
		assert_true(queue->throttled_ns <= queue->waited_ns);
		assert_int_equal(!queue->throttled_ns, !*queue->cgroup);
		if (!queue->throttled_ns)
			continue;
		end = strrchr(queue->cgroup, '/');
		assert_non_null(end);
		assert_string_equal(end, strrchr(f->group, '/'));
		/* If the group had its quota for most of the time, others ran. */
		has_rival |= find_share(queue, f->rival.pid) || queue->rest ||
			     queue->throttled_ns < queue->waited_ns / 2;
	}
	assert_true(times > 0);
	assert_true(times <= count_throttled(f));
	assert_true(has_rival);
}

/* ---- Threads of a process ------------------------------------------------------------------ */

struct sleeper {
	_Atomic pid_t tid;
	int gate;
};

static void *sleep_at_gate(void *ctx)
{
	struct sleeper *sleeper = ctx;
	char byte;

	sleeper->tid = gettid();
	assert_int_equal(read(sleeper->gate, &byte, 1), 0);
	return NULL;
}

/* @is_watched: the process is watched before it makes the thread */
static void watch_sleeper(struct fixture *f, bool is_watched)
{
	uint64_t ns[NETOBS_THREAD_STATES];
	struct sleeper sleeper = { 0 };
	pthread_t thread;
	int64_t from_ns;
	int gate[2];

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	sleeper.gate = gate[0];
	if (is_watched)
		threads_watch(f->threads, (uint32_t)getpid(),
			      (uint32_t)gettid(), clock_boot_ns());
	assert_int_equal(pthread_create(&thread, NULL, sleep_at_gate, &sleeper),
			 0);
	await(sleeper.tid && state_of(sleeper.tid) == 'S');
	if (!is_watched)
		threads_watch(f->threads, (uint32_t)getpid(),
			      (uint32_t)gettid(), clock_boot_ns());
	from_ns = clock_boot_ns();
	assert_true(threads_time(f->threads, (uint32_t)sleeper.tid, from_ns,
				 clock_boot_ns(), ns));
	assert_int_equal(ns[NETOBS_THREAD_RUN] + ns[NETOBS_THREAD_WAIT] +
				 ns[NETOBS_THREAD_STOP],
			 0);
	close(gate[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(gate[0]);
	/* The kernel wakes the one that joins it before its end. */
	await(!threads_time(f->threads, (uint32_t)sleeper.tid, from_ns,
			    clock_boot_ns(), ns));
}

CASE(all_threads_of_a_process_are_watched)
{
	watch_sleeper(f, false);
}

CASE(threads_that_watched_ones_make_are_watched)
{
	watch_sleeper(f, true);
}
