/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Changes of the options while a context runs. What takes long is to compile rules and to
 * load programs that contain them: netobs_change_begin() leaves that to threads, and applies
 * the change once all is there.
 */
#include "context.h"

#include "attach/hooks.h"
#include "base/log.h"
#include "base/options.h"
#include "base/util.h"
#include "base/worker.h"

#include <errno.h>
#include <string.h>

/* The programs for a namespace and kind of links, with the next filter. */
struct loaded {
	uint16_t netns;
	enum link_kind link;
	struct programs programs; /* {-1, -1}: not yet, or not any more */
};

/* Belongs to a thread until it ends. Owns all it points to, except the store. */
struct work {
	struct filter_source source; /* its strings, too */
	struct filter *filter;
	struct store *store; /* NULL: the filter is to be compiled */
	struct loaded *loaded;
	uint32_t n_loaded;
	struct log_lines lines;
	int err;
};

struct change {
	struct worker *worker;
	struct work *work; /* NULL: a thread has it */
	bool is_loading;   /* the loader uses the store */
	bool is_ready;
	struct netobs_opts opts; /* without pointers of the caller's */
	struct selection selection;
};

/* ---- Threads --------------------------------------------------------------------- */

static void free_work(void *arg)
{
	struct work *work = arg;

	if (!work)
		return;
	for (uint32_t i = 0; i < work->n_loaded; i++)
		programs_close(&work->loaded[i].programs);
	for (uint32_t i = 0; i < work->source.n_rules; i++)
		free((char *)work->source.rules[i].expression);
	free((char *)work->source.expression);
	free(work->loaded);
	filter_free(work->filter);
	log_lines_done(&work->lines);
	free(work);
}

static int load_all(struct work *work, const struct log *log)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < work->n_loaded; i++) {
		struct loaded *loaded = &work->loaded[i];

		err = store_load_programs_logging(work->store, work->filter,
						  &work->source.rate,
						  loaded->netns, loaded->link,
						  log, &loaded->programs);
	}
	return err;
}

static void do_work(void *arg)
{
	struct work *work = arg;
	const struct log log = log_lines_log(&work->lines);

	work->err = work->store ? load_all(work, &log) :
				  context_compile_source(&work->source, &log,
							 &work->filter);
}

static void start_work(struct change *change)
{
	change->is_loading = change->work->store;
	worker_start_or_run(change->worker, TAKE_PTR(change->work));
}

/* ---- What is to be made ------------------------------------------------------------ */

/* The strings of @source are the caller's. */
static int keep_source(struct work *work, const struct filter_source *source)
{
	work->source = *source;
	work->source.expression = NULL;
	work->source.n_rules = 0;
	if (source->expression) {
		work->source.expression = strdup(source->expression);
		if (!work->source.expression)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < source->n_rules; i++) {
		char *expression = strdup(source->rules[i].expression);

		if (!expression)
			return -ENOMEM;
		work->source.rules[i].expression = expression;
		work->source.n_rules++;
	}
	return 0;
}

static struct loaded *find_loaded(const struct work *work, uint16_t netns,
				  enum link_kind link)
{
	for (uint32_t i = 0; i < work->n_loaded; i++)
		if (work->loaded[i].netns == netns && work->loaded[i].link == link)
			return &work->loaded[i];
	return NULL;
}

static int want_programs(void *arg, uint16_t netns, enum link_kind link)
{
	struct work *work = arg;
	struct loaded *grown;

	if (find_loaded(work, netns, link))
		return 0;
	grown = reallocarray(work->loaded, work->n_loaded + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	work->loaded = grown;
	grown[work->n_loaded++] = (struct loaded){ netns, link, { { -1, -1 } } };
	return 0;
}

bool context_take_loaded(const struct netobs *ctx, uint16_t netns,
			 enum link_kind link, struct programs *ret_programs)
{
	struct loaded *loaded =
		ctx->change && ctx->change->work ?
			find_loaded(ctx->change->work, netns, link) :
			NULL;

	if (!loaded || !programs_are_loaded(&loaded->programs))
		return false;
	*ret_programs = loaded->programs;
	loaded->programs = (struct programs){ { -1, -1 } };
	return true;
}

/* ---- Applying it -------------------------------------------------------------------- */

/* Apply the selection and, if they change, @filter and the sampling. */
static void apply_change(struct netobs *ctx, const struct netobs_opts *opts,
			 struct selection *selection, struct filter **filter)
{
	context_set_sampling(ctx, opts);
	if (ctx->next_filter) {
		filter_free(ctx->filter);
		ctx->filter = TAKE_PTR(*filter);
	}
	/* If memory is short, the next netlink message updates the topology. */
	observation_apply(&ctx->observation, selection);
	ctx->replaced_ns = clock_boot_ns();
}

/* Call it while no drain is under way: entries of a drain belong to the previous topology. */
static int change_packets(struct netobs *ctx, const struct netobs_opts *opts,
			  struct selection *selection, struct filter **filter)
{
	int err = observation_prepare(&ctx->observation, selection,
				      ctx->is_replacing);

	err = err ?: observation_watch(&ctx->observation, &ctx->life.loop);
	if (!err)
		apply_change(ctx, opts, selection, filter);
	else
		observation_refuse(&ctx->observation);
	return err;
}

/* Options that can be used but for what they name, and *@ret_wanted, which is all of them. */
static int check_changed_options(struct netobs *ctx,
				 const struct netobs_opts *opts,
				 struct netobs_opts *ret_wanted)
{
	int err = life_check(&ctx->life);

	if (err)
		return err;
	if (ctx->life.state != LIFE_RUNNING)
		return -ECANCELED;
	if (ctx->change) {
		log_error(&ctx->life.log, "an earlier change is under way");
		return -EBUSY;
	}
	err = opts ? sized_check(opts, sizeof(*opts), &ctx->life.log) : 0;
	if (err)
		return err;
	context_copy_options(opts, ret_wanted);
	err = context_check_options(ret_wanted, &ctx->life.log);
	return err ?: context_check_change(ctx, ret_wanted, &ctx->life.log);
}

/* ---- In steps ------------------------------------------------------------------------ */

static void free_change(struct change **change)
{
	if (!*change)
		return;
	if ((*change)->is_loading && (*change)->worker)
		worker_wait((*change)->worker, -1);
	worker_free((*change)->worker);
	free_work((*change)->work);
	selection_done(&(*change)->selection);
	free(TAKE_PTR(*change));
}

void context_abandon_change(struct netobs *ctx)
{
	free_change(&ctx->change);
	ctx->next_filter = NULL;
	ctx->is_replacing = false;
}

static void end_change(struct netobs *ctx, int err)
{
	ctx->change_result = log_keep_error(&ctx->life.log, "cannot change", err);
	/* The thread may be about to end, with its reference to the descriptor. */
	loop_watch(&ctx->life.loop, worker_fd(ctx->change->worker), 0, NULL,
		   NULL);
	context_abandon_change(ctx);
}

void context_go_on_changing(struct netobs *ctx)
{
	struct change *change = ctx->change;
	int err;

	if (!change || !change->is_ready || !pipeline_is_idle(&ctx->pipeline))
		return;
	if (ctx->life.state != LIFE_RUNNING) {
		end_change(ctx, -ECANCELED);
		return;
	}
	err = change_packets(ctx, &change->opts, &change->selection,
			     &change->work->filter);
	if (!err)
		context_set_interval(ctx, &change->opts);
	end_change(ctx, err);
}

/* The filter is compiled: load programs with it, unless it has not changed. */
static int load_next(struct netobs *ctx, struct change *change)
{
	struct work *work = change->work;
	int err = context_set_next(ctx, work->filter, &change->opts);

	if (!err && ctx->is_replacing)
		err = hooks_for_each_next(&ctx->observation, &change->selection,
					  want_programs, work);
	if (err)
		return err;
	work->store = &ctx->pipeline.store;
	if (work->n_loaded)
		start_work(change);
	else
		change->is_ready = true;
	return 0;
}

static int on_work(void *arg, int fd)
{
	struct netobs *ctx = arg;
	struct change *change = ctx->change;
	int err;

	(void)fd;
	change->work = worker_take(change->worker);
	if (!change->work)
		return 0;
	change->is_loading = false;
	log_lines_pass_on(&change->work->lines, &ctx->life.log);
	err = change->work->err;
	if (!err && ctx->life.state != LIFE_RUNNING)
		err = -ECANCELED;
	if (!err && change->work->store)
		change->is_ready = true;
	else
		err = err ?: load_next(ctx, change);
	if (err)
		end_change(ctx, err);
	return 0; /* the context continues */
}

static int begin_change(struct netobs *ctx, const struct netobs_opts *opts)
{
	__attribute__((cleanup(free_change))) struct change *change =
		calloc(1, sizeof(*change));
	struct filter_source source;
	int err;

	if (!change)
		return -ENOMEM;
	err = check_changed_options(ctx, opts, &change->opts);
	err = err ?: context_read_filter(&change->opts, &ctx->life.log, &source);
	if (!err)
		err = selection_init(&change->selection, change->opts.interfaces,
				     change->opts.exclude, &ctx->life.log);
	if (err)
		return err;
	context_forget_callers(&change->opts);
	change->work = calloc(1, sizeof(*change->work));
	err = change->work ? keep_source(change->work, &source) : -ENOMEM;
	err = err ?: worker_new(do_work, free_work, &change->worker);
	if (!err)
		err = loop_watch(&ctx->life.loop, worker_fd(change->worker),
				 EPOLLIN, on_work, ctx);
	if (err)
		return err;
	ctx->change = TAKE_PTR(change);
	start_work(ctx->change);
	return 0;
}

int netobs_change_begin(struct netobs *ctx, const struct netobs_opts *opts)
{
	if (!is_context(ctx))
		return -EINVAL;
	log_expect_error(&ctx->life.log);
	return log_keep_error(&ctx->life.log, "cannot change",
			      begin_change(ctx, opts));
}

int netobs_change_result(const struct netobs *ctx)
{
	if (!is_context(ctx))
		return -EINVAL;
	if (!ctx->change)
		return ctx->change_result;
	return ctx->life.state == LIFE_RUNNING ? -EINPROGRESS : -ECANCELED;
}
