/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "filter.h"

#include "base/util.h"
#include "expression.h"
#include "translate.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
	struct expression expression; /* the default has none */
	bool accepts;
	struct rate rate;
	uint32_t slot;
	struct rule_count before; /* in the slot, by rules that had it earlier */
};

struct filter {
	bool is_list; /* of filter_new_list() */
	uint32_t next_slot;
	struct rule_count reported; /* of all slots, by an earlier process */
	bool is_busy[RULE_SLOTS]; /* slots of earlier filters that may still count */
	uint32_t n;		  /* with the default, which is the last one */
	struct rule rules[];	  /* at least one */
};

_Static_assert(RULE_SLOTS >= 2 * (FILTER_RULES_MAX + 1),
	       "a filter and the one that replaces it have all theirs");

/* ---- Rules ------------------------------------------------------------------------- */

static void free_filter(struct filter **filter)
{
	filter_free(*filter);
}

static struct filter *filter_alloc(const struct filter_rules *list)
{
	uint32_t n = list->n + 1;
	struct filter *filter =
		calloc(1, sizeof(*filter) + n * sizeof(*filter->rules));

	if (!filter)
		return NULL;
	filter->n = filter->next_slot = n;
	for (uint32_t i = 0; i < n; i++)
		filter->rules[i].slot = i;
	filter->rules[list->n].accepts = list->accepts_others;
	if (list->accepts_others)
		filter->rules[list->n].rate = list->rate;
	return filter;
}

static int compile_list(const struct filter_rules *list,
			struct filter **ret_filter, uint32_t *ret_wrong,
			char (*ret_error)[FILTER_ERROR_MAX])
{
	__attribute__((cleanup(free_filter))) struct filter *filter =
		filter_alloc(list);

	if (!filter)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->n; i++) {
		struct rule *rule = &filter->rules[i];
		int err = expression_compile(
			&rule->expression, list->rules[i].expression, ret_error);

		*ret_wrong = i;
		if (err)
			return err;
		rule->accepts = list->rules[i].accepts;
		if (rule->accepts)
			rule->rate = list->rules[i].rate;
	}
	*ret_filter = TAKE_PTR(filter);
	return 0;
}

int filter_new(const char *expression, struct filter **ret_filter,
	       char (*ret_error)[FILTER_ERROR_MAX])
{
	const struct filter_rule rule = { .expression = expression,
					  .accepts = true };
	const struct filter_rules list = { .rules = &rule, .n = 1 };
	uint32_t wrong;

	return compile_list(&list, ret_filter, &wrong, ret_error);
}

void filter_sample(struct filter *filter, const struct rate *rate)
{
	assert(!filter->is_list);
	filter->rules[0].rate = *rate;
}

int filter_new_list(const struct filter_rules *list, struct filter **ret_filter,
		    char (*ret_error)[FILTER_ERROR_MAX])
{
	char error[FILTER_ERROR_MAX] = "";
	uint32_t wrong = 0;
	int err;

	assert(list->n <= FILTER_RULES_MAX);
	err = compile_list(list, ret_filter, &wrong, &error);
	if (err)
		snprintf(*ret_error, FILTER_ERROR_MAX, "rules[%u]: %.480s",
			 wrong, *error ? error : strerror(-err));
	else
		(*ret_filter)->is_list = true;
	return err;
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	for (uint32_t i = 0; i < filter->n; i++)
		expression_done(&filter->rules[i].expression);
	free(filter);
}

const char *filter_expression(const struct filter *filter)
{
	return filter->rules[0].expression.text;
}

bool filter_is_list(const struct filter *filter)
{
	return filter->is_list;
}

static bool is_same_rule(const struct rule *one, const struct rule *other)
{
	const char *text = one->expression.text;

	return one->accepts == other->accepts &&
	       !text == !other->expression.text &&
	       (!text || !strcmp(text, other->expression.text));
}

static bool has_same_rate(const struct rate *one, const struct rate *other)
{
	return one->interval == other->interval &&
	       (!one->interval || one->mode == other->mode);
}

uint32_t filter_rates(const struct filter *filter,
		      struct rate ret_rates[FILTER_RULES_MAX + 1])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < filter->n; i++) {
		const struct rate *rate = &filter->rules[i].rate;
		uint32_t k = 0;

		while (k < n && !has_same_rate(&ret_rates[k], rate))
			k++;
		if (k == n && rate->interval)
			ret_rates[n++] = *rate;
	}
	return n;
}

/* Texts with names mean other addresses from time to time. */
static bool has_same_code(const struct expression *one,
			  const struct expression *other)
{
	for (int link = 0; link < LINKS; link++) {
		if (!classic_is_same(&one->outer.programs[link],
				     &other->outer.programs[link]) ||
		    !classic_is_same(&one->inner.programs[link],
				     &other->inner.programs[link]))
			return false;
	}
	return true;
}

bool filter_is_same(const struct filter *one, const struct filter *other)
{
	if (!one || !other)
		return one == other;
	if (one->is_list != other->is_list || one->n != other->n)
		return false;
	for (uint32_t i = 0; i < one->n; i++)
		if (!is_same_rule(&one->rules[i], &other->rules[i]) ||
		    !has_same_rate(&one->rules[i].rate, &other->rules[i].rate) ||
		    !has_same_code(&one->rules[i].expression,
				   &other->rules[i].expression))
			return false;
	return true;
}

int filter_check(const struct filter *filter, enum link_kind link,
		 const char *frames, const struct log *log)
{
	for (uint32_t i = 0; i + 1 < filter->n; i++) {
		const struct expression *expression =
			&filter->rules[i].expression;
		char number[16] = "";

		if (expression->outer.programs[link].n)
			continue;
		if (filter->is_list)
			snprintf(number, sizeof(number), "[%u]", i);
		log_error(log, "%s%s: %s: %s",
			  filter->is_list ? "rules" : "filter", number, frames,
			  expression->outer.objections[link]);
		return -EINVAL;
	}
	return 0;
}

/* 0 if packets of the rule are not sampled. */
static uint32_t number_of(const struct rule *rule, const struct rate *rates)
{
	uint32_t number = 0;

	if (!rates || !rule->rate.interval)
		return 0;
	while (++number < RATES)
		if (has_same_rate(&rates[number], &rule->rate))
			return number;
	assert(!"the rate has a number");
	return 0;
}

/* What judge() returns if the rule decides. */
static uint32_t judgement_of(const struct rule *rule, const struct rate *rates)
{
	return number_of(rule, rates) << JUDGED_RATE_SHIFT |
	       rule->slot << JUDGED_SLOT_SHIFT |
	       (rule->accepts ? JUDGED_ACCEPT : 0);
}

uint32_t filter_judge(const struct filter *filter, const void *frame,
		      uint32_t len, uint32_t wire_len)
{
	uint32_t i;

	for (i = 0; i + 1 < filter->n; i++) {
		const struct expression *expression =
			&filter->rules[i].expression;

		if (!expression->has_inner &&
		    classic_run(&expression->outer.programs[LINK_ETHERNET],
				frame, len, wire_len))
			break;
	}
	return judgement_of(&filter->rules[i], NULL);
}

/* ---- Counters ---------------------------------------------------------------------- */

/* The rule of @before that goes on as @rule; NULL: it is new. */
static const struct rule *find_same(const struct filter *before,
				    const struct rule *rule,
				    const bool is_taken[RULE_SLOTS])
{
	for (uint32_t i = 0; i < before->n; i++)
		if (!is_taken[before->rules[i].slot] &&
		    is_same_rule(&before->rules[i], rule))
			return &before->rules[i];
	return NULL;
}

/* @return a slot that is not in use, RULE_SLOTS: there is none */
static uint32_t take_slot(struct filter *filter, const bool is_used[RULE_SLOTS])
{
	for (uint32_t i = 0; i < RULE_SLOTS; i++) {
		uint32_t slot = filter->next_slot++ % RULE_SLOTS;

		if (!is_used[slot])
			return slot;
	}
	return RULE_SLOTS;
}

int filter_succeed(struct filter *filter, const struct filter *before,
		   bool is_settled, const struct rule_count totals[RULE_SLOTS])
{
	bool is_used[RULE_SLOTS], is_taken[RULE_SLOTS] = { false };

	if (is_settled)
		memset(filter->is_busy, 0, sizeof(filter->is_busy));
	else
		memcpy(filter->is_busy, before->is_busy, sizeof(before->is_busy));
	for (uint32_t i = 0; i < before->n; i++)
		filter->is_busy[before->rules[i].slot] = true;
	memcpy(is_used, filter->is_busy, sizeof(is_used));
	filter->next_slot = before->next_slot;
	filter->reported = before->reported;
	for (uint32_t i = 0; i < filter->n; i++) {
		struct rule *rule = &filter->rules[i];
		const struct rule *same = find_same(before, rule, is_taken);

		if (same) {
			rule->slot = same->slot;
			rule->before = same->before;
			is_taken[same->slot] = true;
			continue;
		}
		rule->slot = take_slot(filter, is_used);
		if (rule->slot == RULE_SLOTS)
			return -EBUSY;
		rule->before = totals[rule->slot];
		is_used[rule->slot] = true;
	}
	return 0;
}

void filter_adopt(struct filter *filter, uint32_t next_slot,
		  const struct rule_count *reported,
		  const struct rule_count totals[RULE_SLOTS])
{
	filter->next_slot = next_slot;
	filter->reported = *reported;
	for (uint32_t i = 0; i < filter->n; i++) {
		struct rule *rule = &filter->rules[i];

		rule->slot = filter->next_slot++ % RULE_SLOTS;
		rule->before = totals[rule->slot];
	}
}

uint32_t filter_next_slot(const struct filter *filter)
{
	return filter->next_slot % RULE_SLOTS;
}

static struct count less(struct count from, struct count part)
{
	return (struct count){ from.packets - part.packets,
			       from.bytes - part.bytes };
}

static struct rule_count difference(const struct rule_count *from,
				    const struct rule_count *to)
{
	return (struct rule_count){ less(to->decided, from->decided),
				    less(to->sampled_out, from->sampled_out) };
}

static struct rule_count sum_of(const struct rule_count totals[RULE_SLOTS])
{
	struct rule_count sum = { 0 };

	for (uint32_t i = 0; i < RULE_SLOTS; i++) {
		sum.decided.packets += totals[i].decided.packets;
		sum.decided.bytes += totals[i].decided.bytes;
		sum.sampled_out.packets += totals[i].sampled_out.packets;
		sum.sampled_out.bytes += totals[i].sampled_out.bytes;
	}
	return sum;
}

int filter_count(const struct filter *filter, uint32_t rule,
		 const struct rule_count totals[RULE_SLOTS],
		 struct rule_count *ret_count)
{
	struct rule_count others, own;

	if (rule > filter->n)
		return -ENOENT;
	if (rule < filter->n) {
		const struct rule *of = &filter->rules[rule];

		*ret_count = difference(&of->before, &totals[of->slot]);
		return 0;
	}
	others = sum_of(totals);
	for (uint32_t i = 0; i < filter->n; i++) {
		const struct rule *of = &filter->rules[i];

		own = difference(&of->before, &totals[of->slot]);
		others = difference(&own, &others);
	}
	*ret_count = difference(&filter->reported, &others);
	return 0;
}

/* ---- Programs ---------------------------------------------------------------------- */

/*
 * Return the judgement, which the verifier must not know: it would follow the caller's
 * code for each rule. To the verifier, two loads of a field are two unknown numbers.
 */
static void add_judgement(struct code *code, uint32_t judgement)
{
	const int16_t field = offsetof(struct __sk_buff, len);

	code_add(code, code_load(BPF_W, BPF_REG_0, FRAME_CONTEXT, field));
	code_add(code, code_load(BPF_W, BPF_REG_1, FRAME_CONTEXT, field));
	code_add(code, code_alu32_reg(BPF_XOR, BPF_REG_0, BPF_REG_1));
	code_add(code, code_alu32_imm(BPF_XOR, BPF_REG_0, judgement));
	code_add(code, code_exit());
}

/* Behind it, R0 has the result of the expression for what a tunnel carries; or go to @next. */
static int add_inner(struct code *code, const struct compiled *inner,
		     uint32_t next)
{
	const struct classic *ethernet = &inner->programs[LINK_ETHERNET];
	const struct classic *none = &inner->programs[LINK_NONE];
	uint32_t ip = code_label(code), judged = code_label(code);
	int err = 0;

	frame_choose_carried(code, next, none->n ? ip : next);
	if (ethernet->n)
		err = translate(ethernet, FRAME_CARRIED, code);
	code_jump(code, code_jump_always(), ethernet->n ? judged : next);
	code_place(code, ip);
	if (none->n)
		err = err ?: translate(none, FRAME_CARRIED, code);
	code_place(code, judged);
	return err;
}

/*
 * Behind it, what follows is for frames that match; others go to @next.
 *
 * tcpdump's filter gets frames without the tag that the kernel keeps beside them, and looks
 * for that tag where the expression has "vlan". So do filters here: "udp" matches frames
 * with such a tag as well, and an expression with "vlan" gets frames with the tag inside.
 */
static int add_expression(struct code *code, const struct expression *expression,
			  enum link_kind link, uint32_t next)
{
	const struct classic *outer = &expression->outer.programs[link];
	uint32_t judged = code_label(code);
	int err = 0;

	if (link == LINK_ETHERNET && expression->has_vlan) {
		uint32_t untagged = frame_start_tagged(code);

		err = translate(outer, FRAME_TAGGED, code);
		frame_end_tagged(code);
		code_jump(code, code_jump_always(), judged);
		code_place(code, untagged);
	}
	err = err ?: translate(outer, FRAME_BUFFER, code);
	code_place(code, judged);
	code_jump(code, code_jump64_imm(BPF_JEQ, BPF_REG_0, 0), next);
	if (expression->has_inner) {
		err = err ?: add_inner(code, &expression->inner, next);
		code_jump(code, code_jump64_imm(BPF_JEQ, BPF_REG_0, 0), next);
	}
	return err;
}

static int add_rule(struct code *code, const struct rule *rule,
		    const struct filter_frames *frames)
{
	uint32_t next = code_label(code);
	int err = add_expression(code, &rule->expression, frames->link, next);

	add_judgement(code, judgement_of(rule, frames->rates));
	code_place(code, next);
	return err;
}

/* The bytes that expressions reach. */
struct reach {
	uint32_t outer, inner;
	bool has_inner;
};

static struct reach find_reach(const struct filter *filter, enum link_kind link)
{
	struct reach reach = { 0 };

	for (uint32_t i = 0; i + 1 < filter->n; i++) {
		const struct expression *of = &filter->rules[i].expression;
		const struct classic *inner = of->inner.programs;

		reach.has_inner |= of->has_inner;
		reach.outer = max_u64(reach.outer,
				      classic_reach(&of->outer.programs[link]));
		for (int kind = 0; kind < LINKS; kind++)
			reach.inner = max_u64(reach.inner,
					      classic_reach(&inner[kind]));
	}
	return reach;
}

/* The rule with the largest code, for messages. */
struct largest {
	uint32_t rule, insns;
};

/* What the generated function returns. */
enum judge_kind {
	JUDGE_FIRST, /* the judgement of the first rule that matches */
	JUDGE_ALL,   /* a bit for each rule that matches */
};

/* Where frames of these links cannot be filtered with a rule, it has no code. */
static int add_bit(struct code *code, const struct rule *rule, uint32_t bit,
		   enum link_kind link)
{
	uint32_t next = code_label(code);
	int err = 0;

	if (rule->expression.outer.programs[link].n) {
		err = add_expression(code, &rule->expression, link, next);
		code_add(code, code_alu64_imm(BPF_MOV, BPF_REG_1, 1));
		code_add(code, code_alu64_imm(BPF_LSH, BPF_REG_1, (int32_t)bit));
		code_add(code, code_add_to(BPF_DW, BPF_REG_10, FRAME_MATCHES,
					   BPF_REG_1));
	}
	code_place(code, next);
	return err;
}

/* Which rules match stays unknown to the verifier, so that it follows each path once. */
static void start_bits(struct code *code)
{
	code_add(code, code_alu64_imm(BPF_MOV, BPF_REG_1, 0));
	code_add(code, code_store(BPF_DW, BPF_REG_10, FRAME_MATCHES, BPF_REG_1));
	code_add(code, code_add_to(BPF_DW, BPF_REG_10, FRAME_MATCHES, BPF_REG_1));
}

static void end_bits(struct code *code)
{
	code_add(code, code_load(BPF_DW, BPF_REG_0, BPF_REG_10, FRAME_MATCHES));
	code_add(code, code_exit());
}

static int add_judge(struct code *code, const struct filter *filter,
		     const struct filter_frames *frames, enum judge_kind kind,
		     const struct reach *reach, uint32_t find_carried,
		     struct largest *ret_largest)
{
	const struct frame_carried carried = { find_carried, reach->inner };
	int err = 0;

	*ret_largest = (struct largest){ 0 };
	frame_start(code, reach->outer,
		    frames->has_wire_len ? offsetof(struct __sk_buff, cb[2]) :
					   offsetof(struct __sk_buff, len),
		    reach->has_inner ? &carried : NULL);
	if (kind == JUDGE_ALL)
		start_bits(code);
	for (uint32_t i = 0; !err && i + 1 < filter->n; i++) {
		const struct rule *rule = &filter->rules[i];
		uint32_t start = code->n;

		err = kind == JUDGE_ALL ? add_bit(code, rule, i, frames->link) :
					  add_rule(code, rule, frames);
		if (code->n - start > ret_largest->insns)
			*ret_largest = (struct largest){ i, code->n - start };
	}
	if (kind == JUDGE_ALL)
		end_bits(code);
	else
		add_judgement(code, judgement_of(&filter->rules[filter->n - 1],
						 frames->rates));
	return err;
}

/* Where a function begins that the instruction calls; 0: it does not call one. */
static size_t called_function(const struct bpf_insn *insns, size_t i)
{
	bool calls = insns[i].code == (BPF_JMP | BPF_CALL) &&
		     insns[i].src_reg == BPF_PSEUDO_CALL;

	return calls ? i + 1 + insns[i].imm : 0;
}

/* Instructions of a program. */
struct range {
	size_t start; /* 0: there are none */
	size_t end;
};

/* @return the function that is called first in @caller */
static struct range find_called(const struct bpf_insn *insns, size_t n,
				struct range caller)
{
	struct range found = { .end = n };

	for (size_t i = caller.start; !found.start && i < caller.end; i++)
		found.start = called_function(insns, i);
	for (size_t i = 0; i < n; i++) {
		size_t function = called_function(insns, i);

		if (function > found.start && function < found.end)
			found.end = function;
	}
	return found;
}

/*
 * libbpf puts functions behind the program, as they are called: judge() first. Gone are its
 * stub and, unless it is needed, what the stub calls.
 */
struct parts {
	struct range judge, find_carried;
	struct range gone[2];
	size_t n; /* what is left */
};

static struct parts find_parts(const struct bpf_insn *insns, size_t n,
			       bool has_inner)
{
	struct parts parts = {
		.judge = find_called(insns, n, (struct range){ 0, n }),
	};

	if (parts.judge.start)
		parts.find_carried = find_called(insns, n, parts.judge);
	parts.gone[0] = parts.judge;
	if (!has_inner && parts.find_carried.start)
		parts.gone[1] = parts.find_carried;
	parts.n = n - (parts.gone[0].end - parts.gone[0].start) -
		  (parts.gone[1].end - parts.gone[1].start);
	return parts;
}

static bool is_gone(const struct parts *parts, size_t i)
{
	return (i >= parts->gone[0].start && i < parts->gone[0].end) ||
	       (i >= parts->gone[1].start && i < parts->gone[1].end);
}

/* Where an instruction is once parts are gone and judge() is at the end. */
static size_t moved(const struct parts *parts, size_t i)
{
	size_t to = i;

	if (i == parts->judge.start)
		return parts->n;
	for (size_t k = 0; k < ARRAY_SIZE(parts->gone); k++)
		if (i > parts->gone[k].start)
			to -= min_u64(i, parts->gone[k].end) -
			      parts->gone[k].start;
	return to;
}

/* All but judge(). *@ret_find_carried: where that function begins, if it is needed. */
static int add_program(struct code *code, const struct bpf_program *program,
		       bool has_inner, uint32_t *ret_find_carried)
{
	const struct bpf_insn *insns = bpf_program__insns(program);
	size_t n = bpf_program__insn_cnt(program);
	struct parts parts = find_parts(insns, n, has_inner);

	if (!parts.judge.start || (has_inner && !parts.find_carried.start))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		size_t function = called_function(insns, i);
		struct bpf_insn insn = insns[i];

		if (function)
			insn.imm = (int)(moved(&parts, function) -
					 moved(&parts, i) - 1);
		if (!is_gone(&parts, i))
			code_add(code, insn);
	}
	*ret_find_carried = moved(&parts, parts.find_carried.start);
	return 0;
}

static void log_too_large(const struct filter *filter,
			  const struct largest *largest, const char *why,
			  const struct log *log)
{
	char number[16] = "";

	if (filter->is_list)
		snprintf(number, sizeof(number), "[%u]", largest->rule);
	log_error(log,
		  "%s%s: the expression is too large: its code has %u instructions, and %s",
		  filter->is_list ? "rules" : "filter", number, largest->insns,
		  why);
}

static int load(const struct filter *filter, const struct bpf_program *program,
		const struct filter_frames *frames, enum judge_kind kind,
		const struct log *log)
{
	__attribute__((cleanup(code_done))) struct code code = { 0 };
	struct reach reach = find_reach(filter, frames->link);
	struct largest largest = { 0 };
	uint32_t find_carried;
	int fd = add_program(&code, program, reach.has_inner, &find_carried);

	fd = fd	   ?:
		     add_judge(&code, filter, frames, kind, &reach,
			       find_carried, &largest);
	if (fd)
		return fd;
	fd = code_link(&code);
	if (fd == -E2BIG)
		log_too_large(filter, &largest,
			      "jumps reach over 32767 of them", log);
	if (fd)
		return fd;
	fd = bpf_prog_load(bpf_program__type(program), bpf_program__name(program),
			   "Dual BSD/GPL", code.insns, code.n, NULL);
	if (fd == -E2BIG)
		log_too_large(
			filter, &largest,
			"the kernel's verifier follows a million through all programs and branches",
			log);
	return fd;
}

int filter_load(const struct filter *filter, const struct bpf_program *program,
		const struct filter_frames *frames, const struct log *log)
{
	return load(filter, program, frames, JUDGE_FIRST, log);
}

int filter_load_bits(const struct filter *filter,
		     const struct bpf_program *program,
		     const struct filter_frames *frames, const struct log *log)
{
	return load(filter, program, frames, JUDGE_ALL, log);
}
