/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum { FIRST_CAPACITY = 16 };

uint64_t texts_hash(struct slots *slots, const char *text)
{
	char word[8];
	uint64_t hash = 0;

	for (size_t len = strlen(text), i = 0; i < len; i += sizeof(word)) {
		memset(word, 0, sizeof(word));
		memcpy(word, text + i, min_u64(sizeof(word), len - i));
		hash = hash * 31 + slots_hash(slots, word, sizeof(word));
	}
	return hash;
}

static bool is_text(const void *array, uint32_t index, const void *key)
{
	char *const *list = array;

	return !strcmp(list[index], key);
}

uint32_t texts_number(struct texts *texts, const char *text)
{
	uint64_t hash;
	uint32_t index;
	char *copy;

	if (!*text)
		return 0;
	hash = texts_hash(&texts->slots, text);
	index = slots_find(&texts->slots, hash, is_text, texts->list, text);
	if (index != SLOT_NONE)
		return index + 1;
	if (texts->n == TEXTS_MAX ||
	    !array_reserve(&texts->list, texts->n, &texts->capacity,
			   sizeof(*texts->list), FIRST_CAPACITY))
		return 0;
	copy = strdup(text);
	if (!copy || !slots_add(&texts->slots, hash, texts->n)) {
		free(copy);
		return 0;
	}
	texts->list[texts->n] = copy;
	return ++texts->n;
}

const char *texts_at(const struct texts *texts, uint32_t number)
{
	return texts->list[number - 1];
}

void texts_free(struct texts *texts)
{
	for (uint32_t i = 0; i < texts->n; i++)
		free(texts->list[i]);
	free(texts->list);
	slots_free(&texts->slots);
	*texts = (struct texts){ 0 };
}
