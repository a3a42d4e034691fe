/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef CONNECTLB_H
#define CONNECTLB_H

enum { BACKENDS_MAX = 16 };

/* In network byte order; IPv4 as ::ffff:a.b.c.d. */
struct end {
	__u32 words[4];
	__u32 port;
};

struct service {
	struct end end;
	__u32 protocol;
};

struct backends {
	__u32 n;
	struct end ends[BACKENDS_MAX];
};

#endif
