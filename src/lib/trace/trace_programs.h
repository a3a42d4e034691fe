/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The programs of the tracer: those whose tracepoints the kernel has. */
#ifndef NETOBS_TRACE_TRACE_PROGRAMS_H
#define NETOBS_TRACE_TRACE_PROGRAMS_H

#include "base/log.h"
#include "bpf/nat.h"
#include "bpf/trace.h"
#include "engine/program_set.h"

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

/* Hooks of netfilter, for IPv4 and IPv6, with a program in front of all others, and one behind them. */
enum { TRACE_HOOK_LINKS = 2 * 2 * 5 };

struct trace_knobs {
	uint32_t slots;	     /* a power of two */
	uint32_t ring_bytes; /* a power of two, and of pages */
	uint64_t max_rate;   /* events a second on a CPU */
	uint32_t layers; /* 1 << enum netobs_trace_layer: of reports that are wanted; 0: all */
	uint32_t points; /* 1 << enum trace_point: of these layers; limits count their events only; 0: all */
	bool wants_acks; /* segments without data */
	bool wants_limits; /* what keeps sockets from sending; also of segments without data, there */
	bool wants_datagrams; /* connections of UDP and ICMP that begin */
	bool wants_netfilter; /* the programs of trace_programs_hook() */
	bool wants_queues;    /* who fills queues, see bpf/queues.h */
	/* Only events of these network namespaces, by inode; 0 of them: of all. Stay the caller's. */
	const uint32_t *spaces;
	uint32_t n_spaces;
	bool is_idle; /* only added connections are traced; trace_programs_attach() */
};

/* Zeroes: off. Stays where it is while it is open. */
struct trace_programs {
	struct trace_knobs knobs;
	struct program_set set;
	struct attach_point points[PROGRAM_SET_POINTS_MAX];
	struct nat_layout nat;
	uint32_t missing; /* 1 << enum trace_point: the kernel has no tracepoint for it */
	bool has_nat;
	bool has_reasons, has_cast;
	int netfilter_error; /* 0: netfilter's hooks can be attached to; < 0: why not */
	uint64_t last_id;	  /* of trace_programs_add() */
	struct trace_conn *conns; /* mapped: knobs.slots of them */
	uint64_t *ports;	  /* mapped: TRACE_PORTS of them */
	struct ring_buffer *ring;
	int faces_fd, refused_fd, counts_fd, functions_fd; /* the set's */
};

/**
 * Load the programs and attach them.
 *
 * @param on_report  for trace_programs_read(), of a struct trace_report
 * @param log  or NULL: silent
 * @return 0; -errno, which is logged, and nothing stays loaded
 */
int trace_programs_open(struct trace_programs *programs,
			const struct trace_knobs *knobs,
			ring_buffer_sample_fn on_report, void *ctx,
			const struct log *log);

/** Report the sockets that there are, as TRACE_EXISTS, and read them. @return 0, or -errno */
int trace_programs_list(const struct trace_programs *programs);

/**
 * Add a connection.
 *
 * @param is_turned  its direction 0 is from the second end of @tuple to the first one
 * @param ret_id  its number, which trace_programs_release() makes free
 * @return 0; -EEXIST: one has that tuple; -ENOSPC: no slot is free; others of bpf(2)
 */
int trace_programs_add(struct trace_programs *programs,
		       const struct trace_tuple *tuple, bool is_turned,
		       uint64_t *ret_id);

/** Read what the sockets of added connections have done so far. @return 0, or -errno */
int trace_programs_init(const struct trace_programs *programs);

/** @return the slot of a connection */
struct trace_conn *trace_programs_conn(const struct trace_programs *programs,
				       uint64_t id);

/** @return the number of the connection that has that tuple; 0: none */
uint64_t trace_programs_find(const struct trace_programs *programs,
			     const struct trace_tuple *tuple);

/* After trace_programs_forget() of all of its tuples. */
void trace_programs_release(const struct trace_programs *programs, uint64_t id);

/** Take the reports that there are. @return how many; < 0: of the callback, or -errno */
int trace_programs_read(const struct trace_programs *programs);

/** @return a descriptor that is readable once much is waiting; it stays the programs' */
int trace_programs_fd(const struct trace_programs *programs);

/** Have that tuple no longer belong to the connection @id. */
void trace_programs_forget(const struct trace_programs *programs,
			   const struct trace_tuple *tuple, uint64_t id);

/** Datagrams with that tuple begin no connection from now on, while it is among the last TRACE_REFUSED that had any. */
void trace_programs_refuse(const struct trace_programs *programs,
			   const struct trace_tuple *tuple);

/** @return whether the programs have named a place in the kernel's code, as %pS does */
bool trace_programs_name(const struct trace_programs *programs, uint64_t place,
			 char name[TRACE_FUNCTION_LEN]);

/** @return the sum of all CPUs */
struct trace_counts trace_programs_count(const struct trace_programs *programs);

/** With knobs.is_idle: attach, unless it is attached. @return 0, or -errno, which is logged */
int trace_programs_attach(struct trace_programs *programs);

/* Detach; the maps stay. A program may still run on another CPU. */
void trace_programs_detach(struct trace_programs *programs);

/**
 * Attach to the hooks of netfilter in the network namespace of the calling thread; the links stay attached
 * until they are closed.
 *
 * @param first  index of the link to open first, initially 0. On failure, it is set to the link that failed. If that
 *  link fails again, the next attempt has opened no other link, and closes none: closing a link drops the packets
 *  that wait in an NFQUEUE of the namespace
 * @param ret_links  their descriptors
 * @return 0; -errno: nothing is attached, nor *@ret_links changed
 */
int trace_programs_hook(const struct trace_programs *programs, uint32_t *first,
			int ret_links[TRACE_HOOK_LINKS]);

void trace_programs_close(struct trace_programs *programs);

/* Programs at hooks of netfilter, Linux 6.4, which libbpf before 1.3 does not support. */

/* Set the type of a program that is not loaded yet. */
void netfilter_set_type(struct bpf_program *program);

/**
 * Attach in the network namespace of the calling thread before or after all others, at the outermost free
 * priority.
 *
 * @param family  NFPROTO_IPV4 or NFPROTO_IPV6
 * @param hook  NF_INET_...
 * @return the link's descriptor, or -errno; -EBUSY: no priority is free
 */
int netfilter_attach_outside(int program_fd, uint32_t family, uint32_t hook,
			     bool is_behind);

/**
 * Attach a program that accepts all packets to a hook of the calling thread's namespace, for a moment.
 *
 * @return 0; -errno: the kernel, or privileges, do not allow it
 */
int netfilter_probe(void);

#endif
