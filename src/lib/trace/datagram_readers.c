// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "datagrams.h"

#include "base/util.h"

#include <string.h>

enum { FIRST_READERS = 16 };

/* @return where the socket is, or should be */
static uint32_t find_place(const struct datagram_readers *readers, uint64_t socket)
{
	uint32_t low = 0, high = readers->n;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (readers->items[middle].socket < socket)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct datagram_reader *find_reader(const struct datagram_readers *readers,
					   uint64_t socket)
{
	const uint32_t i = find_place(readers, socket);

	return i < readers->n && readers->items[i].socket == socket ?
		       &readers->items[i] :
		       NULL;
}

static struct datagram_reader *add_reader(struct datagram_readers *readers,
					  uint64_t socket)
{
	const uint32_t i = find_place(readers, socket);

	if (!array_reserve(&readers->items, readers->n, &readers->capacity,
			   sizeof(*readers->items), FIRST_READERS))
		return NULL;
	memmove(&readers->items[i + 1], &readers->items[i],
		(readers->n++ - i) * sizeof(*readers->items));
	readers->items[i] = (struct datagram_reader){ .socket = socket };
	return &readers->items[i];
}

static void remove_reader(struct datagram_readers *readers,
			  struct datagram_reader *reader)
{
	const uint32_t i = (uint32_t)(reader - readers->items);

	memmove(reader, reader + 1, (--readers->n - i) * sizeof(*reader));
}

void datagram_readers_push(struct datagram_readers *readers,
			   struct datagram *datagram, uint64_t socket)
{
	struct datagram_reader *reader = find_reader(readers, socket);

	if (!reader)
		reader = add_reader(readers, socket);
	if (!reader || !socket)
		return;
	datagram->socket = socket;
	datagram->next_read = NULL;
	datagram->before_read = reader->last;
	if (reader->last)
		reader->last->next_read = datagram;
	else
		reader->first = datagram;
	reader->last = datagram;
}

struct datagram *datagram_readers_first(const struct datagram_readers *readers,
					uint64_t socket)
{
	const struct datagram_reader *reader = find_reader(readers, socket);

	return reader ? reader->first : NULL;
}

static bool has_buffer(const struct datagram *datagram, uint64_t buffer)
{
	return datagram->events[datagram->n_events - 1]->buffer == buffer;
}

struct datagram *datagram_readers_find(const struct datagram_readers *readers,
				       uint64_t socket, uint64_t buffer)
{
	struct datagram *datagram = datagram_readers_first(readers, socket);

	while (datagram && !has_buffer(datagram, buffer))
		datagram = datagram->next_read;
	return datagram;
}

void datagram_readers_obscure(struct datagram_readers *readers, uint64_t socket)
{
	struct datagram *datagram = datagram_readers_first(readers, socket);

	for (; datagram; datagram = datagram->next_read)
		datagram->is_read_unseen = true;
}

void datagram_readers_remove(struct datagram_readers *readers,
			     struct datagram *datagram)
{
	struct datagram_reader *reader =
		datagram->socket ? find_reader(readers, datagram->socket) : NULL;

	if (!reader)
		return;
	if (datagram->before_read)
		datagram->before_read->next_read = datagram->next_read;
	else
		reader->first = datagram->next_read;
	if (datagram->next_read)
		datagram->next_read->before_read = datagram->before_read;
	else
		reader->last = datagram->before_read;
	datagram->socket = 0;
	if (!reader->first)
		remove_reader(readers, reader);
}

void datagram_readers_free(struct datagram_readers *readers)
{
	free(readers->items);
	*readers = (struct datagram_readers){ 0 };
}
