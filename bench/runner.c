/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "runner.h"

#include "bench.h"
#include "base/util.h"
#include "service/signals.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

/* A burst over the wire takes about 5 ms: how exactly a turn ends. */
enum { BURST = 4096, WARM_UP = 4 * BURST };

struct worker {
	struct runner *runner;
	const struct target *target;
	enum order order;
	uint32_t ms;
	uint64_t packets, ns;
	int err;
	atomic_bool has_ended;
};

int runner_init(struct runner *ret_runner, struct packets *packets,
		struct wire *wire)
{
	*ret_runner = (struct runner){ .packets = packets,
				       .wire = wire,
				       .cpu = cpu_last() };
	return min_i64(ret_runner->cpu, 0);
}

/* By BPF_PROG_TEST_RUN; the times of the program are added to @ns. */
static int test_packets(int prog_fd, const uint32_t *flows, uint32_t n,
			uint64_t *ns)
{
	uint8_t frame[FRAME];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
		    .data_size_in = sizeof(frame), .repeat = 1);
	int err = 0;

	frame_make(frame);
	for (uint32_t i = 0; i < n && !err; i++) {
		frame_set_flow(frame, flows[i]);
		do {
			err = bpf_prog_test_run_opts(prog_fd, &opts);
		} while (err == -EINTR && !signals_are_stopping());
		*ns += opts.duration;
	}
	return err;
}

static int run_packets(struct runner *runner, int prog_fd,
		       const uint32_t *flows, uint32_t n, uint64_t *ns)
{
	runner->run += n;
	if (runner->wire)
		return wire_send(runner->wire, flows, n);
	return test_packets(prog_fd, flows, n, ns);
}

static int run_burst(struct worker *worker)
{
	struct runner *runner = worker->runner;
	const int64_t start = clock_ns(CLOCK_MONOTONIC);
	uint32_t flows[WIRE_BATCH];
	uint64_t ns = 0;
	int err = signals_are_stopping() ? -EINTR : 0;

	for (uint32_t i = 0; i < BURST && !err; i += WIRE_BATCH) {
		packets_take(runner->packets, worker->order, flows, WIRE_BATCH);
		err = run_packets(runner, worker->target->prog_fd, flows,
				  WIRE_BATCH, &ns);
	}
	worker->packets += BURST;
	if (runner->wire)
		ns = clock_ns(CLOCK_MONOTONIC) - start;
	worker->ns += ns;
	return err;
}

/* The flows of the first packets bring caches into the state that is measured. */
static void *measure_packets(void *arg)
{
	struct worker *worker = arg;
	int64_t end;

	while (!worker->err && worker->packets < WARM_UP)
		worker->err = run_burst(worker);
	worker->packets = worker->ns = 0;
	end = clock_ns(CLOCK_MONOTONIC) + worker->ms * NSEC_PER_MSEC;
	/* Others may have the CPU for all of the time. */
	do {
		worker->err = worker->err ?: run_burst(worker);
	} while (!worker->err && clock_ns(CLOCK_MONOTONIC) < end);
	worker->has_ended = true;
	return NULL;
}

int runner_measure(struct runner *runner, const struct target *target,
		   enum order order, uint32_t ms, double *ret_ns)
{
	struct worker worker = {
		.runner = runner, .target = target, .order = order, .ms = ms
	};
	const cpu_set_t cpu = cpu_set_of(runner->cpu);
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpu), &cpu);
	err = pthread_create(&thread, &attr, measure_packets, &worker);
	pthread_attr_destroy(&attr);
	if (err)
		return -err;
	while (target->attend && !worker.has_ended)
		target->attend(target->user);
	pthread_join(thread, NULL);
	if (!worker.err)
		*ret_ns = (double)worker.ns / worker.packets;
	return worker.err;
}

static int run_each(struct runner *runner, const struct target *target)
{
	const struct packets *packets = runner->packets;
	uint64_t ns = 0;
	int err = 0;

	for (uint32_t i = 0; i < packets->flows && !err; i += WIRE_BATCH) {
		if (signals_are_stopping())
			return -EINTR;
		err = run_packets(runner, target->prog_fd, &packets->each[i],
				  min_u64(packets->flows - i, WIRE_BATCH), &ns);
		if (target->tend && i % BURST == 0)
			target->tend(target->user);
	}
	return err;
}

int runner_fill(struct runner *runner, const struct target *target)
{
	const cpu_set_t cpu = cpu_set_of(runner->cpu);
	cpu_set_t before;
	int err;

	if (sched_getaffinity(0, sizeof(before), &before) ||
	    sched_setaffinity(0, sizeof(cpu), &cpu))
		return -errno;
	err = run_each(runner, target);
	return sched_setaffinity(0, sizeof(before), &before) ? -errno : err;
}
