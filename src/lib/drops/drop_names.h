/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The names that this kernel has for reasons, from its type information (BTF), and for addresses of its
 * functions, as the programs asked for them, or from /proc/kallsyms.
 */
#ifndef NETOBS_DROPS_DROP_NAMES_H
#define NETOBS_DROPS_DROP_NAMES_H

#include "base/log.h"

#include <netobs/drop.h>
#include <stddef.h>
#include <stdint.h>

struct btf;
struct kernel_symbol;

/* A reason of a subsystem, which has the upper half of the number. */
struct named_reason {
	uint32_t number;
	char *name;
};

struct drop_names {
	char **causes; /* by number; NULL: there is none */
	size_t n_causes;
	char **subsystems; /* of reasons, in the upper half of a number */
	size_t n_subsystems;
	struct named_reason *reasons; /* of subsystems that have names for theirs */
	uint32_t n_reasons, reasons_capacity;
	struct kernel_symbol *symbols; /* COMPAT(<5.13): in order */
	uint32_t n_symbols, symbols_capacity;
};

/**
 * Read them. What cannot be read is logged and stays without names.
 *
 * @param wants_reasons  the kernel states them
 */
void drop_names_open(struct drop_names *names, bool wants_reasons,
		     const struct log *log);

void drop_names_close(struct drop_names *names);

/* Add the reasons of a subsystem that the enumeration of this name has, if there is one. */
void drop_names_add(struct drop_names *names, const struct btf *btf,
		    const char *enumeration);

/** Write the name of a reason; of one that has none, its subsystem and number. */
void drop_names_cause(const struct drop_names *names, uint32_t reason, char *to,
		      size_t size);

/**
 * Split what %pS has written: "tcp_v4_rcv+0xbe/0x1180 [module]".
 *
 * @return whether that is a function
 */
bool drop_names_split(const char *text, char *function, size_t size,
		      uint32_t *ret_offset);

/** Find the function that the address is in. @return whether it is known */
bool drop_names_find(const struct drop_names *names, uint64_t address,
		     char *function, size_t size, uint32_t *ret_offset);

#endif
