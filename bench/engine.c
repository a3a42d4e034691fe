/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "design.h"

#include "base/util.h"
#include "designs.skel.h"
#include "host/topology.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct rate all_packets;

enum {
	INTERVAL_S = 5,
	IDLE_S = 15,
	MAX_FLOWS = 1 << 20, /* netobsctl's default, raised where it is in the way */
	CALM_DRAINS = 2, /* one for each generation */
	ADAPT_DRAINS = 32,
	ATTEND_MS = 5,
	TEST_RUN_IFINDEX = 1,	 /* the loopback's */
	TOLERABLE_SHARE = 10000, /* one packet in so many */
};

static void print_engine_log(int level, const char *message, void *user)
{
	(void)user;
	if (level <= NETOBS_LOG_WARNING)
		fprintf(stderr, "netobsctl bench: %s\n", message);
}

static void count_flow(const struct netobs_record *record, void *user)
{
	const struct netobs_flow *flow = (const void *)record;
	struct engine *engine = user;

	engine->flows++;
	engine->packets += flow->packets;
	if (engine->sink) /* what is dropped is counted there */
		netobs_sink_write(engine->sink, record);
}

/* One interface, that of BPF_PROG_TEST_RUN: records name it. */
static int make_host(struct host *host)
{
	struct netif *netif;
	uint16_t own;
	int err = host_ensure_netns(host, NULL, &own);

	if (err)
		return err;
	netif = netifs_ensure(&host->netns[own].netifs, TEST_RUN_IFINDEX);
	if (!netif)
		return -ENOMEM;
	memcpy(netif->name, "eth0", sizeof("eth0"));
	netif->observed = 1 << INGRESS | 1 << EGRESS;
	host->netns[own].inode =
		4026531840; /* the initial one, PROC_NET_INIT_INO */
	return topology_update(host);
}

int engine_open(struct engine *engine, uint32_t flows, uint64_t flags)
{
	const uint32_t max_flows = max_u64(MAX_FLOWS, 2ULL * flows);
	struct pipeline_options options = {
		.store = { .opts = &engine->opts },
		.merge = { .interval_ns = INTERVAL_S * NSEC_PER_SEC,
			   .idle_timeout_ns = IDLE_S * NSEC_PER_SEC,
			   .max_flows = max_flows,
			   .on_record = count_flow,
			   .user = engine },
	};
	int err;

	*engine = (struct engine){
		.opts = { .max_flows = max_flows,
			  .flags = flags,
			  .direction = NETOBS_EGRESS },
		.log = { .write = print_engine_log },
		.programs = { { -1, -1 } },
		.stats = { .sz = sizeof(engine->stats) },
	};
	host_init(&engine->host, &engine->log);
	err = make_host(&engine->host);
	if (!err)
		err = pipeline_open(&engine->pipeline, &options, &engine->log);
	if (!err)
		err = features_open(&engine->features, &engine->pipeline,
				    &engine->opts, NULL, &engine->host,
				    &engine->log);
	err = err ?: pipeline_init(&engine->pipeline, &engine->host);
	if (err)
		return err;
	return store_load_programs(&engine->pipeline.store, NULL, &all_packets,
				   0, LINK_ETHERNET, &engine->programs);
}

void engine_close(struct engine *engine)
{
	programs_close(&engine->programs);
	features_close(&engine->features);
	pipeline_done(&engine->pipeline);
	host_done(&engine->host);
}

void engine_drain(struct engine *engine)
{
	struct pipeline *pipeline = &engine->pipeline;

	/* As if the packets had come at the beginning of the interval. */
	pipeline_begin(pipeline, MERGE_INTERVAL,
		       clock_boot_ns() + INTERVAL_S * NSEC_PER_SEC);
	do {
		usleep(1000 * pipeline_wait_ms(pipeline));
		if (engine->on_step)
			engine->on_step(engine->user);
	} while (pipeline_step(pipeline));
	pipeline_stats(pipeline, &engine->stats);
}

/* Packets that were lost or had no room in a log, as of the last drain. */
static uint64_t count_misplaced(const struct engine *engine)
{
	uint64_t packets = engine->stats.spilled.packets;

	for (int i = 0; i < NETOBS_LOST_REASONS; i++)
		packets += engine->stats.lost[i].packets;
	return packets;
}

/* What a context does when the programs have woken it up. */
static void tend_engine(void *user)
{
	struct engine *engine = user;

	pipeline_relieve_now(&engine->pipeline);
}

/* Wait for that, then do it. */
static void attend_engine(void *user)
{
	struct engine *engine = user;
	struct pollfd ready = { .fd = store_notices_fd(&engine->pipeline.store),
				.events = POLLIN };

	poll(&ready, 1, ATTEND_MS);
	tend_engine(engine);
}

struct target engine_target(struct engine *engine)
{
	return (struct target){ .prog_fd = engine->programs.fds[EGRESS],
				.attend = attend_engine,
				.tend = tend_engine,
				.user = engine };
}

int engine_adapt(struct engine *engine, struct runner *runner,
		 const struct target *target)
{
	const uint64_t tolerable = runner->packets->flows / TOLERABLE_SHARE;
	int calm = 0;

	for (int i = 0; i < ADAPT_DRAINS && calm < CALM_DRAINS; i++) {
		uint64_t before = count_misplaced(engine);
		int err = runner_fill(runner, target);

		if (err)
			return err;
		engine_drain(engine);
		calm = count_misplaced(engine) - before <= tolerable ? calm + 1 :
								       0;
	}
	return calm == CALM_DRAINS ? 0 : -ENOSPC;
}

/* ---- Designs of designs.bpf.c ------------------------------------------------ */

/*
 * The designs of designs.bpf.c are the programs run_NAME. The map of one has as many entries as
 * there are flows, all of them allocated beforehand.
 */

/* sizeof() in designs.bpf.c, and what the kernel adds to a hash element. */
enum {
	KEY = 40,
	VALUE = 32,
	ELEMENT = 48 + 16 + 8, /* with its bucket and pointer */
	NETOBS_FLOW = 512,
	PACKETS_OFFSET = 24, /* in struct metrics */
};

const char *const design_names[] = {
	[DESIGN_EMPTY] = "empty",
	[DESIGN_EMPTY2] = "empty2",
	[DESIGN_PERCPU_HASH] = "percpu_hash",
	[DESIGN_NETOBS] = "netobs",
	[DESIGN_NAT] = "nat",
	[DESIGNS] = NULL,
};

uint64_t design_memory(int design, uint32_t flows)
{
	if (design < DESIGN_PERCPU_HASH)
		return 0;
	if (design >= DESIGN_NETOBS)
		return (uint64_t)flows * NETOBS_FLOW;
	return (uint64_t)flows *
	       (ELEMENT + KEY + (uint64_t)libbpf_num_possible_cpus() * VALUE);
}

static int open_program(struct subject *subject, int design, uint32_t flows)
{
	struct bpf_program *program, *own;
	char name[32];
	int err;

	subject->skel = designs_bpf__open();
	if (!subject->skel)
		return -errno;
	snprintf(name, sizeof(name), "run_%s", design_names[design]);
	own = bpf_object__find_program_by_name(subject->skel->obj, name);
	bpf_object__for_each_program(program, subject->skel->obj)
		bpf_program__set_autoload(program, program == own);
	if (design == DESIGN_PERCPU_HASH)
		subject->map = subject->skel->maps.map_percpu_hash;
	bpf_map__set_autocreate(subject->skel->maps.map_percpu_hash,
				subject->map);
	bpf_map__set_max_entries(subject->skel->maps.map_percpu_hash, flows);
	err = designs_bpf__load(subject->skel);
	subject->target.prog_fd = bpf_program__fd(own);
	return err;
}

static uint64_t count_in_hash(const struct bpf_map *map)
{
	const uint32_t n = libbpf_num_possible_cpus();
	const int fd = bpf_map__fd(map);
	cleanup_free uint8_t *values = malloc((size_t)n * VALUE);
	uint8_t key[KEY];
	const void *last = NULL;
	uint64_t sum = 0;

	while (values && !bpf_map_get_next_key(fd, last, key)) {
		last = key;
		if (bpf_map_lookup_elem(fd, key, values))
			continue;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t packets;

			memcpy(&packets, values + i * VALUE + PACKETS_OFFSET,
			       sizeof(packets));
			sum += packets;
		}
	}
	return sum;
}

/* ---- netobs: the library's programs -------------------------------------------- */

static int open_netobs(struct subject *subject, int design, uint32_t flows)
{
	int err;

	subject->engine = malloc(sizeof(*subject->engine));
	if (!subject->engine)
		return -ENOMEM;
	err = engine_open(subject->engine, flows,
			  design == DESIGN_NAT ? NETOBS_NAT : 0);
	subject->target = engine_target(subject->engine);
	return err;
}

int subject_open(struct subject *subject, int design, uint32_t flows)
{
	int err;

	*subject = (struct subject){ .target.prog_fd = -1 };
	err = design < DESIGN_NETOBS ? open_program(subject, design, flows) :
				       open_netobs(subject, design, flows);
	if (err)
		subject_close(subject);
	return err;
}

int subject_fill(struct subject *subject, struct runner *runner)
{
	int err = subject->engine ? engine_adapt(subject->engine, runner,
						 &subject->target) :
				    0;

	return err ?: runner_fill(runner, &subject->target);
}

double subject_count(struct subject *subject)
{
	if (subject->engine) {
		engine_drain(subject->engine);
		return subject->engine->packets;
	}
	return subject->map ? count_in_hash(subject->map) : NAN;
}

void subject_close(struct subject *subject)
{
	if (subject->engine)
		engine_close(subject->engine);
	free(TAKE_PTR(subject->engine));
	designs_bpf__destroy(TAKE_PTR(subject->skel));
}
