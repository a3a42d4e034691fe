/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "conf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/text.h"

#define BLANKS " \t\r"
#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define KEY_CHARACTERS LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@"

/* ---- Errors ---------------------------------------------------------------------- */

void conf_complain(struct conf *conf, const struct conf_place *place,
		   const char *format, ...)
{
	char text[1024], where[32] = "";
	va_list args;
	int len;

	conf->n_errors++;
	if (!conf->on_error || conf->n_errors > CONF_ERRORS_MAX)
		return;
	if (place->line)
		snprintf(where, sizeof(where), "%u:%u:", place->line,
			 place->column);
	len = snprintf(text, sizeof(text), "%s:%s ", place->file, where);
	va_start(args, format);
	if (len > 0 && (size_t)len < sizeof(text))
		vsnprintf(text + len, sizeof(text) - (size_t)len, format, args);
	va_end(args);
	safe_line(text);
	conf->on_error(text, conf->user);
}

static void complain_memory(struct conf *conf, const char *file)
{
	const struct conf_place place = { .file = file };

	if (!conf->is_out_of_memory)
		conf_complain(conf, &place, "out of memory");
	conf->is_out_of_memory = true;
}

/* ---- Entries --------------------------------------------------------------------- */

/* Takes over @text. @return false: there is no memory for it */
static bool keep_text(struct conf *conf, char *text)
{
	char **texts =
		reallocarray(conf->texts, conf->n_texts + 1, sizeof(*texts));

	if (texts)
		conf->texts = texts;
	if (!texts || !text) {
		free(text);
		return false;
	}
	texts[conf->n_texts++] = text;
	return true;
}

static void add_conf_entry(struct conf *conf, const struct conf_entry *entry)
{
	struct conf_entry *entries;

	if (conf->n == CONF_ENTRIES_MAX) {
		conf_complain(conf, &entry->place,
			      "there are more than %d lines", CONF_ENTRIES_MAX);
		return;
	}
	entries = reallocarray(conf->entries, conf->n + 1, sizeof(*entries));
	if (!entries) {
		complain_memory(conf, entry->place.file);
		return;
	}
	conf->entries = entries;
	entries[conf->n++] = *entry;
}

const struct conf_entry *conf_find(const struct conf *conf, const char *section,
				   const char *name, const char *key)
{
	for (size_t i = conf->n; i-- > 0;) {
		const struct conf_entry *entry = &conf->entries[i];

		if (entry->key && !strcmp(entry->key, key) &&
		    !strcmp(entry->section, section) &&
		    !strcmp(entry->name, name))
			return entry;
	}
	return NULL;
}

void conf_clear(struct conf *conf)
{
	for (size_t i = 0; i < conf->n_texts; i++)
		free(conf->texts[i]);
	free(conf->texts);
	free(conf->entries);
	*conf = (struct conf){ 0 };
}

/* ---- Lines ----------------------------------------------------------------------- */

/* The section of the lines that follow. */
struct section {
	const char *word, *name;
	bool is_wrong; /* its header was reported: its keys are not */
};

static unsigned int column_of(const char *line, const char *at)
{
	return (unsigned int)(at - line) + 1;
}

static void trim_end(char *text)
{
	size_t len = strlen(text);

	while (len && strchr(BLANKS, text[len - 1]))
		text[--len] = '\0';
}

/* [word] or [word "name"]; @text begins with the bracket. */
static bool split_header(char *text, struct section *ret_section)
{
	char *word = text + 1, *rest = word + strspn(word, LETTERS), *name,
	     *quote;

	if (rest == word)
		return false;
	*ret_section = (struct section){ word, "", false };
	if (!strcmp(rest, "]")) {
		*rest = '\0';
		return true;
	}
	name = rest + strspn(rest, BLANKS);
	if (name == rest || *name != '"')
		return false;
	quote = strchr(++name, '"');
	if (!quote || quote == name || strcmp(quote, "\"]"))
		return false;
	*rest = *quote = '\0';
	ret_section->name = name;
	return true;
}

static void parse_header(struct conf *conf, const struct conf_place *place,
			 char *text, struct section *section)
{
	if (!split_header(text, section)) {
		section->is_wrong = true;
		conf_complain(
			conf, place,
			"the header of a section is [WORD] or [WORD \"NAME\"]");
		return;
	}
	add_conf_entry(conf, &(struct conf_entry){ .section = section->word,
						   .name = section->name,
						   .place = *place });
}

static void parse_key(struct conf *conf, struct conf_place *place, char *line,
		      char *key, const struct section *section)
{
	char *end = key + strspn(key, KEY_CHARACTERS);
	char *equals = end + strspn(end, BLANKS), *value;

	if (end == key || *equals != '=') {
		place->column = column_of(line, end == key ? key : equals);
		conf_complain(conf, place,
			      "a line is KEY = VALUE, [SECTION] or # COMMENT%s",
			      end == key ? "" : ": '=' is missing");
		return;
	}
	if (section->is_wrong)
		return;
	*end = '\0';
	if (!section->word) {
		conf_complain(conf, place,
			      "'%s' is in front of the first [SECTION]", key);
		return;
	}
	value = equals + 1 + strspn(equals + 1, BLANKS);
	add_conf_entry(conf, &(struct conf_entry){
				     .section = section->word,
				     .name = section->name,
				     .key = key,
				     .value = value,
				     .place = *place,
				     .value_place = { place->file, place->line,
						      column_of(line, value) } });
}

/* The first that is no text; NULL: all is. */
static const char *find_control(const char *line)
{
	for (; *line; line++)
		if (((unsigned char)*line < ' ' && *line != '\t') ||
		    *line == '\x7f')
			return line;
	return NULL;
}

static bool is_comment(const char *text)
{
	return *text == '#' || *text == ';';
}

static void parse_line(struct conf *conf, struct conf_place place, char *line,
		       struct section *section)
{
	char *text = line + strspn(line, BLANKS);
	const char *control;

	trim_end(text);
	if (!*text || is_comment(text))
		return;
	place.column = column_of(line, text);
	control = find_control(text);
	if (control) {
		place.column = column_of(line, control);
		conf_complain(conf, &place,
			      "there is a control character (0x%02x)",
			      (unsigned char)*control);
	} else if (*text == '[') {
		parse_header(conf, &place, text, section);
	} else {
		parse_key(conf, &place, line, text, section);
	}
}

/*
 * Cut a line off, including the lines that a backslash at its end continues it with.
 *
 * @return the rest of the text, which ends at @stop
 */
static char *cut_line(char *line, char *stop, unsigned int *number)
{
	char *end = line;

	for (;;) {
		end = memchr(end, '\n', (size_t)(stop - end)) ?: stop;
		++*number;
		if (end == stop)
			return end;
		*end = '\0';
		if (end == line || end[-1] != '\\' ||
		    is_comment(line + strspn(line, BLANKS)))
			return end + 1;
		end[-1] = ' ';
		*end++ = ' ';
	}
}

void conf_parse(struct conf *conf, const char *file, char *text, size_t len)
{
	char *name = strdup(file), *stop = text + len;
	const bool has_name = keep_text(conf, name);
	const bool has_text = keep_text(conf, text);
	struct conf_place place = { .file = name };
	struct section section = { 0 };
	unsigned int next = 1;

	if (!has_name || !has_text) {
		complain_memory(conf, file);
		return;
	}
	if (strlen(text) != len) {
		conf_complain(conf, &place, "there is a NUL byte in the file");
		return;
	}
	/* Some editors put a byte order mark in front of UTF-8. */
	if (!strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)))
		text += strlen(BYTE_ORDER_MARK);
	for (char *rest; text < stop; text = rest) {
		place.line = next;
		rest = cut_line(text, stop, &next);
		parse_line(conf, place, text, &section);
	}
}

/* ---- Files ----------------------------------------------------------------------- */

/* @may_be_gone: it was there when its directory was read */
static void read_path(struct conf *conf, const char *path, bool may_be_gone)
{
	const struct conf_place place = { .file = path };
	struct stat link;
	char *text = NULL;
	size_t len = 0;
	/* A named pipe would keep us waiting. */
	int r = io_read_file(path, O_NONBLOCK, CONF_FILE_MAX, &text, &len);

	if (r == -ENOENT && !lstat(path, &link))
		conf_complain(conf, &place, "the link leads to no file");
	else if (r == -ENOENT && may_be_gone)
		return;
	else if (r == -EFBIG)
		conf_complain(conf, &place, "the file is larger than 1 MiB");
	else if (r < 0)
		conf_complain(conf, &place, "%s", strerror(-r));
	else
		conf_parse(conf, path, text, len);
}

static int is_drop_in(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 5 &&
	       !strcmp(entry->d_name + len - 5, ".conf");
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_drop_ins(struct conf *conf, const char *directory)
{
	const struct conf_place place = { .file = directory };
	struct dirent **found;
	int n = scandir(directory, &found, is_drop_in, compare_names);

	if (n < 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			conf_complain(conf, &place, "%s", strerror(errno));
		return;
	}
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX + NAME_MAX + 2];

		snprintf(path, sizeof(path), "%s/%s", directory,
			 found[i]->d_name);
		read_path(conf, path, true);
		free(found[i]);
	}
	free(found);
}

void conf_read(struct conf *conf, const char *file)
{
	char directory[PATH_MAX];

	read_path(conf, file, false);
	snprintf(directory, sizeof(directory), "%s.d", file);
	read_drop_ins(conf, directory);
}
