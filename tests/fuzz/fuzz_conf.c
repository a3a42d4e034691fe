// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Configuration files of any bytes: each entry is where its place says.
 */
#include "lib_fuzz.h"
#include "service/conf.h"

static void count_error(const char *line, void *user)
{
	check(!strncmp(line, "file:", 5));
	check(!strpbrk(line, "\n\t\x7f"));
	++*(unsigned int *)user;
}

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

static bool has_control(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\t') ||
		    *text == '\x7f')
			return true;
	return false;
}

/* @return the byte at a place */
static const char *find_place(const char *text, unsigned int line,
			      unsigned int column)
{
	while (--line) {
		text = strchr(text, '\n');
		check(text);
		text++;
	}
	check(strlen(text) >= column - 1);
	return text + column - 1;
}

static void check_entry(const struct conf_entry *entry, const char *text)
{
	const char *at = find_place(text, entry->place.line, entry->place.column);

	check(*entry->section && !has_control(entry->section));
	check(!has_control(entry->name));
	if (!entry->key) {
		check(*at == '[');
		return;
	}
	check(*entry->key && !strncmp(at, entry->key, strlen(entry->key)));
	check(!has_control(entry->value));
	check(entry->value_place.column > entry->place.column);
	check(conf_find(&(struct conf){ .entries = (struct conf_entry *)entry,
					.n = 1 },
			entry->section, entry->name, entry->key) == entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int errors = 0;
	struct conf conf = { .on_error = count_error, .user = &errors };
	char *text, *copy, *shown;

	if (size > CONF_FILE_MAX)
		return 0;
	text = fuzz_text(data, size);
	copy = fuzz_text(data, size);
	conf_parse(&conf, "file", copy, size);
	/* Places do not count a byte order mark, which editors do not show. */
	shown = !strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) ?
			text + strlen(BYTE_ORDER_MARK) :
			text;
	check(errors == (conf.n_errors < CONF_ERRORS_MAX ? conf.n_errors :
							   CONF_ERRORS_MAX));
	for (size_t i = 0; i < conf.n; i++)
		check_entry(&conf.entries[i], shown);
	conf_clear(&conf);
	free(text);
	return 0;
}
