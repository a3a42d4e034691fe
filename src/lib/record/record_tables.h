/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Tables of records.def, by which records other than flows are written as JSON, and read. */
#ifndef NETOBS_RECORD_RECORD_TABLES_H
#define NETOBS_RECORD_RECORD_TABLES_H

#include "catalogue/records.h"

enum { FIELDS_MAX = 80 }; /* of records and items that can be read */

struct json_field {
	struct record_field field;
	const char *key; /* NULL: the end of the table */
};

extern const struct json_field *const fields_of_types[NETOBS_RECORD_TYPES];

/* For each type of field: the items of a list, or the names of an enumeration's values. */
extern const struct json_list {
	const struct json_field *fields;
	size_t size; /* of an item */
} lists_of_types[];
extern const struct names {
	const char *const *names;
	size_t n;
	const char *other; /* of values without one */
} names_of_types[];

#endif
