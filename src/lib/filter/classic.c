/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "classic.h"

#include "base/util.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct classic_insn) == sizeof(struct bpf_insn) &&
		       offsetof(struct classic_insn, k) ==
			       offsetof(struct bpf_insn, k),
	       "the layout of BSD, which libpcap and Linux share");

enum { SNAPLEN = 262144 }; /* that of tcpdump; the result of a match */

/* SKF_AD_OFF of linux/filter.h, which is not for use beside pcap/bpf.h. */
static const uint32_t ANCILLARY_DATA = 0xfffff000;

/* Such as its interface. Sockets load it from beyond the frame; programs here do not. */
static bool loads_ancillary_data(const struct bpf_program *program)
{
	for (u_int i = 0; i < program->bf_len; i++) {
		const struct bpf_insn *insn = &program->bf_insns[i];

		if (BPF_CLASS(insn->code) == BPF_LD &&
		    BPF_MODE(insn->code) == BPF_ABS && insn->k >= ANCILLARY_DATA)
			return true;
	}
	return false;
}

static int copy_program(const struct bpf_program *program,
			struct classic *ret_classic)
{
	size_t size = program->bf_len * sizeof(*program->bf_insns);
	struct classic_insn *insns;

	if (program->bf_len > FILTER_CLASSIC_MAX)
		return -E2BIG;
	if (!size)
		return -EINVAL;
	insns = malloc(size);
	if (!insns)
		return -ENOMEM;
	memcpy(insns, program->bf_insns, size);
	*ret_classic = (struct classic){ insns, program->bf_len };
	return 0;
}

int classic_compile(const char *expression, enum link_kind link,
		    struct classic *ret_classic, char *ret_error, size_t size)
{
	int type = link == LINK_ETHERNET ? DLT_EN10MB : DLT_RAW, err = -EINVAL;
	struct bpf_program program;
	pcap_t *pcap = pcap_open_dead(type, SNAPLEN);

	if (!pcap)
		return -ENOMEM;
	if (pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN)) {
		snprintf(ret_error, size, "%s", pcap_geterr(pcap));
	} else if (loads_ancillary_data(&program)) {
		snprintf(ret_error, size,
			 "filters have no 'inbound', 'outbound' and 'ifindex': "
			 "options select directions and interfaces");
		pcap_freecode(&program);
	} else {
		err = copy_program(&program, ret_classic);
		if (err)
			snprintf(ret_error, size,
				 "the filter needs %u instructions; %d are the most",
				 program.bf_len, FILTER_CLASSIC_MAX);
		pcap_freecode(&program);
	}
	pcap_close(pcap);
	return err;
}

void classic_done(struct classic *classic)
{
	free(classic->insns);
	*classic = (struct classic){ 0 };
}

bool classic_is_same(const struct classic *one, const struct classic *other)
{
	return one->n == other->n &&
	       (!one->n ||
		!memcmp(one->insns, other->insns, one->n * sizeof(*one->insns)));
}

uint32_t classic_run(const struct classic *classic, const void *frame,
		     uint32_t len, uint32_t wire_len)
{
	return bpf_filter((const struct bpf_insn *)classic->insns, frame,
			  wire_len, len);
}

/* ---- Programs as such ----------------------------------------------------------- */

int64_t classic_jump_target(uint32_t i, const struct classic_insn *insn)
{
	return (int64_t)i + 1 + (int32_t)insn->k;
}

bool classic_is_jump_back(uint32_t i, const struct classic_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_JA) &&
	       classic_jump_target(i, insn) <= i;
}

static bool is_load_code(const struct classic_insn *insn)
{
	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS:
	case BPF_LD | BPF_H | BPF_ABS:
	case BPF_LD | BPF_B | BPF_ABS:
	case BPF_LDX | BPF_B | BPF_MSH:
	case BPF_LD | BPF_W | BPF_IND:
	case BPF_LD | BPF_H | BPF_IND:
	case BPF_LD | BPF_B | BPF_IND:
	case BPF_LD | BPF_IMM:
	case BPF_LDX | BPF_IMM:
	case BPF_LD | BPF_W | BPF_LEN:
	case BPF_LDX | BPF_W | BPF_LEN:
	case BPF_MISC | BPF_TAX:
	case BPF_MISC | BPF_TXA:
		return true;
	case BPF_LD | BPF_MEM:
	case BPF_LDX | BPF_MEM:
	case BPF_ST:
	case BPF_STX:
		return insn->k < BPF_MEMWORDS;
	default:
		return false;
	}
}

static bool is_alu_code(const struct classic_insn *insn)
{
	if (insn->code & ~(BPF_ALU | 0xf0 | BPF_X))
		return false;
	switch (BPF_OP(insn->code)) {
	case BPF_DIV:
	case BPF_MOD:
		return insn->code & BPF_X || insn->k;
	case BPF_LSH:
	case BPF_RSH:
		return insn->code & BPF_X || insn->k < 32;
	case BPF_NEG:
		return !(insn->code & BPF_X);
	default:
		return BPF_OP(insn->code) <= BPF_XOR;
	}
}

static bool is_jump_code(uint32_t i, const struct classic_insn *insn, uint32_t n)
{
	uint32_t left = n - i - 1;

	switch (insn->code) {
	case BPF_JMP | BPF_JA:
		return classic_jump_target(i, insn) >= 0 &&
		       classic_jump_target(i, insn) < n;
	case BPF_JMP | BPF_JEQ | BPF_K:
	case BPF_JMP | BPF_JEQ | BPF_X:
	case BPF_JMP | BPF_JGT | BPF_K:
	case BPF_JMP | BPF_JGT | BPF_X:
	case BPF_JMP | BPF_JGE | BPF_K:
	case BPF_JMP | BPF_JGE | BPF_X:
	case BPF_JMP | BPF_JSET | BPF_K:
	case BPF_JMP | BPF_JSET | BPF_X:
		return insn->jt < left && insn->jf < left;
	default:
		return false;
	}
}

static bool is_return(const struct classic_insn *insn)
{
	return insn->code == (BPF_RET | BPF_K) || insn->code == (BPF_RET | BPF_A);
}

bool classic_is_valid(const struct classic *classic)
{
	uint32_t n = classic->n;

	for (uint32_t i = 0; i < n; i++) {
		const struct classic_insn *insn = &classic->insns[i];

		if (!is_load_code(insn) && !is_return(insn) &&
		    !(BPF_CLASS(insn->code) == BPF_ALU && is_alu_code(insn)) &&
		    !is_jump_code(i, insn, n))
			return false;
	}
	return n && n <= FILTER_CLASSIC_MAX && is_return(&classic->insns[n - 1]);
}

uint32_t classic_load_size(uint16_t code)
{
	switch (BPF_SIZE(code)) {
	case BPF_W:
		return 4;
	case BPF_H:
		return 2;
	default:
		return 1;
	}
}

static bool is_constant_load(const struct classic_insn *insn)
{
	return (BPF_CLASS(insn->code) == BPF_LD &&
		BPF_MODE(insn->code) == BPF_ABS) ||
	       insn->code == (BPF_LDX | BPF_B | BPF_MSH);
}

uint32_t classic_reach(const struct classic *classic)
{
	uint64_t reach = 0;

	for (uint32_t i = 0; i < classic->n; i++) {
		const struct classic_insn *insn = &classic->insns[i];
		uint64_t end = (uint64_t)insn->k + classic_load_size(insn->code);

		if (is_constant_load(insn) && end <= CLASSIC_DIRECT_MAX)
			reach = max_u64(reach, end);
	}
	return reach;
}

bool classic_uses_memory(const struct classic *classic)
{
	for (uint32_t i = 0; i < classic->n; i++)
		if (BPF_MODE(classic->insns[i].code) == BPF_MEM &&
		    BPF_CLASS(classic->insns[i].code) <= BPF_LDX)
			return true;
	return false;
}

bool classic_has_loop(const struct classic *classic)
{
	for (uint32_t i = 0; i < classic->n; i++)
		if (classic_is_jump_back(i, &classic->insns[i]))
			return true;
	return false;
}
