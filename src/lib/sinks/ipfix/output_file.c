// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Messages one after the other in a file, RFC 5655, or in files that are rotated: each of these can be
 * read alone, as it is a session, with templates and numbers of its own.
 */
#include "base/outage.h"
#include "base/io.h"
#include "base/clock_ms.h"
#include "ipfix.h"
#include "sink/pack/packer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { MESSAGE_SIZE = 32768 };

struct file_output {
	struct output output;
	struct rotated *rotated; /* NULL: it is one file, which has what follows */
	int fd;
	bool is_new;
	struct backoff retry;
	struct outage outage;

	/* The message of which a file has yet to take a part. */
	size_t at, len;
	struct position end; /* the message's */
	uint8_t bytes[ENCODER_SIZE_MAX];
};

static bool is_unsent(const struct file_output *out)
{
	return out->at != out->len;
}

/* ---- One file -------------------------------------------------------------------- */

/* Bytes of an unfinished message stay, to be continued when the disk has room. */
static int write_one_file(struct file_output *out)
{
	int err = io_write(out->fd, out->bytes, out->len, &out->at);

	outage_note(&out->outage, out->output.host->log,
		    out->output.config->path, err);
	if (err)
		backoff_wait(&out->retry, now_ms());
	else
		backoff_reset(&out->retry);
	return err;
}

/* A file of templates and counters alone is worth nothing. */
static int write_rotated(struct file_output *out)
{
	int err = rotate_write(out->rotated, out->bytes, out->len,
			       position_is_before(out->output.acked, out->end));

	if (!err)
		out->at = out->len;
	return err;
}

/* False: not all of it. */
static bool write_unsent(struct file_output *out)
{
	if (out->rotated ? write_rotated(out) : write_one_file(out))
		return false;
	output_ack(&out->output, out->end);
	return true;
}

static enum peer_state prepare_one_file(struct file_output *out)
{
	if (!backoff_is_due(&out->retry) ||
	    (is_unsent(out) && !write_unsent(out)))
		return PEER_AWAY;
	if (!out->is_new)
		return PEER_READY;
	out->is_new = false;
	return PEER_NEW;
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

	if (out->rotated || !has_moved(out))
		return 0;
	if (is_unsent(out) && !write_unsent(out))
		return -EAGAIN;
	err = open_output_file(output, &fd);
	if (err)
		return err;
	close_fd(&out->fd);
	out->fd = fd;
	start_file_session(output);
	return 0;
}

/* ---- Either ---------------------------------------------------------------------- */

static int file_open(struct output *output)
{
	struct file_output *out = (struct file_output *)output;
	const struct config *config = output->config;

	out->fd = -1;
	if (config->rotates)
		return rotate_open(config->path, &config->rotation,
				   output->host, &out->rotated);
	output->host->outage = &out->outage;
	start_file_session(output);
	return open_output_file(output, &out->fd);
}

static enum peer_state prepare_rotated(struct file_output *out)
{
	struct output *output = &out->output;
	bool is_done = !is_unsent(out);
	enum peer_state state =
		rotate_prepare(out->rotated, is_done ? output->size : 0);

	if (state == PEER_READY && !is_done) {
		if (!write_unsent(out))
			return PEER_AWAY;
		state = rotate_prepare(out->rotated, output->size);
	}
	if (state == PEER_NEW) {
		out->at = out->len = 0;
		output->counts.sessions++;
	}
	return state;
}

static enum peer_state file_prepare(struct output *output)
{
	struct file_output *out = (struct file_output *)output;

	return out->rotated ? prepare_rotated(out) : prepare_one_file(out);
}

/* -EAGAIN: another message is not written yet. */
static int file_send(struct output *output, const struct output_message *message)
{
	struct file_output *out = (struct file_output *)output;

	if (is_unsent(out))
		return -EAGAIN;
	memcpy(out->bytes, message->encoded.bytes, message->encoded.len);
	out->at = 0;
	out->len = message->encoded.len;
	out->end = message->end;
	output_count(output, message);
	write_unsent(out);
	return 0;
}

static int file_rest(struct output *output)
{
	const struct file_output *out = (struct file_output *)output;

	return out->rotated ? rotate_wait_ms(out->rotated) :
			      backoff_left_ms(&out->retry);
}

static void file_counters(const struct output *output, sink_counter_fn *take,
			  void *ctx)
{
	const struct file_output *out = (const struct file_output *)output;

	if (out->rotated)
		rotate_counters(out->rotated, take, ctx);
}

static void file_close(struct output *output)
{
	struct file_output *out = (struct file_output *)output;

	rotate_close(out->rotated);
	close_fd(&out->fd);
}

const struct output_ops output_file = {
	.size = sizeof(struct file_output),
	.message_size = MESSAGE_SIZE,
	.open = file_open,
	.prepare = file_prepare,
	.send = file_send,
	.rest = file_rest,
	.counters = file_counters,
	.reopen = file_reopen,
	.close = file_close,
};
