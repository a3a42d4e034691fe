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
#include "conn_parts.h"
#include "pinned.h"
#include "program_set.h"

/* What programs are loaded for; the maps need the first three, and whether there is a filter. */
struct flow_knobs {
	uint32_t n_cpus;	/* possible ones, times their lanes */
	uint32_t l1_buckets;	/* per CPU and generation */
	uint32_t log_slots;	/* per CPU, a power of two */
	uint32_t overflow_part; /* of a CPU's pages, one of OVERFLOW_PARTS */
	uint32_t lanes;		/* of each CPU, see types.h */
	enum clock_kind clock;
	struct hash_secret secret;
	uint16_t netns;
	enum link_kind link;
	enum netobs_direction direction; /* only its program is loaded, or both */
	const struct filter *filter;	 /* NULL: all packets */
	bool may_filter; /* programs with and without a filter share the maps */
	const struct rate *rates; /* RATES of them, by number */
	struct rate rate; /* at which packets are sampled without a filter */
	bool rtt;	  /* connections are measured */
	uint32_t conn_buckets; /* of CONN_WAYS connections; 0 if there is no rtt */
	bool has_alerts;       /* there may be rules about connections */
	uint32_t part_bits;    /* of conn_parts_bits() */
	const struct conn_part *part; /* those of the maps will be like it; NULL: no maps */
	uint32_t conn_idle; /* seconds after which a new connection may take the place */
	const struct nat_layout *nat; /* NULL: translations are not reported */
	const struct pinned *adopted; /* whose maps are used; NULL: new ones are made */
};

/**
 * Load the maps, without programs: the first reference to @maps.
 *
 * @return 0, or -errno, which is logged; -ESTALE: those to be adopted are other ones
 */
int flow_maps_load(struct program_set *maps, const struct flow_knobs *knobs,
		   const struct log *log);

/**
 * Load programs that share @maps. Any thread may do that.
 *
 * @return 0, or -errno, which is logged; -EINVAL: the filter is not one for these links
 */
int flow_programs_load(struct program_set *maps, const struct flow_knobs *knobs,
		       const struct log *log, struct programs *ret_programs);

/**
 * Sum up what the rules of filters have counted, on all CPUs.
 *
 * @param maps  loaded with a filter
 * @return 0, or -errno
 */
int flow_rules_read(const struct program_set *maps, uint32_t n_cpus,
		    struct rule_count ret_totals[RULE_SLOTS]);

/* Count for the rule of @judgement what no program has seen. None runs meanwhile. */
void flow_rules_add(const struct program_set *maps, uint32_t judgement,
		    const struct count *count);

/* A packet for BPF_PROG_TEST_RUN. */
struct test_packet {
	const void *bytes; /* from the link header on */
	uint32_t len;
	uint32_t wire_len; /* before it was cut to @len */
	int64_t ns;	   /* when it was seen, for CLOCK_PACKET */
};

/**
 * Run a program once.
 *
 * @return 0, or -errno
 */
int programs_test_run(int program_fd, const struct test_packet *packet);

#endif
