/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef NETOBS_BASE_COUNT_H
#define NETOBS_BASE_COUNT_H

/* Add to the members `packets` and `bytes` of *@to those of *@from: of any structs with both. */
#define count_add(to, from)                      \
	do {                                     \
		__typeof__(to) to_ = (to);       \
		__typeof__(from) from_ = (from); \
		to_->packets += from_->packets;  \
		to_->bytes += from_->bytes;      \
	} while (0)

#endif
