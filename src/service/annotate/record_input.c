/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "sinks/ipfix/file_module.h"

__attribute__((format(printf, 3, 4))) static int
refuse(struct record_input *input, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(input->why, sizeof(input->why), format, args);
	va_end(args);
	return err;
}

/* ---- Formats ------------------------------------------------------------------------ */

/* The first two bytes: RFC 7011, 3.1, and nffile.h of nfdump. */
static int find_kind(const unsigned char first[2], size_t n)
{
	if (n == 2 && first[0] == 0 && first[1] == 10)
		return INPUT_IPFIX;
	if (n == 2 && ((first[0] == 0x0c && first[1] == 0xa5) ||
		       (first[0] == 0xa5 && first[1] == 0x0c)))
		return INPUT_NFCAPD;
	return INPUT_LINES;
}

static void note_warning(const char *message, void *user)
{
	struct record_input *input = user;

	input->warnings++;
	snprintf(input->warning, sizeof(input->warning), "%s", message);
}

static int open_ipfix(struct record_input *input)
{
	char why[256];

	input->ipfix =
		shared_object_find("ipfix", IPFIX_FILE_SYMBOL, why, sizeof(why));
	if (!input->ipfix)
		return refuse(input, -ENOENT, "what reads IPFIX files %s", why);
	if (input->ipfix->open(input->stream, note_warning, input,
			       &input->ipfix_file))
		return refuse(input, -ENOMEM, "%s", strerror(ENOMEM));
	return 0;
}

/* Times that nfdump prints are those of TZ. @return a copy of the environment; NULL: no memory */
static char **make_environment(void)
{
	static char time_zone[] = "TZ=UTC";
	size_t n = 0, used = 0;
	char **copy;

	while (environ[n])
		n++;
	copy = calloc(n + 2, sizeof(*copy));
	if (!copy)
		return NULL;
	copy[used++] = time_zone;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "TZ=", 3))
			copy[used++] = environ[i];
	return copy;
}

/* @return 0; < 0 */
static int start_nfdump(struct record_input *input, int fd, const char *path)
{
	const char *argv[] = { "nfdump", "-r", path, "-o", "json", NULL };
	cleanup_free char **environment = make_environment();
	posix_spawn_file_actions_t actions;
	int err;

	input->nfdump_messages = memfd_create("nfdump", MFD_CLOEXEC);
	if (input->nfdump_messages < 0)
		return -errno;
	if (!environment || posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	err = posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(
			&actions, input->nfdump_messages, STDERR_FILENO);
	if (!err)
		err = posix_spawnp(&input->nfdump, "nfdump", &actions, NULL,
				   (char *const *)argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		input->nfdump = 0;
	return -err;
}

static int open_nfcapd(struct record_input *input)
{
	int fds[2], err;

	if (pipe2(fds, O_CLOEXEC))
		return refuse(input, -errno, "%s", strerror(errno));
	err = start_nfdump(input, fds[1], input->path);
	close(fds[1]);
	fclose(input->stream);
	input->stream = fdopen(fds[0], "r");
	if (!input->stream)
		close(fds[0]);
	if (err == -ENOENT)
		return refuse(input, err,
			      "nfdump, which reads files of nfcapd, is not "
			      "installed (Debian: apt-get install nfdump)");
	if (err || !input->stream)
		return refuse(input, err ?: -ENOMEM, "cannot run nfdump: %s",
			      strerror(err ? -err : ENOMEM));
	return 0;
}

/* Read the first bytes. */
static int open_stream(struct record_input *input)
{
	input->stream = fopen(input->path, "re");
	if (!input->stream)
		return refuse(input, -errno, "%s", strerror(errno));
	input->n_first =
		fread(input->first, 1, sizeof(input->first), input->stream);
	if (ferror(input->stream))
		return refuse(input, -EIO, "%s", strerror(errno));
	input->kind = find_kind(input->first, input->n_first);
	if (input->kind == INPUT_LINES)
		return 0;
	input->n_first = 0;
	if (fseek(input->stream, 0, SEEK_SET))
		return refuse(input, -ESPIPE,
			      "a pipe can have lines of JSON only");
	return 0;
}

int record_input_open(struct record_input *ret_input, const char *path)
{
	struct record_input *input = ret_input;
	int err;

	*input = (struct record_input){ .path = path,
					.kind = INPUT_LINES,
					.nfdump_messages = -1 };
	if (!strcmp(path, "-")) {
		input->stream = stdin;
		return 0;
	}
	err = open_stream(input);
	if (err || input->kind == INPUT_LINES)
		return err;
	return input->kind == INPUT_IPFIX ? open_ipfix(input) :
					    open_nfcapd(input);
}

void record_input_close(struct record_input *input)
{
	if (input->ipfix)
		input->ipfix->close(input->ipfix_file);
	if (input->stream && input->stream != stdin)
		fclose(input->stream);
	if (input->nfdump)
		waitpid(input->nfdump, NULL, 0);
	close_fd(&input->nfdump_messages);
	buffer_free(&input->text);
	*input = (struct record_input){ .nfdump_messages = -1 };
}

/* ---- Reading ------------------------------------------------------------------------ */

static int get_byte(struct record_input *input)
{
	int c;

	if (!input->n_first)
		return getc_unlocked(input->stream);
	c = input->first[0];
	input->first[0] = input->first[1];
	input->n_first--;
	return c;
}

/* @return false: there is no room */
static bool add_byte(struct record_input *input, int c)
{
	const char byte = (char)c;

	return input->text.len < INPUT_RECORD_MAX &&
	       buffer_add(&input->text, &byte, 1);
}

static int end_text(struct record_input *input, char **ret_text)
{
	if (!buffer_add(&input->text, "", 1))
		return refuse(input, -ENOMEM, "%s", strerror(ENOMEM));
	*ret_text = input->text.bytes;
	return 1;
}

static int next_line(struct record_input *input, char **ret_text)
{
	bool is_too_long = false, has_nul = false, is_empty = true;
	int c;

	while ((c = get_byte(input)) != EOF && c != '\n') {
		is_empty = false;
		has_nul |= !c;
		is_too_long |= !add_byte(input, c);
	}
	if (c == EOF && ferror(input->stream))
		return refuse(input, -EIO, "%s", strerror(errno));
	if (c == EOF && is_empty)
		return 0;
	input->number++;
	if (is_too_long)
		return refuse(input, -EBADMSG, "the line is longer than 1 MiB");
	if (has_nul)
		return refuse(input, -EBADMSG, "the line has a NUL");
	return end_text(input, ret_text);
}

/* ---- Objects of nfdump -------------------------------------------------------------- */

/* Its exit status does not show each fault, what it says does. @return 0; < 0 */
static int check_nfdump(struct record_input *input)
{
	char message[256];
	ssize_t len;
	int status = 0;

	waitpid(input->nfdump, &status, 0);
	input->nfdump = 0;
	len = pread(input->nfdump_messages, message, sizeof(message) - 1, 0);
	if (!status && len <= 0)
		return 0;
	message[len > 0 ? len : 0] = '\0';
	return refuse(input, -EIO, "nfdump has failed: %.*s",
		      (int)strcspn(message, "\n"), message);
}

/* From an object's "{" on, without the white space around members. @return false: it has no end */
static bool read_object(struct record_input *input)
{
	bool is_string = false, is_fine = true;
	int depth = 0, before = 0, c = '{';

	do {
		if (is_string || (c != ' ' && c != '\t' && c != '\n'))
			is_fine &= add_byte(input, c);
		if (c == '"' && before != '\\')
			is_string = !is_string;
		else if (!is_string)
			depth += (c == '{') - (c == '}');
		before = before == '\\' ? 0 : c;
		if (!depth)
			return is_fine;
	} while ((c = get_byte(input)) != EOF);
	return false;
}

static int next_object(struct record_input *input, char **ret_text)
{
	int c, r;

	/* Between objects there are brackets and commas; without any, a message. */
	do
		c = get_byte(input);
	while (c != EOF && c != '{');
	if (c == EOF)
		return input->nfdump ? check_nfdump(input) : 0;
	input->number++;
	if (read_object(input))
		return end_text(input, ret_text);
	if (!feof(input->stream))
		return refuse(input, -EIO, "the record is too long");
	r = check_nfdump(input);
	return r ? r : refuse(input, -EIO, "nfdump has ended early");
}

static int next_of_ipfix(struct record_input *input, char **ret_text)
{
	const char *json;
	char why[256];
	int r = input->ipfix->next(input->ipfix_file, &json, why, sizeof(why));

	if (r < 0)
		return refuse(input, -EIO, "near byte %ld: %s",
			      ftell(input->stream), why);
	if (!r)
		return 0;
	input->number++;
	if (!buffer_add(&input->text, json, strlen(json)))
		return refuse(input, -ENOMEM, "%s", strerror(ENOMEM));
	return end_text(input, ret_text);
}

int record_input_next(struct record_input *input, char **ret_text)
{
	input->text.len = 0;
	switch (input->kind) {
	case INPUT_IPFIX:
		return next_of_ipfix(input, ret_text);
	case INPUT_NFCAPD:
		return next_object(input, ret_text);
	default:
		return next_line(input, ret_text);
	}
}

const char *record_input_place(const struct record_input *input, char *buf,
			       size_t size)
{
	const char *name = strcmp(input->path, "-") ? input->path :
						      "standard input";

	if (input->kind == INPUT_LINES)
		snprintf(buf, size, "%s:%" PRIu64, name, input->number);
	else
		snprintf(buf, size, "%s: record %" PRIu64, name, input->number);
	return buf;
}
