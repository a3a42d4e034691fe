/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Files that gzip, zstd or xz has compressed, as pipes from these programs: netobsctl needs no
 * library of theirs, and a damaged file harms a process of its own only.
 */
#ifndef NETOBS_CLI_FLOWS_DECOMPRESS_H
#define NETOBS_CLI_FLOWS_DECOMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "service/options/args.h"

struct decompressed;

struct decompress {
	const char **paths; /* path to read for each file: the file's, or a pipe's */
	struct decompressed *list;
	size_t n;
};

/** @return 0; < 0: the reason is on stderr. Either way, decompress_close() */
int decompress_open(const struct args_list *files, const char *verb,
		    struct decompress *ret_decompress);

/** Give a message that begins with the name of a pipe that of its file. */
void decompress_place(const struct decompress *decompress, char *text,
		      size_t size);

/**
 * Once the pipes have been read to their ends, or @p is_cancelled.
 *
 * @return whether all programs did their work; else the reason is on stderr
 */
bool decompress_close(struct decompress *decompress, const char *verb,
		      bool is_cancelled);

#endif
