// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "capture.h"

#include "base/clock.h"
#include "base/util.h"

#include "bpf/parse/tunnel.h" /* a knob of the skeleton */
#include "capture.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	WORK_MS = 10,	   /* of reading, in one call */
	LOOK_PACKETS = 64, /* between two looks at the clock */
	/* Programs take less from reading the clock to having written a packet. */
	ORDER_NS = 100000,
	RING_BYTES = 1 << 20, /* of each, at least */
	/* A rate is kept in each window; of low rates one holds few packets. */
	WINDOW_MS = 100,
	WINDOW_LONG_MS = 1000,
	RATE_LOW = 100,
};

/* ---- Ring buffers ------------------------------------------------------------------- */

/* The first page is the reader's; behind it are the kernel's, which are not writable. */
static int map_pages(struct ring *ring)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	void *pages = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED,
			   ring->fd, 0);

	if (pages == MAP_FAILED)
		return -errno;
	ring->consumer = pages;
	pages = mmap(NULL, page + 2 * ring->bytes, PROT_READ, MAP_SHARED,
		     ring->fd, (off_t)page);
	if (pages == MAP_FAILED)
		return -errno;
	ring->producer = pages;
	ring->data = (const uint8_t *)pages + page;
	return 0;
}

static void ring_close(struct ring *ring)
{
	const size_t page = sysconf(_SC_PAGESIZE);

	if (ring->consumer)
		munmap(ring->consumer, page);
	if (ring->producer)
		munmap((void *)ring->producer, page + 2 * ring->bytes);
	close_fd(&ring->fd);
	*ring = (struct ring){ .fd = -1 };
}

static int ring_open(struct ring *ring, size_t bytes)
{
	int err;

	*ring = (struct ring){
		.fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "packets", 0, 0,
				     bytes, NULL),
		.bytes = bytes,
	};
	err = ring->fd < 0 ? -errno : map_pages(ring);
	if (err)
		ring_close(ring);
	return err;
}

/* From now on, ring_peek() finds what is there now. */
static void ring_look(struct ring *ring)
{
	ring->end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
}

static const uint32_t *record_header(const struct ring *ring)
{
	return (const uint32_t *)(ring->data + (ring->at & (ring->bytes - 1)));
}

/* Go on behind the record that ring_peek() has found. It stays valid until ring_release(). */
static void ring_skip(struct ring *ring)
{
	const uint32_t flags = BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT;
	uint32_t len = (*record_header(ring) & ~flags) + BPF_RINGBUF_HDR_SZ;

	ring->at += (len + 7) / 8 * 8;
}

/* @return the next record; NULL: there is none, or a program still writes to it */
static const void *ring_peek(struct ring *ring)
{
	while (ring->at < ring->end) {
		const uint32_t *header = record_header(ring);
		uint32_t len = __atomic_load_n(header, __ATOMIC_ACQUIRE);

		if (len & BPF_RINGBUF_BUSY_BIT)
			return NULL;
		if (!(len & BPF_RINGBUF_DISCARD_BIT))
			return (const uint8_t *)header + BPF_RINGBUF_HDR_SZ;
		ring_skip(ring);
	}
	return NULL;
}

/* Give the room of records that were skipped back to programs. */
static void ring_release(struct ring *ring)
{
	if (*ring->consumer != ring->at)
		__atomic_store_n(ring->consumer, ring->at, __ATOMIC_RELEASE);
}

/* @return bytes that were not given back */
static size_t ring_used(const struct ring *ring)
{
	return __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) -
	       *ring->consumer;
}

/* ---- Maps and programs ------------------------------------------------------------- */

static int prepare_maps(struct bpf_object *object, void *ctx)
{
	struct bpf_program *program;

	(void)ctx;
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, false);
	return 0;
}

static uint32_t ring_bytes(const struct packets *packets)
{
	return packets->options.buffer_bytes / packets->n_rings;
}

/* In a ring buffer: they wake the reader at once. */
static uint32_t wake_bytes(const struct packets *packets)
{
	return ring_bytes(packets) / 4;
}

/* Parameters of programs when they are loaded. */
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
	rodata->config_wake = wake_bytes(knobs->packets);
	rodata->config_rings = knobs->packets->n_rings;
	rodata->config_ring_bytes = ring_bytes(knobs->packets);
	rodata->config_window_ns = window_ms * NSEC_PER_MSEC;
	rodata->config_window_packets = options->rate * window_ms / 1000;
	return 0;
}

/* One for each CPU, unless that makes them small. The burst of a CPU may fill all. */
static uint32_t count_rings(const struct packets *packets)
{
	uint32_t n = 1;

	while (n < CAPTURE_RINGS_MAX && n < (uint32_t)packets->n_cpus &&
	       packets->options.buffer_bytes / (2 * n) >= RING_BYTES)
		n *= 2;
	return n;
}

/*
 * The kernel waits for a grace period after each call. COMPAT(<5.13): no batches of maps in
 * maps.
 */
static int show_rings(int map_fd, const uint32_t *keys, const int *fds, uint32_t n)
{
	uint32_t done = n;

	if (!bpf_map_update_batch(map_fd, keys, fds, &done, NULL))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (bpf_map_update_elem(map_fd, &keys[i], &fds[i], BPF_ANY))
			return -errno;
	return 0;
}

static int open_rings(struct packets *packets)
{
	uint32_t keys[CAPTURE_RINGS_MAX], n = packets->n_rings;
	int fds[CAPTURE_RINGS_MAX];

	for (uint32_t i = 0; i < n; i++) {
		int err = ring_open(&packets->rings[i], ring_bytes(packets));

		if (err)
			return err;
		keys[i] = i;
		fds[i] = packets->rings[i].fd;
	}
	return show_rings(program_set_map_fd(&packets->maps, "rings"), keys,
			  fds, n);
}

static int open_packet_maps(struct packets *packets)
{
	packets->n_cpus = libbpf_num_possible_cpus();
	if (packets->n_cpus < 0)
		return packets->n_cpus;
	packets->n_rings = count_rings(packets);
	packets->per_cpu = calloc(packets->n_cpus, sizeof(*packets->per_cpu));
	return packets->per_cpu ? open_rings(packets) : -ENOMEM;
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
	for (int i = 0; i < CAPTURE_RINGS_MAX; i++)
		packets->rings[i].fd = -1;
	err = program_set_ref(&packets->maps);
	if (err)
		return err;
	err = open_packet_maps(packets);
	if (err)
		log_error(log, "cannot make ring buffers: %s", strerror(-err));
	return err;
}

void packets_close(struct packets *packets)
{
	if (!packets->log)
		return;
	for (int i = 0; i < CAPTURE_RINGS_MAX; i++)
		ring_close(&packets->rings[i]);
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

	return programs_load(&set, names, packets->options.direction,
			     packets->options.filter, &frames, ret_programs);
}

/* ---- What comes out --------------------------------------------------------------- */

bool packets_are_many(const struct packets *packets)
{
	for (uint32_t i = 0; i < packets->n_rings; i++)
		if (ring_used(&packets->rings[i]) >= wake_bytes(packets))
			return true;
	return false;
}

/*
 * The ring buffer that has the oldest packet; NULL: there is none up to @last_ns.
 *
 * @param ret_until_ns  up to then, the other ring buffers have none
 */
static struct ring *find_oldest(struct packets *packets, uint64_t last_ns,
				uint64_t *ret_until_ns)
{
	uint64_t oldest_ns = last_ns, until_ns = last_ns;
	struct ring *oldest = NULL;

	for (uint32_t i = 0; i < packets->n_rings; i++) {
		const struct capture_packet *packet =
			ring_peek(&packets->rings[i]);

		if (!packet || packet->time_ns > until_ns)
			continue;
		if (oldest && packet->time_ns >= oldest_ns) {
			until_ns = packet->time_ns;
			continue;
		}
		until_ns = oldest ? oldest_ns : last_ns;
		oldest_ns = packet->time_ns;
		oldest = &packets->rings[i];
	}
	*ret_until_ns = until_ns;
	return oldest;
}

/* @return how many; packets->result is not 0: on_packet() ended it */
static int read_run(struct packets *packets, struct ring *ring,
		    uint64_t until_ns, int max)
{
	const struct capture_packet *packet;
	int n = 0;

	while (n < max && !packets->result && (packet = ring_peek(ring)) &&
	       packet->time_ns <= until_ns) {
		packets->result = packets->on_packet(packets->ctx, packet);
		ring_skip(ring);
		n++;
	}
	return n;
}

/* @return how many: fewer than LOOK_PACKETS if there are no more, or on_packet() ended it */
static int read_batch(struct packets *packets, uint64_t last_ns)
{
	uint64_t until_ns;
	struct ring *ring;
	int n = 0;

	packets->result = 0;
	while (n < LOOK_PACKETS && !packets->result &&
	       (ring = find_oldest(packets, last_ns, &until_ns)))
		n += read_run(packets, ring, until_ns, LOOK_PACKETS - n);
	for (uint32_t i = 0; i < packets->n_rings; i++)
		ring_release(&packets->rings[i]);
	return n;
}

bool packets_are_none(const struct packets *packets)
{
	for (uint32_t i = 0; i < packets->n_rings; i++)
		if (ring_used(&packets->rings[i]))
			return false;
	return true;
}

/* All packets up to ORDER_NS ago are in the rings, so they can be put in order. */
int packets_read(struct packets *packets, int64_t until_ns)
{
	const int64_t now = clock_boot_ns();
	const int64_t last_ns = until_ns < now - ORDER_NS ? until_ns :
							    now - ORDER_NS;
	bool were_any = false;
	int n;

	for (uint32_t i = 0; i < packets->n_rings; i++)
		ring_look(&packets->rings[i]);
	do {
		n = read_batch(packets, last_ns);
		if (packets->result)
			return -ECANCELED;
		were_any |= n > 0;
		if (n < LOOK_PACKETS)
			return were_any || !packets_are_none(packets);
	} while (clock_boot_ns() < now + WORK_MS * NSEC_PER_MSEC);
	return -EAGAIN;
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
	for (int i = 0; i < packets->n_cpus; i++)
		counters_add(&sum, &packets->per_cpu[i], sizeof(sum));
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

/* ---- Tags ------------------------------------------------------------------------- */

enum { TAG_AT = 12 }; /* behind the addresses */

uint32_t tag_insert(uint8_t *frame, const struct capture_packet *packet,
		    uint32_t snap_length)
{
	const uint8_t *bytes = (const uint8_t *)(packet + 1);
	uint8_t *tag = frame + TAG_AT;

	if (packet->captured < TAG_AT) {
		memcpy(frame, bytes, packet->captured);
		return packet->captured;
	}
	memcpy(frame, bytes, TAG_AT);
	memcpy(tag, &packet->vlan_type, sizeof(packet->vlan_type));
	tag[2] = packet->vlan_tci >> 8;
	tag[3] = packet->vlan_tci;
	memcpy(tag + TAG_LEN, bytes + TAG_AT, packet->captured - TAG_AT);
	return min_u64(packet->captured + TAG_LEN, snap_length);
}
