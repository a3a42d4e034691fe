/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "engine.h"

#include "base/util.h"
#include "host/topology.h"

#include <errno.h>
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
