/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The mappings of a context, and those of the kernel without one. */
#include "context.h"

#include "base/util.h"
#include "host/conntrack.h"
#include "host/netns.h"

#include <errno.h>
#include <netobs/mapping.h>
#include <time.h>

enum {
	SLICE_MS = 4,
	MAPPINGS_PER_LOOK = 256, /* at the clock */
	LIST_TRIES = 5,
};

/* ---- Life ------------------------------------------------------------------------- */

static loop_fn on_list;

/* A list that has begun has another descriptor. */
static void watch_list(struct netobs *ctx)
{
	const int fd = mapping_questions_fd(&ctx->questions);

	if (fd >= 0)
		loop_watch(&ctx->life.loop, fd, EPOLLIN, on_list, ctx);
}

static int on_list(void *arg, int fd)
{
	struct netobs *ctx = arg;

	(void)fd;
	mapping_questions_read(&ctx->questions);
	watch_list(ctx);
	return 0;
}

static int on_questions_timer(void *arg, int fd)
{
	struct netobs *ctx = arg;

	(void)fd;
	socket_translations_read(&ctx->features.translations.sockets);
	mapping_questions_ask(&ctx->questions);
	watch_list(ctx);
	return 0;
}

static bool has_mappings(const struct netobs *ctx)
{
	return ctx->mappings.table;
}

int context_open_mappings(struct netobs *ctx)
{
	struct translations *translations = &ctx->features.translations;

	if (!(ctx->opts.flags & NETOBS_NAT))
		return 0;
	mappings_init(&ctx->mappings, &translations->table, &ctx->pipeline.clock,
		      &ctx->host, translations->knows_zones,
		      context_taker(&ctx->opts, NETOBS_RECORD_MAPPING),
		      ctx->opts.user);
	mapping_questions_init(&ctx->questions, &ctx->mappings, &ctx->life.log);
	return loop_add_timer(&ctx->life.loop, CLOCK_BOOTTIME,
			      on_questions_timer, ctx, &ctx->questions_timer);
}

void context_start_mappings(struct netobs *ctx)
{
	if (!has_mappings(ctx))
		return;
	mapping_questions_ask(&ctx->questions);
	watch_list(ctx);
	loop_repeat_timer(ctx->questions_timer, MAPPING_QUESTIONS_MS);
}

void context_close_mappings(struct netobs *ctx)
{
	mapping_questions_done(&ctx->questions);
	mappings_done(&ctx->mappings);
}

/* ---- Reading ---------------------------------------------------------------------- */

static int check_mappings(const struct netobs *ctx)
{
	if (!is_context(ctx) || ctx->life.state == LIFE_NEW ||
	    ctx->life.state == LIFE_FAILED)
		return -EINVAL;
	return has_mappings(ctx) ? 0 : -ENOTSUP;
}

int netobs_mappings(const struct netobs *ctx, uint64_t *cursor,
		    void (*take)(const struct netobs_mapping *mapping, void *user),
		    void *user)
{
	const int64_t boot_ns = clock_boot_ns();
	int err = cursor && take ? check_mappings(ctx) : -EINVAL;
	int64_t now_ns;
	uint32_t at, n = 0;

	if (err)
		return err;
	now_ns = clock_to_stamp(&ctx->pipeline.clock, boot_ns);
	at = (uint32_t)*cursor;
	do {
		at = mappings_next(&ctx->mappings, at, now_ns, take, user);
		*cursor = at ?: *cursor;
	} while (at && (++n % MAPPINGS_PER_LOOK ||
			clock_boot_ns() - boot_ns < SLICE_MS * NSEC_PER_MSEC));
	return at != 0;
}

int netobs_mappings_find(const struct netobs *ctx,
			 const struct netobs_mapping_query *query,
			 void (*take)(const struct netobs_mapping *mapping,
				      void *user),
			 void *user)
{
	int err = query && take ? check_mappings(ctx) : -EINVAL;

	if (err)
		return err;
	return (int)mappings_find(&ctx->mappings, query,
				  clock_to_stamp(&ctx->pipeline.clock,
						 clock_boot_ns()),
				  take, user);
}

/* ---- Of the kernel ---------------------------------------------------------------- */

/* A list under way: nothing is passed on before it is complete. */
struct listing {
	uint32_t netns_inode;
	int64_t now_ns; /* since 1970 */
	struct netobs_mapping *found;
	uint32_t n, capacity;
	bool is_out_of_memory;
};

static void on_entry(void *ctx, const struct conntrack_entry *entry)
{
	struct listing *listing = ctx;
	struct netobs_mapping mapping;

	if (!mapping_of_entry(entry, listing->netns_inode, listing->now_ns,
			      &mapping))
		return;
	if (array_reserve(&listing->found, listing->n, &listing->capacity,
			  sizeof(mapping), 64))
		listing->found[listing->n++] = mapping;
	else
		listing->is_out_of_memory = true;
}

/* @return 0; -EAGAIN: it is not complete; others */
static int list_mappings(struct listing *listing, int ns_fd)
{
	cleanup_fd int fd = conntrack_open_in(ns_fd);
	struct conntrack_list list = { .fd = fd };
	struct timespec now;
	int ret = fd < 0 ? fd : conntrack_list_begin(&list);

	clock_gettime(CLOCK_REALTIME, &now);
	listing->now_ns = now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
	listing->n = 0;
	ret = ret ?: conntrack_list_read(&list, true, on_entry, listing);
	if (listing->is_out_of_memory)
		return -ENOMEM;
	return ret < 0 ? ret : 0;
}

int netobs_mappings_list(const char *netns,
			 void (*take)(const struct netobs_mapping *mapping,
				      void *user),
			 void *user)
{
	cleanup_fd int ns_fd = netns ? netns_open(netns) : netns_open_own();
	struct listing listing = { 0 };
	int err = take ? 0 : -EINVAL;
	int tries = 0;

	if (!err)
		err = ns_fd < 0 ? ns_fd : netns_check(ns_fd);
	if (!err)
		err = netns_inode(ns_fd, &listing.netns_inode);
	if (!err) {
		do
			err = list_mappings(&listing, netns ? ns_fd : -1);
		while (err == -EAGAIN && ++tries < LIST_TRIES);
	}
	for (uint32_t i = 0; (!err || err == -EAGAIN) && i < listing.n; i++)
		take(&listing.found[i], user);
	free(listing.found);
	return err ?: (int)listing.n;
}
