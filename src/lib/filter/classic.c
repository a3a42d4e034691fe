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

/* Data about the frame, such as its interface, which sockets load from negative offsets; programs here do not. */
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

bool classic_is_valid(const struct classic *classic)
{
	return bpf_validate((const struct bpf_insn *)classic->insns,
			    (int)classic->n);
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
