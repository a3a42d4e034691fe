/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The BPF programs' parser, on the host. */
#ifndef HARNESS_HOST_H
#define HARNESS_HOST_H

#include "bpf/parse/packet.h"

struct outcome {
	int ret;  /* 0 or a rejection */
	bool cut; /* a tunnel's content was cut off */
	struct packet pkt;
};

/* With what the programs are built to take for tunnels. */
struct outcome host_parse(enum link_kind link, const void *bytes, size_t len);

/* @pkt: what is known before parsing, such as tags beside the frame. */
struct outcome host_parse_from(struct packet pkt, enum link_kind link,
			       const void *bytes, size_t len);

#endif
