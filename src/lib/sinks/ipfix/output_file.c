// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Messages one after the other in a file, RFC 5655, or in files that are rotated: each of these can be
 * read alone, as it is a session, with templates and numbers of its own.
 */
#include "base/outage.h"
#include "base/io.h"
#include "base/clock_ms.h"
#include "output.h"
#include "sink/pack/packer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { MESSAGE_SIZE = 32768 };

/* The message of which a file has yet to take a part. */
struct unsent {
	size_t at, len;
	struct position end; /* the message's */
	uint8_t bytes[ENCODER_SIZE_MAX];
};

static bool unsent_is_empty(const struct unsent *unsent)
{
	return unsent->at == unsent->len;
}

/* Write @message next, and count it. False: another one is not written yet. */
static bool take_unsent(struct output *output, struct unsent *unsent,
			const struct output_message *message)
{
	if (!unsent_is_empty(unsent))
		return false;
	memcpy(unsent->bytes, message->encoded.bytes, message->encoded.len);
	unsent->at = 0;
	unsent->len = message->encoded.len;
	unsent->end = message->end;
	output_count(output, message);
	return true;
}

/* ---- One file -------------------------------------------------------------------- */

struct file_output {
	struct output output;
	int fd;
	bool is_new;
	struct backoff retry;
	struct outage outage;
	struct unsent unsent;
};

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
	struct file_output *out = (struct file_output *)output;

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
	struct file_output *out = (struct file_output *)output;

	if (!take_unsent(output, &out->unsent, message))
		return -EAGAIN;
	write_file_unsent(out);
	return 0;
}

static int file_rest(struct output *output)
{
	return backoff_left_ms(&((struct file_output *)output)->retry);
}

static void file_close(struct output *output)
{
	close_fd(&((struct file_output *)output)->fd);
}

/*
 * Half a message would make all that follows unreadable. More than a message is no
 * torn one: such a file is left alone, as those are that begin otherwise.
 */
static int cut_torn_message(int fd)
{
	uint8_t head[2] = { 0, 10 }; /* the version */
	struct stat info;
	uint64_t size, end;
	int err;

	if (fstat(fd, &info))
		return -errno;
	if (!S_ISREG(info.st_mode) || !info.st_size)
		return 0;
	if (pread(fd, head, sizeof(head), 0) < 0)
		return -errno;
	size = (uint64_t)info.st_size;
	err = pieces_find_end(fd, size, &end);
	if (err)
		return err;
	if (head[0] || head[1] != 10 || size - end > ENCODER_SIZE_MAX)
		return -EEXIST;
	return end < size && ftruncate(fd, (off_t)end) ? -errno : 0;
}

/* Open to be read as well, which no pipe has to wait for. Errors are logged. */
static int open_output_file(const struct output *output, int *ret_fd)
{
	const struct config *config = output->config;
	cleanup_fd int fd = open(config->path,
				 O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK |
					 O_NOCTTY | O_CLOEXEC,
				 config->rotation.mode ?: ROTATE_MODE);
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
	((struct file_output *)output)->is_new = true;
	output->counts.sessions++;
}

static int file_open(struct output *output)
{
	struct file_output *out = (struct file_output *)output;

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
	struct file_output *out = (struct file_output *)output;
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
	.message_size = MESSAGE_SIZE,
	.open = file_open,
	.prepare = file_prepare,
	.send = file_send,
	.rest = file_rest,
	.reopen = file_reopen,
	.close = file_close,
};

/* ---- Rotated files --------------------------------------------------------------- */

struct rotated_output {
	struct output output;
	struct rotated *rotated;
	struct unsent unsent; /* what the rotated has begun to write */
};

static int rotated_output_open(struct output *output)
{
	const struct config *config = output->config;

	return rotate_open(config->path, &config->rotation, output->host,
			   &((struct rotated_output *)output)->rotated);
}

/* False: not all of it. */
static bool write_rotated_unsent(struct rotated_output *out)
{
	struct unsent *unsent = &out->unsent;

	/* A file of templates and counters alone is worth nothing. */
	if (rotate_write(out->rotated, unsent->bytes, unsent->len,
			 position_is_before(out->output.acked, unsent->end)))
		return false;
	unsent->at = unsent->len;
	output_ack(&out->output, unsent->end);
	return true;
}

static enum peer_state rotated_output_prepare(struct output *output)
{
	struct rotated_output *out = (struct rotated_output *)output;
	bool is_done = unsent_is_empty(&out->unsent);
	enum peer_state state =
		rotate_prepare(out->rotated, is_done ? output->size : 0);

	if (state == PEER_READY && !is_done) {
		if (!write_rotated_unsent(out))
			return PEER_AWAY;
		state = rotate_prepare(out->rotated, output->size);
	}
	if (state == PEER_NEW) {
		out->unsent.at = out->unsent.len = 0;
		output->counts.sessions++;
	}
	return state;
}

static int rotated_output_send(struct output *output,
			       const struct output_message *message)
{
	struct rotated_output *out = (struct rotated_output *)output;

	if (!take_unsent(output, &out->unsent, message))
		return -EAGAIN;
	write_rotated_unsent(out);
	return 0;
}

static int rotated_output_rest(struct output *output)
{
	return rotate_wait_ms(((struct rotated_output *)output)->rotated);
}

static void rotated_output_counters(const struct output *output,
				    sink_counter_fn *take, void *ctx)
{
	const struct rotated_output *out = (const struct rotated_output *)output;

	rotate_counters(out->rotated, take, ctx);
}

static void rotated_output_close(struct output *output)
{
	rotate_close(((struct rotated_output *)output)->rotated);
}

const struct output_ops output_rotated = {
	.size = sizeof(struct rotated_output),
	.message_size = MESSAGE_SIZE,
	.open = rotated_output_open,
	.prepare = rotated_output_prepare,
	.send = rotated_output_send,
	.rest = rotated_output_rest,
	.counters = rotated_output_counters,
	.close = rotated_output_close,
};
