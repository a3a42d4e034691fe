// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_collector.h"

#include "flow.pb-c.h"
#include "netobs.pb-c.h"
#include "lib_test.h"
#include "base/clock_ms.h"
#include "sinks/pbflow/wire.h"

#include <arpa/inet.h>
#include <sys/socket.h>

static struct rpc *find_rpc(struct collector *c, int32_t id)
{
	for (uint32_t i = 0; i < c->n_rpcs; i++)
		if (c->rpcs[i].id == id)
			return &c->rpcs[i];
	return NULL;
}

static Pbflow__Records *unpack(const struct rpc *rpc)
{
	Pbflow__Records *records;
	uint32_t len;

	assert_int_equal(rpc->body[0], 0);
	memcpy(&len, rpc->body + 1, sizeof(len));
	assert_int_equal(ntohl(len), rpc->len - 5);
	records = pbflow__records__unpack(NULL, rpc->len - 5, rpc->body + 5);
	assert_non_null(records);
	return records;
}

/* Sessions and alerts have no numbers. */
static void take_others(struct collector *c, const struct rpc *rpc)
{
	Netobs__Records *records =
		netobs__records__unpack(NULL, rpc->len - 5, rpc->body + 5);

	assert_non_null(records);
	c->n_taken += records->n_entries;
	netobs__records__free_unpacked(records, NULL);
}

/* Records are numbered by their bytes, and come in order unless that is said. */
static void take_records(struct collector *c, const struct rpc *rpc)
{
	Pbflow__Records *records = unpack(rpc);

	for (size_t i = 0; i < records->n_entries; i++) {
		uint64_t number = records->entries[i]->bytes;

		assert_true(number <= c->next || c->is_unordered);
		assert_true(number < RECORDS_MAX);
		c->n_again += c->seen[number];
		c->seen[number] = 1;
		c->next = max_u64(c->next, number + 1);
	}
	c->n_taken += records->n_entries;
	pbflow__records__free_unpacked(records, NULL);
}

static bool has_bad_record(const struct collector *c, const struct rpc *rpc)
{
	Pbflow__Records *records = unpack(rpc);
	bool has_bad = false;

	for (size_t i = 0; i < records->n_entries; i++)
		has_bad |= records->entries[i]->bytes % c->bad_every < c->n_bad;
	pbflow__records__free_unpacked(records, NULL);
	return has_bad;
}

/* Log records in a request of one resource and one scope. */
static uint64_t count_logs(const struct rpc *rpc)
{
	static const uint32_t path[] = { 1, 2 };
	struct wire_reader reader = wire_read(rpc->body + 5, rpc->len - 5);
	struct wire_field field;
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(path); i++) {
		while (wire_next(&reader, &field) && field.number != path[i])
			;
		assert_int_equal(field.number, path[i]);
		reader = wire_read(field.bytes, field.len);
	}
	while (wire_next(&reader, &field))
		n += field.number == 2;
	assert_false(reader.is_wrong);
	return n;
}

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)name,
			     .namelen = strlen(name),
			     .value = (uint8_t *)value,
			     .valuelen = strlen(value) };
}

static ssize_t give_end(nghttp2_session *h2, int32_t id, uint8_t *to, size_t size,
			uint32_t *flags, nghttp2_data_source *source, void *user)
{
	const nghttp2_nv trailers[] = { header("grpc-status", "0") };

	(void)to;
	(void)size;
	(void)source;
	(void)user;
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	nghttp2_submit_trailer(h2, id, trailers, 1);
	return 0;
}

static void answer_with_trailers(struct collector *c, const struct rpc *rpc)
{
	const nghttp2_data_provider end = { .read_callback = give_end };
	const nghttp2_nv headers[] = { header(":status", "200") };

	nghttp2_submit_response(c->h2, rpc->id, headers, 1, &end);
}

static ssize_t give_reply(nghttp2_session *h2, int32_t id, uint8_t *to,
			  size_t size, uint32_t *flags,
			  nghttp2_data_source *source, void *user)
{
	const struct collector *c = source->ptr;

	assert_true(c->reply_len <= size);
	memcpy(to, c->reply, c->reply_len);
	give_end(h2, id, to, size, flags, source, user);
	return (ssize_t)c->reply_len;
}

static void answer_logs(struct collector *c, const struct rpc *rpc)
{
	const nghttp2_data_provider reply = { .source.ptr = c,
					      .read_callback = give_reply };
	const nghttp2_nv headers[] = { header(":status", "200") };

	c->n_taken += count_logs(rpc);
	nghttp2_submit_response(c->h2, rpc->id, headers, 1, &reply);
}

static void answer_early(struct collector *c, const struct rpc *rpc)
{
	const nghttp2_nv headers[] = { header(":status", "200"),
				       header("grpc-status", "0") };

	nghttp2_submit_headers(c->h2, NGHTTP2_FLAG_NONE, rpc->id, NULL, headers,
			       2, NULL);
	nghttp2_submit_rst_stream(c->h2, 0, rpc->id, NGHTTP2_INTERNAL_ERROR);
}

void collector_answer(struct collector *c, const struct rpc *rpc)
{
	bool is_bad = c->answer == ANSWER_STATUS ||
		      (c->answer == ANSWER_PICKY && has_bad_record(c, rpc));
	const nghttp2_nv fine[] = {
		header(":status", "200"),
		header("content-type", "application/grpc"),
		header("grpc-status", is_bad ? c->status : "0"),
		header("grpc-message", c->message ?: ""),
		header("grpc-status-details-bin", c->details ?: ""),
	};
	const nghttp2_nv http[] = { header(":status", c->status ?: ""),
				    header("grpc-status", "0") };

	switch (c->answer) {
	case ANSWER_OK:
	case ANSWER_PICKY:
	case ANSWER_STATUS:
		if (!is_bad && !strcmp(rpc->path, "/netobs.Collector/Send"))
			take_others(c, rpc);
		else if (!is_bad)
			take_records(c, rpc);
		nghttp2_submit_response(c->h2, rpc->id, fine,
					c->details ? 5 : 4, NULL);
		break;
	case ANSWER_LOGS:
		answer_logs(c, rpc);
		break;
	case ANSWER_TRAILERS:
		take_records(c, rpc);
		answer_with_trailers(c, rpc);
		break;
	case ANSWER_EARLY_STATUS:
		answer_early(c, rpc);
		break;
	case ANSWER_HTTP:
		nghttp2_submit_response(c->h2, rpc->id, http, 1, NULL);
		break;
	case ANSWER_HTTP_OK:
		nghttp2_submit_response(c->h2, rpc->id, http, 2, NULL);
		break;
	case ANSWER_RESET:
		nghttp2_submit_rst_stream(c->h2, 0, rpc->id, c->error);
		break;
	case ANSWER_NEVER:
		break;
	}
}

static int take_begin(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct collector *c = user;
	struct rpc *rpc = &c->rpcs[c->n_rpcs++ % CALLS_MAX];

	(void)h2;
	assert_true(c->n_rpcs <= CALLS_MAX);
	*rpc = (struct rpc){ .id = frame->hd.stream_id,
			     .begun_ms = now_ms(),
			     .body = malloc(BODY_MAX) };
	return 0;
}

static int take_header(nghttp2_session *h2, const nghttp2_frame *frame,
		       const uint8_t *name, size_t name_len, const uint8_t *value,
		       size_t value_len, uint8_t flags, void *user)
{
	struct rpc *rpc = find_rpc(user, frame->hd.stream_id);
	const struct {
		const char *name;
		char *to;
		size_t size;
	} known[] = {
		{ ":path", rpc->path, sizeof(rpc->path) },
		{ ":scheme", rpc->scheme, sizeof(rpc->scheme) },
		{ ":authority", rpc->authority, sizeof(rpc->authority) },
		{ "grpc-timeout", rpc->timeout, sizeof(rpc->timeout) },
		{ "content-type", rpc->type, sizeof(rpc->type) },
		{ "te", rpc->te, sizeof(rpc->te) },
	};

	(void)h2;
	(void)flags;
	(void)name_len;
	(void)value_len;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp((const char *)name, known[i].name))
			snprintf(known[i].to, known[i].size, "%s",
				 (const char *)value);
	return 0;
}

static int take_data(nghttp2_session *h2, uint8_t flags, int32_t id,
		     const uint8_t *data, size_t len, void *user)
{
	struct rpc *rpc = find_rpc(user, id);

	(void)h2;
	(void)flags;
	assert_true(rpc->len + len <= BODY_MAX);
	memcpy(rpc->body + rpc->len, data, len);
	rpc->len += len;
	return 0;
}

static int take_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct collector *c = user;
	struct rpc *rpc = find_rpc(c, frame->hd.stream_id);
	bool is_end = frame->hd.type == NGHTTP2_DATA &&
		      frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	bool is_begin = frame->hd.type == NGHTTP2_HEADERS;

	(void)h2;
	if (!(is_begin ? c->is_early : is_end && !c->is_early))
		return 0;
	if (c->delay_ms)
		rpc->due_ms = now_ms() + c->delay_ms;
	else
		collector_answer(c, rpc);
	return 0;
}

static void start_session(struct collector *c)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, c->window ?: 65535 },
	};
	nghttp2_session_callbacks *callbacks;

	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
								take_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
								  take_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
							     take_frame);
	nghttp2_session_server_new(&c->h2, callbacks, c);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, settings, 1);
	if (c->is_leaving)
		nghttp2_submit_goaway(c->h2, 0, 0, NGHTTP2_NO_ERROR, NULL, 0);
}

void collector_hang_up(struct collector *c)
{
	nghttp2_session_del(c->h2);
	c->h2 = NULL;
	close_fd(&c->fd);
	for (uint32_t i = 0; i < c->n_rpcs; i++)
		free(c->rpcs[i].body);
	c->n_rpcs = 0;
}

static void answer_what_is_due(struct collector *c)
{
	for (uint32_t i = 0; i < c->n_rpcs; i++) {
		struct rpc *rpc = &c->rpcs[i];

		if (!rpc->due_ms || now_ms() < rpc->due_ms)
			continue;
		rpc->due_ms = 0;
		collector_answer(c, rpc);
	}
}

void collector_serve(struct collector *c)
{
	uint8_t buf[1 << 16];
	const uint8_t *out;
	ssize_t n;

	if (c->fd < 0) {
		c->fd = accept4(c->listener, NULL, NULL, SOCK_NONBLOCK);
		if (c->fd < 0)
			return;
		start_session(c);
	}
	while ((n = recv(c->fd, buf, sizeof(buf), 0)) > 0)
		assert_int_equal(nghttp2_session_mem_recv(c->h2, buf, (size_t)n),
				 n);
	answer_what_is_due(c);
	while ((n = nghttp2_session_mem_send(c->h2, &out)) > 0)
		if (send(c->fd, out, (size_t)n, MSG_NOSIGNAL) != n)
			break;
	if (n < 0 || !recv(c->fd, buf, 1, MSG_PEEK))
		collector_hang_up(c);
}
