/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The BPF programs' parsers and hash, on the host. */
#ifndef HARNESS_HOST_H
#define HARNESS_HOST_H

#include "bpf/store/hash.h"
#include "bpf/parse/plain.h"

struct outcome {
	int ret;  /* 0 or a rejection */
	bool cut; /* a transport header or a tunnel's content was cut off */
	struct packet pkt;
};

/* With the ports that the programs take for tunnels by default. */
struct outcome host_parse(enum link_kind link, const void *bytes, size_t len);

/* @pkt: fields known before parsing, such as tags beside the frame. */
struct outcome host_parse_from(struct packet pkt, enum link_kind link,
			       const void *bytes, size_t len);

/*
 * The short way, into a packet that was full of other bits; false: it does not
 * take this frame.
 */
bool host_parse_plain(const struct arrival *arrival, const void *bytes,
		      size_t len, struct packet *ret_pkt);

/* In all that is read of an Ethernet frame that is plain. */
bool host_is_same(const struct packet *plain, const struct packet *pkt);

/* Always the same. */
extern const struct hash_secret host_secret;

#endif
