/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "engine.h"

#include "bench.h"
#include "base/util.h"
#include "host/topology.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

static void count_flow(const struct netobs_flow *flow, void *user)
{
	struct engine *engine = user;

	engine->flows++;
	engine->packets += flow->packets;
	if (engine->sink) /* what is dropped is counted there */
		netobs_sink_write(engine->sink, &flow->record);
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

int engine_open(struct engine *engine, uint32_t flows,
		const struct store_options *special)
{
	const uint32_t max_flows = max_u64(MAX_FLOWS, 2ULL * flows);
	struct pipeline_options options = {
		.store = *special,
		.merge = { .interval_ns = INTERVAL_S * NSEC_PER_SEC,
			   .idle_timeout_ns = IDLE_S * NSEC_PER_SEC,
			   .max_flows = max_flows,
			   .on_flow = count_flow,
			   .user = engine },
	};
	int err;

	options.store.max_flows = max_flows;
	if (options.store.clock != CLOCK_PRECISE)
		options.store.clock = CLOCK_COARSE;
	*engine = (struct engine){
		.log = { .write = print_engine_log },
		.programs = { { -1, -1 } },
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.stats = { .sz = sizeof(engine->stats) },
	};
	host_init(&engine->host, &engine->log);
	err = make_host(&engine->host);
	if (!err)
		err = pipeline_init(&engine->pipeline, &options, &engine->host,
				    &engine->log);
	if (err)
		return err;
	return store_load_programs(&engine->pipeline.store,
				   options.store.filter, &all_packets, 0,
				   LINK_ETHERNET, &engine->programs);
}

void engine_close(struct engine *engine)
{
	programs_close(&engine->programs);
	alerts_close(&engine->alerts);
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

struct engine_tally engine_tally(const struct engine *engine)
{
	struct engine_tally tally = { engine->stats.observed.packets, 0 };

	if (engine->pipeline.store.log_slots)
		tally.misplaced = engine->stats.spilled.packets;

	for (int i = 0; i < NETOBS_LOST_REASONS; i++)
		tally.misplaced += engine->stats.lost[i].packets;
	return tally;
}

bool engine_has_room(const struct engine *engine,
		     const struct engine_tally *before)
{
	struct engine_tally now = engine_tally(engine);

	return (now.misplaced - before->misplaced) * TOLERABLE_SHARE <=
	       now.observed - before->observed;
}

void engine_tend(void *user)
{
	struct engine *engine = user;

	pthread_mutex_lock(&engine->lock);
	pipeline_relieve_now(&engine->pipeline);
	alerts_read(&engine->alerts);
	pthread_mutex_unlock(&engine->lock);
}

void engine_attend(void *user)
{
	struct engine *engine = user;
	struct pollfd ready = { .fd = store_notices_fd(&engine->pipeline.store),
				.events = POLLIN };

	poll(&ready, 1, ATTEND_MS);
	engine_tend(engine);
}

int engine_fill(struct engine *engine, const struct runner *runner)
{
	/* BPF_PROG_TEST_RUN has packets faster than any network. */
	const struct load load = { .burst = ENGINE_BURST,
				   .pause = runner->wire ? NULL : engine_tend,
				   .attend = runner->wire ? engine_attend : NULL,
				   .user = engine };

	return runner_fill(runner, &load);
}

int engine_adapt(struct engine *engine, const struct runner *runner)
{
	int calm = 0;

	for (int i = 0; i < ADAPT_DRAINS && calm < CALM_DRAINS; i++) {
		struct engine_tally before = engine_tally(engine);
		int err = stop_requested() ? -EINTR : engine_fill(engine, runner);

		if (err)
			return err;
		engine_drain(engine);
		calm = engine_has_room(engine, &before) ? calm + 1 : 0;
	}
	return calm == CALM_DRAINS ? 0 : -ENOSPC;
}
