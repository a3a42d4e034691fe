/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A frame as the generated code sees it: as it is in the buffer; as on the wire, with the
 * VLAN tag that the kernel keeps beside it; or what a tunnel carries. The code is a function
 * that takes a struct __sk_buff.
 */
#ifndef NETOBS_FILTER_FRAME_H
#define NETOBS_FILTER_FRAME_H

#include "classic.h"
#include "code.h"

#include <stddef.h>
#include <stdint.h>

enum frame_view {
	FRAME_BUFFER,
	FRAME_TAGGED,  /* the part of frame_start_tagged() */
	FRAME_CARRIED, /* behind frame_choose_carried() */
};

/* The register and the stack that all of the code shares. */
enum {
	FRAME_CONTEXT = BPF_REG_6, /* struct __sk_buff */

	FRAME_DATA_END = -8,
	FRAME_LEN = -12,	/* of the frame on the wire, 32 bits */
	FRAME_TAG = -16,	/* the tag's four bytes as a number */
	FRAME_CARRIED_AT = -24, /* the result of find_carried(), little-endian: */
	FRAME_CARRIED_OFFSET = FRAME_CARRIED_AT,
	FRAME_CARRIED_KIND = FRAME_CARRIED_AT + 2,
	FRAME_CARRIED_END = FRAME_CARRIED_AT + 4,
	FRAME_CARRIED_LEN = -28, /* as FRAME_LEN */
	FRAME_MATCHES = -40,	 /* 64 bits for the code between the programs */
	FRAME_STACK = -40,
};

/* The position of a tag in a frame. */
enum {
	FRAME_TAG_START = 12,
	FRAME_TAG_LEN = 4,
	FRAME_TAG_END = FRAME_TAG_START + FRAME_TAG_LEN
};

/* The needs of programs for the frames of tunnels. */
struct frame_carried {
	uint32_t function; /* index in the code at which find_carried() of src/bpf/judge.h begins */
	uint32_t reach; /* the largest classic_reach() of them */
};

/*
 * Begin the function. Its code may pull packets, so the pointers into packets that its
 * caller has are invalid afterwards.
 *
 * @param reach      the largest classic_reach() of the other programs that follow
 * @param len_field  offset in struct __sk_buff of the frame's length on the wire
 * @param carried    NULL: no programs for FRAME_CARRIED follow
 */
void frame_start(struct code *code, uint32_t reach, size_t len_field,
		 const struct frame_carried *carried);

/*
 * Begin the part for Ethernet frames with a tag beside them.
 *
 * @return a label, which has to be placed in front of the part for all others
 */
uint32_t frame_start_tagged(struct code *code);

/* End that part; R0 stays as it is. */
void frame_end_tagged(struct code *code);

/* Jump to @none unless the frame is one of a tunnel, and to @ip if it carries no Ethernet. */
void frame_choose_carried(struct code *code, uint32_t none, uint32_t ip);

/* Load a field of 32 bits of struct __sk_buff. */
void frame_load_field(struct code *code, uint8_t dst, size_t offset);

/*
 * Classic BPF to eBPF. A load beyond the end of the frame rejects it. The code uses R6 to R9,
 * and 112 bytes of stack at most.
 */

/*
 * Append @classic to code of frame_start(). Behind its last instruction R0 has its result; 0:
 * the frame is rejected.
 *
 * @return 0; -EINVAL: not a valid classic program for frames; -ENOMEM
 */
int translate(const struct classic *classic, enum frame_view view,
	      struct code *code);

#endif
