// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "packer.h"

#include "base/shared_object.h"
#include "base/util.h"

#include <errno.h>

bool packer_parse(struct spec *spec, struct packer_options *ret_options)
{
	static const char *const choices[] = { "none", "gzip", "zstd", NULL };
	static const char *const suffixes[] = { NULL, ".gz", ".zst" };
	int choice = spec_choice(spec, "compress", choices, 0);

	*ret_options = (struct packer_options){
		.kind = spec->kind,
		.name = choice ? choices[choice] : NULL,
		.suffix = suffixes[choice],
	};
	return choice;
}

int packer_open(struct packer *packer, const struct packer_options *options,
		const struct log *log)
{
	const struct compressor *found;
	char why[512];

	*packer = (struct packer){ 0 };
	if (!options->name)
		return 0;
	found = shared_object_find(options->name, COMPRESSOR_SYMBOL, why,
				   sizeof(why));
	if (!found) {
		log_error(log, "%s: compress=%s %s", options->kind,
			  options->name, why);
		return -ENOENT;
	}
	packer->compressor = found;
	return found->open(&packer->state);
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

ssize_t packer_pack_body(struct packer *packer, const char *text, size_t len,
			 const char **ret_bytes)
{
	ssize_t packed = packer_pack(packer, text, len, ret_bytes);
	size_t head;

	if (packed < 0 || !packer->compressor)
		return packed;
	head = piece_behead(packer->buf);
	*ret_bytes += head;
	return packed - (ssize_t)head;
}
