/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "trace_loader.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "base/worker.h"

/* Of one thread. */
struct trace_work {
	struct netobs_trace_opts opts;
	struct netobs_trace *tracer;
	int result;
};

struct trace_loader {
	struct worker *worker;
	struct trace_work work;
	bool is_busy;
	struct log_lines lines; /* of the thread, until it is done */
};

static void load_tracer(void *arg)
{
	struct trace_work *work = arg;
	int err = netobs_trace_new(&work->opts, &work->tracer);

	work->result = err ?: netobs_trace_start(work->tracer);
}

/* It is part of struct trace_loader, which waits for the thread. */
static void leave_trace_work(void *work)
{
	(void)work;
}

int trace_loader_new(struct trace_loader **ret_loader)
{
	cleanup_free struct trace_loader *loader = calloc(1, sizeof(*loader));
	int err = loader ? worker_new(load_tracer, leave_trace_work,
				      &loader->worker) :
			   -ENOMEM;

	if (!err)
		*ret_loader = TAKE_PTR(loader);
	return err;
}

void trace_loader_free(struct trace_loader *loader)
{
	struct netobs_trace *tracer;
	int result;

	if (!loader)
		return;
	if (trace_loader_finish(loader, &tracer, &result))
		netobs_trace_free(tracer);
	worker_free(loader->worker);
	free(loader);
}

int trace_loader_fd(const struct trace_loader *loader)
{
	return worker_fd(loader->worker);
}

void trace_loader_begin(struct trace_loader *loader,
			const struct netobs_trace_opts *opts)
{
	loader->work = (struct trace_work){ .opts = *opts };
	loader->is_busy = true;
	worker_start_or_run(loader->worker, &loader->work);
}

bool trace_loader_is_busy(const struct trace_loader *loader)
{
	return loader->is_busy;
}

bool trace_loader_keep(struct trace_loader *loader, int level, const char *message)
{
	const struct log log = log_lines_log(&loader->lines);

	if (loader->is_busy)
		log_write(&log, level, "%s", message);
	return loader->is_busy;
}

bool trace_loader_take(struct trace_loader *loader,
		       struct netobs_trace **ret_tracer, int *ret_result)
{
	struct trace_work *work = worker_take(loader->worker);
	struct log log;

	if (!work)
		return false;
	loader->is_busy = false;
	log = (struct log){ .write = work->opts.on_log, .user = work->opts.user };
	log_lines_pass_on(&loader->lines, &log);
	if (work->result)
		netobs_trace_free(TAKE_PTR(work->tracer));
	*ret_tracer = TAKE_PTR(work->tracer);
	*ret_result = work->result;
	return true;
}

bool trace_loader_finish(struct trace_loader *loader,
			 struct netobs_trace **ret_tracer, int *ret_result)
{
	if (loader->is_busy)
		worker_wait(loader->worker, -1);
	return trace_loader_take(loader, ret_tracer, ret_result);
}
