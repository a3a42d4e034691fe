/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service_trace.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "base/worker.h"

/* A tracer and the state of its callbacks: the thread's, and after loading the loader's. */
struct trace_work {
	struct netobs_trace_opts opts; /* the caller's */
	struct netobs *tracer;
	int result;
	struct log_lines lines; /* until it is taken */
	bool is_taken;
};

struct trace_loader {
	struct worker *worker;
	bool is_busy;
	struct trace_work *taken; /* its tracer is the caller's; NULL */
};

/* ---- Callbacks of the tracer ------------------------------------------------------------ */

static void pass_record(const struct netobs_record *record, void *user)
{
	const struct trace_work *work = user;

	work->opts.on_record(record, work->opts.user);
}

static void pass_message(int level, const char *message, void *user)
{
	struct trace_work *work = user;
	const struct log kept = log_lines_log(&work->lines);

	if (work->is_taken)
		work->opts.on_log(level, message, work->opts.user);
	else
		log_write(&kept, level, "%s", message);
}

/* ---- Work ------------------------------------------------------------------------------- */

static void load_tracer(void *arg)
{
	struct trace_work *work = arg;
	struct netobs_trace_opts opts = work->opts;
	int err;

	opts.on_record = opts.on_record ? pass_record : NULL;
	opts.on_log = pass_message;
	opts.user = work;
	err = netobs_trace_new(&opts, &work->tracer);
	work->result = err ?: netobs_start(work->tracer);
}

static void free_trace_work(void *arg)
{
	struct trace_work *work = arg;

	netobs_free(work->tracer);
	log_lines_done(&work->lines);
	free(work);
}

/* ---- The loader ------------------------------------------------------------------------- */

int trace_loader_new(struct trace_loader **ret_loader)
{
	cleanup_free struct trace_loader *loader = calloc(1, sizeof(*loader));
	int err = loader ? worker_new(load_tracer, free_trace_work,
				      &loader->worker) :
			   -ENOMEM;

	if (!err)
		*ret_loader = TAKE_PTR(loader);
	return err;
}

void trace_loader_free(struct trace_loader *loader)
{
	if (!loader)
		return;
	worker_free(loader->worker);
	free(loader->taken);
	free(loader);
}

int trace_loader_fd(const struct trace_loader *loader)
{
	return worker_fd(loader->worker);
}

int trace_loader_begin(struct trace_loader *loader,
		       const struct netobs_trace_opts *opts)
{
	struct trace_work *work = calloc(1, sizeof(*work));

	if (!work)
		return -ENOMEM;
	work->opts = *opts;
	free(TAKE_PTR(loader->taken));
	loader->is_busy = true;
	worker_start_or_run(loader->worker, work);
	return 0;
}

bool trace_loader_is_busy(const struct trace_loader *loader)
{
	return loader->is_busy;
}

bool trace_loader_take(struct trace_loader *loader, struct netobs **ret_tracer,
		       int *ret_result)
{
	struct trace_work *work = worker_take(loader->worker);
	struct log log;

	if (!work)
		return false;
	loader->is_busy = false;
	log = (struct log){ .write = work->opts.on_log, .user = work->opts.user };
	log_lines_pass_on(&work->lines, &log);
	*ret_result = work->result;
	*ret_tracer = NULL;
	if (work->result) {
		free_trace_work(work);
		return true;
	}
	work->is_taken = true;
	loader->taken = work;
	*ret_tracer = work->tracer;
	return true;
}
