/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock_ms.h"
#include "base/loop.h"
#include "service/file_replacement.h"
#include "service/socket/server.h"
#include "metrics_table.h"
#include "service/httpd/httpd_module.h"

enum { WRITE_MS = 1000 };

struct metrics {
	struct metrics_config config;
	const struct metrics_source *source;
	struct metrics_values values;
	int64_t collected_ms; /* 0: never */
	char *text;	      /* formatted values; NULL: none yet */
	size_t len;
	int64_t written_ms;
	bool is_stale; /* the file could not be written, which was logged */

	struct listen listener;
	const struct httpd_module *module; /* NULL: nothing is served */
	struct httpd *httpd;
	struct loop loop;
	int timer;
};

/* ---- The text --------------------------------------------------------------------- */

static int make_text(struct metrics *metrics)
{
	int err;

	free(TAKE_PTR(metrics->text));
	err = metrics_collect(metrics->source, &metrics->values);
	metrics->collected_ms = err ? 0 : now_ms();
	if (err)
		return err;
	return metrics_format(&metrics->values, &metrics->text, &metrics->len);
}

/* However many ask, and however often, the text is made a few times per second. */
const char *metrics_text(struct metrics *metrics)
{
	if (metrics->text && metrics->collected_ms &&
	    now_ms() - metrics->collected_ms < METRICS_AGE_MS)
		return metrics->text;
	return make_text(metrics) ? NULL : metrics->text;
}

/* ---- HTTP ------------------------------------------------------------------------- */

static unsigned int answer_request(void *user, const char *path,
				   struct httpd_answer *ret_answer)
{
	static const char elsewhere[] = "The metrics are at /metrics\n";
	struct metrics *metrics = user;

	*ret_answer = (struct httpd_answer){ "text/plain", elsewhere,
					     strlen(elsewhere) };
	if (strcmp(path, "/metrics") != 0)
		return strcmp(path, "/") ? 404 : 200;
	if (!metrics_text(metrics))
		return 503;
	*ret_answer = (struct httpd_answer){
		"text/plain; version=0.0.4; charset=utf-8",
		metrics->text,
		metrics->len,
	};
	return 200;
}

static void serve_metrics(struct metrics *metrics)
{
	int wait_ms = metrics->module->run(metrics->httpd);
	int64_t at = wait_ms < 0 ?
			     0 :
			     clock_ns(CLOCK_MONOTONIC) + wait_ms * NSEC_PER_MSEC;

	loop_set_timer(metrics->timer, at);
}

static int on_clients(void *arg, int fd)
{
	(void)fd;
	serve_metrics(arg);
	return 0;
}

/* The server closes its listening socket, so it has a copy. */
static int open_httpd(struct metrics *metrics)
{
	cleanup_fd int fd = fcntl(metrics->listener.fd, F_DUPFD_CLOEXEC, 0);
	int err = fd < 0 ? -errno : 0;

	if (!err)
		err = metrics->module->open(fd, answer_request, metrics,
					    &metrics->httpd);
	if (!err)
		(void)TAKE_FD(fd);
	return err;
}

static int open_server(struct metrics *metrics, char *why, size_t why_size)
{
	const char *spec = metrics->config.listen;
	int err;

	metrics->module =
		shared_object_find("httpd", HTTPD_MODULE_SYMBOL, why, why_size);
	if (!metrics->module)
		return -ENOENT;
	err = listen_open(&metrics->listener, spec);
	err = err ?: open_httpd(metrics);
	err = err ?: loop_open(&metrics->loop);
	if (!err)
		err = loop_add_timer(&metrics->loop, CLOCK_MONOTONIC,
				     on_clients, metrics, &metrics->timer);
	if (!err)
		err = loop_watch(&metrics->loop,
				 metrics->module->fd(metrics->httpd), EPOLLIN,
				 on_clients, metrics);
	if (err)
		snprintf(why, why_size, "%s: %s", spec, strerror(-err));
	return err;
}

/* ---- The file --------------------------------------------------------------------- */

enum { TEXTFILE_MODE = 0644 }; /* node_exporter has a user of its own */

/* A reader finds a whole text. */
static int replace_textfile(const char *path, const char *text, size_t len)
{
	struct file_replacement replacement;
	int err = file_replacement_begin_new(&replacement, path, TEXTFILE_MODE);

	if (err)
		return err;
	if (fwrite(text, 1, len, replacement.file) < len)
		err = -errno;
	return file_replacement_end(&replacement, err);
}

static int write_textfile(struct metrics *metrics)
{
	return make_text(metrics) ?:
		       replace_textfile(metrics->config.textfile, metrics->text,
					metrics->len);
}

static void note_written(struct metrics *metrics, int err)
{
	const struct metrics_source *source = metrics->source;
	char text[512];

	if (err && !metrics->is_stale) {
		snprintf(text, sizeof(text), "metrics: cannot write '%s': %s",
			 metrics->config.textfile, strerror(-err));
		source->on_log(NETOBS_LOG_WARNING, text, source->user);
	}
	metrics->is_stale = err;
}

void metrics_write(struct metrics *metrics, bool is_last)
{
	if (!metrics || !metrics->config.textfile)
		return;
	if (!is_last && metrics->written_ms &&
	    now_ms() - metrics->written_ms < WRITE_MS)
		return;
	metrics->written_ms = now_ms();
	note_written(metrics, write_textfile(metrics));
}

/* ---- All -------------------------------------------------------------------------- */

bool metrics_check(const struct metrics_config *config, char *ret_why, size_t size)
{
	const char *wrong = config->listen ? listen_refuse(config->listen) : NULL;

	if (wrong)
		snprintf(ret_why, size, "'%s': %s", config->listen, wrong);
	return !wrong;
}

int metrics_open(const struct metrics_config *config,
		 const struct metrics_source *source,
		 struct metrics **ret_metrics, char *why, size_t why_size)
{
	struct metrics *metrics;
	int err = 0;

	*ret_metrics = NULL;
	metrics = calloc(1, sizeof(*metrics));
	if (!metrics) {
		snprintf(why, why_size, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	metrics->config = *config;
	metrics->source = source;
	metrics->listener.fd = metrics->loop.fd = -1;
	if (config->listen)
		err = open_server(metrics, why, why_size);
	if (err)
		metrics_close(metrics);
	else
		*ret_metrics = metrics;
	return err;
}

int metrics_fd(const struct metrics *metrics)
{
	return metrics ? metrics->loop.fd : -1;
}

void metrics_dispatch(struct metrics *metrics)
{
	if (metrics && metrics->httpd)
		loop_dispatch(&metrics->loop);
}

bool metrics_where(const struct metrics *metrics, char *text, size_t size)
{
	if (!metrics || !metrics->httpd)
		return false;
	listen_where(&metrics->listener, text, size);
	return true;
}

void metrics_forget(struct metrics *metrics)
{
	if (metrics)
		metrics->collected_ms = 0;
}

void metrics_close(struct metrics *metrics)
{
	if (!metrics)
		return;
	if (metrics->httpd)
		metrics->module->close(metrics->httpd);
	listen_close(&metrics->listener);
	loop_close(&metrics->loop);
	free(metrics->text);
	metrics_values_done(&metrics->values);
	free(metrics);
}
