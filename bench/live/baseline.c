/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * baseline empty|v0|host-int INTERFACE: one of the programs of baseline.bpf.c on both
 * directions, where netobs would be. Says "ready" when it is attached; those that send
 * records say on SIGINT what they counted, as JSON.
 */
#include "attach/attach.h"
#include "flow_sums.h"
#include "round_trips.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "baseline.skel.h"

enum { POLL_MS = 100 };

static volatile sig_atomic_t stopped;

static void on_baseline_signal(int number)
{
	(void)number;
	stopped = 1;
}

/* What is computed from records. */
struct sums {
	struct flow_sums flows;
	struct round_trips trips;
};

static int on_sample(void *user, void *data, size_t size)
{
	struct sums *sums = user;

	(void)size;
	return flow_sums_add(&sums->flows, data);
}

static int on_report(void *user, void *data, size_t size)
{
	const struct packet_report *report = data;
	struct sums *sums = user;

	(void)size;
	round_trips_add(&sums->trips, report);
	return flow_sums_add(&sums->flows, &report->sample);
}

struct kind {
	const char *name;
	const char *program;
	ring_buffer_sample_fn on_record; /* NULL: it sends none */
};

static const struct kind kinds[] = {
	{ "empty", "baseline_empty", NULL },
	{ "v0", "baseline_v0", on_sample },
	{ "host-int", "baseline_report", on_report },
};

static void print_baseline_log(int level, const char *message, void *user)
{
	(void)user;
	if (level <= NETOBS_LOG_WARNING)
		fprintf(stderr, "%s\n", message);
}

static const struct log log_stderr = { .write = print_baseline_log };

static int attach_both(const char *interface, uint32_t ifindex,
		       const struct bpf_program *program,
		       struct attachment *attachment)
{
	struct attach_options options = {
		.log = &log_stderr,
		.use_tcx = true,
		.use_clsact = true,
		.directions = { true, true },
	};
	struct programs programs;

	if (!ifindex)
		return -ENODEV;
	for (int d = INGRESS; d <= EGRESS; d++)
		programs.fds[d] = bpf_program__fd(program);
	return attach(&options, ifindex, interface, &programs, attachment);
}

/* Until a signal comes; @ring is NULL when the program sends nothing. */
static int read_samples(struct ring_buffer *ring)
{
	int ret = 0;

	printf("ready\n");
	fflush(stdout);
	/* To be stopped and continued interrupts a wait as well. */
	while (!stopped && (ret >= 0 || ret == -EINTR)) {
		ret = ring ? ring_buffer__poll(ring, POLL_MS) : 0;
		if (!ring)
			poll(NULL, 0, POLL_MS);
	}
	return stopped || ret >= 0 ? 0 : ret;
}

static int observe_interface(const char *interface,
			     const struct bpf_program *program,
			     struct ring_buffer *ring)
{
	struct attachment attachment = ATTACHMENT_NONE;
	uint32_t ifindex = if_nametoindex(interface);
	int err;

	err = attach_both(interface, ifindex, program, &attachment);
	if (err)
		return err;
	err = read_samples(ring);
	detach(&log_stderr, &attachment, ifindex);
	if (!err && ring)
		err = ring_buffer__consume(ring);
	return err < 0 ? err : 0;
}

static void print_sums(const struct sums *sums, uint64_t lost)
{
	const struct round_trips *trips = &sums->trips;

	printf("{\"packets\": %ju, \"bytes\": %ju, \"flows\": %ju, \"lost\": %ju, "
	       "\"rtt_samples\": %ju, \"rtt_mean_ns\": %ju}\n",
	       (uintmax_t)sums->flows.packets, (uintmax_t)sums->flows.bytes,
	       (uintmax_t)sums->flows.n_flows, (uintmax_t)lost,
	       (uintmax_t)trips->samples,
	       (uintmax_t)(trips->samples ? trips->sum_ns / trips->samples : 0));
}

static int run_reader(const char *interface, const struct kind *kind,
		      const struct bpf_program *program,
		      const struct baseline_bpf *skel)
{
	struct ring_buffer *ring = NULL;
	struct sums sums = { 0 };
	int err = flow_sums_init(&sums.flows);

	err = err ?: round_trips_init(&sums.trips);
	if (!err) {
		ring = ring_buffer__new(bpf_map__fd(skel->maps.samples),
					kind->on_record, &sums, NULL);
		err = ring ? observe_interface(interface, program, ring) : -errno;
	}
	if (!err)
		print_sums(&sums, skel->bss->overflows);
	ring_buffer__free(ring);
	flow_sums_free(&sums.flows);
	round_trips_free(&sums.trips);
	return err;
}

static int run_kind(const char *interface, const struct kind *kind,
		    struct baseline_bpf *skel)
{
	struct bpf_program *program, *chosen = NULL;
	int err;

	bpf_object__for_each_program(program, skel->obj) {
		bool is_it = !strcmp(bpf_program__name(program), kind->program);

		bpf_program__set_autoload(program, is_it);
		chosen = is_it ? program : chosen;
	}
	bpf_map__set_autocreate(skel->maps.samples, kind->on_record);
	err = baseline_bpf__load(skel);
	if (err)
		return err;
	return kind->on_record ? run_reader(interface, kind, chosen, skel) :
				 observe_interface(interface, chosen, NULL);
}

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_baseline_signal };
	const struct kind *kind = argc == 3 ? find_kind(argv[1]) : NULL;
	struct baseline_bpf *skel;
	int err;

	if (!kind) {
		fprintf(stderr, "Usage: baseline empty|v0|host-int INTERFACE\n");
		return 2;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	skel = baseline_bpf__open();
	if (!skel) {
		fprintf(stderr, "baseline: %s\n", strerror(errno));
		return 1;
	}
	err = run_kind(argv[2], kind, skel);
	baseline_bpf__destroy(skel);
	if (err)
		fprintf(stderr, "baseline: %s\n", strerror(-err));
	return err ? 1 : 0;
}
