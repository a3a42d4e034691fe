// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Programs with a judge() that is generated from rules. */
#include "base/util.h"
#include "code.h"
#include "classic.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	VERIFIER_LOG_MAX = (16 << 20) - 1
}; /* as libbpf has it; kernels before 5.2 take no more */

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

/* After this code, R0 has the result of the expression for the packet in a tunnel; a frame without one jumps to @next. */
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
 * Frames that match go on behind this code; others go to @next.
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

static int add_rule_code(struct code *code, const struct rule *rule,
			 const struct filter_frames *frames)
{
	uint32_t next = code_label(code);
	int err = add_expression(code, &rule->expression, frames->link, next);

	add_judgement(code, rule_judgement(rule, frames->rates));
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

/* The result of the generated function. */
enum judge_kind {
	JUDGE_FIRST, /* the judgement of the first rule that matches */
	JUDGE_ALL,   /* a bit for each rule that matches */
};

/* Add the bit of a rule, which has no code if it cannot filter frames of these links. */
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

/* Hide the matching rules from the verifier, so that it follows each path once. */
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
					  add_rule_code(code, rule, frames);
		if (code->n - start > ret_largest->insns)
			*ret_largest = (struct largest){ i, code->n - start };
	}
	if (kind == JUDGE_ALL)
		end_bits(code);
	else
		add_judgement(code, rule_judgement(&filter->rules[filter->n - 1],
						   frames->rates));
	return err;
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

/* Load it once more, to have the verifier's log. */
static void log_refused(const struct code *code, struct bpf_prog_load_opts *opts,
			const struct bpf_program *program, const struct log *log)
{
	cleanup_free char *text = calloc(1, VERIFIER_LOG_MAX);

	if (!text)
		return;
	opts->log_buf = text;
	opts->log_size = VERIFIER_LOG_MAX;
	opts->log_level = 1;
	close_fd(&(int){ bpf_prog_load(bpf_program__type(program),
				       bpf_program__name(program), "Dual BSD/GPL",
				       code->insns, code->n, opts) });
	log_verifier(log, bpf_program__name(program), text);
}

static int load_code(const struct code *code, uint32_t features,
		     const struct bpf_program *program, const struct log *log)
{
	__attribute__((cleanup(functions_done))) struct functions functions;
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	int fd = functions_describe(code, features, &functions);

	if (fd)
		return fd;
	functions_set(&functions, &opts);
	fd = bpf_prog_load(bpf_program__type(program), bpf_program__name(program),
			   "Dual BSD/GPL", code->insns, code->n, &opts);
	if (fd == -EACCES || fd == -EINVAL)
		log_refused(code, &opts, program, log);
	return fd;
}

static int load_judge(const struct filter *filter,
		      const struct filter_template *template,
		      const struct filter_frames *frames, enum judge_kind kind,
		      const struct log *log)
{
	__attribute__((cleanup(code_done))) struct code code = { 0 };
	struct reach reach = find_reach(filter, frames->link);
	struct largest largest = { 0 };
	uint32_t find_carried;
	int fd = functions_splice(&code, template, reach.has_inner,
				  &find_carried);

	if (!fd)
		fd = add_judge(&code, filter, frames, kind, &reach,
			       find_carried, &largest);
	if (fd)
		return fd;
	fd = code_link(&code);
	if (fd == -E2BIG)
		log_too_large(filter, &largest,
			      "jumps reach over 32767 of them", log);
	if (fd)
		return fd;
	fd = load_code(&code, frames->features, template->program, log);
	if (fd == -E2BIG)
		log_too_large(
			filter, &largest,
			"the kernel's verifier follows a million through all programs and branches",
			log);
	return fd;
}

int filter_load(const struct filter *filter,
		const struct filter_template *template,
		const struct filter_frames *frames, const struct log *log)
{
	return load_judge(filter, template, frames, JUDGE_FIRST, log);
}

int filter_load_bits(const struct filter *filter,
		     const struct filter_template *template,
		     const struct filter_frames *frames, const struct log *log)
{
	return load_judge(filter, template, frames, JUDGE_ALL, log);
}

/* ---- Templates ----------------------------------------------------------------------- */

static bool is_jump(const struct bpf_insn *insn)
{
	const uint8_t class = BPF_CLASS(insn->code);

	return (class == BPF_JMP || class == BPF_JMP32) &&
	       BPF_OP(insn->code) != BPF_CALL;
}

static bool is_wide(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/*
 * @return whether it is neither wide, nor a jump, nor a call of a function of the object, which
 * libbpf relocates. The programs begin with no access that CO-RE relocates.
 */
static bool is_plain(const struct bpf_insn *insn)
{
	const bool calls = insn->code == (BPF_JMP | BPF_CALL);

	return calls ? !insn->src_reg : !is_jump(insn) && !is_wide(insn);
}

/* @return where two plain instructions follow each other, before any jump; @n: nowhere */
static size_t find_place(const struct bpf_insn *insns, size_t n)
{
	for (size_t i = 0; i + 1 < n && !is_jump(&insns[i]); i++) {
		if (is_wide(&insns[i]))
			i++;
		else if (is_plain(&insns[i]) && is_plain(&insns[i + 1]))
			return i;
	}
	return n;
}

/* @return the last exit of a program that a jump at @from reaches; 0: there is none */
static size_t find_exit(const struct bpf_insn *insns, size_t n, size_t from)
{
	size_t found = 0;

	for (size_t i = from + 1; i < n && i - from - 1 <= INT16_MAX; i++)
		if (insns[i].code == (BPF_JMP | BPF_EXIT))
			found = i;
	return found;
}

/*
 * The verifier knows that the jump is taken. It insists on a way to each instruction, though not
 * on one that is ever taken.
 */
static int end_at(struct filter_template *template, struct bpf_program *program,
		  size_t place, size_t exit)
{
	size_t n = bpf_program__insn_cnt(program),
	       size = n * sizeof(struct bpf_insn);
	struct bpf_insn *insns = malloc(size);
	int err;

	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(program), size);
	memcpy(template->replaced, &insns[place], sizeof(template->replaced));
	insns[place] = code_alu64_imm(BPF_MOV, BPF_REG_0, 0);
	insns[place + 1] = code_jump64_imm(BPF_JEQ, BPF_REG_0, 0);
	insns[place + 1].off = (int16_t)(exit - place - TEMPLATE_END);
	err = bpf_program__set_insns(program, insns, n);
	free(insns);
	template->end = place;
	template->ends_early = !err;
	return err;
}

int filter_template_init(struct filter_template *template,
			 const struct bpf_object *object)
{
	struct bpf_program *program =
		bpf_object__find_program_by_name(object, template->name);
	const struct bpf_insn *insns;
	size_t n, place, exit;

	if (!program)
		return -ENOENT;
	template->program = program;
	insns = bpf_program__insns(program);
	n = bpf_program__insn_cnt(program);
	place = find_place(insns, n);
	exit = find_exit(insns, n, place + 1);
	return exit ? end_at(template, program, place, exit) : 0;
}

void filter_template_restore(const struct filter_template *template,
			     struct bpf_insn *insns)
{
	if (template->ends_early)
		memcpy(&insns[template->end], template->replaced,
		       sizeof(template->replaced));
}
