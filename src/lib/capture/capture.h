/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The parts of a capture: what it captures from, and whose packets these are. */
#ifndef NETOBS_CAPTURE_CAPTURE_H
#define NETOBS_CAPTURE_CAPTURE_H

#include "base/log.h"
#include "bpf/capture.h"
#include "engine/program_set.h"
#include "host/host.h"
#include "who/who.h"

#include <net/if.h>
#include <netobs/capture.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel side of a capture: its maps, the programs that share them, and their packets. */

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
	unsigned long at;  /* the kernel reads it once it is released */
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

/*
 * The interfaces that the packets of a capture came from. An interface that has the index
 * of an earlier one is another source: programs are attached to it after the host has
 * reported it, so the time of a packet distinguishes them.
 */

struct source {
	struct capture_interface_key key;
	enum link_kind link;
	const char *netns; /* on the host; NULL: the caller's own */
	char name[IF_NAMESIZE];
	uint64_t captured;
	/* Time of its packets; CLOCK_BOOTTIME. The end is INT64_MAX while it is there. */
	int64_t start_ns, end_ns;
	/* The kernel's counters, which are those of the key, at both times. */
	struct capture_counters start, end;
};

struct sources {
	const struct host *host;
	const struct packets *packets;
	struct host_listener listener;
	struct source *list; /* in the order of their first packets */
	uint32_t n;
	uint32_t latest; /* source of the previous packet */
};

/* Call before programs are attached. */
void sources_init(struct sources *sources, struct host *host,
		  const struct packets *packets);

void sources_done(struct sources *sources);

/* @return the index in the list of where @packet came from, or -ENOMEM */
int sources_ensure(struct sources *sources, const struct capture_packet *packet);

/* Add interfaces all of whose packets were lost: they have counters only. */
void sources_add_counted(struct sources *sources);

/* @return the kernel's counters of an interface */
struct capture_counters sources_counters(const struct sources *sources,
					 uint32_t index);

/*
 * The processes that captured packets come from and go to. Sockets are listed while packets wait
 * in the ring buffers, so that those of packets from before the list are known as far as programs
 * have noted them, also if they are closed since.
 */

struct processes {
	struct who who;
	struct netobs_process ends[2]; /* of the packet that is delivered */
	enum { PROCESSES_OLD, PROCESSES_LISTING, PROCESSES_KNOWN } state;
	int64_t begun_ns; /* the list; CLOCK_BOOTTIME */
	int64_t next_ns;  /* the next one, at the earliest */
};

/**
 * Load and attach the programs that follow sockets, which blocks while it looks at all open
 * files: before packets are captured, so that no socket is missed.
 *
 * @param disabled  as netobs_capture_opts.disable_features
 * @return 0, or -errno, which is logged
 */
int processes_open(struct processes *processes, const struct host *host,
		   uint64_t disabled, const struct log *log);

/* List sockets, which blocks, and find the namespaces behind interfaces that are followed now. */
void processes_list(struct processes *processes);

/* A struct of zeroes stays as it is. */
void processes_close(struct processes *processes);

/* @return a descriptor that is readable when processes_read() is due; -1: none is wanted */
int processes_fd(const struct processes *processes);

/* Take note of sockets that were closed, for a millisecond. */
void processes_read(struct processes *processes);

/**
 * Find out up to when packets may be read now. For a millisecond.
 *
 * @param is_urgent  packets are not to wait: of newer sockets, processes may be unknown
 * @param ret_until_ns  CLOCK_BOOTTIME; INT64_MAX: all of them
 * @return 0; or when to call it again, CLOCK_BOOTTIME: packets have to wait
 */
int64_t processes_prepare(struct processes *processes, bool is_urgent,
			  int64_t *ret_until_ns);

/* All packets up to then were read. */
void processes_done_reading(struct processes *processes);

/**
 * Set @out->src_process and dst_process, where these are known.
 *
 * @param packet  the same; with its bytes behind it
 */
void processes_find(struct processes *processes,
		    const struct capture_packet *packet,
		    struct netobs_packet *out);

#endif
