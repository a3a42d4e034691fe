// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "packets.h"

#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

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

int ring_open(struct ring *ring, size_t bytes)
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

void ring_close(struct ring *ring)
{
	const size_t page = sysconf(_SC_PAGESIZE);

	if (ring->consumer)
		munmap(ring->consumer, page);
	if (ring->producer)
		munmap((void *)ring->producer, page + 2 * ring->bytes);
	close_fd(&ring->fd);
	*ring = (struct ring){ .fd = -1 };
}

void ring_look(struct ring *ring)
{
	ring->end = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
}

static const uint32_t *record_header(const struct ring *ring)
{
	return (const uint32_t *)(ring->data + (ring->at & (ring->bytes - 1)));
}

const void *ring_peek(struct ring *ring)
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

void ring_skip(struct ring *ring)
{
	const uint32_t flags = BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT;
	uint32_t len = (*record_header(ring) & ~flags) + BPF_RINGBUF_HDR_SZ;

	ring->at += (len + 7) / 8 * 8;
}

void ring_release(struct ring *ring)
{
	if (*ring->consumer != ring->at)
		__atomic_store_n(ring->consumer, ring->at, __ATOMIC_RELEASE);
}

size_t ring_used(const struct ring *ring)
{
	return __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) -
	       *ring->consumer;
}
