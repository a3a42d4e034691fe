/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Mappings by NAT as a table, or as lines of JSON: of a service, or of the library. */
#ifndef NETOBS_CLI_CLIENT_MAPPING_LIST_H
#define NETOBS_CLI_CLIENT_MAPPING_LIST_H

#include <stdbool.h>
#include <stdint.h>

struct netobs_mapping;
struct netobs_mapping_query;

struct mapping_row {
	char *line; /* JSON */
	char state[16];
	uint64_t times[3]; /* the end, the last packet, the beginning */
};

/* All zero: it is empty, and takes all. */
struct mapping_list {
	const struct netobs_mapping_query *query; /* it takes those that match; NULL: all */
	struct mapping_row *rows;
	uint32_t n, capacity;
	bool is_out_of_memory;
};

/* Add a mapping that matches; @list: a struct mapping_list. */
void mapping_list_add(const struct netobs_mapping *mapping, void *list);

/**
 * Add the mappings of the service at @socket. If the service at
 * the default socket keeps no mappings, which is printed, or there is no service, those of the
 * kernel's table are added.
 *
 * @param tuple        the query as text; NULL: none
 * @param has_service  whether there is one that keeps mappings; set to false if not
 * @return 0; < 0: it failed, which was printed
 */
int mapping_list_ask(struct mapping_list *list, const char *socket,
		     const char *tuple, bool *has_service);

/**
 * Add the mappings of the kernel's table.
 *
 * @param netns  whose table; NULL: that of this process
 * @return 0; < 0: it failed, which was printed
 */
int mapping_list_kernel(struct mapping_list *list, const char *netns);

/* Sort mappings in use before others, the latest first. */
void mapping_list_sort(struct mapping_list *list);

/* Print @most of them to standard output; 0: all. @width: of a line of a table; 0: any */
void mapping_list_print_table(const struct mapping_list *list, uint32_t most,
			      uint32_t width);
void mapping_list_print_json(const struct mapping_list *list, uint32_t most);

/* Make it empty; the query stays. */
void mapping_list_clear(struct mapping_list *list);

#endif
