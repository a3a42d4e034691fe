// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "prog.h"

#include "base/util.h"
#include "host.h"
#include "prog_skeleton.h"

#include "flows_default.skel.h"
#include "flows_nat.skel.h"
#include "flows_rtt.skel.h"
#include "flows_rtt_nat.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The verifier log is for a developer who changes the programs. */
static int print_libbpf(enum libbpf_print_level level, const char *format,
			va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static int on_notice(void *ctx, void *data, size_t size)
{
	struct prog *prog = ctx;

	(void)data;
	prog->n_notices++;
	return size == sizeof(__u64) ? 0 : -EINVAL;
}

static int make_tables(struct prog *prog)
{
	for (int i = 0; i < GENERATIONS; i++) {
		prog->overflows[i] =
			map_make_overflow(prog->options.overflow_room);
		if (prog->overflows[i] < 0)
			return prog->overflows[i];
	}
	return 0;
}

static int put_tables(struct prog *prog)
{
	int fd = bpf_map__fd(prog->skel->maps.overflows), err = 0;

	for (__u32 i = 0; i < GENERATIONS && !err; i++)
		err = map_update(fd, i, prog->overflows[i]);
	return err;
}

/* Of all packets. */
static void set_rate(struct flows_bpf *skel, const struct prog_options *options)
{
	skel->rodata->config_is_sampled = true;
	skel->rodata->config_judgement |= PROG_RATE << JUDGED_RATE_SHIFT;
	skel->rodata->config_rates[PROG_RATE].interval =
		options->sampling_interval;
	skel->rodata->config_rates[PROG_RATE].mode = options->sampling;
}

static void set_knobs(struct flows_bpf *skel, const struct prog *prog)
{
	const struct prog_options *options = &prog->options;

	skel->rodata->config_link = options->link;
	skel->rodata->config_overflow_part =
		options->overflow_room / prog->n_cpus / OVERFLOW_PARTS ?: 1;
	skel->rodata->config_clock = options->clock;
	if (options->sampling_interval)
		set_rate(skel, options);
	skel->rodata->config_netns = options->netns;
	skel->rodata->config_cpus = prog->n_cpus;
	skel->rodata->config_l1_buckets = options->l1_buckets;
	skel->rodata->config_log_slots = options->log_slots;
	skel->rodata->config_secret = host_secret;
	bpf_program__set_autoload(skel->progs.netobs_egress, options->has_egress);
}

static int size_flows(const struct flows_bpf *skel, const struct prog *prog)
{
	const struct prog_size sizes[] = {
		{ skel->maps.cpu_states, prog->n_cpus },
		{ skel->maps.l1_buckets, GENERATIONS * prog_l1_buckets(prog) },
		{ skel->maps.log_slots,
		  prog->options.log_slots ? prog->n_cpus * prog->options.log_slots :
					    1 },
	};

	return prog_set_sizes(sizes, ARRAY_SIZE(sizes));
}

static void choose_elf(struct bpf_object_skeleton *skel,
		       const struct prog_options *options)
{
	static const void *(*const elves[2][2])(size_t *) = {
		{ flows_default_bpf__elf_bytes, flows_nat_bpf__elf_bytes },
		{ flows_rtt_bpf__elf_bytes, flows_rtt_nat_bpf__elf_bytes },
	};

	if (options->is_general || options->link != LINK_ETHERNET ||
	    options->clock != CLOCK_HOST || options->sampling_interval ||
	    options->has_alerts)
		return;
	skel->data = (void *)elves[!!options->conn_buckets][!!options->has_nat](
		&skel->data_sz);
}

/* As flows_bpf__open(), with the programs that the library would choose. */
static struct flows_bpf *open_programs(const struct prog_options *options)
{
	struct flows_bpf *skel = calloc(1, sizeof(*skel));
	int err;

	if (!skel)
		return NULL;
	err = flows_bpf__create_skeleton(skel);
	if (!err) {
		choose_elf(skel->skeleton, options);
		err = bpf_object__open_skeleton(skel->skeleton, NULL);
	}
	if (!err)
		return skel;
	flows_bpf__destroy(skel);
	errno = -err;
	return NULL;
}

static int load(struct prog *prog)
{
	struct flows_bpf *skel = prog->skel = open_programs(&prog->options);
	int err;

	if (!skel)
		return -errno;
	set_knobs(skel, prog);
	err = size_flows(skel, prog);
	err = err ?: prog_size_connections(prog);
	err = err ?: prog_size_alerts(prog);
	return err ?: flows_bpf__load(skel);
}

static int open_flows(struct prog *prog)
{
	const struct flows_bpf *skel = prog->skel;

	prog->cpus = prog_map_array(skel->maps.cpu_states);
	prog->l1 = prog_map_array(skel->maps.l1_buckets);
	prog->log = prog_map_array(skel->maps.log_slots);
	prog->ring = ring_buffer__new(bpf_map__fd(skel->maps.notices),
				      on_notice, prog, NULL);
	return prog->cpus && prog->l1 && prog->log && prog->ring ? 0 : -ENOMEM;
}

int prog_open(struct prog *prog, const struct prog_options *options)
{
	int err;

	*prog = (struct prog){
		.options = *options,
		.n_cpus = libbpf_num_possible_cpus(),
		.overflows = { -1, -1 },
	};
	for (__u32 i = 0; i < PROG_PARTS_MAX; i++)
		prog->parts[i] = (struct conn_part){ -1, -1 };
	prog->options.conn_parts = options->conn_parts ?: 1;
	prog->options.l1_buckets = options->l1_buckets ?: 1;
	prog->options.overflow_room = options->overflow_room ?: PROG_FLOWS;

	libbpf_set_print(print_libbpf);
	err = load(prog);
	err = err ?: open_flows(prog);
	err = err ?: prog_open_connections(prog);
	err = err ?: prog_open_alerts(prog);
	err = err ?: make_tables(prog);
	err = err ?: put_tables(prog);
	if (err) {
		fprintf(stderr, "BPF programs (root is needed): %s\n",
			strerror(-err));
		prog_close(prog);
	}
	return err;
}

void prog_close(struct prog *prog)
{
	prog_close_alerts(prog);
	prog_close_connections(prog);
	ring_buffer__free(prog->ring);
	if (prog->skel) {
		prog_unmap_array(prog->cpus, prog->skel->maps.cpu_states);
		prog_unmap_array(prog->l1, prog->skel->maps.l1_buckets);
		prog_unmap_array(prog->log, prog->skel->maps.log_slots);
	}
	for (int i = 0; i < GENERATIONS; i++)
		close_fd(&prog->overflows[i]);
	flows_bpf__destroy(prog->skel);
	*prog = (struct prog){ .overflows = { -1, -1 } };
}

static int empty_hash(int fd, void *key)
{
	int err = 0;

	while (!err && !bpf_map_get_next_key(fd, NULL, key))
		err = bpf_map_delete_elem(fd, key);
	return err;
}

int prog_reset(struct prog *prog)
{
	struct fragment_key fragment;
	struct overflow_key overflow;

	ring_buffer__consume(prog->ring);
	memset(prog->l1, 0,
	       GENERATIONS * prog_l1_buckets(prog) * sizeof(*prog->l1));
	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++)
		memset(&prog->cpus[cpu], 0, sizeof(prog->cpus[cpu]));
	if (prog_reset_connections(prog))
		return -EIO;
	for (int i = 0; i < GENERATIONS; i++)
		if (empty_hash(prog->overflows[i], &overflow))
			return -EIO;
	prog->n_notices = 0;
	if (prog->lacks_table && put_tables(prog)) /* which waits for the kernel */
		return -EIO;
	prog->lacks_table = false;
	return empty_hash(bpf_map__fd(prog->skel->maps.fragments), &fragment);
}

int prog_pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int prog_run(struct prog *prog, const struct prog_packet *packet,
	     __u32 *ret_verdict)
{
	const struct bpf_program *program =
		packet->egress ? prog->skel->progs.netobs_egress :
				 prog->skel->progs.netobs_ingress;
	struct __sk_buff ctx = {
		.gso_segs = packet->gso_segs,
		.gso_size = packet->gso_size,
		.cb = { packet->time_ns & UINT32_MAX, packet->time_ns >> 32,
			packet->wire_len ?: packet->len },
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet->bytes,
		    .data_size_in = packet->len, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = packet->repeat);
	int err = bpf_prog_test_run_opts(bpf_program__fd(program), &opts);

	if (!err && ret_verdict)
		*ret_verdict = opts.retval;
	return err;
}

void prog_set_generation(struct prog *prog, __u32 generation)
{
	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++)
		__atomic_store_n(&prog->cpus[cpu].generation, generation,
				 __ATOMIC_SEQ_CST);
}
