// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "alerts.h"

#include "base/clock.h"
#include "base/privilege.h"
#include "base/util.h"
#include "bpf/parse/tunnel.h" /* a knob of the skeleton */
#include "alerts.skel.h"
#include "engine/map.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SLICE_MS = 4,
	/* Events that fit in the ring, each behind a header of 8 bytes (ring buffer's docs). */
	EVENTS_MAX = ALERT_RING_BYTES / (sizeof(struct alert_event) + 8),
	SETTLE_MS = 100, /* wait for programs that long at most */
	SETTLE_STEP_US = 50,
};

static size_t counts_size(const struct alerts *alerts)
{
	return alerts->store->n_cpus * ALERT_SLOTS * sizeof(*alerts->counts);
}

static size_t prefixes_size(const struct alerts *alerts)
{
	return alerts->store->n_cpus * 2 * ALERT_RULES_MAX *
	       sizeof(*alerts->prefixes);
}

/* ---- Open and close ----------------------------------------------------------------- */

static int take_alert_event(void *ctx, void *data, size_t size)
{
	struct alerts *alerts = ctx;

	if (size < sizeof(struct alert_event))
		return 0;
	alerts->on_event(alerts->ctx, data);
	if (alerts->slice_events)
		return --alerts->slice_events ? 0 : -EAGAIN;
	return clock_boot_ns() < alerts->slice_end_ns ? 0 : -EAGAIN;
}

static int open_alert_maps(struct alerts *alerts)
{
	const struct program_set *maps = &alerts->store->maps;

	alerts->entered = calloc(alerts->store->n_cpus, sizeof(*alerts->entered));
	if (!alerts->entered)
		return -ENOMEM;
	alerts->tables =
		program_set_mmap(maps, "alert_tables", sizeof(*alerts->tables));
	if (!alerts->tables)
		return -errno;
	alerts->counts =
		program_set_mmap(maps, "alert_counts", counts_size(alerts));
	if (!alerts->counts)
		return -errno;
	alerts->prefixes =
		program_set_mmap(maps, "alert_prefixes", prefixes_size(alerts));
	if (!alerts->prefixes)
		return -errno;
	log_borrow_libbpf(alerts->log);
	alerts->ring = ring_buffer__new(program_set_map_fd(maps, "alert_events"),
					take_alert_event, alerts, NULL);
	log_return_libbpf();
	return alerts->ring ? 0 : -errno;
}

int alerts_open(struct alerts *alerts, struct store *store,
		void (*on_event)(void *ctx, const struct alert_event *event),
		void *ctx, const struct log *log)
{
	int err;

	*alerts = (struct alerts){
		.log = log,
		.store = store,
		.on_event = on_event,
		.ctx = ctx,
	};
	err = open_alert_maps(alerts);
	if (!err)
		return 0;
	log_error(log, "cannot make BPF maps for alerts: %s", strerror(-err));
	alerts_close(alerts);
	return err;
}

void alerts_close(struct alerts *alerts)
{
	if (alerts->store) {
		map_munmap(alerts->tables, sizeof(*alerts->tables));
		map_munmap(alerts->counts, counts_size(alerts));
		map_munmap(alerts->prefixes, prefixes_size(alerts));
	}
	ring_buffer__free(alerts->ring);
	free(alerts->entered);
	*alerts = (struct alerts){ 0 };
}

/* ---- Alerts ------------------------------------------------------------------------- */

int alerts_fd(const struct alerts *alerts)
{
	return alerts->ring ? ring_buffer__epoll_fd(alerts->ring) : -EBADF;
}

void alerts_read(struct alerts *alerts)
{
	if (!alerts->ring)
		return;
	alerts->slice_end_ns = clock_boot_ns() + SLICE_MS * NSEC_PER_MSEC;
	ring_buffer__consume(alerts->ring);
}

/* The prefix counts of a rule in a table, on a CPU. */
static struct alert_prefix *prefix_at(const struct alerts *alerts, uint32_t cpu,
				      uint32_t table, uint32_t rule)
{
	return &alerts->prefixes[(cpu * 2 + table) * ALERT_RULES_MAX + rule];
}

static struct alert_prefix sum_prefixes(const struct alerts *alerts,
					uint32_t table, uint32_t rule)
{
	struct alert_prefix sum = { 0 };

	for (uint32_t cpu = 0; cpu < alerts->store->n_cpus; cpu++)
		counters_add(&sum, prefix_at(alerts, cpu, table, rule),
			     sizeof(sum));
	return sum;
}

/* A sample that breaks a rule breaks all earlier rules of its kind: only the last of these is counted. */
static void add_prefixes(const struct alerts *alerts, uint32_t number,
			 struct alert_prefix totals[ALERT_SLOTS])
{
	const struct alert_table *table = &alerts->tables->tables[number];

	for (uint32_t kind = 0; kind < ALERT_KINDS; kind++) {
		struct alert_prefix sum = { 0 };

		for (uint32_t i = table->first[kind + 1];
		     i > table->first[kind]; i--) {
			const struct alert_prefix more =
				sum_prefixes(alerts, number, i - 1);

			counters_add(&sum, &more, sizeof(sum));
			counters_add(&totals[table->rules[i - 1].slot], &sum,
				     sizeof(sum));
		}
	}
}

static void add_all_prefixes(const struct alerts *alerts,
			     struct alert_count totals[ALERT_SLOTS])
{
	struct alert_prefix prefixes[ALERT_SLOTS];

	memcpy(prefixes, alerts->before, sizeof(prefixes));
	for (uint32_t number = 0; number < 2; number++)
		add_prefixes(alerts, number, prefixes);
	for (uint32_t slot = 0; slot < ALERT_SLOTS; slot++) {
		totals[slot].broken += prefixes[slot].broken;
		totals[slot].held += prefixes[slot].held;
		totals[slot].limited += prefixes[slot].limited;
	}
}

/* Move the prefix counters of a table that no program reads to alerts->before. */
static void keep_prefixes(struct alerts *alerts, uint32_t number)
{
	add_prefixes(alerts, number, alerts->before);
	for (uint32_t cpu = 0; cpu < alerts->store->n_cpus; cpu++)
		memset(prefix_at(alerts, cpu, number, 0), 0,
		       ALERT_RULES_MAX * sizeof(*alerts->prefixes));
}

void alerts_count(const struct alerts *alerts,
		  struct alert_count ret_totals[ALERT_SLOTS])
{
	const size_t size = ALERT_SLOTS * sizeof(*ret_totals);

	memset(ret_totals, 0, size);
	for (uint32_t cpu = 0; alerts->counts && cpu < alerts->store->n_cpus;
	     cpu++)
		counters_add(ret_totals, &alerts->counts[cpu * ALERT_SLOTS],
			     size);
	if (alerts->prefixes)
		add_all_prefixes(alerts, ret_totals);
}

/* ---- Rules -------------------------------------------------------------------------- */

/* Programs that began before the table was replaced may still read the other one. */
static bool is_read(const struct alerts *alerts)
{
	const struct store *store = alerts->store;

	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++) {
		const struct cpu_state *state = &store->cpus[cpu];

		if (__atomic_load_n(&state->exited, __ATOMIC_ACQUIRE) <
		    alerts->entered[cpu])
			return true;
	}
	return false;
}

static void note_readers(struct alerts *alerts)
{
	const struct store *store = alerts->store;

	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++)
		alerts->entered[cpu] = __atomic_load_n(&store->cpus[cpu].entered,
						       __ATOMIC_ACQUIRE);
}

static void wait_for_readers(const struct alerts *alerts)
{
	const struct timespec step = { .tv_nsec = SETTLE_STEP_US * 1000 };
	const int64_t end_ns = clock_boot_ns() + SETTLE_MS * NSEC_PER_MSEC;

	while (is_read(alerts) && clock_boot_ns() < end_ns)
		nanosleep(&step, NULL);
}

/* EVENTS_MAX events are all that fit into the ring: any that are left after them came later. */
void alerts_read_all(struct alerts *alerts)
{
	if (!alerts->ring)
		return;
	note_readers(alerts); /* their reserved space ends what can be read */
	wait_for_readers(alerts);
	alerts->slice_events = EVENTS_MAX;
	ring_buffer__consume(alerts->ring);
	alerts->slice_events = 0;
}

/* Clear the limits of slots that are new to these rules: earlier rules may have used them. */
static void reset_limits(const struct alerts *alerts,
			 const struct alert_table *before,
			 const struct alert_table *table)
{
	const int limits =
		program_set_map_fd(&alerts->store->maps, "alert_limits");
	static const struct alert_limit none;
	bool is_kept[ALERT_SLOTS] = { false };

	for (uint32_t i = 0; i < before->n; i++)
		is_kept[before->rules[i].slot] = true;
	for (uint32_t i = 0; i < table->n; i++) {
		const uint32_t slot = table->rules[i].slot;

		if (!is_kept[slot])
			bpf_map_update_elem(limits, &slot, &none, BPF_ANY);
	}
}

void alerts_set_table(struct alerts *alerts, const struct alert_table *table)
{
	struct alert_tables *tables = alerts->tables;
	uint32_t next = !tables->active;

	wait_for_readers(alerts);
	keep_prefixes(alerts, next);
	reset_limits(alerts, &tables->tables[!next], table);
	alerts->serial += alerts->serial == UINT16_MAX ? 2 : 1;
	tables->tables[next] = *table;
	tables->tables[next].number = next;
	tables->tables[next].serial = alerts->serial;
	__atomic_store_n(&tables->active, next, __ATOMIC_SEQ_CST);
	note_readers(alerts);
}

/* ---- Filters ------------------------------------------------------------------------ */

struct knobs {
	enum link_kind link;
	uint32_t epoch;
	uint32_t part_bits;
};

static int prepare_alerts(struct bpf_object *object, void *ctx)
{
	struct alerts_bpf__rodata *rodata =
		program_set_knobs(object, sizeof(*rodata));
	const struct knobs *knobs = ctx;

	if (!rodata)
		return -ENOENT;
	rodata->config_link = knobs->link;
	rodata->config_is_filtered = true;
	rodata->config_epoch = knobs->epoch;
	rodata->config_part_bits = knobs->part_bits;
	return 0;
}

static int load_filter(struct alerts *alerts, const struct filter *filter,
		       struct knobs *knobs)
{
	struct filter_template template = { .name = "netobs_alert" };
	struct program_set set = {
		.name = "alerts_bpf",
		.elf = alerts_bpf__elf_bytes,
		.doing = "load a BPF program for alerts",
		.log = alerts->log,
		.base = &alerts->store->maps,
		.prepare = prepare_alerts,
		.ctx = knobs,
		.templates = &template,
		.n_templates = 1,
	};
	const struct filter_frames frames = {
		.link = knobs->link,
		.has_wire_len = alerts->store->options.clock == CLOCK_PACKET,
	};
	int fd = program_set_ref(&set);

	if (fd)
		return fd;
	fd = program_error(
		filter_load_bits(filter, &template, &frames, alerts->log));
	program_set_unref(&set);
	if (fd < 0 && fd != -E2BIG)
		log_error(alerts->log,
			  "cannot load a BPF program for alerts: %s%s",
			  strerror(-fd), program_hint(fd).text);
	return fd;
}

int alerts_set_filter(struct alerts *alerts, const struct filter *filter,
		      uint32_t epoch)
{
	int array = program_set_map_fd(&alerts->store->maps, "alert_filters");
	int fds[] = { [LINK_ETHERNET] = -1, [LINK_NONE] = -1 };
	int err = 0;

	if (alerts->store->lanes > 1) {
		log_error(alerts->log,
			  "alerts: kernels with PREEMPT_RT have no rules with 'where'");
		return -ENOTSUP;
	}
	for (uint32_t link = LINK_ETHERNET; !err && link <= LINK_NONE; link++) {
		struct knobs knobs = { (enum link_kind)link, epoch,
				       alerts->store->part_bits };

		fds[link] = load_filter(alerts, filter, &knobs);
		err = fds[link] < 0 ? fds[link] : 0;
	}
	for (uint32_t link = LINK_ETHERNET; !err && link <= LINK_NONE; link++)
		if (bpf_map_update_elem(array, &link, &fds[link], BPF_ANY))
			err = -errno;
	for (uint32_t link = LINK_ETHERNET; link <= LINK_NONE; link++)
		close_fd(&fds[link]);
	return err;
}
