/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Macros to read fields.def. Encoders define FIELD and POINT_FIELD to name a macro or a
 * function by the type of the field, so that what runs is as if written by hand.
 *
 * Types: number               8, 16 or 32 bits; 0 stands for "not known" where bits cannot
 *        id                   the same, but 0 is as good as any
 *        count                64 bits
 *        hash                 64 bits, in JSON as text of 16 hexadecimal digits
 *        time                 ns since 1970
 *        duration             ns, 64 bits
 *        address, tunnel_end  16 bytes; IPv4 or IPv6 as the flow is, or by itself
 *        mac                  6 bytes
 *        tcp_flags, tcp_combined, dscp, tunnel, name, direction, netns: each of one field
 *        text                 an array of char with a NUL; "" stands for "not known" where bits cannot
 */
#ifndef NETOBS_CATALOGUE_FIELDS_H
#define NETOBS_CATALOGUE_FIELDS_H

#include <netobs/flow.h>

#include <stdbool.h>

enum { FIELD_ALWAYS = 0 }; /* for `has` */

/* @has is a constant of the catalogue. */
static inline bool field_is_known(const struct netobs_flow *flow, uint64_t has)
{
	return !has || flow->has & has;
}

/* @macro(@member, ...) with what the catalogue has in brackets. */
#define FIELD_CALL(macro, member, bracket) \
	FIELD_CALL_EXPANDED(macro, member, FIELD_ARGUMENTS bracket)
#define FIELD_CALL_EXPANDED(macro, ...) macro(__VA_ARGS__)
#define FIELD_ARGUMENTS(...) __VA_ARGS__

/*
 * For lists of text, where a type or a bit may have something else than others:
 * FIELD_CHOOSE(SPECIAL_##type, "default"), with "#define SPECIAL_time ~, "for times"".
 */
#define FIELD_CHOOSE(...) FIELD_SECOND(__VA_ARGS__, )
#define FIELD_SECOND(first, second, ...) second

#endif
