// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "host.h"

#include "bpf/parse/parse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const __u64 host_factors[HASH_LANES] = {
	0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
	0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
	0x1f83d9abfb41bd6b,
};

static const struct tunnel_ports tunnels = {
	.vxlan = { 4789, 8472 },
	.geneve = { 6081 },
};

/* A block of its own, so that a sanitizer sees what is read beyond. */
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
				   host_factors, &outcome.cut);
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
	       plain->ip_len == pkt->ip_len && plain->marks == pkt->marks &&
	       plain->unsent == pkt->unsent &&
	       plain->fragment == pkt->fragment && plain->tos == pkt->tos &&
	       plain->ttl == pkt->ttl && plain->has_mac == pkt->has_mac;
}
