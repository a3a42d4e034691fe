/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Files of a configuration, and the places of errors in them. */
#include "lib_test.h"

#include <sys/stat.h>

#include "service/conf.h"

struct fixture {
	char dir[64];
	struct conf conf;
	char errors[1024]; /* a line each */
};

static void keep_error(const char *line, void *user)
{
	struct fixture *f = user;
	size_t used = strlen(f->errors);

	snprintf(f->errors + used, sizeof(f->errors) - used, "%s\n", line);
}

static void parse(struct fixture *f, const char *text)
{
	conf_clear(&f->conf);
	f->errors[0] = '\0';
	f->conf.on_error = keep_error;
	f->conf.user = f;
	conf_parse(&f->conf, "f", strdup(text), strlen(text));
}

static void assert_entry(const struct conf *conf, size_t at, const char *want)
{
	const struct conf_entry *entry = &conf->entries[at];
	char text[256];

	assert_true(at < conf->n);
	snprintf(text, sizeof(text), "%u:%u %s '%s' %s=%s", entry->place.line,
		 entry->place.column, entry->section, entry->name,
		 entry->key ?: "-", entry->value ?: "-");
	assert_string_equal(text, want);
}

static void begin(struct fixture *f)
{
	strcpy(f->dir, "/tmp/netobs-conf.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
}

static void end(struct fixture *f)
{
	char command[128];

	conf_clear(&f->conf);
	snprintf(command, sizeof(command), "rm -r %s", f->dir);
	assert_int_equal(system(command), 0);
}

TEST_FIXTURE(struct fixture, begin, end)

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(entries_have_places)
{
	parse(f, "# a comment\n"
		 "[capture]\r\n"
		 "  interface = lo \t\n"
		 "\n"
		 "; another\\\n"
		 "[sink \"a b\"]\n"
		 "rotate.bytes=1M # no comment\n"
		 "spool =");
	assert_string_equal(f->errors, "");
	assert_int_equal(f->conf.n, 5);
	assert_entry(&f->conf, 0, "2:1 capture '' -=-");
	assert_entry(&f->conf, 1, "3:3 capture '' interface=lo");
	assert_entry(&f->conf, 2, "6:1 sink 'a b' -=-");
	assert_entry(&f->conf, 3, "7:1 sink 'a b' rotate.bytes=1M # no comment");
	assert_entry(&f->conf, 4, "8:1 sink 'a b' spool=");
	assert_int_equal(f->conf.entries[1].value_place.column, 15);
}

CASE(backslashes_join_lines)
{
	parse(f, "[x]\na = b\\\n\\\nc\nd = \\\n");
	assert_string_equal(f->errors, "");
	assert_entry(&f->conf, 1, "2:1 x '' a=b    c");
	assert_entry(&f->conf, 2, "5:1 x '' d=");
	parse(f, "[x]\na = b\\");
	assert_entry(&f->conf, 1, "2:1 x '' a=b\\");
}

CASE(a_byte_order_mark_is_no_text)
{
	parse(f, "\xef\xbb\xbf[x]\r\na = b\r\n");
	assert_string_equal(f->errors, "");
	assert_entry(&f->conf, 0, "1:1 x '' -=-");
	assert_entry(&f->conf, 1, "2:1 x '' a=b");
	parse(f, "\xef\xbb\xbf");
	assert_string_equal(f->errors, "");
	assert_int_equal(f->conf.n, 0);
}

CASE(errors_have_places)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "a = b", "f:1:1: 'a' is in front of the first [SECTION]\n" },
		{ "[x]\n  fish\n",
		  "f:2:7: a line is KEY = VALUE, [SECTION] or # COMMENT: '=' is missing\n" },
		{ "[x]\n= b",
		  "f:2:1: a line is KEY = VALUE, [SECTION] or # COMMENT\n" },
		{ "[x]\na b = c",
		  "f:2:3: a line is KEY = VALUE, [SECTION] or # COMMENT: '=' is missing\n" },
		{ "[x]\na = \x01",
		  "f:2:5: there is a control character (0x01)\n" },
		/* One error for the section, and none for the keys in it. */
		{ "[x\na = b\n[]\n c = d",
		  "f:1:1: the header of a section is [WORD] or [WORD \"NAME\"]\n"
		  "f:3:1: the header of a section is [WORD] or [WORD \"NAME\"]\n" },
		{ "[x \"\"]",
		  "f:1:1: the header of a section is [WORD] or [WORD \"NAME\"]\n" },
		{ "[x \"a\"b\"]",
		  "f:1:1: the header of a section is [WORD] or [WORD \"NAME\"]\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		parse(f, cases[i].text);
		assert_string_equal(f->errors, cases[i].error);
	}
	conf_clear(&f->conf);
	f->errors[0] = '\0';
	f->conf.on_error = keep_error;
	f->conf.user = f;
	conf_parse(&f->conf, "f", memcpy(calloc(1, 8), "[x]\n\0a=", 8), 7);
	assert_string_equal(f->errors, "f: there is a NUL byte in the file\n");
	assert_int_equal(f->conf.n, 0);
}

CASE(last_entry_counts)
{
	parse(f, "[x]\na = 1\n[y]\na = 2\n[x]\na = 3\n[x \"n\"]\na = 4\n");
	assert_string_equal(conf_find(&f->conf, "x", "", "a")->value, "3");
	assert_string_equal(conf_find(&f->conf, "y", "", "a")->value, "2");
	assert_string_equal(conf_find(&f->conf, "x", "n", "a")->value, "4");
	assert_null(conf_find(&f->conf, "x", "m", "a"));
}

CASE(numbers_are_limited)
{
	const size_t lines = CONF_ENTRIES_MAX + 200;
	char *text = malloc(4 + 4 * lines + 1), *end;

	end = stpcpy(text, "[x]\n");
	for (size_t i = 0; i < lines; i++)
		end = stpcpy(end, "a=b\n");
	parse(f, text);
	assert_int_equal(f->conf.n, CONF_ENTRIES_MAX);
	assert_int_equal(f->conf.n_errors, 201);
	free(text);
}

/* ---- Files ----------------------------------------------------------------------- */

static void write_file(const struct fixture *f, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void read_files(struct fixture *f)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/n.conf", f->dir);
	conf_clear(&f->conf);
	f->errors[0] = '\0';
	f->conf.on_error = keep_error;
	f->conf.user = f;
	conf_read(&f->conf, path);
}

/* The values of all entries, in their order. */
static void assert_values(const struct fixture *f, const char *want)
{
	char text[256] = "";

	for (size_t i = 0; i < f->conf.n; i++)
		if (f->conf.entries[i].key)
			strcat(text, f->conf.entries[i].value);
	assert_string_equal(text, want);
}

static void make_directory(const struct fixture *f, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

CASE(drop_ins_take_effect_by_name)
{
	char link[256];

	read_files(f);
	assert_true(strstr(f->errors, "n.conf: No such file") != NULL);

	make_directory(f, "n.conf.d");
	write_file(f, "n.conf", "[x]\na = A");
	write_file(f, "n.conf.d/20-b.conf", "[x]\na = 2");
	write_file(f, "n.conf.d/10-a.conf", "[x]\na = 1");
	write_file(f, "n.conf.d/.hidden.conf", "[x]\na = H");
	write_file(f, "n.conf.d/other", "[x]\na = O");
	read_files(f);
	assert_string_equal(f->errors, "");
	assert_values(f, "A12");
	snprintf(link, sizeof(link), "%s/n.conf.d/20-b.conf", f->dir);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("/dev/null", link), 0);
	read_files(f);
	assert_values(f, "A1");

	make_directory(f, "n.conf.d/30-c.conf");
	read_files(f);
	assert_true(strstr(f->errors, "30-c.conf: Is a directory") != NULL);
}

CASE(large_files_are_refused)
{
	char *text = malloc(CONF_FILE_MAX + 2);

	memset(text, '\n', CONF_FILE_MAX + 1);
	text[CONF_FILE_MAX] = '\0';
	write_file(f, "n.conf", text);
	read_files(f);
	assert_string_equal(f->errors, "");
	text[CONF_FILE_MAX] = '\n';
	text[CONF_FILE_MAX + 1] = '\0';
	write_file(f, "n.conf", text);
	read_files(f);
	assert_true(strstr(f->errors, "larger than 1 MiB") != NULL);
	free(text);
}
