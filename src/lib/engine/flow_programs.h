/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The flow programs: a set of maps for a context, and programs that share them for
 * each kind of interfaces in each namespace.
 *
 * They are compiled for all options, as knobs, and for default options with and without round-trip
 * times and translations, as constants: the verifier removes code that knobs turn off, but not what
 * the compiler did for it. Of the latter, those with translations read the conntrack entry as a
 * member of struct sk_buff, which takes Linux 6.2; a call of the kernel instead takes 65 ns for each
 * outgoing packet that L1 does not have. bpf.configurations compares what they count.
 */
#ifndef NETOBS_ENGINE_FLOW_PROGRAMS_H
#define NETOBS_ENGINE_FLOW_PROGRAMS_H

#include "bpf/alert.h"
#include "bpf/connection.h"
#include "bpf/nat.h"
#include "bpf/store/hash.h"
#include "connections.h"
#include "pinned.h"
#include "program_set.h"

/* Parameters of maps and programs when they are loaded. */
struct flow_knobs {
	uint32_t n_cpus;	/* possible ones, times their lanes */
	uint32_t l1_buckets;	/* per CPU and generation */
	uint32_t log_slots;	/* per CPU, a power of two */
	uint32_t overflow_part; /* pages in each of a CPU's OVERFLOW_PARTS parts */
	uint32_t lanes;		/* per CPU, see types.h */
	enum clock_kind clock;
	struct hash_secret secret;
	uint16_t netns;
	enum link_kind link;
	enum netobs_direction direction; /* load only the program of this direction, or both */
	const struct filter *filter; /* NULL: all packets */
	bool may_filter; /* programs with and without a filter share the maps */
	const struct rate *rates; /* RATES of them, by their numbers */
	struct rate rate;	  /* sampling rate if there is no filter */
	bool rtt;		  /* measure connections */
	uint32_t conn_buckets; /* of CONN_WAYS connections; 0 if there is no rtt */
	bool has_alerts;       /* there may be rules about connections */
	uint32_t part_bits;    /* of conn_parts_bits() */
	const struct conn_part *part; /* inner maps will be like it; NULL: do not load maps */
	uint32_t conn_idle; /* seconds without a packet after which a connection may be evicted */
	const struct nat_layout *nat; /* NULL: translations are not reported */
	const struct pinned *adopted; /* use the maps of this set; NULL: make new ones */
};

/**
 * Find the offsets of a packet's translation in the structs of this kernel, by the BTF of the
 * kernel or of its module nf_conntrack.
 *
 * @return 0; -ENOENT: the kernel has no conntrack, or the module is not loaded; -EPROTO: its
 *         structs have an unknown layout; others from libbpf
 */
int nat_find_layout(struct nat_layout *ret_layout, const struct log *log);

/**
 * Load the maps, without programs: takes the first reference to @maps.
 *
 * @return 0, or -errno, which is logged; -ESTALE: the maps to be adopted differ
 */
int flow_maps_load(struct program_set *maps, const struct flow_knobs *knobs,
		   const struct log *log);

/**
 * Load programs that share @maps. Any thread may call this.
 *
 * @return 0, or -errno, which is logged; -EINVAL: the filter does not fit this kind of links
 */
int flow_programs_load(struct program_set *maps, const struct flow_knobs *knobs,
		       const struct log *log, struct programs *ret_programs);

/**
 * Sum up the counters of filter rules over all CPUs.
 *
 * @param maps  loaded with a filter
 * @return 0, or -errno
 */
int flow_rules_read(const struct program_set *maps, uint32_t n_cpus,
		    struct rule_count ret_totals[RULE_SLOTS]);

/* Count packets for the rule of @judgement that no program has seen; no program runs meanwhile. */
void flow_rules_add(const struct program_set *maps, uint32_t judgement,
		    const struct count *count);

/* A packet for BPF_PROG_TEST_RUN. */
struct test_packet {
	const void *bytes; /* from the link header on */
	uint32_t len;
	uint32_t wire_len; /* length before it was cut to @len */
	int64_t ns;	   /* time stamp, for CLOCK_PACKET */
};

/**
 * Run a program once.
 *
 * @return 0, or -errno
 */
int programs_test_run(int program_fd, const struct test_packet *packet);

#endif
