// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drop_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <netobs/drop.h>

#include "base/clock_ms.h"
#include "base/util.h"
#include "drop_counters.h"
#include "drop_rows.h"
#include "service/options/privileges.h"
#include "cli/view/keys.h"
#include "cli/view/live.h"
#include "cli/view/text_table.h"
#include "service/signals.h"

struct watch {
	const struct drop_request *request;
	struct netobs_drops *drops;
	struct drop_rows rows;
	struct drop_counters counters; /* counters of the tables */
	struct live live;
	bool error_logged;
	int write_error; /* error of stdout; < 0 */
	volatile bool is_stopping;
};

static void stop_drops(void *object)
{
	struct watch *watch = object;

	if (watch->drops && !watch->is_stopping)
		netobs_drops_stop(watch->drops);
	watch->is_stopping = true;
}

static void on_log(int level, const char *message, void *user)
{
	struct watch *watch = user;

	watch->error_logged |= args_report_log("drops", watch->request->verbose,
					       level, message);
}

/* ---- Records --------------------------------------------------------------------------- */

static bool is_wanted(const struct drop_request *request,
		      const struct netobs_drop *drop)
{
	return (drop->kind != NETOBS_DROP_BENIGN || request->wants_benign) &&
	       is_selected(&request->interfaces, drop->interface);
}

static void flush_output(struct watch *watch)
{
	watch->write_error = watch->write_error ?: text_flush("drops");
	if (watch->write_error)
		stop_drops(watch);
}

static void on_drop(const struct netobs_drop *drop, void *user)
{
	struct watch *watch = user;
	char text[NETOBS_DROP_JSON_MAX];

	if (watch->write_error || !is_wanted(watch->request, drop))
		return;
	if (!watch->request->is_json)
		drop_rows_add(&watch->rows, drop);
	else if (netobs_record_json(&drop->record, text, sizeof(text)) > 0 &&
		 puts(text) < 0)
		flush_output(watch);
}

/* ---- Tables ---------------------------------------------------------------------------- */

static void print_rows(struct watch *watch)
{
	const struct drop_request *request = watch->request;

	live_begin(&watch->live, request->filter ?: "drops of this kernel",
		   request->interval_ms);
	drop_rows_print(&watch->rows, request->by_flow,
			text_table_room(request->rows, watch->live.rows),
			watch->live.columns);
	if (watch->live.is_screen && !watch->rows.n)
		puts("No packet was dropped in this interval.");
}

static void show_table(struct watch *watch)
{
	/* The last interval is short: keep the rows that were shown before. */
	if (watch->is_stopping && !watch->rows.n)
		return;
	drop_rows_sum(&watch->rows, watch->request->by_flow);
	if (watch->live.is_paused)
		return;
	if (watch->rows.n || watch->live.is_screen)
		print_rows(watch);
	drop_counters_print(&watch->counters, &watch->request->interfaces);
	if (watch->rows.is_out_of_memory)
		fprintf(stderr, "netobsctl drops: cannot keep all drops: %s\n",
			strerror(ENOMEM));
	drop_rows_clear(&watch->rows);
}

static void on_interval(void *user)
{
	struct watch *watch = user;

	if (!watch->request->is_json && !watch->write_error)
		show_table(watch);
	flush_output(watch);
}

/* ---- The run --------------------------------------------------------------------------- */

/* Run until the observer has stopped, by a signal or by itself. */
static int loop_drops(struct watch *watch)
{
	const uint32_t duration_ms = watch->request->duration_ms;
	const int64_t deadline_ms = duration_ms ? now_ms() + duration_ms : 0;
	struct pollfd fds[] = {
		{ .fd = netobs_drops_fd(watch->drops), .events = POLLIN },
		{ .events = POLLIN }, /* keys */
	};
	int r = 0;

	while (r >= 0 || r == -EINTR) {
		fds[1].fd = keys_fd();
		poll(fds, ARRAY_SIZE(fds),
		     watch->is_stopping ? -1 : until_ms(deadline_ms));
		if (fds[1].revents && !live_take_keys(&watch->live))
			stop_drops(watch);
		if (deadline_ms && now_ms() >= deadline_ms)
			stop_drops(watch);
		r = netobs_drops_dispatch(watch->drops);
	}
	return r == -ECANCELED ? 0 : r;
}

static void print_left_out(const struct watch *watch)
{
	struct netobs_drops_stats stats = { .sz = sizeof(stats) };

	netobs_drops_stats_get(watch->drops, &stats);
	if (stats.lost_packets || stats.missed)
		fprintf(stderr,
			"netobsctl drops: not shown: %" PRIu64
			" packets without room in the tables, %" PRIu64
			" drops in interrupts\n",
			stats.lost_packets, stats.missed);
}

static int observe_drops(struct watch *watch)
{
	NETOBS_OPTS(netobs_drops_opts, opts, .filter = watch->request->filter,
		    .interval_ms = watch->request->interval_ms,
		    .on_drop = on_drop, .on_interval = on_interval,
		    .on_log = on_log, .user = watch);
	const struct args_list none = { 0 };
	int r = netobs_drops_new(&opts, &watch->drops);

	r = r ?: netobs_drops_start(watch->drops);
	if (r < 0) {
		args_report_failure("drops", watch->error_logged, "start", r);
		return r;
	}
	privileges_drop(&none, KEEP_FILES);
	live_start(&watch->live, !watch->request->is_json);
	if (!watch->live.is_screen)
		live_say("drops", "waiting for drops");
	if (!watch->request->is_json) {
		print_rows(watch); /* the headings */
		drop_counters_print(&watch->counters,
				    &watch->request->interfaces);
		flush_output(watch);
	}
	r = loop_drops(watch);
	live_end();
	if (r < 0)
		args_report_failure("drops", watch->error_logged, "continue", r);
	print_left_out(watch);
	return r;
}

int drop_watch(const struct drop_request *request)
{
	struct watch watch = { .request = request };
	bool is_refused;
	int r;

	signals_catch(stop_drops, &watch);
	r = observe_drops(&watch);
	is_refused = r < 0 && !watch.drops;
	signals_release();
	netobs_drops_free(watch.drops);
	drop_rows_clear(&watch.rows);
	drop_counters_clear(&watch.counters);
	if (is_refused)
		return args_refusal_status(r);
	if (watch.write_error && watch.write_error != -EPIPE)
		return EXIT_FAILED;
	return r < 0 ? EXIT_FAILED : EXIT_FINE;
}
