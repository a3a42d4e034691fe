/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What a switch of threads costs while the tracer watches some: two processes on one CPU wake each other in turns,
 * by pipes; and what a message costs on a connection while the tracer traces another one: they do that by TCP.
 * Their CPU time counts, which has that of the programs, and not that of other processes. All subjects have their
 * turns in each round, in random order. And what a verdict costs: two hosts have recorded 10,000 turns, in the
 * second half of which the server thinks longer.
 */
#include "armed.h"
#include "bench.h"
#include "config.h"
#include "base/clock.h"
#include "base/util.h"
#include "service/signals.h"
#include "switches.skel.h"
#include "trace/threads.h"
#include "netobs/diagnosis.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	NONE,
	EMPTY,
	OTHERS,
	WATCHED,
	TCP_NONE,
	TCP_ARMED,
	BULK_NONE,
	BULK_ARMED,
	SUBJECTS
};

static const char *const names[SUBJECTS] = { "none",	      "empty",
					     "not watched",   "watched",
					     "byte by TCP",   "byte, armed",
					     "64 KiB by TCP", "64 KiB, armed" };

/* What a subject is compared with. */
static int base_of(int subject)
{
	return subject < TCP_NONE ? NONE : subject & ~1;
}

enum {
	TURN = 10000, /* messages there and back; of large ones, a tenth */
	MESSAGE_MAX = 64 << 10,
	IDLE_S = 70, /* after that long, no thread is watched any more */
};

/* Two processes, and what they are asked and answer by. */
struct pair {
	pid_t pids[2];
	int commands[2], answers[2], there[2], back[2];
	uint32_t n, size; /* messages there and back in a turn, and their bytes */
};

/* ---- The processes ----------------------------------------------------------- */

static bool pass_byte(int from, int to)
{
	char byte = 0;

	return (from < 0 || read(from, &byte, 1) == 1) &&
	       (to < 0 || write(to, &byte, 1) == 1);
}

static bool take_message(int from, uint32_t size)
{
	static char message[MESSAGE_MAX];
	ssize_t n = 1;

	while (size && n > 0) {
		n = read(from, message, size);
		size -= (uint32_t)n;
	}
	return n > 0;
}

static bool give_message(int to, uint32_t size)
{
	static const char message[MESSAGE_MAX];

	return write(to, message, size) == (ssize_t)size;
}

static void lead(const struct pair *pair)
{
	while (pass_byte(pair->commands[0], -1)) {
		for (uint32_t i = 0; i < pair->n; i++)
			if (!give_message(pair->there[1], pair->size) ||
			    !take_message(pair->back[0], pair->size))
				return;
		pass_byte(-1, pair->answers[1]);
	}
}

static void follow(const struct pair *pair)
{
	while (take_message(pair->there[0], pair->size) &&
	       give_message(pair->back[1], pair->size))
		;
}

static int connect_both(struct pair *pair, const struct armed *armed)
{
	int ends[2];
	int err = armed_connect(armed, ends);

	pair->there[1] = pair->back[0] = ends[0];
	pair->there[0] = pair->back[1] = ends[1];
	return err;
}

/* @armed: they speak by TCP; NULL: by pipes */
static int start(struct pair *pair, const struct armed *armed)
{
	static void (*const work[2])(const struct pair *) = { lead, follow };
	int err = pipe(pair->commands) || pipe(pair->answers) ? -errno : 0;

	if (!err && armed)
		err = connect_both(pair, armed);
	else if (!err && (pipe(pair->there) || pipe(pair->back)))
		err = -errno;
	for (int i = 0; !err && i < 2; i++) {
		pair->pids[i] = fork();
		if (pair->pids[i] < 0)
			return -errno;
		if (pair->pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		cpu_bind();
		work[i](pair);
		_exit(0);
	}
	return err;
}

static void stop(const struct pair *pair)
{
	for (int i = 0; i < 2; i++)
		if (pair->pids[i] > 0) {
			kill(pair->pids[i], SIGKILL);
			waitpid(pair->pids[i], NULL, 0);
		}
}

static int64_t cpu_ns(const struct pair *pair)
{
	int64_t sum = 0;
	clockid_t clock;

	for (int i = 0; i < 2; i++)
		if (!clock_getcpuclockid(pair->pids[i], &clock))
			sum += clock_ns(clock);
	return sum;
}

/* ---- Turns ------------------------------------------------------------------- */

struct subjects {
	struct pair pair, tcp, bulk;
	struct armed *armed;
	struct switches_bpf *empty;
	struct threads *threads;
};

static int attach(const struct subjects *subjects, int subject)
{
	const int64_t now_ns = clock_boot_ns();
	uint32_t pid = (uint32_t)getpid();

	if (subject == EMPTY)
		return switches_bpf__attach(subjects->empty);
	if (subject == TCP_ARMED || subject == BULK_ARMED)
		return armed_start(subjects->armed);
	if (subject == OTHERS)
		threads_watch(subjects->threads, pid, pid, now_ns);
	for (int i = 0; i < 2 && subject == WATCHED; i++) {
		pid = (uint32_t)subjects->pair.pids[i];
		threads_watch(subjects->threads, pid, pid, now_ns);
	}
	return subject == base_of(subject) ||
			       threads_are_attached(subjects->threads) ?
		       0 :
		       -EIO;
}

static int detach(const struct subjects *subjects)
{
	switches_bpf__detach(subjects->empty);
	armed_stop(subjects->armed);
	threads_sweep(subjects->threads, clock_boot_ns() + IDLE_S * NSEC_PER_SEC);
	return threads_are_attached(subjects->threads) ? -EBUSY : 0;
}

/* A first turn, which does not count, fills the caches. */
static int take_turn(const struct subjects *subjects, int subject, double *ret_ns)
{
	const struct pair *pair = subject < TCP_NONE  ? &subjects->pair :
				  subject < BULK_NONE ? &subjects->tcp :
							&subjects->bulk;
	int err = attach(subjects, subject), detached;
	int64_t before_ns = 0;

	for (int i = 0; !err && i < 2; i++) {
		before_ns = cpu_ns(pair);
		if (!pass_byte(-1, pair->commands[1]) ||
		    !pass_byte(pair->answers[0], -1))
			err = -EINTR;
		threads_sweep(subjects->threads, clock_boot_ns());
	}
	*ret_ns = (double)(cpu_ns(pair) - before_ns) / (2 * pair->n);
	detached = detach(subjects);
	return signals_are_stopping() ? -EINTR : err ?: detached;
}

/* @samples: of each subject, for each round */
static int measure(const struct subjects *subjects, uint32_t rounds,
		   double *samples)
{
	int err = 0;

	for (uint32_t round = 0; !err && round < rounds; round++) {
		const int first = rand() % SUBJECTS;

		for (int i = 0; !err && i < SUBJECTS; i++) {
			const int subject = (first + i) % SUBJECTS;

			progress_show(names[subject]);
			err = take_turn(
				subjects, subject,
				&samples[(uint32_t)subject * rounds + round]);
		}
	}
	progress_show(NULL);
	return err;
}

/* ---- A verdict --------------------------------------------------------------- */

enum { JUDGED = 10000 };

/* A message at the host that sends it, or reads it. */
static int add_message(struct netobs_diagnosis *diagnosis, bool sends,
		       bool direction, uint32_t i, int64_t ns, int64_t answer_ns)
{
	const uint32_t has = NETOBS_TURN_HAS_INITIATOR | NETOBS_TURN_HAS_END;
	const int64_t sent = sends ? ns : 0, came = ns - sent;
	const struct netobs_turn turn = {
		.record = { sizeof(turn), has | 1U << !sends,
			    NETOBS_RECORD_TURN, ns },
		.connection = 1,
		.seq = i,
		.offset = i,
		.bytes = 1,
		.wire_src[15] = direction,
		.wire_dst[15] = !direction,
		.wire_src_port = direction,
		.wire_dst_port = !direction,
		.protocol = IPPROTO_TCP,
		.direction = direction,
		.one_of = 1,
		.attempts = 1,
		.written_ns = sent,
		.sent_ns = sent,
		.out_ns = sent,
		.in_ns = came,
		.ready_ns = came,
		.read_ns = came,
		.answer_ns = answer_ns,
		.end_ns = ns,
	};

	return netobs_diagnosis_add(diagnosis, sends == direction, &turn.record);
}

static void keep_place(const struct netobs_verdict *verdict, void *place)
{
	*(uint8_t *)place = verdict->place;
}

/* CPU time from the first record to the verdict. */
static int measure_verdict(double *ret_seconds)
{
	const int64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		      ms = NSEC_PER_MSEC, half = JUDGED / 2 * 20 * ms;
	struct netobs_diagnosis *diagnosis;
	int err = netobs_diagnosis_new(NULL, &diagnosis);
	uint8_t place = NETOBS_PLACE_NONE;

	for (uint32_t i = 0; !err && i < 4 * JUDGED; i++) {
		const int64_t ns = half + i / 4 * 20 * ms,
			      answer = ns + (i < 2 * JUDGED ? 3 : 9) * ms;
		const int64_t at[] = { ns, ns + ms, answer, answer + ms },
			      next[] = { 0, answer, 0, ns + 20 * ms };

		err = add_message(diagnosis, !(i & 1), i & 2, i / 4, at[i & 3],
				  next[i & 3]);
	}
	if (!err)
		err = netobs_diagnosis_judge(diagnosis, 2 * half, 0, 0,
					     keep_place, &place);
	*ret_seconds = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) /
		       NSEC_PER_SEC;
	netobs_diagnosis_free(diagnosis);
	return err < 0 || place == NETOBS_PLACE_SERVER_PROCESS ? min_i64(err, 0) :
								 -EBADMSG;
}

/* ---- Results ----------------------------------------------------------------- */

static const struct report_column columns[] = {
	{ "programs", COLUMN_TEXT },
	{ "ns_per_message", 0 },
	{ "over_none", 0 },
	{ "rate", 3 },
	{ "cpu_s", 3 },
};

/* Of each round, the difference, and the ratio of rates, are those of turns next to each other. */
static void print(const struct config *config, double *samples, double verdict_s)
{
	struct report report = { .is_json = config->output == OUTPUT_JSON,
				 .columns = columns,
				 .n_columns = ARRAY_SIZE(columns) };
	const uint32_t rounds = config->rounds;

	report_begin(&report,
		     "Switches of threads, while the tracer watches some",
		     rounds, NULL);
	for (uint32_t i = 0; i < SUBJECTS; i++)
		for (uint32_t round = 0; round < rounds; round++) {
			const double own = samples[i * rounds + round];
			const double base =
				samples[(uint32_t)base_of((int)i) * rounds + round];

			samples[(SUBJECTS + i) * rounds + round] = own - base;
			samples[(2 * SUBJECTS + i) * rounds + round] = base / own;
		}
	for (uint32_t i = 0; i < SUBJECTS; i++) {
		const char *const texts[] = { names[i] };
		const double numbers[] = {
			interval_of(&samples[i * rounds], rounds).median,
			interval_of(&samples[(SUBJECTS + i) * rounds], rounds).median,
			interval_of(&samples[(2 * SUBJECTS + i) * rounds], rounds)
				.median,
			NAN
		};

		report_row(&report, texts, numbers);
	}
	report_row(&report, (const char *const[]){ "verdict" },
		   (const double[]){ NAN, NAN, NAN, verdict_s });
	report_end(&report);
}

int trace_run(const struct config *config)
{
	/* Of each subject, its differences, and its ratios. */
	cleanup_free double *samples =
		calloc(3 * SUBJECTS * config->rounds, sizeof(*samples));
	static struct armed armed;
	struct subjects subjects = { .pair = { .n = TURN, .size = 1 },
				     .tcp = { .n = TURN, .size = 1 },
				     .bulk = { .n = TURN / 10,
					       .size = MESSAGE_MAX },
				     .armed = &armed,
				     .empty = switches_bpf__open_and_load() };
	double verdict_s = 0;
	int err = armed_open(&armed);

	err = subjects.empty && samples ? err : -errno;
	err = err ?: start(&subjects.pair, NULL);
	err = err ?: start(&subjects.tcp, &armed);
	err = err ?: start(&subjects.bulk, &armed);
	err = err ?: threads_open(&subjects.threads, NULL, NULL, NULL);
	if (!err)
		err = measure(&subjects, config->rounds, samples);
	stop(&subjects.pair);
	stop(&subjects.tcp);
	stop(&subjects.bulk);
	armed_close(&armed);
	switches_bpf__destroy(subjects.empty);
	threads_close(subjects.threads);
	err = err ?: measure_verdict(&verdict_s);
	if (!err)
		print(config, samples, verdict_s);
	return failure_report("switches of threads, and a verdict", err);
}
