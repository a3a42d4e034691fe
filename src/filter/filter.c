/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "filter.h"

#include "base/clock_ms.h"
#include "base/util.h"
#include "classic.h"
#include "translate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <ctype.h>
#include <errno.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINKS = LINK_NONE + 1 };

struct filter {
	char *expression;
	bool has_vlan; /* the expression has the word */
	struct classic programs[LINKS];
	char objections[LINKS][FILTER_ERROR_MAX]; /* why there is no program */
};

/* ---- Expressions ----------------------------------------------------------------- */

enum {
	QUOTE_MAX = 60,
	PLACE_MAX = 1000,
	PLACE_WAIT_MS = 1000,
	/* libpcap takes seconds for some of this length, and the cube of it for longer ones. */
	EXPRESSION_MAX = 4096,
};

/*
 * The length of the longest part of the expression, up to a space, that is one itself.
 * Each try looks up the names of hosts again, which may take long.
 */
static size_t valid_length(const char *expression, enum link_kind link)
{
	const int64_t end = now_ms() + PLACE_WAIT_MS;
	cleanup_free char *part = strdup(expression);
	char error[FILTER_ERROR_MAX];

	for (size_t len = part ? strlen(part) : 0; len && left_ms(end); len--) {
		struct classic classic;

		if (!isspace((unsigned char)expression[len - 1]))
			continue;
		part[len - 1] = '\0';
		if (!classic_compile(part, link, &classic, error, sizeof(error))) {
			classic_done(&classic);
			return strlen(part);
		}
	}
	return 0;
}

/* libpcap does not report where a syntax error is. */
static void add_place(char *error, const char *expression, enum link_kind link)
{
	size_t len = strlen(error);
	const char *rest = expression;

	if (!strstr(error, "syntax error"))
		return;
	if (strlen(expression) < PLACE_MAX)
		rest += valid_length(expression, link);
	while (isspace((unsigned char)*rest))
		rest++;
	snprintf(error + len, FILTER_ERROR_MAX - len, ", at '%.*s%s'",
		 QUOTE_MAX, rest, strlen(rest) > QUOTE_MAX ? "..." : "");
}

/* Links of one kind only may have packets that match: not an error for the others. */
static int allow_nothing(struct filter *filter, enum link_kind link)
{
	static const struct classic_insn reject = { .code = BPF_RET | BPF_K };
	struct classic *program = &filter->programs[link];

	if (!strstr(filter->objections[link], "rejects all packets"))
		return -EINVAL;
	program->insns = malloc(sizeof(reject));
	if (!program->insns)
		return -ENOMEM;
	*program->insns = reject;
	program->n = 1;
	return 0;
}

static int compile_filter(struct filter *filter, const char *expression,
			  char (*ret_error)[FILTER_ERROR_MAX])
{
	int err[LINKS], n = 0;

	for (int link = LINK_ETHERNET; link < LINKS; link++) {
		err[link] = classic_compile(expression, link,
					    &filter->programs[link],
					    filter->objections[link],
					    FILTER_ERROR_MAX);
		n += !err[link];
	}
	for (int link = LINK_ETHERNET; n && link < LINKS; link++)
		if (err[link] && allow_nothing(filter, link) == -ENOMEM)
			return -ENOMEM;
	if (n)
		return 0;
	memcpy(*ret_error, filter->objections[LINK_ETHERNET], FILTER_ERROR_MAX);
	if (err[LINK_ETHERNET] == -EINVAL)
		add_place(*ret_error, expression, LINK_ETHERNET);
	return err[LINK_ETHERNET];
}

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || strchr("-_.\\", c);
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || !is_word_char(at[-1])) &&
		    (!at[len] || !is_word_char(at[len])))
			return true;
	return false;
}

/* Reserved for what a tunnel carries, which libpcap would take for the name of a host. */
static int refuse_inner(const char *expression,
			char (*ret_error)[FILTER_ERROR_MAX])
{
	const char *word = expression + strspn(expression, " \t\n(");

	if (strncmp(word, "inner ", strlen("inner ")))
		return 0;
	snprintf(*ret_error, FILTER_ERROR_MAX,
		 "inner: this version filters by the outer headers of tunnels only");
	return -EINVAL;
}

static void free_filter(struct filter **filter)
{
	filter_free(*filter);
}

int filter_new(const char *expression, struct filter **ret_filter,
	       char (*ret_error)[FILTER_ERROR_MAX])
{
	__attribute__((cleanup(free_filter))) struct filter *filter =
		calloc(1, sizeof(*filter));
	int err;

	if (!filter)
		return -ENOMEM;
	if (refuse_inner(expression, ret_error))
		return -EINVAL;
	if (strlen(expression) > EXPRESSION_MAX) {
		snprintf(*ret_error, FILTER_ERROR_MAX,
			 "the expression has %zu bytes; %d are the most",
			 strlen(expression), EXPRESSION_MAX);
		return -E2BIG;
	}
	filter->expression = strdup(expression);
	if (!filter->expression)
		return -ENOMEM;
	filter->has_vlan = has_word(expression, "vlan");
	err = compile_filter(filter, expression, ret_error);
	if (!err)
		*ret_filter = TAKE_PTR(filter);
	return err;
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	for (int link = LINK_ETHERNET; link < LINKS; link++)
		classic_done(&filter->programs[link]);
	free(filter->expression);
	free(filter);
}

const char *filter_expression(const struct filter *filter)
{
	return filter->expression;
}

const char *filter_objection(const struct filter *filter, enum link_kind link)
{
	return filter->programs[link].n ? NULL : filter->objections[link];
}

bool filter_accepts(const struct filter *filter, const void *frame,
		    uint32_t len, uint32_t wire_len)
{
	return classic_run(&filter->programs[LINK_ETHERNET], frame, len,
			   wire_len);
}

/* ---- Programs ---------------------------------------------------------------------- */

static int add_part(struct code *code, const struct classic *classic,
		    bool is_tagged)
{
	int err = translate(classic, is_tagged, code);
	uint32_t rejected = code_label(code);

	code_jump(code, code_jump64_imm(BPF_JEQ, BPF_REG_0, 0), rejected);
	code_add(code, code_alu32_imm(BPF_MOV, BPF_REG_0, JUDGED_ACCEPT));
	code_add(code, code_exit());
	code_place(code, rejected);
	code_add(code, code_alu32_imm(BPF_MOV, BPF_REG_0, JUDGED_REJECT));
	code_add(code, code_exit());
	return err;
}

/*
 * tcpdump's filter gets frames without the tag that the kernel keeps beside them, and looks
 * for that tag where the expression has "vlan". So do filters here: "udp" matches frames
 * with such a tag as well, and an expression with "vlan" gets frames with the tag inside.
 */
static int add_judge(struct code *code, const struct filter *filter,
		     const struct filter_frames *frames)
{
	const struct classic *classic = &filter->programs[frames->link];
	int err = 0;

	translate_start(code, classic_reach(classic),
			frames->has_wire_len ? offsetof(struct __sk_buff, cb[2]) :
					       offsetof(struct __sk_buff, len));
	if (frames->link == LINK_ETHERNET && filter->has_vlan) {
		uint32_t untagged = translate_start_tagged(code);

		err = add_part(code, classic, true);
		code_place(code, untagged);
	}
	return err ?: add_part(code, classic, false);
}

/* Where a function begins that the instruction calls; 0: it does not call one. */
static size_t called_function(const struct bpf_insn *insns, size_t i)
{
	bool calls = insns[i].code == (BPF_JMP | BPF_CALL) &&
		     insns[i].src_reg == BPF_PSEUDO_CALL;

	return calls ? i + 1 + insns[i].imm : 0;
}

/* libbpf puts functions behind the program. judge() is the only one. */
static size_t find_judge(const struct bpf_insn *insns, size_t n)
{
	size_t judge = 0;

	for (size_t i = 0; i < n; i++) {
		size_t function = called_function(insns, i);

		if (judge && function && function != judge)
			return 0;
		judge = function ?: judge;
	}
	return judge;
}

static int add_program(struct code *code, const struct bpf_program *program)
{
	const struct bpf_insn *insns = bpf_program__insns(program);
	size_t judge = find_judge(insns, bpf_program__insn_cnt(program));

	for (size_t i = 0; i < judge; i++)
		code_add(code, insns[i]);
	return judge ? 0 : -EINVAL;
}

int filter_load(const struct filter *filter, const struct bpf_program *program,
		const struct filter_frames *frames)
{
	__attribute__((cleanup(code_done))) struct code code = { 0 };
	int fd = filter_objection(filter, frames->link) ?
			 -EINVAL :
			 add_program(&code, program);

	fd = fd ?: add_judge(&code, filter, frames) ?: code_link(&code);
	return fd    ?:
		       bpf_prog_load(bpf_program__type(program),
				     bpf_program__name(program), "Dual BSD/GPL",
				     code.insns, code.n, NULL);
}
