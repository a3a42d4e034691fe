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
	uint32_t slot;
	struct count before; /* in the slot, by rules that had it earlier */
};

struct filter {
	bool is_list; /* of filter_new_list() */
	uint32_t next_slot;
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
	}
	*ret_filter = TAKE_PTR(filter);
	return 0;
}

int filter_new(const char *expression, struct filter **ret_filter,
	       char (*ret_error)[FILTER_ERROR_MAX])
{
	const struct filter_rule rule = { expression, true };
	const struct filter_rules list = { &rule, 1, false };
	uint32_t wrong;

	return compile_list(&list, ret_filter, &wrong, ret_error);
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

/* Texts with names mean other addresses from time to time. */
static bool has_same_code(const struct rule *one, const struct rule *other)
{
	for (int link = 0; link < LINKS; link++) {
		const struct classic *a = &one->expression.programs[link];
		const struct classic *b = &other->expression.programs[link];

		if (a->n != b->n || (a->n && memcmp(a->insns, b->insns,
						    a->n * sizeof(*a->insns))))
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
		    !has_same_code(&one->rules[i], &other->rules[i]))
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

		if (expression->programs[link].n)
			continue;
		if (filter->is_list)
			snprintf(number, sizeof(number), "[%u]", i);
		log_error(log, "%s%s: %s: %s",
			  filter->is_list ? "rules" : "filter", number, frames,
			  expression->objections[link]);
		return -EINVAL;
	}
	return 0;
}

/* What judge() returns if the rule decides. */
static uint32_t judgement_of(const struct rule *rule)
{
	return rule->slot << JUDGED_SLOT_SHIFT |
	       (rule->accepts ? JUDGED_ACCEPT : 0);
}

uint32_t filter_judge(const struct filter *filter, const void *frame,
		      uint32_t len, uint32_t wire_len)
{
	uint32_t i = 0;

	while (i + 1 < filter->n &&
	       !classic_run(&filter->rules[i].expression.programs[LINK_ETHERNET],
			    frame, len, wire_len))
		i++;
	return judgement_of(&filter->rules[i]);
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
		   bool is_settled, const struct count totals[RULE_SLOTS])
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

static struct count difference(struct count from, struct count to)
{
	return (struct count){ to.packets - from.packets, to.bytes - from.bytes };
}

int filter_count(const struct filter *filter, uint32_t rule,
		 const struct count totals[RULE_SLOTS], struct count *ret_count)
{
	struct count others = { 0 };

	if (rule > filter->n)
		return -ENOENT;
	if (rule < filter->n) {
		const struct rule *of = &filter->rules[rule];

		*ret_count = difference(of->before, totals[of->slot]);
		return 0;
	}
	for (uint32_t i = 0; i < RULE_SLOTS; i++) {
		others.packets += totals[i].packets;
		others.bytes += totals[i].bytes;
	}
	for (uint32_t i = 0; i < filter->n; i++) {
		const struct rule *of = &filter->rules[i];

		others = difference(difference(of->before, totals[of->slot]),
				    others);
	}
	*ret_count = others;
	return 0;
}

/* ---- Programs ---------------------------------------------------------------------- */

/*
 * Return the judgement, which the verifier must not know: it would follow the caller's
 * code for each rule. To the verifier, two loads of a field are two unknown numbers.
 */
static void add_judgement(struct code *code, const struct rule *rule)
{
	const int16_t field = offsetof(struct __sk_buff, len);

	code_add(code, code_load(BPF_W, BPF_REG_0, TRANSLATE_CONTEXT, field));
	code_add(code, code_load(BPF_W, BPF_REG_1, TRANSLATE_CONTEXT, field));
	code_add(code, code_alu32_reg(BPF_XOR, BPF_REG_0, BPF_REG_1));
	code_add(code, code_alu32_imm(BPF_XOR, BPF_REG_0, judgement_of(rule)));
	code_add(code, code_exit());
}

/* Go to @next unless the expression matches. */
static int add_expression(struct code *code, const struct classic *classic,
			  bool is_tagged, const struct rule *rule, uint32_t next)
{
	int err = translate(classic, is_tagged, code);

	code_jump(code, code_jump64_imm(BPF_JEQ, BPF_REG_0, 0), next);
	add_judgement(code, rule);
	return err;
}

/*
 * tcpdump's filter gets frames without the tag that the kernel keeps beside them, and looks
 * for that tag where the expression has "vlan". So do filters here: "udp" matches frames
 * with such a tag as well, and an expression with "vlan" gets frames with the tag inside.
 */
static int add_rule(struct code *code, const struct rule *rule,
		    enum link_kind link)
{
	const struct classic *classic = &rule->expression.programs[link];
	uint32_t next = code_label(code);
	int err = 0;

	if (link == LINK_ETHERNET && rule->expression.has_vlan) {
		uint32_t mismatch = code_label(code);
		uint32_t untagged = translate_start_tagged(code);

		err = add_expression(code, classic, true, rule, mismatch);
		code_place(code, mismatch);
		translate_end_tagged(code);
		code_jump(code, code_jump_always(), next);
		code_place(code, untagged);
	}
	err = err ?: add_expression(code, classic, false, rule, next);
	code_place(code, next);
	return err;
}

static uint32_t filter_reach(const struct filter *filter, enum link_kind link)
{
	uint32_t reach = 0;

	for (uint32_t i = 0; i + 1 < filter->n; i++)
		reach = max_u64(
			reach,
			classic_reach(
				&filter->rules[i].expression.programs[link]));
	return reach;
}

static int add_judge(struct code *code, const struct filter *filter,
		     const struct filter_frames *frames)
{
	int err = 0;

	translate_start(code, filter_reach(filter, frames->link),
			frames->has_wire_len ? offsetof(struct __sk_buff, cb[2]) :
					       offsetof(struct __sk_buff, len));
	for (uint32_t i = 0; !err && i + 1 < filter->n; i++)
		err = add_rule(code, &filter->rules[i], frames->link);
	add_judgement(code, &filter->rules[filter->n - 1]);
	return err;
}

/* Where a function begins that the instruction calls; 0: it does not call one. */
static size_t called_function(const struct bpf_insn *insns, size_t i)
{
	bool calls = insns[i].code == (BPF_JMP | BPF_CALL) &&
		     insns[i].src_reg == BPF_PSEUDO_CALL;

	return calls ? i + 1 + insns[i].imm : 0;
}

/* The instructions of the stub. libbpf puts functions behind the program, as they are called: judge() first. */
struct stub {
	size_t start; /* 0: there is none */
	size_t end;
};

static struct stub find_judge(const struct bpf_insn *insns, size_t n)
{
	struct stub stub = { .end = n };

	for (size_t i = 0; i < n; i++) {
		size_t function = called_function(insns, i);

		if (!stub.start)
			stub.start = function;
		else if (function > stub.start && function < stub.end)
			stub.end = function;
	}
	return stub;
}

/* Where an instruction is once the stub is gone and judge() is at the end. */
static size_t moved(const struct stub *stub, size_t i, size_t n)
{
	size_t gone = stub->end - stub->start;

	if (i == stub->start)
		return n - gone;
	return i > stub->start ? i - gone : i;
}

static int add_program(struct code *code, const struct bpf_program *program)
{
	const struct bpf_insn *insns = bpf_program__insns(program);
	size_t n = bpf_program__insn_cnt(program);
	struct stub stub = find_judge(insns, n);

	for (size_t i = 0; stub.start && i < n; i++) {
		size_t function = called_function(insns, i);
		struct bpf_insn insn = insns[i];

		if (function)
			insn.imm = (int)(moved(&stub, function, n) -
					 moved(&stub, i, n) - 1);
		if (i < stub.start || i >= stub.end)
			code_add(code, insn);
	}
	return stub.start ? 0 : -EINVAL;
}

int filter_load(const struct filter *filter, const struct bpf_program *program,
		const struct filter_frames *frames)
{
	__attribute__((cleanup(code_done))) struct code code = { 0 };
	int fd = add_program(&code, program);

	fd = fd ?: add_judge(&code, filter, frames) ?: code_link(&code);
	return fd    ?:
		       bpf_prog_load(bpf_program__type(program),
				     bpf_program__name(program), "Dual BSD/GPL",
				     code.insns, code.n, NULL);
}
