/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Lines on their way through a compressor, if there is one. */
#ifndef NETOBS_LIB_SINK_PACKER_H
#define NETOBS_LIB_SINK_PACKER_H

#include "compressor.h"
#include "log.h"

struct packer {
	const struct compressor *compressor; /* NULL: there is none */
	void *state;
	char *buf;
	size_t room;
};

/*
 * @name: of the compressor, or NULL. @level: 0: the usual. -ENOENT: it cannot be
 * loaded; -EINVAL: it has no such level. Those are logged; -ENOMEM.
 */
int packer_open(struct packer *packer, const char *name, int level,
		const struct log *log);
void packer_close(struct packer *packer);

/* What is to be written for them; valid until the next call. Or -errno. */
ssize_t packer_pack(struct packer *packer, const char *lines, size_t len,
		    const char **ret_bytes);

#endif
