/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/util.h"
#include "bpf/parse/headers.h"
#include "capture_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINK_ANY = -1 }; /* not known, or of no importance */

static bool is_of_key(const struct source *source,
		      struct capture_interface_key key)
{
	return source->key.ifindex == key.ifindex &&
	       source->key.netns == key.netns;
}

static bool is_current(const struct source *source)
{
	return source->end_ns == INT64_MAX;
}

/* The last one that had @key; NULL: none had. */
static struct source *find_last(const struct sources *sources,
				struct capture_interface_key key)
{
	for (uint32_t i = sources->n; i > 0; i--)
		if (is_of_key(&sources->list[i - 1], key))
			return &sources->list[i - 1];
	return NULL;
}

static void end_source(const struct sources *sources, struct source *source,
		       int64_t end_ns)
{
	source->end_ns = end_ns;
	source->end = packets_counters(sources->packets, source->key);
}

static int add_capture_source(struct sources *sources,
			      struct capture_interface_key key, int link)
{
	const struct host *host = sources->host;
	const struct netif *netif = host_find(host, key.netns, key.ifindex);
	const struct source *before = find_last(sources, key);
	struct source source = { .key = key, .end_ns = INT64_MAX };
	struct source *list;

	if (before) {
		source.start_ns = before->end_ns;
		source.start = before->end;
	}
	if (link == LINK_ANY)
		link = netif ? netif_link_kind(netif) : LINK_ETHERNET;
	source.link = link;
	if (key.netns < host->n_netns)
		source.netns = host->netns[key.netns].name;
	if (netif)
		memcpy(source.name, netif->name, sizeof(source.name));
	else
		snprintf(source.name, sizeof(source.name), "%u", key.ifindex);
	list = reallocarray(sources->list, sources->n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	sources->list = list;
	list[sources->n] = source;
	return (int)sources->n++;
}

/* ---- Packets ------------------------------------------------------------------------ */

static bool is_from(const struct source *source,
		    const struct capture_packet *packet)
{
	const struct capture_interface_key key = { packet->ifindex,
						   packet->netns };

	return is_of_key(source, key) && source->link == packet->link &&
	       (int64_t)packet->time_ns < source->end_ns;
}

int sources_ensure(struct sources *sources, const struct capture_packet *packet)
{
	const struct capture_interface_key key = { packet->ifindex,
						   packet->netns };
	int64_t time_ns = packet->time_ns;
	struct source *last;
	int i;

	if (sources->latest < sources->n &&
	    is_from(&sources->list[sources->latest], packet) &&
	    time_ns >= sources->list[sources->latest].start_ns)
		return (int)sources->latest;
	for (uint32_t k = 0; k < sources->n; k++) {
		if (!is_from(&sources->list[k], packet))
			continue;
		sources->latest = k;
		return (int)k;
	}
	last = find_last(sources, key);
	if (last && is_current(last)) /* it has another link type now */
		end_source(sources, last, time_ns);
	i = add_capture_source(sources, key, packet->link);
	if (i >= 0)
		sources->latest = i;
	return i;
}

/* ---- Counters ----------------------------------------------------------------------- */

struct capture_counters sources_counters(const struct sources *sources,
					 uint32_t index)
{
	const struct source *source = &sources->list[index];
	struct capture_counters counters =
		is_current(source) ?
			packets_counters(sources->packets, source->key) :
			source->end;

	counters_subtract(&counters, &source->start, sizeof(counters));
	return counters;
}

/* Unless no packet came since the last one of @key ended. */
static void add_if_counted(struct sources *sources,
			   struct capture_interface_key key)
{
	const struct source *last = find_last(sources, key);
	uint64_t before = last ? last->end.matched : 0;

	if (last && is_current(last))
		return;
	if (packets_counters(sources->packets, key).matched != before)
		add_capture_source(sources, key, LINK_ANY);
}

void sources_add_counted(struct sources *sources)
{
	struct capture_interface_key key, next;
	int err = packets_next_interface(sources->packets, NULL, &next);

	for (; !err; err = packets_next_interface(sources->packets, &key, &next)) {
		add_if_counted(sources, next);
		key = next;
	}
}

/* ---- Interfaces that come and go ---------------------------------------------------- */

/* @netif is a new one: an earlier one that had its index has no packets from now on. */
static void end_earlier(const struct sources *sources,
			struct capture_interface_key key)
{
	struct source *last = find_last(sources, key);

	if (last && is_current(last))
		end_source(sources, last, clock_boot_ns());
}

static bool is_renamed(const struct sources *sources,
		       struct capture_interface_key key, const char *name)
{
	const struct source *last = find_last(sources, key);

	return last && strcmp(last->name, name) != 0;
}

static void on_capture_netif(void *ctx, struct netns *netns,
			     struct netif *netif, enum host_event event)
{
	const struct capture_interface_key key = { netif->ifindex, netns->index };
	struct sources *sources = ctx;

	switch (event) {
	case HOST_CAME:
		end_earlier(sources, key);
		break;
	case HOST_UNSURE:
		if (is_renamed(sources, key, netif->name))
			end_earlier(sources, key);
		break;
	case HOST_GONE: /* its packets may be read when its name is forgotten */
		add_if_counted(sources, key);
		break;
	case HOST_CHANGED:
		break;
	}
}

void sources_init(struct sources *sources, struct host *host,
		  const struct packets *packets)
{
	*sources = (struct sources){
		.host = host,
		.packets = packets,
		.listener = { .on_netif = on_capture_netif, .ctx = sources },
	};
	host_subscribe(host, &sources->listener);
}

void sources_done(struct sources *sources)
{
	free(sources->list);
}

/* ---- Crossings ----------------------------------------------------------------------- */

enum {
	SETS = 1 << 13, /* a packet passes all interfaces before so many others have come */
	SET_WAYS = 4,
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
	struct content sets[SETS][SET_WAYS];
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

	for (int i = 0; i < SET_WAYS; i++) {
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
