// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "prog.h"

#include "base/util.h"
#include "bpf/store/conn_places.h"
#include "prog_skeleton.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

static __u32 count_places(const struct prog *prog)
{
	return CONN_WAYS * prog->options.conn_buckets;
}

/* The programs read the maps of connections, whether or not there are any: then one of each. */
static int size_table(const struct flows_bpf *skel, const struct prog *prog)
{
	const __u32 buckets = prog->options.conn_buckets ?: 1;
	const struct prog_size sizes[] = {
		{ skel->maps.conn_buckets, buckets },
		{ skel->maps.conn_heads, CONN_WAYS * buckets },
		{ skel->maps.conn_rates, CONN_WAYS * buckets },
		{ skel->maps.conn_counters, prog->n_cpus },
	};

	return prog_set_sizes(sizes, ARRAY_SIZE(sizes));
}

/* The bodies of connections, and what rules know about these. */
static int set_first_part(const struct flows_bpf *skel, struct prog *prog)
{
	int err = conn_part_make(prog->part_bits, prog->options.has_alerts,
				 &prog->parts[0]);

	if (!err)
		err = bpf_map__set_inner_map_fd(skel->maps.conn_bodies,
						prog->parts[0].bodies);
	if (!err && prog->options.has_alerts)
		err = bpf_map__set_inner_map_fd(skel->maps.alert_states,
						prog->parts[0].states);
	return err;
}

static int size_parts(struct flows_bpf *skel, struct prog *prog)
{
	const __u32 n = prog->options.conn_parts;
	const struct prog_size sizes[] = {
		{ skel->maps.conn_bodies, n },
		{ skel->maps.alert_states, n },
		{ skel->maps.conn_free, count_places(prog) },
	};
	int err;

	if (!count_places(prog))
		return 0;
	while (n << prog->part_bits < count_places(prog))
		prog->part_bits++;
	skel->rodata->config_part_bits = prog->part_bits;
	err = set_first_part(skel, prog);
	return err ?: prog_set_sizes(sizes, ARRAY_SIZE(sizes));
}

int prog_size_connections(struct prog *prog)
{
	struct flows_bpf *skel = prog->skel;
	int err;

	skel->rodata->config_rtt = !!prog->options.conn_buckets;
	skel->rodata->config_has_queues = prog->options.has_queues;
	skel->rodata->config_conn_buckets = prog->options.conn_buckets ?: 1;
	err = size_table(skel, prog);
	return err ?: size_parts(skel, prog);
}

static size_t part_size(const struct prog *prog)
{
	return sizeof(struct conn_body) << prog->part_bits;
}

static int offer_bodies(const struct prog *prog, __u32 part)
{
	const int fd = bpf_map__fd(prog->skel->maps.conn_free);
	__u32 body = part << prog->part_bits;
	int err = 0;

	for (__u32 i = 0; !err && i < 1U << prog->part_bits; i++) {
		body++;
		err = bpf_map_update_elem(fd, NULL, &body, BPF_ANY);
	}
	return err;
}

/* The next one, which was made. */
static int put_part(struct prog *prog)
{
	const struct flows_bpf *skel = prog->skel;
	const __u32 number = prog->n_parts;
	const struct conn_part *part = &prog->parts[number];
	int err = 0;

	if (part->states >= 0)
		err = map_update(bpf_map__fd(skel->maps.alert_states), number,
				 part->states);
	if (!err)
		err = map_update(bpf_map__fd(skel->maps.conn_bodies), number,
				 part->bodies);
	if (err)
		return err;
	prog->conn_bodies[number] = map_mmap(part->bodies, 0, part_size(prog));
	if (!prog->conn_bodies[number])
		return -errno;
	prog->n_parts++;
	return offer_bodies(prog, number);
}

int prog_grow(struct prog *prog)
{
	const __u32 number = prog->n_parts;
	int err;

	if (number == prog->options.conn_parts)
		return -ENOSPC;
	err = conn_part_make(prog->part_bits, prog->options.has_alerts,
			     &prog->parts[number]);
	return err ?: put_part(prog);
}

int prog_open_connections(struct prog *prog)
{
	const struct flows_bpf *skel = prog->skel;

	prog->conn_heads = prog_map_array(skel->maps.conn_heads);
	prog->conn_rates = prog_map_array(skel->maps.conn_rates);
	prog->conn_buckets = prog_map_array(skel->maps.conn_buckets);
	if (!prog->conn_heads || !prog->conn_rates || !prog->conn_buckets)
		return -ENOMEM;
	return prog->options.conn_buckets ? put_part(prog) : 0;
}

void prog_close_connections(struct prog *prog)
{
	if (prog->skel) {
		prog_unmap_array(prog->conn_heads, prog->skel->maps.conn_heads);
		prog_unmap_array(prog->conn_rates, prog->skel->maps.conn_rates);
		prog_unmap_array(prog->conn_buckets,
				 prog->skel->maps.conn_buckets);
	}
	for (__u32 i = 0; i < prog->options.conn_parts; i++) {
		map_munmap(prog->conn_bodies[i], part_size(prog));
		conn_part_close(&prog->parts[i]);
	}
}

/* No place has one. */
static int reset_bodies(struct prog *prog)
{
	const int fd = bpf_map__fd(prog->skel->maps.conn_free);
	__u32 body;
	int err = 0;

	while (!bpf_map_lookup_and_delete_elem(fd, NULL, &body))
		;
	for (__u32 i = 0; !err && i < prog->n_parts; i++) {
		memset(prog->conn_bodies[i], 0, part_size(prog));
		err = offer_bodies(prog, i);
	}
	return err;
}

static int reset_counters(const struct prog *prog)
{
	const struct conn_counters none = { 0 };

	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++)
		if (bpf_map_update_elem(bpf_map__fd(prog->skel->maps.conn_counters),
					&cpu, &none, BPF_ANY))
			return -EIO;
	return 0;
}

int prog_reset_connections(struct prog *prog)
{
	const __u32 n = prog->options.conn_buckets;

	memset(prog->conn_buckets, 0, n * sizeof(*prog->conn_buckets));
	memset(prog->conn_heads, 0, n * CONN_WAYS * sizeof(*prog->conn_heads));
	memset(prog->conn_rates, 0, n * CONN_WAYS * sizeof(*prog->conn_rates));
	return reset_counters(prog) || reset_bodies(prog) ? -EIO : 0;
}

struct connection prog_connection_at(const struct prog *prog, __u32 place)
{
	const __u32 number = prog->conn_rates[place].body - 1;
	const __u32 part = number >> prog->part_bits;

	if (part >= prog->n_parts)
		return (struct connection){ NULL, NULL, NULL };
	return (struct connection){
		.head = &prog->conn_heads[place],
		.rates = &prog->conn_rates[place],
		.body = &prog->conn_bodies[part][number - (part << prog->part_bits)],
	};
}

struct connection prog_connection(const struct prog *prog,
				  const struct flow_key *key)
{
	int dir = connection_dir(key);
	struct conn_key wanted = conn_key_of(key, dir);

	for (__u32 i = 0; i < count_places(prog); i++) {
		const struct connection conn = prog_connection_at(prog, i);

		if (conn.body && conn.head->version &&
		    is_connection(conn.body, &wanted))
			return conn;
	}
	return (struct connection){ NULL, NULL, NULL };
}

struct conn_counters prog_conn_counters(const struct prog *prog)
{
	struct conn_counters sum = { 0 }, one;

	for (__u32 cpu = 0; cpu < prog->n_cpus; cpu++) {
		if (bpf_map_lookup_elem(bpf_map__fd(prog->skel->maps.conn_counters),
					&cpu, &one))
			return (struct conn_counters){ 0 };
		counters_add(&sum, &one, sizeof(sum));
	}
	return sum;
}
