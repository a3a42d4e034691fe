// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * JSON lines over TCP or TLS. Lines have no acknowledgement: net.h says what is
 * delivered. A connection always begins with a whole line.
 */
#include "sink/host_fields.h"
#include "sinks/net/net.h"

#include <string.h>

enum { BUFFER_SIZE = 128 << 10 };

struct json_net {
	struct sink_host *host;
	struct tls_context tls;
	struct host_fields fields;
	struct feed feed;
	char buf[BUFFER_SIZE]; /* lines that the feed is sending */
};

/* ---- Opening ------------------------------------------------------------------- */

static void json_net_close(void *arg)
{
	struct json_net *net = arg;

	feed_close(&net->feed);
	tls_context_close(&net->tls);
}

static int json_net_open(struct spec *spec, struct sink_host *host, void *arg)
{
	struct json_net *net = arg;
	struct stream_options stream = { 0 };
	bool is_tls = !strncmp(spec->target, "tls:", 4);
	int err = 0;

	net->host = host;
	host_fields_read(&net->fields, spec, true);
	address_parse(spec, spec->target + 4, 0, &stream.address);
	address_read_source(spec, &stream.source);
	if (!is_tls)
		tls_refuse_options(spec);
	else if (!spec->is_wrong)
		err = tls_context_open(&net->tls, spec, stream.address.host,
				       NULL);
	err = err ?: spec_finish(spec);
	if (err)
		return err;
	stream.tls = is_tls ? &net->tls : NULL;
	feed_open(&net->feed, &stream, host);
	host->outage = &net->feed.stream.outage;
	host->ops->wake_in(host, 0);
	return 0;
}

/* ---- Sending ------------------------------------------------------------------- */

/* Make lines of records until the buffer is full. @return their bytes; 0: there are no records */
static size_t make_lines(struct json_net *net)
{
	struct sink_item item;
	size_t used = 0;

	while (sizeof(net->buf) - used > SINK_JSON_MAX &&
	       net->host->ops->next(net->host, &item)) {
		char *line = net->buf + used;
		size_t len = host_fields_json(&net->fields, item.record, line);

		line[len++] = '\n';
		used += len;
		feed_mark(&net->feed, len, item.end);
	}
	return used;
}

static void send_lines(struct json_net *net)
{
	enum peer_state state;

	while ((state = feed_prepare(&net->feed)) != PEER_AWAY) {
		size_t len;

		if (state == PEER_NEW)
			net->host->ops->rewind(net->host);
		if (feed_is_busy(&net->feed))
			return;
		len = make_lines(net);
		if (!len)
			return;
		feed_send(&net->feed, net->buf, len);
	}
}

static int json_net_work(void *arg, bool flush)
{
	struct json_net *net = arg;

	(void)flush;
	send_lines(net);
	net->host->ops->wake_in(net->host, feed_rest(&net->feed));
	return 0;
}

static void json_net_counters(const void *arg, sink_counter_fn *take, void *ctx)
{
	const struct json_net *net = arg;

	take(ctx, "sessions", net->feed.sessions);
	take(ctx, "broken_sessions", net->feed.broken_sessions);
}

__attribute__((visibility("default")))
const struct sink_module netobs_sink_module = {
	.version = NETOBS_VERSION,
	.types = SINK_TYPES_ALL,
	.state_size = sizeof(struct json_net),
	.open = json_net_open,
	.work = json_net_work,
	.close = json_net_close,
	.counters = json_net_counters,
};
