/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_file.h"

#include "base/hash.h"
#include "base/util.h"
#include "bpf/parse/headers.h"

#include <stdlib.h>
#include <string.h>

enum {
	SETS = 1 << 13, /* a packet passes all interfaces before so many others have come */
	WAYS = 4,
	POINTS = 16, /* further ones see packets again */
	CONTENT_MAX = FRAME_MAX + 2 * sizeof(uint64_t), /* bytes with their length */
};

static const int64_t crossing_ns = NSEC_PER_SEC;

/* Packets of one content. */
struct content {
	uint64_t hash;
	int64_t ns; /* time of the last; 0: none yet */
	uint32_t counted;
	struct passes {
		const char *interface;
		enum passed passed;
		uint32_t packets;
	} points[POINTS];
};

struct crossings {
	uint32_t secret[CONTENT_MAX / sizeof(uint32_t)];
	struct content sets[SETS][WAYS];
};

struct crossings *crossings_new(void)
{
	struct crossings *crossings = calloc(1, sizeof(*crossings));

	if (crossings)
		secret_fill(crossings->secret, sizeof(crossings->secret));
	return crossings;
}

void crossings_free(struct crossings *crossings)
{
	free(crossings);
}

static uint16_t read_number(const struct frame *frame, uint32_t at)
{
	return at + 2 <= frame->len ?
		       frame->bytes[at] << 8 | frame->bytes[at + 1] :
		       0;
}

/* @return the length on the wire from @at on, without the padding of a short frame */
static uint64_t find_len(const struct frame *frame, uint16_t type, uint32_t at)
{
	uint64_t len = frame->wire_len - min_u64(frame->wire_len, at);

	if (type == ETHERTYPE_IPV4)
		len = min_u64(len, read_number(frame, at + 2));
	else if (type == ETHERTYPE_IPV6)
		len = min_u64(len, sizeof(struct ipv6_wire) +
					   read_number(frame, at + 4));
	return len;
}

/* Clear the fields of @header that change on the way. */
static void clear_changed(uint16_t type, uint8_t *header)
{
	if (type == ETHERTYPE_IPV4) {
		header[1] = header[8] = 0;
		memset(header + 10, 0, sizeof(uint16_t));
	} else if (type == ETHERTYPE_IPV6) {
		memset(header, 0, sizeof(uint32_t));
		header[7] = 0;
	}
}

static uint64_t hash_content(const struct crossings *crossings,
			     const struct frame *frame)
{
	uint8_t content[CONTENT_MAX] = { 0 };
	uint32_t at = sizeof(struct ether_wire), size;
	uint16_t type = read_number(frame, at - 2);
	uint64_t len;

	while (type == ETHERTYPE_8021Q || type == ETHERTYPE_8021AD) {
		at += 4;
		type = read_number(frame, at - 2);
	}
	len = find_len(frame, type, at);
	size = (uint32_t)min_u64(frame->len - min_u64(frame->len, at), len);
	memcpy(content, &len, sizeof(len));
	memcpy(content + sizeof(len), frame->bytes + at, size);
	clear_changed(type, content + sizeof(len));
	size = sizeof(len) + (size + 7) / 8 * 8;
	return hash_bytes(content, size, crossings->secret);
}

/* Find the content with that hash, or else replace the one that has waited longest. */
static struct content *find_content(struct crossings *crossings, uint64_t hash,
				    int64_t ns)
{
	struct content *set = crossings->sets[hash % SETS], *oldest = set;

	for (int i = 0; i < WAYS; i++) {
		if (set[i].hash == hash && set[i].ns &&
		    ns - set[i].ns < crossing_ns)
			return &set[i];
		if (set[i].ns < oldest->ns)
			oldest = &set[i];
	}
	*oldest = (struct content){ .hash = hash };
	return oldest;
}

/* NULL: there is no room for another interface or direction. */
static struct passes *find_point(struct content *content,
				 const struct frame *frame)
{
	for (int i = 0; i < POINTS; i++) {
		struct passes *point = &content->points[i];

		if (!point->interface) {
			point->interface = frame->interface;
			point->passed = frame->passed;
		}
		if (!strcmp(point->interface, frame->interface) &&
		    point->passed == frame->passed)
			return point;
	}
	return NULL;
}

bool crossings_is_again(struct crossings *crossings, const struct frame *frame)
{
	struct content *content = find_content(
		crossings, hash_content(crossings, frame), frame->ns);
	struct passes *point = find_point(content, frame);

	content->ns = frame->ns;
	if (!point || ++point->packets <= content->counted)
		return true;
	content->counted = point->packets;
	return false;
}
