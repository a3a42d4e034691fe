/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Classic BPF, which libpcap compiles an expression to. libpcap and Linux both define a
 * struct bpf_insn, so no file can include the headers of both.
 */
#ifndef NETOBS_FILTER_CLASSIC_H
#define NETOBS_FILTER_CLASSIC_H

#include "filter.h"
#include "bpf/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FILTER_CLASSIC_MAX = 4096 }; /* instructions; BPF_MAXINSNS of Linux */

/* The layout of struct sock_filter in linux/filter.h. */
struct classic_insn {
	uint16_t code;
	uint8_t jt;
	uint8_t jf;
	uint32_t k;
};

struct classic {
	struct classic_insn *insns;
	uint32_t n;
};

/*
 * Compile a pcap-filter(7) expression for frames of @link.
 *
 * @param ret_classic free it with classic_done()
 * @param ret_error   receives libpcap's message
 * @return 0; -EINVAL: not an expression for that link; -E2BIG: longer than
 *         FILTER_CLASSIC_MAX; -ENOMEM
 */
int classic_compile(const char *expression, enum link_kind link,
		    struct classic *ret_classic, char *ret_error, size_t size);

void classic_done(struct classic *classic);

bool classic_is_same(const struct classic *one, const struct classic *other);

/**
 * Run the program with libpcap's interpreter.
 *
 * @param len       bytes of the frame that there are
 * @param wire_len  bytes that it had on the wire
 * @return 0: the frame is rejected
 */
uint32_t classic_run(const struct classic *classic, const void *frame,
		     uint32_t len, uint32_t wire_len);

/** @return whether libpcap takes it for a program: no jump out of it, no other memory, no open end */
bool classic_is_valid(const struct classic *classic);

/* Loads up to this offset can be instructions of eBPF, whose offset has 15 bits. */
enum { CLASSIC_DIRECT_MAX = 0x7ff0 };

/** @return how many bytes of the frame the direct loads at constant offsets need */
uint32_t classic_reach(const struct classic *classic);

/** @return whether the program reads or writes memory */
bool classic_uses_memory(const struct classic *classic);

/** @return whether the program jumps back, as libpcap lets protochain do */
bool classic_has_loop(const struct classic *classic);

/* @return the target of instruction @i, an unconditional jump */
int64_t classic_jump_target(uint32_t i, const struct classic_insn *insn);

bool classic_is_jump_back(uint32_t i, const struct classic_insn *insn);

/** @return the bytes that a load with this code reads */
uint32_t classic_load_size(uint16_t code);

/* ---- Rules ------------------------------------------------------------------------------- */

/*
 * An expression of pcap-filter(7), compiled for each kind of links, or two: "EXPR and inner
 * EXPR", of which the second one is for what a tunnel carries.
 */

enum { LINKS = LINK_NONE + 1 };

struct compiled {
	struct classic programs[LINKS];
	char objections[LINKS][FILTER_ERROR_MAX]; /* why there is no program */
};

struct expression {
	char *text;
	bool has_vlan; /* it has the word, in front of "inner" */
	bool has_inner;
	struct compiled outer; /* matches all packets if there is only the other */
	struct compiled inner;
};

/**
 * Compile an expression, which may be one that not all kinds of links have.
 *
 * @param expression  is zeroed; on failure, too, free it with expression_done()
 * @param ret_error   libpcap's message and the place in the expression
 * @return as filter_new()
 */
int expression_compile(struct expression *expression, const char *text,
		       char (*ret_error)[FILTER_ERROR_MAX]);

void expression_done(struct expression *expression);

struct rule {
	struct expression expression; /* the default has none */
	bool accepts;
	struct rate rate;
	uint32_t slot;
	struct rule_count before; /* in the slot, by rules that had it earlier */
};

struct filter {
	bool is_list; /* made by filter_new_list() */
	uint32_t next_slot;
	struct rule_count reported; /* reported for all slots by an earlier process */
	bool is_busy[RULE_SLOTS]; /* slots of earlier filters that may still count */
	uint32_t n;		  /* with the default, which is the last one */
	struct rule rules[];	  /* at least one */
};

/* @return whether packets of both count as those of one rule; at which rates does not matter */
bool rule_is_same(const struct rule *one, const struct rule *other);

/**
 * @param rates  as in struct filter_frames
 * @return what judge() returns if the rule decides
 */
uint32_t rule_judgement(const struct rule *rule, const struct rate *rates);

#endif
