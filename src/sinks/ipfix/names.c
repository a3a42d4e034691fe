// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "names.h"

#include <string.h>

void names_clear(struct names *names)
{
	if (names->n)
		memset(names, 0, sizeof(*names));
}

static struct name *find_name(struct names *names, uint32_t ifindex,
			      uint32_t netns)
{
	uint32_t at = (ifindex ^ netns * 2654435761U) * 2654435761U >> 16;
	struct name *name;

	for (;; at++) {
		name = &names->slots[at % NAMES_SLOTS];
		if (!name->ifindex)
			return name;
		if (name->ifindex == ifindex && name->netns_inode == netns)
			return name;
	}
}

bool names_is_new(struct names *names, const struct netobs_point *point,
		  struct name *ret_name)
{
	const struct name *known;

	if (!point->ifindex || !point->name)
		return false;
	known = find_name(names, point->ifindex, point->netns_inode);
	if (known->ifindex &&
	    !strncmp(known->text, point->name, sizeof(known->text)))
		return false;
	*ret_name = (struct name){ .ifindex = point->ifindex,
				   .netns_inode = point->netns_inode };
	memcpy(ret_name->text, point->name,
	       strnlen(point->name, sizeof(ret_name->text)));
	return true;
}

void names_note(struct names *names, const struct name *name)
{
	struct name *slot = find_name(names, name->ifindex, name->netns_inode);

	if (!slot->ifindex && names->n == NAMES_SLOTS / 2) {
		names_clear(names);
		slot = find_name(names, name->ifindex, name->netns_inode);
	}
	names->n += !slot->ifindex;
	*slot = *name;
}

struct record_interface names_record(const struct name *name)
{
	struct record_interface record = { .ifindex = name->ifindex };

	memcpy(record.name, name->text, sizeof(record.name));
	return record;
}
