/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records, as text, on their way through a compressor, if there is one. */
#ifndef NETOBS_SINK_FILE_PACKER_H
#define NETOBS_SINK_FILE_PACKER_H

#include "sink/file/compressor.h"
#include "base/spec.h"

struct packer_options {
	const char *kind;   /* of the sink, for messages; the spec's */
	const char *name;   /* of the compressor; NULL: there is none */
	const char *suffix; /* of what it makes */
	int level;	    /* 0: the usual */
};

struct packer {
	const struct compressor *compressor; /* NULL: there is none */
	void *state;
	char *buf;
	size_t room;
};

/* Whether @spec has any of the options. */
bool packer_parse(struct spec *spec, struct packer_options *ret_options);

/* -ENOENT: it cannot be loaded; -EINVAL: it has no such level. Those are logged; -ENOMEM. */
int packer_open(struct packer *packer, const struct packer_options *options,
		const struct log *log);
void packer_close(struct packer *packer);

/* What is to be written for them; valid until the next call. Or -errno. */
ssize_t packer_pack(struct packer *packer, const char *lines, size_t len,
		    const char **ret_bytes);

#endif
