// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "host.h"

#include "bpf/parse/parse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct outcome host_parse_from(struct packet pkt, enum link_kind link,
			       const void *bytes, size_t len)
{
	static const struct tunnel_ports ports = {
		.vxlan = { 4789, 8472 },
		.geneve = { 6081 },
	};
	/* A block of its own, so that a sanitizer sees what is read beyond. */
	uint8_t *block = malloc(len ? len : 1);
	struct cursor c = { block, block, block + len };
	struct outcome outcome = { .pkt = pkt };
	struct packet outer = {};

	if (!block)
		abort();
	memcpy(block, bytes, len);
	outcome.ret = parse_packet(&c, &outcome.pkt, &outer, link, &ports,
				   &outcome.cut);
	free(block);
	return outcome;
}

struct outcome host_parse(enum link_kind link, const void *bytes, size_t len)
{
	return host_parse_from((struct packet){}, link, bytes, len);
}
