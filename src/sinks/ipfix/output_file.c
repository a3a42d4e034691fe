// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Messages one after the other in files, RFC 5655: each begins with its templates. */
#include "net/deadline.h"
#include "net/faults.h"
#include "output.h"
#include "rotated.h"
#include "unsent.h"

#include <errno.h>

enum { SIZE = 32768, RETRY_MS = 1000 };

struct file_output {
	struct output output;
	struct rotated file;
	int64_t opened_ms, retry_ms;
	uint64_t size;
	bool is_new;
	bool has_data; /* not only templates */
	struct unsent unsent;
	struct mark unsent_end;
	struct faults faults;
};

static struct file_output *of_output(struct output *output)
{
	return (struct file_output *)output;
}

static void fail(struct file_output *out, int err)
{
	if (faults_begin(&out->faults, strerror(-err)))
		log_error(out->output.host->log,
			  "cannot write to %s: %s; trying again",
			  out->output.config->path, strerror(-err));
	out->retry_ms = now_ms() + RETRY_MS;
}

static void note_good(struct file_output *out)
{
	out->retry_ms = 0;
	if (faults_end(&out->faults))
		log_info(out->output.host->log, "%s can be written to again",
			 out->output.config->path);
}

static bool rotates(const struct config *config)
{
	return config->rotate_bytes || config->rotate_ms;
}

static int open_file(struct file_output *out)
{
	const struct config *config = out->output.config;
	int err = rotated_open(&out->file, config->path, rotates(config));

	if (err)
		return err;
	out->opened_ms = now_ms();
	out->size = 0;
	out->has_data = false;
	out->is_new = true;
	out->output.counts.sessions++;
	return 0;
}

/* Bytes of an unfinished message stay, to be continued when the disk has room. */
static void write_unsent(struct file_output *out)
{
	struct unsent *unsent = &out->unsent;

	while (!unsent_is_empty(unsent)) {
		ssize_t n = write(out->file.fd, unsent->bytes + unsent->at,
				  unsent->len - unsent->at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			fail(out, -errno);
			return;
		}
		unsent->at += (size_t)n;
		out->size += (uint64_t)n;
	}
	if (out->retry_ms)
		note_good(out);
	output_ack(&out->output, out->unsent_end);
}

static bool is_due(const struct file_output *out)
{
	const struct config *config = out->output.config;

	if (!out->has_data)
		return false;
	if (config->rotate_bytes && out->size >= config->rotate_bytes)
		return true;
	return config->rotate_ms &&
	       now_ms() >= out->opened_ms + (int64_t)config->rotate_ms;
}

static enum output_state file_prepare(struct output *output)
{
	struct file_output *out = of_output(output);
	int err = 0;

	if (out->retry_ms && now_ms() < out->retry_ms)
		return OUTPUT_AWAY;
	if (!unsent_is_empty(&out->unsent)) {
		write_unsent(out);
		if (!unsent_is_empty(&out->unsent))
			return OUTPUT_AWAY;
	}
	if (out->file.fd >= 0 && is_due(out))
		rotated_finish(&out->file, out->has_data);
	if (out->file.fd < 0)
		err = open_file(out);
	if (err) {
		fail(out, err);
		return OUTPUT_AWAY;
	}
	if (out->retry_ms)
		note_good(out);
	if (!out->is_new)
		return OUTPUT_READY;
	out->is_new = false;
	return OUTPUT_NEW;
}

static int file_send(struct output *output, const struct output_message *message)
{
	struct file_output *out = of_output(output);

	if (!unsent_is_empty(&out->unsent))
		return -EAGAIN;
	unsent_set(&out->unsent, &message->encoded);
	out->unsent_end = message->end;
	out->has_data |= message->encoded.records;
	output_count(output, message);
	write_unsent(out);
	return 0;
}

static int file_rest(struct output *output)
{
	struct file_output *out = of_output(output);
	uint64_t rotate_ms = output->config->rotate_ms;

	if (out->retry_ms)
		return left_ms(out->retry_ms);
	if (!rotate_ms || !out->has_data)
		return -1;
	return left_ms(out->opened_ms + (int64_t)rotate_ms);
}

static void file_close(struct output *output)
{
	struct file_output *out = of_output(output);

	rotated_finish(&out->file, out->has_data);
	rotated_close(&out->file);
	free(out);
}

static const struct output_ops file_ops = {
	.prepare = file_prepare,
	.send = file_send,
	.rest = file_rest,
	.close = file_close,
};

int output_open_file(const struct config *config, struct sink_host *host,
		     struct output **ret_output)
{
	struct file_output *out = calloc(1, sizeof(*out));
	int err;

	if (!out)
		return -ENOMEM;
	out->output = (struct output){ .ops = &file_ops,
				       .host = host,
				       .config = config,
				       .size = config->mtu ?: SIZE };
	rotated_init(&out->file);
	err = open_file(out);
	if (err) {
		rotated_close(&out->file);
		log_error(host->log, "cannot write to %s: %s", config->path,
			  strerror(-err));
		free(out);
		return err;
	}
	if (rotates(config))
		rotated_recover(&out->file, config->path);
	*ret_output = &out->output;
	return 0;
}
