/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The kernel side of a capture: its maps, the programs that share them, and their packets. */
#ifndef NETOBS_CAPTURE_PACKETS_H
#define NETOBS_CAPTURE_PACKETS_H

#include "bpf/capture.h"
#include "engine/program_set.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A ring buffer of the kernel whose records can be looked at before they are taken, so that
 * those of several ring buffers can be put in order. libbpf's reader hands each over at once,
 * and writes its position with each, to memory that programs read.
 */

struct ring {
	int fd; /* becomes readable when a program says so */
	size_t bytes;
	unsigned long *consumer; /* pages of the kernel's: how far it was read, and */
	const unsigned long *producer; /* written, with the data behind it, twice */
	const uint8_t *data;
	unsigned long at;  /* which the kernel knows once it is released */
	unsigned long end; /* of what was there at the last look */
};

struct packets_options {
	uint32_t snap_length;
	uint32_t rate;	       /* packets per second; 0: any number */
	uint32_t buffer_bytes; /* a power of two; of all ring buffers */
	enum netobs_direction direction; /* direction of packets that are captured */
	const struct filter *filter; /* NULL: all packets; stays the caller's */
};

struct packets {
	const struct log *log;
	struct packets_options options;
	struct program_set maps; /* without programs */
	struct ring rings[CAPTURE_RINGS_MAX];
	uint32_t n_rings;
	struct capture_counters *per_cpu; /* room to read counters */
	int n_cpus;
	int (*on_packet)(void *ctx, const struct capture_packet *packet);
	void *ctx;
	int result; /* result of the latest on_packet() */
};

/**
 * Make the maps. On failure, which is logged, call packets_close().
 *
 * @param on_packet  takes a packet; a result other than 0 ends packets_read()
 */
int packets_open(struct packets *packets, const struct packets_options *options,
		 int (*on_packet)(void *ctx, const struct capture_packet *packet),
		 void *ctx, const struct log *log);

void packets_close(struct packets *packets);

/* Load programs for interfaces of one kind in one namespace. */
int packets_load_programs(struct packets *packets, uint16_t netns,
			  enum link_kind link, struct programs *ret_programs);

/* @return whether enough packets wait to be read now, rather than with later ones */
bool packets_are_many(const struct packets *packets);

/* @return whether no packet waits to be read */
bool packets_are_none(const struct packets *packets);

/**
 * Hand over packets in the order of their times, for some milliseconds.
 *
 * @param until_ns  CLOCK_BOOTTIME: later ones stay where they are
 * @return 0: there were none and are none; 1: there were some, or some came just now;
 *         -EAGAIN: the time is over, and there may be more; -ECANCELED: so may there,
 *         and `result` is what on_packet returned
 */
int packets_read(struct packets *packets, int64_t until_ns);

/**
 * Have programs count and capture nothing any more, however long they stay attached.
 * Those that run at this moment may still do so: see map_grace_begin().
 *
 * @return 0, or -errno
 */
int packets_stop(const struct packets *packets);

/* @return the kernel's counters of an interface */
struct capture_counters packets_counters(const struct packets *packets,
					 struct capture_interface_key key);

/**
 * The interface that counters follow those of @key for, in any order.
 *
 * @param key  NULL: the first
 * @return 0, or -ENOENT
 */
int packets_next_interface(const struct packets *packets,
			   const struct capture_interface_key *key,
			   struct capture_interface_key *ret_next);

/* @return lost packets of interfaces for which there was no memory to count */
uint64_t packets_uncounted(const struct packets *packets);

enum { TAG_LEN = 4 };

/**
 * Write the frame of @packet with its tag where that was before the kernel took it out.
 *
 * @param frame  room for it: TAG_LEN bytes more than were captured
 * @return how many bytes of it were captured, up to @snap_length
 */
uint32_t tag_insert(uint8_t *frame, const struct capture_packet *packet,
		    uint32_t snap_length);

#endif
