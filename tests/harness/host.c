// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "host.h"

#include "bpf/parse/parse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const struct hash_secret host_secret = {
	.flow = { 0xe7d80068, 0xb9096a04, 0xafae5a3b, 0xc963cfe0, 0xc439f34a,
		  0xe1454c40, 0xe794ee14, 0x26b563b1, 0x42840d2b, 0xac8be7d7,
		  0xa2beee31, 0xd96e5adf, 0xe7aa8576, 0x19fcfc64 },
	.outer = { 0xdf43efb2, 0x53d23c0b, 0x92ac3d42, 0xe7ca430e, 0x2b5c5cd1,
		   0x06e82a01, 0x69599354, 0x6820212c },
	.outer_check = { 0xfe6c2b03, 0x1333bc1c, 0x1a6e72b9, 0x20050ed3,
			 0x51b31a6c, 0x7972a36d, 0xf335c357, 0x94a67f00 },
	.connection = { 0x9f767c45, 0x4164d839, 0xbde5c099, 0x5bc8fbbc,
			0xcb91ce37, 0xb0c11fde, 0xf1446bea, 0xd76d4330,
			0xbd69fe29, 0xa6eb8c9e, 0xec1d7da0, 0x87b0b125,
			0x076ce2ef, 0xd7210dff },
};

static const struct tunnel_ports tunnels = {
	.vxlan = { 4789, 8472 },
	.geneve = 6081,
	.gtpu = 2152,
};

/* A block of its own, so that a sanitizer detects reads beyond its end. */
static uint8_t *copy_of(const void *bytes, size_t len)
{
	uint8_t *block = malloc(len ? len : 1);

	if (!block)
		abort();
	memcpy(block, bytes, len);
	return block;
}

struct outcome host_parse_from(struct packet pkt, enum link_kind link,
			       const void *bytes, size_t len)
{
	uint8_t *block = copy_of(bytes, len);
	struct cursor c = { block, block, block + len };
	struct outcome outcome = { .pkt = pkt };
	struct packet outer = {};

	outcome.ret = parse_packet(&c, &outcome.pkt, &outer, link, &tunnels,
				   &host_secret, &outcome.cut);
	if (outcome.ret == PARSE_CUT) {
		outcome.ret = 0;
		outcome.cut = true;
	}
	free(block);
	return outcome;
}

struct outcome host_parse(enum link_kind link, const void *bytes, size_t len)
{
	return host_parse_from((struct packet){}, link, bytes, len);
}

bool host_parse_plain(const struct arrival *arrival, const void *bytes,
		      size_t len, struct packet *ret_pkt)
{
	uint8_t *block = copy_of(bytes, len);
	struct cursor c = { block, block, block + len };
	bool is_plain;

	memset(ret_pkt, 0xaa, sizeof(*ret_pkt));
	is_plain = parse_plain(&c, ret_pkt, arrival, &tunnels);
	free(block);
	return is_plain;
}

bool host_is_same(const struct packet *plain, const struct packet *pkt)
{
	return !memcmp(&plain->key, &pkt->key, sizeof(pkt->key)) &&
	       plain->l3_offset == pkt->l3_offset &&
	       plain->header_end == pkt->header_end &&
	       plain->ip_len == pkt->ip_len && plain->unsent == pkt->unsent &&
	       plain->fragment == pkt->fragment &&
	       !memcmp(&plain->attrs, &pkt->attrs, sizeof(pkt->attrs));
}
