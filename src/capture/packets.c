// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "packets.h"

#include "base/clock.h"
#include "base/util.h"

#include "capture.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	WORK_MS = 10,	   /* of reading, in one call */
	LOOK_PACKETS = 64, /* between two looks at the clock */
	/* A rate is kept in each window; of low rates one holds few packets. */
	WINDOW_MS = 100,
	WINDOW_LONG_MS = 1000,
	RATE_LOW = 100,
};

/* ---- Maps and programs ------------------------------------------------------------- */

static int prepare_maps(struct bpf_object *object, void *ctx)
{
	const struct packets *packets = ctx;
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, false);
	return bpf_map__set_max_entries(bpf_object__find_map_by_name(object,
								     "packets"),
					packets->options.buffer_bytes);
}

/* In the ring buffer: they wake the reader at once. */
static uint32_t wake_bytes(const struct packets_options *options)
{
	return options->buffer_bytes / 4;
}

/* What programs are loaded for. */
struct capture_knobs {
	const struct packets *packets;
	uint16_t netns;
	enum link_kind link;
};

static int prepare_programs(struct bpf_object *object, void *ctx)
{
	struct capture_bpf__rodata *rodata =
		program_set_knobs(object, sizeof(*rodata));
	const struct capture_knobs *knobs = ctx;
	const struct packets_options *options = &knobs->packets->options;
	bool is_low = options->rate < RATE_LOW;
	uint64_t window_ms = is_low ? WINDOW_LONG_MS : WINDOW_MS;

	if (!rodata)
		return -ENOENT;
	rodata->config_netns = knobs->netns;
	rodata->config_link = knobs->link;
	rodata->config_is_filtered = !!options->filter;
	rodata->config_snap = options->snap_length;
	rodata->config_wake = wake_bytes(options);
	rodata->config_window_ns = window_ms * NSEC_PER_MSEC;
	rodata->config_window_packets = options->rate * window_ms / 1000;
	return 0;
}

static int handle_sample(void *ctx, void *data, size_t size)
{
	struct packets *packets = ctx;

	(void)size;
	packets->result = packets->on_packet(packets->ctx, data);
	/* libbpf goes on after a positive one. */
	if (packets->result)
		return -ECANCELED;
	if (--packets->until_look)
		return 0;
	packets->until_look = LOOK_PACKETS;
	return clock_boot_ns() >= packets->end_ns ? -EAGAIN : 0;
}

/* libbpf before 1.3 does not return them. */
static int map_positions(struct packets *packets)
{
	void *pages = mmap(NULL, 2 * sysconf(_SC_PAGESIZE), PROT_READ,
			   MAP_SHARED, packets_fd(packets), 0);

	if (pages == MAP_FAILED)
		return -errno;
	packets->positions = pages;
	return 0;
}

int packets_open(struct packets *packets, const struct packets_options *options,
		 int (*on_packet)(void *ctx, const struct capture_packet *packet),
		 void *ctx, const struct log *log)
{
	int err;

	*packets = (struct packets){
		.log = log,
		.options = *options,
		.maps = {
			.name = "capture_bpf",
			.elf = capture_bpf__elf_bytes,
			.doing = "make BPF maps",
			.log = log,
			.prepare = prepare_maps,
			.ctx = packets,
		},
		.on_packet = on_packet,
		.ctx = ctx,
	};
	err = program_set_ref(&packets->maps);
	if (err)
		return err;
	log_borrow_libbpf(log);
	packets->n_cpus = libbpf_num_possible_cpus();
	packets->ring = ring_buffer__new(packets_fd(packets), handle_sample,
					 packets, NULL);
	err = packets->ring ? 0 : -errno;
	log_return_libbpf();
	err = err ?: map_positions(packets);
	if (!err && packets->n_cpus < 0)
		err = packets->n_cpus;
	if (!err) {
		packets->per_cpu =
			calloc(packets->n_cpus, sizeof(*packets->per_cpu));
		err = packets->per_cpu ? 0 : -ENOMEM;
	}
	if (!err)
		return 0;
	log_error(log, "cannot map the ring buffer: %s", strerror(-err));
	return err;
}

void packets_close(struct packets *packets)
{
	if (!packets->log)
		return;
	ring_buffer__free(packets->ring);
	if (packets->positions)
		munmap((void *)packets->positions, 2 * sysconf(_SC_PAGESIZE));
	free(packets->per_cpu);
	program_set_unref(&packets->maps);
	*packets = (struct packets){ 0 };
}

int packets_load_programs(struct packets *packets, uint16_t netns,
			  enum link_kind link, struct programs *ret_programs)
{
	static const char *const names[] = { "netobs_capt_in", "netobs_capt_out" };
	const struct filter_frames frames = { .link = link };
	struct capture_knobs knobs = { packets, netns, link };
	struct program_set set = {
		.name = "capture_bpf",
		.elf = capture_bpf__elf_bytes,
		.doing = "load BPF programs",
		.log = packets->log,
		.base = &packets->maps,
		.prepare = prepare_programs,
		.ctx = &knobs,
	};

	return programs_load(&set, names, packets->options.filter, &frames,
			     ret_programs);
}

/* ---- What comes out --------------------------------------------------------------- */

int packets_fd(const struct packets *packets)
{
	return program_set_map_fd(&packets->maps, "packets");
}

bool packets_are_many(const struct packets *packets)
{
	const char *positions = packets->positions;
	const unsigned long *read = (const unsigned long *)positions;
	const unsigned long *written =
		(const unsigned long *)(positions + sysconf(_SC_PAGESIZE));

	return __atomic_load_n(written, __ATOMIC_ACQUIRE) -
		       __atomic_load_n(read, __ATOMIC_ACQUIRE) >=
	       wake_bytes(&packets->options);
}

int packets_read(struct packets *packets)
{
	packets->until_look = LOOK_PACKETS;
	packets->end_ns = clock_boot_ns() + WORK_MS * NSEC_PER_MSEC;
	return ring_buffer__consume(packets->ring);
}

int packets_stop(const struct packets *packets)
{
	const struct capture_window closed = { .is_closed = 1 };
	int fd = program_set_map_fd(&packets->maps, "window");
	const uint32_t first = 0;

	return bpf_map_update_elem(fd, &first, &closed, BPF_ANY) ? -errno : 0;
}

struct capture_counters packets_counters(const struct packets *packets,
					 struct capture_interface_key key)
{
	int fd = program_set_map_fd(&packets->maps, "counters");
	struct capture_counters sum = { 0 };

	if (bpf_map_lookup_elem(fd, &key, packets->per_cpu))
		return sum;
	for (int i = 0; i < packets->n_cpus; i++) {
		sum.matched += packets->per_cpu[i].matched;
		sum.limited += packets->per_cpu[i].limited;
		sum.lost += packets->per_cpu[i].lost;
	}
	return sum;
}

int packets_next_interface(const struct packets *packets,
			   const struct capture_interface_key *key,
			   struct capture_interface_key *ret_next)
{
	int fd = program_set_map_fd(&packets->maps, "counters");

	return bpf_map_get_next_key(fd, key, ret_next) ? -ENOENT : 0;
}

uint64_t packets_uncounted(const struct packets *packets)
{
	int fd = program_set_map_fd(&packets->maps, "uncounted");
	uint64_t *per_cpu = (uint64_t *)packets->per_cpu, sum = 0;
	uint32_t key = 0;

	if (bpf_map_lookup_elem(fd, &key, per_cpu))
		return 0;
	for (int i = 0; i < packets->n_cpus; i++)
		sum += per_cpu[i];
	return sum;
}
