// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "packer.h"

#include "loader.h"
#include "util.h"

#include <errno.h>

static int find(struct packer *packer, const char *name, int level,
		const struct log *log)
{
	const struct compressor *compressor;
	char why[512];

	compressor = loader_find(name, COMPRESSOR_SYMBOL, why, sizeof(why));
	if (!compressor) {
		log_error(log, "json: compress=%s %s", name, why);
		return -ENOENT;
	}
	if (level &&
	    (level < compressor->level_min || level > compressor->level_max)) {
		log_error(log,
			  "json: option compress.level: %d is not from %d to %d",
			  level, compressor->level_min, compressor->level_max);
		return -EINVAL;
	}
	packer->compressor = compressor;
	return 0;
}

int packer_open(struct packer *packer, const char *name, int level,
		const struct log *log)
{
	int err;

	*packer = (struct packer){ 0 };
	if (!name)
		return 0;
	err = find(packer, name, level, log);
	if (err)
		return err;
	return packer->compressor->open(level ?: packer->compressor->level_usual,
					&packer->state);
}

void packer_close(struct packer *packer)
{
	if (packer->state)
		packer->compressor->close(packer->state);
	free(packer->buf);
	*packer = (struct packer){ 0 };
}

ssize_t packer_pack(struct packer *packer, const char *lines, size_t len,
		    const char **ret_bytes)
{
	size_t room;

	*ret_bytes = lines;
	if (!packer->compressor)
		return (ssize_t)len;
	room = packer->compressor->room(len);
	if (room > packer->room) {
		free(packer->buf);
		packer->room = 0;
		packer->buf = malloc(room);
		if (!packer->buf)
			return -ENOMEM;
		packer->room = room;
	}
	*ret_bytes = packer->buf;
	return packer->compressor->pack(packer->state, lines, len, packer->buf);
}
