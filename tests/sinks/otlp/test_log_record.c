// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Log records and requests, which a reader of the encoding takes apart. */
#include "sinks/otlp/otlp.h"

#include "lib_sink_host.h"
#include "sinks/pbflow/wire.h"

/* As text: name=value for each attribute, an int with "i" and a bool with "b" in front, an array in
 * brackets, and an object in braces. */
struct text {
	char bytes[OTLP_ENTRY_MAX];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text->len += (size_t)vsnprintf(text->bytes + text->len,
				       sizeof(text->bytes) - text->len, format,
				       args);
	va_end(args);
	assert_true(text->len < sizeof(text->bytes));
}

static void add_attribute(struct text *text, const struct wire_field *pair);

static void add_value(struct text *text, const struct wire_field *any)
{
	struct wire_reader reader = wire_read(any->bytes, any->len), values;
	struct wire_field value, element;

	assert_true(wire_next(&reader, &value));
	assert_false(reader.is_wrong);
	assert_true(reader.at == reader.end);
	switch (value.number) {
	case 1:
		add(text, "%.*s", (int)value.len, value.bytes);
		break;
	case 2:
		add(text, "b%lld", (long long)value.value);
		break;
	case 6:
		values = wire_read(value.bytes, value.len);
		add(text, "{");
		while (wire_next(&values, &element)) {
			assert_int_equal(element.number, 1);
			add_attribute(text, &element);
		}
		assert_false(values.is_wrong);
		add(text, "}");
		break;
	case 3:
		add(text, "i%lld", (long long)value.value);
		break;
	default:
		assert_int_equal(value.number, 5);
		values = wire_read(value.bytes, value.len);
		add(text, "[");
		while (wire_next(&values, &element)) {
			add_value(text, &element);
			add(text, ",");
		}
		assert_false(values.is_wrong);
		add(text, "]");
	}
}

static void add_attribute(struct text *text, const struct wire_field *pair)
{
	struct wire_reader reader = wire_read(pair->bytes, pair->len);
	struct wire_field key, value;

	assert_true(wire_next(&reader, &key) && key.number == 1);
	assert_true(wire_next(&reader, &value) && value.number == 2);
	assert_true(reader.at == reader.end);
	add(text, "%.*s=", (int)key.len, key.bytes);
	add_value(text, &value);
	add(text, " ");
}

/* Attributes are of @number. */
static void read_attributes(const struct wire_field *message, uint32_t number,
			    struct text *ret_text)
{
	struct wire_reader reader = wire_read(message->bytes, message->len);
	struct wire_field field;

	*ret_text = (struct text){ 0 };
	while (wire_next(&reader, &field)) {
		if (field.number == number)
			add_attribute(ret_text, &field);
		else if (field.wire == WIRE_BYTES)
			add(ret_text, "%u=%.*s ", field.number, (int)field.len,
			    field.bytes);
		else if (field.wire == WIRE_VARINT)
			add(ret_text, "%u=%llu ", field.number,
			    (unsigned long long)field.value);
	}
	assert_false(reader.is_wrong);
}

static const char *read_entry(const struct netobs_record *record)
{
	static uint8_t entry[OTLP_ENTRY_MAX];
	static struct text text;
	struct wire_reader reader = wire_read(entry, otlp_entry(record, entry));
	struct wire_field log;

	assert_true(wire_next(&reader, &log));
	assert_int_equal(log.number, 2);
	assert_true(reader.at == reader.end);
	read_attributes(&log, 6, &text);
	return text.bytes;
}

TEST(flow_has_the_attributes_of_json)
{
	static const struct netobs_point points[] = {
		{ .ifindex = 2,
		  .netns_inode = 7,
		  .direction = NETOBS_INGRESS,
		  .name = "et\"h0" },
		{ .ifindex = 3,
		  .netns_inode = 7,
		  .direction = NETOBS_EGRESS,
		  .name = "br0" },
	};
	static const struct netobs_process process = {
		.sz = sizeof(process),
		.pid = 12,
		.uid = 1000,
		.command = "curl",
		.container_id = "c0ffee",
	};
	const struct netobs_flow flow = {
		.sz = sizeof(flow),
		.has = NETOBS_HAS_PORTS,
		.start_ns = 1700000000000000000,
		.end_ns = 1700000001000000000,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dst = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.src_port = 40000,
		.dst_port = 443,
		.proto = 6,
		.ethertype = 0x0800,
		.bytes = 1500,
		.packets = 2,
		.ttl_min = 64,
		.ttl_max = 64,
		.n_points = 2,
		.point_size = sizeof(*points),
		.points = points,
		.src_process = &process,
	};

	assert_string_equal(
		read_entry(&flow.record),
		"2=9 3=INFO 12=netobs.flow "
		"netobs.time_flow_start_ms=i1700000000000 "
		"netobs.time_flow_end_ms=i1700000001000 "
		"source.address=10.0.0.1 network.type=ipv4 "
		"destination.address=10.0.0.2 "
		"source.port=i40000 destination.port=i443 netobs.proto=i6 "
		"network.transport=tcp netobs.etype=i2048 "
		"netobs.bytes=i1500 netobs.packets=i2 netobs.dscp=i0 "
		"netobs.ecn_seen=i0 netobs.ttl_min=i64 netobs.ttl_max=i64 "
		"netobs.flow_end_reason=i0 "
		"netobs.src_pid=i12 netobs.src_process=curl netobs.src_uid=i1000 "
		"netobs.src_cgroup_id=i0 netobs.src_container_id=c0ffee "
		"netobs.interfaces=[et\"h0,br0,] "
		"network.interface.name=et\"h0 "
		"netobs.if_directions=[i0,i1,] netobs.if_indexes=[i2,i3,] "
		"netobs.netns_inode=i7 ");
}

TEST(alert_is_a_warning)
{
	struct netobs_alert alert = {
		.record = { .sz = sizeof(alert),
			    .type = NETOBS_RECORD_ALERT,
			    .time_ns = 5000000000,
			    .has = NETOBS_ALERT_HAS_PROCESS },
		.client = { [0] = 0x20, 1 },
		.server = { [0] = 0x20, 2 },
		.protocol = 6,
		.pid = 9,
		.process = "curl",
		.interface = "eth0",
		.metric = NETOBS_ALERT_RTT,
	};
	const char *text = read_entry(&alert.record);

	assert_non_null(strstr(text, "2=13 3=WARN 12=netobs.alert "));
	assert_non_null(strstr(text, " process.pid=i9 "));
	assert_non_null(strstr(text, " process.executable.name=curl "));
	assert_non_null(strstr(text, " network.interface.name=eth0 "));
	assert_non_null(strstr(text, " network.type=ipv6 "));
	assert_non_null(strstr(text, " netobs.unit=ns "));
	assert_null(strstr(text, "type=alert"));
}

TEST(journey_has_objects_for_its_steps)
{
	const struct netobs_journey journey = {
		.record = { .sz = sizeof(journey),
			    .type = NETOBS_RECORD_JOURNEY,
			    .time_ns = 5000000000 },
		.end_ns = 5000000300,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.unknown_parts = 1U << NETOBS_JOURNEY_GAP |
				 1U << NETOBS_JOURNEY_READER,
		.alert_ns = 4000000000,
		.alert = "slow",
		.n_steps = 2,
		.steps = { { .time_ns = 5000000000,
			     .pid = 9,
			     .command = "curl",
			     .point = NETOBS_TRACE_SENT },
			   { .time_ns = 5000000300,
			     .attempt = 1,
			     .layer = NETOBS_TRACE_LAYER_DEVICE,
			     .point = NETOBS_TRACE_DROP,
			     .interface = "eth0",
			     .ifindex = 2 } },
	};
	const char *text = read_entry(&journey.record);

	assert_non_null(strstr(text, "2=9 3=INFO 12=netobs.journey "));
	assert_non_null(strstr(text, " netobs.alert=slow "
				     "netobs.alert_time_ns=i4000000000 "));
	assert_non_null(strstr(text, " netobs.total_ns=i300 "));
	assert_non_null(strstr(text, " netobs.unknown_parts=[gap,reader,] "));
	assert_non_null(strstr(
		text, " netobs.steps_cut=b0 netobs.steps=["
		      "{netobs.point=sent netobs.layer=socket netobs.after_ns=i0 "
		      "netobs.cpu=i0 process.pid=i9 netobs.command=curl },"
		      "{netobs.point=drop netobs.layer=device netobs.after_ns=i300 "
		      "netobs.attempt=i1 netobs.cpu=i0 process.pid=i0 "
		      "network.interface.name=eth0 netobs.if_index=i2 },] "));
}

/* With all bits set, and the longest texts, each byte of which becomes three. */
TEST(largest_records_fit)
{
	static struct netobs_point points[PACK_POINTS_MAX];
	static union any_record any;
	char name[PACK_NAME_MAX + 1] = "";
	struct netobs_process process;
	uint8_t *entry = malloc(OTLP_ENTRY_MAX);

	memset(name, 0xff, PACK_NAME_MAX);
	memset(&process, 0xff, sizeof(process));
	process.sz = sizeof(process);
	process.command[15] = process.cgroup_path[383] = '\0';
	process.container_id[71] = process.pod_uid[39] = '\0';
	process.container_name[127] = process.container_image[191] = '\0';
	process.pod_name[127] = process.pod_namespace[63] = '\0';
	for (uint32_t i = 0; i < PACK_POINTS_MAX; i++)
		points[i] = (struct netobs_point){ .ifindex = UINT32_MAX,
						   .netns_inode = UINT32_MAX - i,
						   .name = name };
	for (uint32_t type = 0; type < NETOBS_RECORD_TYPES; type++) {
		if (!(OTLP_TYPES & 1U << type))
			continue;
		memset(&any, 0xff, sizeof(any));
		any.record.type = type;
		any.record.sz = sizeof(any);
		if (type == NETOBS_RECORD_FLOW) {
			any.flow.n_points = PACK_POINTS_MAX;
			any.flow.point_size = sizeof(*points);
			any.flow.points = points;
			any.flow.src_process = any.flow.dst_process = &process;
		}
		assert_true(otlp_entry(&any.record, entry) <= OTLP_ENTRY_MAX);
		if (!(OTLP_METRICS & 1U << type))
			read_entry(&any.record);
	}
	free(entry);
}

/* ---- Requests ---------------------------------------------------------------------- */

static void read_head(const struct otlp *otlp, size_t entries_len,
		      struct text *ret_resource, size_t *ret_left)
{
	uint8_t *bytes = calloc(1, OTLP_HEAD_MAX + entries_len);
	size_t len = otlp_head(otlp, entries_len, bytes) + entries_len;
	struct wire_reader reader = wire_read(bytes, len);
	struct wire_field request, resource, scope;

	assert_true(len - entries_len <= OTLP_HEAD_MAX);
	assert_true(wire_next(&reader, &request) && request.number == 1);
	assert_true(reader.at == reader.end);
	reader = wire_read(request.bytes, request.len);
	assert_true(wire_next(&reader, &resource) && resource.number == 1);
	assert_true(wire_next(&reader, &scope) && scope.number == 2);
	assert_true(reader.at == reader.end);
	read_attributes(&resource, 1, ret_resource);
	reader = wire_read(scope.bytes, scope.len);
	assert_true(wire_next(&reader, &scope) && scope.number == 1);
	assert_true(wire_next(&reader, &scope) && scope.number == 3);
	*ret_left = (size_t)(reader.end - reader.at);
	free(bytes);
}

static void read_options(const char *options, struct test_host *host,
			 struct otlp *ret_otlp, bool *ret_is_wrong)
{
	char text[16 << 10];
	struct spec spec;

	snprintf(text, sizeof(text), "otlp://127.0.0.1?%s", options);
	test_host_spec(host, text, &spec);
	otlp_read(ret_otlp, &spec, SINK_TYPE(FLOW));
	*ret_is_wrong = spec.is_wrong;
	spec_free(&spec);
}

TEST(heads_have_the_length_of_what_follows)
{
	static const size_t lens[] = { 0,     1,     100,     127,     128,
				       16383, 16384, 2097151, 2097152, 20 << 20 };
	struct test_host host;
	struct otlp otlp;
	bool is_wrong;

	test_host_open(&host);
	read_options("host=no", &host, &otlp, &is_wrong);
	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		struct text resource;
		size_t left;

		read_head(&otlp, lens[i], &resource, &left);
		assert_int_equal(left, lens[i]);
		assert_string_equal(
			resource.bytes,
			"service.name=netobs service.version=" NETOBS_VERSION
			" ");
	}
	test_host_close(&host);
}

TEST(host_and_fields_are_the_resource)
{
	struct test_host host;
	struct text resource;
	struct otlp otlp;
	bool is_wrong;
	size_t left;

	test_host_open(&host);
	read_options("agent_ip=192.0.2.1&field.site=berlin&field.service.name=edge",
		     &host, &otlp, &is_wrong);
	assert_false(is_wrong);
	read_head(&otlp, 0, &resource, &left);
	assert_non_null(strstr(resource.bytes, "host.ip=[192.0.2.1,] "));
	assert_non_null(strstr(resource.bytes, "host.name="));
	assert_non_null(strstr(resource.bytes, "site=berlin "));
	assert_non_null(strstr(resource.bytes, "service.name=edge "));
	assert_null(strstr(resource.bytes, "service.name=netobs "));
	read_options("field.Bytes=1&host=no&field.host.name=a", &host, &otlp,
		     &is_wrong);
	assert_false(is_wrong); /* no names of the resource */
	read_options("field.host.name=a", &host, &otlp, &is_wrong);
	assert_true(is_wrong);
	test_host_close(&host);
}

TEST(too_many_fields_are_refused)
{
	char options[12 << 10] = "host=no&field.a=";
	struct test_host host;
	struct otlp otlp;
	bool is_wrong;

	test_host_open(&host);
	memset(options + strlen(options), 'x', 6000);
	read_options(options, &host, &otlp, &is_wrong);
	assert_true(is_wrong);
	assert_non_null(strstr(host.logged, "fields take more than"));
	test_host_close(&host);
}
