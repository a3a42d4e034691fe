/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "runner.h"

#include "bench.h"
#include "base/util.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { CHUNK = 16384 };

/* All start together. It spins: each waiting thread has its own CPU. */
struct gate {
	uint32_t expected;
	_Atomic uint32_t arrived;
	_Atomic uint32_t ended;
	_Atomic bool is_cancelled;
};

struct worker {
	const struct runner *runner;
	const struct load *load;
	uint32_t index; /* among the workers */
	int cpu;
	pthread_t thread;
	struct gate *gate;
	uint64_t packets;
	uint64_t ns;
	int err;
};

int runner_init(struct runner *runner, struct spread *spread)
{
	cpu_set_t allowed;

	*runner = (struct runner){ .spread = spread };
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -errno;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &allowed))
			runner->cpus[runner->n_cpus++] = cpu;
	}
	return 0;
}

static uint32_t chunk_size(const struct load *load)
{
	return load->burst && load->burst < CHUNK ? load->burst : CHUNK;
}

static int run_packets(const struct worker *worker, uint32_t n, uint32_t *ret_ns)
{
	const struct runner *runner = worker->runner;

	return runner->wire ? wire_send(runner->wire, worker->cpu, n, ret_ns) :
			      spread_run(runner->spread, n, ret_ns);
}

/* Run @n packets and account for them. */
static int run_chunk(struct worker *worker, uint32_t n)
{
	const struct load *load = worker->load;
	uint32_t ns = 0;
	int err;

	do {
		err = run_packets(worker, n, &ns);
	} while (err == -EINTR && !stop_requested());
	if (load->pause)
		load->pause(load->user);
	worker->packets += n;
	worker->ns += (uint64_t)n * ns;
	return err;
}

static int run_for_budget(struct worker *worker)
{
	int64_t end = clock_ns(CLOCK_MONOTONIC) +
		      worker->load->budget_ms * NSEC_PER_MSEC;
	int err;

	worker->packets = worker->ns = 0;
	do {
		err = stop_requested() ?
			      -EINTR :
			      run_chunk(worker, chunk_size(worker->load));
	} while (!err && clock_ns(CLOCK_MONOTONIC) < end);
	return err;
}

/* The flows of the first packets bring caches into the state that is measured. */
static int warm_up(struct worker *worker)
{
	int err = 0;

	while (!err && worker->packets < CHUNK)
		err = run_chunk(worker, chunk_size(worker->load));
	return err;
}

static void pass_gate(struct gate *gate)
{
	gate->arrived++;
	while (gate->arrived < gate->expected && !gate->is_cancelled)
		sched_yield();
}

static void *measure_packets(void *arg)
{
	struct worker *worker = arg;
	int err = warm_up(worker);

	pass_gate(worker->gate);
	worker->err = err ?: run_for_budget(worker);
	worker->gate->ended++;
	return NULL;
}

static void *send_each_flow(void *arg)
{
	struct worker *worker = arg;
	const struct load *load = worker->load;
	uint32_t left = worker->runner->spread->room;

	while (left && !worker->err) {
		uint32_t n = min_u64(left, chunk_size(load));

		worker->err = stop_requested() ? -EINTR : run_chunk(worker, n);
		left -= n;
	}
	worker->gate->ended++;
	return NULL;
}

static int start_worker(struct worker *worker, void *(*work)(void *))
{
	pthread_attr_t attr;
	cpu_set_t cpu;
	int err;

	CPU_ZERO(&cpu);
	CPU_SET(worker->cpu, &cpu);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpu), &cpu);
	err = pthread_create(&worker->thread, &attr, work, worker);
	pthread_attr_destroy(&attr);
	return -err;
}

static void aim_cursor(const struct worker *worker)
{
	const struct load *load = worker->load;
	struct spread *spread = worker->runner->spread;

	if (load->sharing == SHARING_DISJOINT && load->n_cpus > 1)
		spread_start_part(spread, worker->cpu, load->order,
				  worker->index, load->n_cpus);
	else
		spread_start(spread, worker->cpu, load->order);
}

/* Let @workers work, and wait for them. */
static int run_workers(const struct runner *runner, const struct load *load,
		       struct worker *workers, void *(*work)(void *))
{
	struct gate gate = { .expected = load->n_cpus };
	uint32_t started = 0;
	int err = 0;

	while (started < load->n_cpus && !err) {
		struct worker *worker = &workers[started];

		*worker = (struct worker){
			.runner = runner,
			.load = load,
			.index = started,
			.cpu = runner->cpus[runner->n_cpus - load->n_cpus + started],
			.gate = &gate,
		};
		aim_cursor(worker);
		err = start_worker(worker, work);
		started += !err;
	}
	gate.is_cancelled = err;
	while (load->attend && gate.ended < started)
		load->attend(load->user);
	for (uint32_t i = 0; i < started; i++) {
		pthread_join(workers[i].thread, NULL);
		err = err ?: workers[i].err;
	}
	return err;
}

int runner_measure(const struct runner *runner, const struct load *load,
		   double *ret_ns)
{
	cleanup_free struct worker *workers =
		calloc(load->n_cpus, sizeof(*workers));
	double sum = 0;
	int err;

	if (!workers)
		return -ENOMEM;
	err = run_workers(runner, load, workers, measure_packets);
	if (err)
		return err;
	for (uint32_t i = 0; i < load->n_cpus; i++)
		sum += (double)workers[i].ns / workers[i].packets;
	*ret_ns = sum / load->n_cpus;
	return 0;
}

int runner_fill(const struct runner *runner, const struct load *load)
{
	struct load each = *load;
	struct worker worker;

	each.order = ORDER_EACH;
	each.sharing = SHARING_SAME;
	each.n_cpus = 1;
	return run_workers(runner, &each, &worker, send_each_flow);
}
