// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What CPUs share on the path of a packet: cache lines of maps that packets on one CPU write,
 * and packets on another one as well. Each of them is moved between the CPUs for each packet, which
 * costs more than all else that the programs do. Every map of the programs is compared before and
 * after packets; hash tables and ring buffers, which have locks, count as one line each.
 */
#include "lib_test.h"

#include "bpf/store/hash.h"
#include "prog_skeleton.h"
#include "prog_test.h"
#include "tcp_frames.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>

enum {
	LINE = 64,
	CPUS = 2,
	MAPS_MAX = 64,
	ROUNDS = 16, /* packets on each CPU, none like another */
	PORTS = 4,   /* where a flow of one CPU begins */
};

/* ---- The contents of maps ---------------------------------------------------------- */

struct contents {
	const char *name;
	uint8_t *bytes;
	size_t size;
};

struct picture {
	struct contents maps[MAPS_MAX];
	size_t n;
};

static size_t step_of(const struct bpf_map *map)
{
	return (bpf_map__value_size(map) + 7) & ~7ul; /* as the kernel has them */
}

/* Mapped, where user space does so: a lookup for each element takes minutes in slow guests. */
static void copy_mapped(const struct bpf_map *map, struct contents *to)
{
	void *bytes =
		mmap(NULL, to->size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);

	assert_true(bytes != MAP_FAILED);
	memcpy(to->bytes, bytes, to->size);
	munmap(bytes, to->size);
}

static void read_elements(int fd, size_t step, uint32_t n, struct contents *ret)
{
	ret->size = n * step;
	ret->bytes = calloc(n, step);
	assert_non_null(ret->bytes);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(
			bpf_map_lookup_elem(fd, &i, ret->bytes + i * step), 0);
}

static void read_array(const struct bpf_map *map, struct contents *ret)
{
	const size_t step = step_of(map);
	const uint32_t n = bpf_map__max_entries(map);

	if (!(bpf_map__map_flags(map) & BPF_F_MMAPABLE)) {
		read_elements(bpf_map__fd(map), step, n, ret);
		return;
	}
	ret->size = n * step;
	ret->bytes = calloc(n, step);
	assert_non_null(ret->bytes);
	copy_mapped(map, ret);
}

/* How many bodies places have taken from it. */
static void read_queue(const struct prog *prog, struct contents *ret)
{
	uint64_t *taken = calloc(1, sizeof(*taken));

	assert_non_null(taken);
	for (uint32_t i = 0; i < prog->options.conn_buckets * CONN_WAYS; i++)
		*taken += prog->conn_rates[i].body > 0;
	ret->size = sizeof(*taken);
	ret->bytes = (uint8_t *)taken;
}

static void read_hash(const struct bpf_map *map, struct contents *ret)
{
	const size_t key_size = bpf_map__key_size(map),
		     size = key_size + step_of(map);
	const void *last = NULL;
	uint8_t key[256];

	assert_true(key_size <= sizeof(key));
	while (!bpf_map_get_next_key(bpf_map__fd(map), last, key)) {
		ret->bytes = realloc(ret->bytes, ret->size + size);
		assert_non_null(ret->bytes);
		memset(ret->bytes + ret->size, 0, size);
		memcpy(ret->bytes + ret->size, key, key_size);
		assert_int_equal(
			bpf_map_lookup_elem(bpf_map__fd(map), key,
					    ret->bytes + ret->size + key_size),
			0);
		ret->size += size;
		last = key;
	}
}

/* The position of its producers, on the page behind that of its consumer. */
static void read_ring(const struct bpf_map *map, struct contents *ret)
{
	const long page = sysconf(_SC_PAGESIZE);
	const uint64_t *position =
		mmap(NULL, page, PROT_READ, MAP_SHARED, bpf_map__fd(map), page);

	assert_true(position != MAP_FAILED);
	ret->size = sizeof(*position);
	ret->bytes = malloc(ret->size);
	assert_non_null(ret->bytes);
	memcpy(ret->bytes, position, ret->size);
	munmap((void *)position, page);
}

/* Programs, tables and parts that user space has put in there have maps of their own. */
static bool is_read_only(enum bpf_map_type type)
{
	return type == BPF_MAP_TYPE_ARRAY_OF_MAPS ||
	       type == BPF_MAP_TYPE_PROG_ARRAY;
}

static struct contents *add_contents(struct picture *picture, const char *name)
{
	struct contents *contents = &picture->maps[picture->n];

	assert_true(picture->n++ < MAPS_MAX);
	contents->name = name;
	return contents;
}

static void take_parts(const struct prog *prog, struct picture *ret)
{
	const uint32_t n = 1U << prog->part_bits;

	for (uint32_t i = 0; i < prog->n_parts; i++) {
		read_elements(prog->parts[i].bodies, sizeof(struct conn_body),
			      n, add_contents(ret, "conn_bodies"));
		if (prog->parts[i].states >= 0)
			read_elements(prog->parts[i].states,
				      sizeof(struct alert_state), n,
				      add_contents(ret, "alert_states"));
	}
}

static void take_picture(const struct prog *prog, struct picture *ret)
{
	const struct bpf_map *map;

	*ret = (struct picture){ 0 };
	take_parts(prog, ret);
	bpf_object__for_each_map(map, prog->skel->obj) {
		enum bpf_map_type type = bpf_map__type(map);
		struct contents *contents;

		if (is_read_only(type) || bpf_map__fd(map) < 0)
			continue;
		contents = add_contents(ret, bpf_map__name(map));
		if (type == BPF_MAP_TYPE_QUEUE)
			read_queue(prog, contents);
		else if (type == BPF_MAP_TYPE_ARRAY)
			read_array(map, contents);
		else if (type == BPF_MAP_TYPE_RINGBUF)
			read_ring(map, contents);
		else
			read_hash(map, contents);
	}
}

static void free_picture(struct picture *picture)
{
	for (size_t i = 0; i < picture->n; i++)
		free(picture->maps[i].bytes);
}

/* ---- Lines that packets write ---------------------------------------------------- */

/* By map, as in pictures: whether a CPU wrote line N. */
struct written {
	bool *lines[MAPS_MAX];
	size_t n[MAPS_MAX];
};

static void note_changes(const struct contents *before,
			 const struct contents *after, bool **lines, size_t *n)
{
	*n = after->size / LINE + 1;
	*lines = calloc(*n, sizeof(**lines));
	assert_non_null(*lines);
	if (before->size != after->size) {
		(*lines)[0] = true;
		return;
	}
	for (size_t i = 0; i < after->size; i++)
		if (before->bytes[i] != after->bytes[i])
			(*lines)[i / LINE] = true;
}

typedef void (*send_fn)(struct prog *prog, unsigned int cpu, unsigned int round);

static void run_on(struct prog *prog, unsigned int cpu, send_fn send,
		   struct written *ret)
{
	struct picture before, after;
	bool is_written = false;

	assert_int_equal(prog_pin(cpu), 0);
	take_picture(prog, &before);
	for (unsigned int round = 1; round <= ROUNDS; round++)
		send(prog, cpu, round);
	take_picture(prog, &after);
	for (size_t i = 0; i < after.n; i++) {
		note_changes(&before.maps[i], &after.maps[i], &ret->lines[i],
			     &ret->n[i]);
		is_written |= memchr(ret->lines[i], true, ret->n[i]) != NULL;
	}
	assert_true(is_written);
	free_picture(&before);
	free_picture(&after);
}

/* A map of which lines are shared; the list ends with NULL. */
struct shared {
	const char *map;
	size_t lines;
};

static size_t lines_of(const struct shared *shared, const char *map)
{
	for (; shared->map; shared++)
		if (!strcmp(shared->map, map))
			return shared->lines;
	return 0;
}

static size_t count_shared(const struct written *cpus, size_t map)
{
	size_t n = 0;

	for (size_t i = 0; i < cpus[0].n[map] && i < cpus[1].n[map]; i++)
		n += cpus[0].lines[map][i] && cpus[1].lines[map][i];
	return n;
}

static void forget(struct written *written)
{
	for (size_t i = 0; i < MAPS_MAX; i++)
		free(written->lines[i]);
}

/* The first packet of each flow comes before. @expected: what is shared from then on */
static void assert_shared(const struct prog_options *options, send_fn send,
			  const struct shared *expected)
{
	struct prog *prog = prog_test_open(options);
	struct written cpus[CPUS] = { 0 };
	struct picture names;
	size_t wrong = 0;

	assert_true(prog->n_cpus >= CPUS);
	for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
		assert_int_equal(prog_pin(cpu), 0);
		send(prog, cpu, 0);
	}
	for (unsigned int cpu = 0; cpu < CPUS; cpu++)
		run_on(prog, cpu, send, &cpus[cpu]);
	take_picture(prog, &names);
	for (size_t i = 0; i < names.n; i++) {
		size_t n = count_shared(cpus, i),
		       most = lines_of(expected, names.maps[i].name);

		if (n)
			print_message("%s: %zu lines are shared\n",
				      names.maps[i].name, n);
		wrong += n != most;
	}
	free_picture(&names);
	for (unsigned int cpu = 0; cpu < CPUS; cpu++)
		forget(&cpus[cpu]);
	assert_int_equal(wrong, 0);
}

/* ---- Packets ------------------------------------------------------------------- */

static const struct shared nothing[] = { { NULL, 0 } };

static const struct prog_options flows_options = {
	.clock = CLOCK_PACKET,
	.l1_buckets = 64,
	.log_slots = 1024,
	.has_egress = 1,
};

/* Of a connection that is open, all packets of it from the client. */
static void send_data(struct prog *prog, uint16_t port, unsigned int round)
{
	tcp_send(prog, tcp_out(port, ACK | PSH, 111 + 10 * round, 521, 10,
			       100000 + 1000 * round));
}

static void open_connection(struct prog *prog, uint16_t port)
{
	struct flow_key key;

	tcp_exchange(prog, (struct tcp_frame){ .port = port }, &key);
}

static void same_connection(struct prog *prog, unsigned int cpu,
			    unsigned int round)
{
	if (!round && !cpu)
		open_connection(prog, PORTS);
	else
		send_data(prog, PORTS, cpu * ROUNDS + round);
}

static void own_connections(struct prog *prog, unsigned int cpu,
			    unsigned int round)
{
	if (!round)
		open_connection(prog, PORTS + cpu);
	else
		send_data(prog, PORTS + cpu, round);
}

/* All of them are new, so that most go to the log. */
static void new_flows(struct prog *prog, unsigned int cpu, unsigned int round)
{
	for (unsigned int i = 0; i < 8; i++)
		send_data(prog, PORTS + (cpu * (ROUNDS + 1) + round) * 8 + i,
			  round);
}

static void fragments(struct prog *prog, unsigned int cpu, unsigned int round)
{
	enum { ID_LOW_BYTE = 5 };
	const struct layer first[] = { ETH,
				       IP4_FRAGMENT(IP4_MORE),
				       POKE(ID_LOW_BYTE, cpu * 100 + round),
				       UDP,
				       DATA(64),
				       {} };

	prog_test_layers(prog, first);
}

/* ---- What is promised ------------------------------------------------------------- */

TEST(flows_share_nothing)
{
	assert_shared(&flows_options, same_connection, nothing);
	assert_shared(&flows_options, own_connections, nothing);
	assert_shared(&flows_options, new_flows, nothing);
}

TEST(sampled_flows_share_nothing)
{
	struct prog_options options = flows_options;

	options.sampling = SAMPLE_PACKETS;
	options.sampling_interval = 2;
	assert_shared(&options, same_connection, nothing);
	assert_shared(&options, new_flows, nothing);
}

static const struct prog_options rtt_options = {
	.clock = CLOCK_PACKET,
	.l1_buckets = 64,
	.log_slots = 1024,
	.has_egress = 1,
	.conn_buckets = 64,
};

TEST(connections_of_different_cpus_share_nothing)
{
	struct prog_options with_alerts = rtt_options;

	with_alerts.has_alerts = 1;
	assert_shared(&rtt_options, own_connections, nothing);
	assert_shared(&with_alerts, own_connections, nothing);
}

/* Here, the table of notes has one line. */
TEST(timed_segments_share_lines_of_notes)
{
	static const struct shared notes[] = { { "leavings", 1 }, { NULL, 0 } };
	struct prog_options options = rtt_options;

	options.has_queues = 1;
	assert_shared(&options, own_connections, notes);
}

/* Its state is one: the lines that a segment changes. */
TEST(a_connection_of_two_cpus_shares_its_entry)
{
	static const struct shared entry[] = {
		{ "conn_heads", 1 },
		{ "conn_bodies", 1 },
		{ NULL, 0 },
	};

	assert_shared(&rtt_options, same_connection, entry);
}

/* The first of a datagram leaves its ports for the others, on whatever CPU they come. */
TEST(fragments_share_a_table)
{
	static const struct shared table[] = { { "fragments", 1 }, { NULL, 0 } };

	assert_shared(&flows_options, fragments, table);
}

/* A CPU whose log fills up wakes user space. */
TEST(full_logs_share_a_ring)
{
	static const struct shared ring[] = { { "notices", 1 }, { NULL, 0 } };
	struct prog_options options = flows_options;

	options.l1_buckets = 1;
	options.log_slots = 64;
	assert_shared(&options, new_flows, ring);
}
