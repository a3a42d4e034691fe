/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "store.h"

#include "bpf/parse/tunnel.h" /* a knob of the skeleton */
#include "util.h"

#include "flows.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

enum {
	L1_BITS_MAX = 12,
	L1_BITS_MIN = 8,
	L1_TOTAL_MAX = 64 << 20, /* bytes, over all CPUs and both generations */
};

/* 4096 slots per CPU, fewer on machines with very many CPUs. */
static uint32_t choose_l1_bits(uint32_t n_cpus)
{
	uint32_t bits = L1_BITS_MAX;

	while (bits > L1_BITS_MIN && ((uint64_t)GENERATIONS * n_cpus << bits) *
						     sizeof(struct flow_entry) >
					     L1_TOTAL_MAX)
		bits--;
	return bits;
}

static int create_l2(const struct store *store)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "netobs_l2",
				sizeof(struct flow_key),
				sizeof(struct flow_tally),
				store->options.max_flows, &opts);

	if (fd < 0)
		log_error(store->log,
			  "flow table of %u entries (--max-flows): %s",
			  store->options.max_flows, strerror(-fd));
	return fd;
}

static int put_l2(const struct store *store, uint32_t generation, int fd)
{
	return bpf_map_update_elem(bpf_map__fd(store->maps->maps.l2_tables),
				   &generation, &fd, BPF_ANY);
}

static int fill_l2(struct store *store)
{
	for (uint32_t i = 0; i < GENERATIONS; i++) {
		int err;

		store->l2_fds[i] = create_l2(store);
		if (store->l2_fds[i] < 0)
			return store->l2_fds[i];
		err = put_l2(store, i, store->l2_fds[i]);
		if (err) {
			log_error(store->log, "cannot use a flow table: %s",
				  strerror(-err));
			return err;
		}
		/* Leave a quarter for what comes until the drain. */
		store->tables[i].watermark =
			store->options.max_flows - store->options.max_flows / 4;
	}
	return 0;
}

static void *map_pages(const struct bpf_map *map, size_t size, off_t offset)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			   bpf_map__fd(map), offset);

	return pages == MAP_FAILED ? NULL : pages;
}

static size_t cpus_size(const struct store *store)
{
	return store->n_cpus * sizeof(struct cpu_state);
}

static size_t tables_size(void)
{
	return GENERATIONS * sizeof(struct table_state);
}

static size_t l1_region_size(const struct store *store)
{
	return (size_t)store_l1_slots(store) * sizeof(struct flow_entry);
}

static int size_maps(const struct store *store, struct flows_bpf *skel)
{
	uint32_t l1_total = (GENERATIONS * store->n_cpus) << store->l1_bits;
	int err = bpf_map__set_max_entries(skel->maps.cpu_states, store->n_cpus);

	err = err ?: bpf_map__set_max_entries(skel->maps.scratches, store->n_cpus);
	return err ?: bpf_map__set_max_entries(skel->maps.l1_entries, l1_total);
}

static int load_maps(struct store *store)
{
	struct bpf_program *program;
	struct flows_bpf *skel = flows_bpf__open();

	if (!skel)
		return -errno;
	store->maps = skel;
	bpf_object__for_each_program(program, skel->obj)
		bpf_program__set_autoload(program, false);
	return size_maps(store, skel) ?: flows_bpf__load(skel);
}

int store_open(struct store *store, const struct store_options *options,
	       const struct log *log)
{
	int err;

	*store = (struct store){
		.log = log,
		.options = *options,
		.n_cpus = libbpf_num_possible_cpus(),
		.l2_fds = { -1, -1 },
	};
	store->l1_bits = choose_l1_bits(store->n_cpus);

	log_borrow_libbpf(log);
	err = load_maps(store);
	log_return_libbpf();
	if (err) {
		log_error(log, "cannot make BPF maps: %s%s", strerror(-err),
			  err == -EPERM ? ": run as root, or with CAP_BPF, "
					  "CAP_NET_ADMIN and CAP_PERFMON" :
					  "");
		return err;
	}

	store->cpus =
		map_pages(store->maps->maps.cpu_states, cpus_size(store), 0);
	store->tables =
		map_pages(store->maps->maps.table_states, tables_size(), 0);
	if (!store->cpus || !store->tables) {
		err = -errno;
		log_error(log, "cannot map BPF maps: %s", strerror(-err));
		return err;
	}
	return fill_l2(store);
}

void store_close(struct store *store)
{
	if (store->cpus)
		munmap(store->cpus, cpus_size(store));
	if (store->tables)
		munmap(store->tables, tables_size());
	for (int i = 0; store->maps && i < GENERATIONS; i++)
		close_fd(&store->l2_fds[i]);
	flows_bpf__destroy(store->maps);
	*store = (struct store){ 0 };
}

static int share_maps(const struct store *store, struct flows_bpf *skel)
{
	struct bpf_map *map, *shared;

	bpf_object__for_each_map(map, skel->obj) {
		int err;

		if (bpf_map__is_internal(map)) /* knobs are the object's own */
			continue;
		shared = bpf_object__find_map_by_name(store->maps->obj,
						      bpf_map__name(map));
		err = bpf_map__reuse_fd(map, bpf_map__fd(shared));
		if (err)
			return err;
	}
	return 0;
}

static int load_programs(const struct store *store, uint16_t netns,
			 enum link_kind link, struct flows_bpf *skel)
{
	uint32_t ring_size = bpf_map__max_entries(skel->maps.events);

	skel->rodata->config_netns = netns;
	skel->rodata->config_link = link;
	skel->rodata->config_clock = store->options.clock;
	skel->rodata->config_cpus = store->n_cpus;
	skel->rodata->config_l1_bits = store->l1_bits;
	skel->rodata->config_ring_wake = ring_size / 4;
	return share_maps(store, skel) ?: flows_bpf__load(skel);
}

static int dup_programs(const struct flows_bpf *skel,
			struct programs *ret_programs)
{
	struct programs programs = { {
		fcntl(bpf_program__fd(skel->progs.netobs_ingress),
		      F_DUPFD_CLOEXEC, 0),
		fcntl(bpf_program__fd(skel->progs.netobs_egress),
		      F_DUPFD_CLOEXEC, 0),
	} };

	if (programs.fds[0] < 0 || programs.fds[1] < 0) {
		int err = -errno;

		programs_close(&programs);
		return err;
	}
	*ret_programs = programs;
	return 0;
}

int store_load_programs(struct store *store, uint16_t netns,
			enum link_kind link, struct programs *ret_programs)
{
	struct flows_bpf *skel;
	int err;

	log_borrow_libbpf(store->log);
	skel = flows_bpf__open();
	err = skel ? load_programs(store, netns, link, skel) : -errno;
	log_return_libbpf();

	if (!err)
		err = dup_programs(skel, ret_programs);
	flows_bpf__destroy(skel);
	if (err)
		log_error(store->log, "cannot load BPF programs: %s",
			  strerror(-err));
	return err;
}

void programs_close(struct programs *programs)
{
	close_fd(&programs->fds[NETOBS_INGRESS]);
	close_fd(&programs->fds[NETOBS_EGRESS]);
}

struct flow_entry *store_map_l1(const struct store *store, uint32_t generation,
				uint32_t cpu)
{
	size_t size = l1_region_size(store);
	off_t offset = (off_t)(generation * store->n_cpus + cpu) * size;

	return map_pages(store->maps->maps.l1_entries, size, offset);
}

void store_unmap_l1(const struct store *store, struct flow_entry *entries)
{
	munmap(entries, l1_region_size(store));
}

int store_swap_l2(struct store *store, uint32_t generation, int *ret_old_fd)
{
	int fd = create_l2(store), err;

	if (fd < 0)
		return fd;
	err = put_l2(store, generation, fd);
	if (err) {
		close(fd);
		return err;
	}
	*ret_old_fd = store->l2_fds[generation];
	store->l2_fds[generation] = fd;
	return 0;
}

int store_events_fd(const struct store *store)
{
	return bpf_map__fd(store->maps->maps.events);
}

/*
 * The ring buffer's pages are all present once they are mapped, twice its size:
 * it is mapped only while there is something in it, which is rare.
 */
int store_read_events(const struct store *store,
		      int (*on_event)(void *ctx, void *data, size_t size),
		      void *ctx)
{
	struct pollfd fd = { .fd = store_events_fd(store), .events = POLLIN };
	struct ring_buffer *ring;
	int ret;

	if (poll(&fd, 1, 0) <= 0)
		return 0;
	ring = ring_buffer__new(fd.fd, on_event, ctx, NULL);
	if (!ring)
		return -errno;
	ret = ring_buffer__consume(ring);
	ring_buffer__free(ring);
	return ret < 0 ? ret : 0;
}

/* Counters are nothing but 64-bit sums. */
static void add_counters(struct counters *to, const struct counters *from)
{
	const __u64 *value = (const __u64 *)from;
	__u64 *sum = (__u64 *)to;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*sum); i++)
		sum[i] += value[i];
}

void store_read_counters(const struct store *store, uint32_t generation,
			 struct counters *ret_counters)
{
	memset(ret_counters, 0, sizeof(*ret_counters));
	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++)
		add_counters(ret_counters,
			     &store->cpus[cpu].counters[generation]);
}
