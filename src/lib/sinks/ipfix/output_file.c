// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Messages one after the other in one file, RFC 5655. */
#include "base/outage.h"
#include "base/io.h"
#include "base/clock_ms.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum {
	MODE = 0640,
	IPFIX_VERSION = 10,
	HEADER_LEN = 16,
	MESSAGE_MAX = 65535,
};

struct file_output {
	struct output output;
	int fd;
	bool is_new;
	struct backoff retry;
	struct outage outage;
	struct unsent unsent;
};

static struct file_output *file_of_output(struct output *output)
{
	return (struct file_output *)output;
}

/* Bytes of an unfinished message stay, to be continued when the disk has room. */
static void write_file_unsent(struct file_output *out)
{
	struct unsent *unsent = &out->unsent;
	int err = io_write(out->fd, unsent->bytes, unsent->len, &unsent->at);

	outage_note(&out->outage, out->output.host->log,
		    out->output.config->path, err);
	if (err) {
		backoff_wait(&out->retry, now_ms());
		return;
	}
	backoff_reset(&out->retry);
	output_ack(&out->output, unsent->end);
}

static enum peer_state file_prepare(struct output *output)
{
	struct file_output *out = file_of_output(output);

	if (!backoff_is_due(&out->retry))
		return PEER_AWAY;
	if (!unsent_is_empty(&out->unsent))
		write_file_unsent(out);
	if (!unsent_is_empty(&out->unsent))
		return PEER_AWAY;
	if (!out->is_new)
		return PEER_READY;
	out->is_new = false;
	return PEER_NEW;
}

static int file_send(struct output *output, const struct output_message *message)
{
	struct file_output *out = file_of_output(output);

	if (!output_take(output, &out->unsent, message))
		return -EAGAIN;
	write_file_unsent(out);
	return 0;
}

static int file_rest(struct output *output)
{
	return backoff_left_ms(&file_of_output(output)->retry);
}

static void file_close(struct output *output)
{
	close_fd(&file_of_output(output)->fd);
}

/* The length of the message at @at; 0: there is no whole one; -EEXIST: there is none. */
static off_t message_length(int fd, off_t at, off_t end)
{
	uint8_t head[4] = { 0, IPFIX_VERSION };
	off_t len;

	if (pread(fd, head, sizeof(head), at) < 0)
		return -errno;
	if (head[0] || head[1] != IPFIX_VERSION)
		return -EEXIST;
	len = head[2] << 8 | head[3];
	return len >= HEADER_LEN && len <= end - at ? len : 0;
}

/*
 * Half a message would make all that follows unreadable. More than a message is no
 * torn one: such a file is left alone, as those are that begin otherwise.
 */
static int cut_torn_message(int fd)
{
	struct stat info;
	off_t at = 0, len = 0;

	if (fstat(fd, &info))
		return -errno;
	if (!S_ISREG(info.st_mode) || !info.st_size)
		return 0;
	while (at < info.st_size &&
	       (len = message_length(fd, at, info.st_size)) > 0)
		at += len;
	if (len < 0 && len != -EEXIST)
		return (int)len;
	if (info.st_size - at > MESSAGE_MAX || (len < 0 && !at))
		return -EEXIST;
	return at < info.st_size && ftruncate(fd, at) ? -errno : 0;
}

/* Open to be read as well, which no pipe has to wait for. Errors are logged. */
static int open_output_file(const struct output *output, int *ret_fd)
{
	const struct config *config = output->config;
	cleanup_fd int fd = open(config->path,
				 O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK |
					 O_NOCTTY | O_CLOEXEC,
				 config->rotation.mode ?: MODE);
	int err = fd < 0 ? -errno : cut_torn_message(fd);

	if (!err)
		*ret_fd = TAKE_FD(fd);
	else
		log_error(output->host->log, "cannot write to %s: %s",
			  config->path,
			  err == -EEXIST ? "it contains something else" :
					   strerror(-err));
	return err;
}

static void start_file_session(struct output *output)
{
	file_of_output(output)->is_new = true;
	output->counts.sessions++;
}

static int file_open(struct output *output)
{
	struct file_output *out = file_of_output(output);

	output->host->outage = &out->outage;
	out->fd = -1;
	start_file_session(output);
	return open_output_file(output, &out->fd);
}

/* Only a regular file can have moved. */
static bool has_moved(const struct file_output *out)
{
	struct stat own, named;

	if (fstat(out->fd, &own) || !S_ISREG(own.st_mode))
		return false;
	return stat(out->output.config->path, &named) ||
	       own.st_dev != named.st_dev || own.st_ino != named.st_ino;
}

/* A message that the old file has a part of is completed there first. */
static int file_reopen(struct output *output)
{
	struct file_output *out = file_of_output(output);
	int fd = -1, err;

	if (!has_moved(out))
		return 0;
	if (!unsent_is_empty(&out->unsent))
		write_file_unsent(out);
	if (!unsent_is_empty(&out->unsent))
		return -EAGAIN;
	err = open_output_file(output, &fd);
	if (err)
		return err;
	close_fd(&out->fd);
	out->fd = fd;
	start_file_session(output);
	return 0;
}

const struct output_ops output_file = {
	.size = sizeof(struct file_output),
	.message_size = OUTPUT_FILE_SIZE,
	.open = file_open,
	.prepare = file_prepare,
	.send = file_send,
	.rest = file_rest,
	.reopen = file_reopen,
	.close = file_close,
};
