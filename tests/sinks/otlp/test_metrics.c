// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Metrics of groups, which a reader of the encoding takes apart. */
#include "sinks/otlp/otlp.h"

#include "lib_seed.h"
#include "lib_sink_host.h"
#include "sinks/pbflow/wire.h"

#include <math.h>
#include <netobs/series.h>

enum { METRICS_MAX = 16, BUCKETS_MAX = 64, TIMES = 100000 };

struct metric {
	char name[64], unit[32], attributes[1024];
	uint64_t start, time, value;
	uint64_t temporality, is_monotonic;
	bool is_histogram; /* exponential, of scale 0 */
	uint64_t count, zero_count, buckets[BUCKETS_MAX];
	size_t n_buckets;
	int64_t offset;
	double sum, zero_threshold;
};

/* Of little-endian numbers: the reader does not read them. */
static uint64_t fixed_before(const struct wire_reader *reader)
{
	uint64_t value;

	memcpy(&value, reader->at - sizeof(value), sizeof(value));
	return value;
}

static void copy(char *to, size_t size, const struct wire_field *field)
{
	snprintf(to, size, "%.*s", (int)field->len, field->bytes);
}

/* name=value, of texts and numbers. */
static void read_attribute(const struct wire_field *pair, struct metric *metric)
{
	struct wire_reader reader = wire_read(pair->bytes, pair->len), any;
	struct wire_field key, value, inside;
	size_t used = strlen(metric->attributes);

	assert_true(wire_next(&reader, &key));
	assert_true(wire_next(&reader, &value));
	any = wire_read(value.bytes, value.len);
	assert_true(wire_next(&any, &inside));
	if (inside.wire == WIRE_BYTES)
		snprintf(metric->attributes + used,
			 sizeof(metric->attributes) - used, "%.*s=%.*s ",
			 (int)key.len, key.bytes, (int)inside.len, inside.bytes);
	else
		snprintf(metric->attributes + used,
			 sizeof(metric->attributes) - used, "%.*s=%llu ",
			 (int)key.len, key.bytes,
			 (unsigned long long)inside.value);
}

static double double_before(const struct wire_reader *reader)
{
	double value;

	memcpy(&value, reader->at - sizeof(value), sizeof(value));
	return value;
}

static void read_buckets(const struct wire_field *buckets, struct metric *metric)
{
	struct wire_reader reader = wire_read(buckets->bytes, buckets->len);
	struct wire_field field;

	while (wire_next(&reader, &field)) {
		struct wire_reader counts = wire_read(field.bytes, field.len);

		if (field.number == 1) {
			metric->offset = (int64_t)(field.value >> 1) ^
					 -(int64_t)(field.value & 1);
			continue;
		}
		assert_int_equal(field.number, 2);
		while (counts.at != counts.end) {
			assert_true(metric->n_buckets < BUCKETS_MAX);
			metric->buckets[metric->n_buckets++] =
				wire_read_varint(&counts);
		}
	}
	assert_false(reader.is_wrong);
}

/* Of a sum or a histogram, which have times alike. */
static void read_point(const struct wire_field *point, struct metric *metric)
{
	struct wire_reader reader = wire_read(point->bytes, point->len);
	const bool is_sum = !metric->is_histogram;
	struct wire_field field;

	while (wire_next(&reader, &field)) {
		if (field.number == (is_sum ? 7 : 1))
			read_attribute(&field, metric);
		else if (field.number == 2)
			metric->start = fixed_before(&reader);
		else if (field.number == 3)
			metric->time = fixed_before(&reader);
		else if (is_sum && field.number == 6)
			metric->value = fixed_before(&reader);
		else if (is_sum)
			fail();
		else if (field.number == 4)
			metric->count = fixed_before(&reader);
		else if (field.number == 5)
			metric->sum = double_before(&reader);
		else if (field.number == 7)
			metric->zero_count = fixed_before(&reader);
		else if (field.number == 8)
			read_buckets(&field, metric);
		else if (field.number == 14)
			metric->zero_threshold = double_before(&reader);
		else
			fail();
	}
	assert_false(reader.is_wrong);
}

static void read_data(const struct wire_field *data, struct metric *metric)
{
	struct wire_reader reader = wire_read(data->bytes, data->len);
	struct wire_field field;
	unsigned int points = 0;

	while (wire_next(&reader, &field)) {
		if (field.number == 1) {
			points++;
			read_point(&field, metric);
		} else if (field.number == 2) {
			metric->temporality = field.value;
		} else if (field.number == 3 && !metric->is_histogram) {
			metric->is_monotonic = field.value;
		} else {
			fail();
		}
	}
	assert_false(reader.is_wrong);
	assert_int_equal(points, 1);
}

static uint32_t read_metrics(const struct netobs_group_record *group,
			     struct metric metrics[METRICS_MAX])
{
	static uint8_t entry[OTLP_ENTRY_MAX];
	struct wire_reader reader =
		wire_read(entry, otlp_entry(&group->record, entry));
	struct wire_field field, inside;
	uint32_t n = 0;

	memset(metrics, 0, METRICS_MAX * sizeof(*metrics));
	while (wire_next(&reader, &field)) {
		struct wire_reader metric = wire_read(field.bytes, field.len);

		assert_int_equal(field.number, 2);
		assert_true(n < METRICS_MAX);
		while (wire_next(&metric, &inside)) {
			if (inside.number == 1)
				copy(metrics[n].name, sizeof(metrics[n].name),
				     &inside);
			else if (inside.number == 3)
				copy(metrics[n].unit, sizeof(metrics[n].unit),
				     &inside);
			else if (inside.number != 7 && inside.number != 10)
				fail();
			metrics[n].is_histogram |= inside.number == 10;
			if (inside.number >= 7)
				read_data(&inside, &metrics[n]);
		}
		assert_false(metric.is_wrong);
		n++;
	}
	assert_false(reader.is_wrong);
	assert_int_equal(n, otlp_items(&group->record));
	return n;
}

static struct netobs_group_record make_group(void)
{
	return (struct netobs_group_record){
		.record = { .sz = sizeof(struct netobs_group_record),
			    .type = NETOBS_RECORD_GROUP,
			    .time_ns = 3000000000,
			    .has = NETOBS_GROUP_HAS_SERVER |
				   NETOBS_GROUP_HAS_SERVER_PORT },
		.start_ns = 1000000001,
		.end_ns = 2000000000,
		.flows = 3,
		.packets = 40,
		.bytes = 1ULL << 40,
		.server = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.server_port = 443,
		.name = "services",
	};
}

TEST(counts_are_sums_of_the_interval)
{
	static const struct {
		const char *name, *unit;
		uint64_t value;
	} expected[] = {
		{ "netobs.group.flows", "{flow}", 3 },
		{ "netobs.group.packets", "{packet}", 40 },
		{ "netobs.group.bytes", "By", 1ULL << 40 },
	};
	const struct netobs_group_record group = make_group();
	struct metric metrics[METRICS_MAX];

	assert_int_equal(read_metrics(&group, metrics), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(metrics[i].name, expected[i].name);
		assert_string_equal(metrics[i].unit, expected[i].unit);
		assert_int_equal(metrics[i].value, expected[i].value);
		assert_int_equal(metrics[i].start, 1000000001);
		assert_int_equal(metrics[i].time, 3000000000);
		assert_int_equal(metrics[i].temporality, 1);
		assert_int_equal(metrics[i].is_monotonic, 1);
		assert_string_equal(metrics[i].attributes,
				    "netobs.group=services netobs.series=group "
				    "server.address=192.0.2.1 server.port=443 ");
	}
}

TEST(what_is_known_is_there)
{
	struct netobs_group_record group = make_group();
	struct metric metrics[METRICS_MAX];

	group.record.has |= NETOBS_GROUP_HAS_SENT | NETOBS_GROUP_HAS_RTT;
	group.sent_packets = 1;
	group.sent_bytes = 0;
	group.rtt_ns = 1000;
	group.rtt_samples = 7;
	group.retransmits = 2;
	group.drop_packets = 3;
	group.drop_bytes = 300;
	group.connections = 4;
	assert_int_equal(read_metrics(&group, metrics), 12);
	assert_string_equal(metrics[4].name, "netobs.group.sent.bytes");
	assert_int_equal(metrics[4].value, 0);
	assert_string_equal(metrics[6].name, "netobs.group.rtt.time");
	assert_int_equal(metrics[6].value, 7000);
	assert_string_equal(metrics[7].name, "netobs.group.retransmits");
	assert_int_equal(metrics[7].value, 2);
	assert_string_equal(metrics[8].name, "netobs.group.drops.packets");
	assert_int_equal(metrics[8].value, 3);
	assert_string_equal(metrics[9].name, "netobs.group.drops.bytes");
	assert_int_equal(metrics[9].value, 300);
	assert_string_equal(metrics[10].name, "netobs.group.connections.ended");
	assert_string_equal(metrics[10].unit, "{connection}");
	assert_int_equal(metrics[10].value, 4);
	assert_string_equal(metrics[11].name, "netobs.group.connections.failed");
	assert_int_equal(metrics[11].value, 0);
	/* Counts are no attributes. */
	assert_null(strstr(metrics[11].attributes, "drop"));
	assert_null(strstr(metrics[11].attributes, "connections"));
}

/* ---- Histograms --------------------------------------------------------------------------- */

/* From less than 16 us to less than 275 s. */
static uint64_t draw_time(unsigned int *seed)
{
	const uint64_t ns = (uint64_t)rand_r(seed) << 7;

	return ns >> rand_r(seed) % 38;
}

static void add_time(struct netobs_times *times, uint64_t ns)
{
	size_t class = 0;

	while (ns > UINT64_C(16000) << class)
		class ++;
	times->classes[class]++;
	times->n++;
	times->sum_ns += ns;
}

/* As the data model of OpenTelemetry defines it: (2^index, 2^(index + 1)]. */
static int64_t index_of(double us)
{
	return (int64_t)ceil(log2(us)) - 1;
}

static void check_buckets(const struct metric *metric,
			  const uint64_t expected[BUCKETS_MAX])
{
	uint64_t all = metric->zero_count;

	for (size_t i = 0; i < metric->n_buckets; i++) {
		assert_int_equal(metric->buckets[i],
				 expected[metric->offset + (int64_t)i]);
		all += metric->buckets[i];
	}
	assert_int_equal(all, metric->count);
	assert_int_not_equal(metric->buckets[0], 0);
	assert_int_not_equal(metric->buckets[metric->n_buckets - 1], 0);
}

TEST(each_time_is_in_the_bucket_of_its_index)
{
	struct netobs_group_record group = make_group();
	uint64_t expected[BUCKETS_MAX] = { 0 }, zero = 0;
	struct metric metrics[METRICS_MAX];
	const struct metric *found = &metrics[3];
	unsigned int seed = test_seed();
	double sum = 0;

	for (int i = 0; i < TIMES; i++) {
		const uint64_t ns = draw_time(&seed);

		add_time(&group.rtt_times, ns);
		sum += (double)ns / 1000;
		if (ns <= 16000)
			zero++;
		else
			expected[index_of((double)ns / 1000)]++;
	}
	group.record.has |= NETOBS_GROUP_HAS_RTT_TIMES;
	assert_int_equal(read_metrics(&group, metrics), 4);
	assert_true(found->is_histogram);
	assert_string_equal(found->name, "netobs.group.rtt.duration");
	assert_string_equal(found->unit, "us");
	assert_string_equal(found->attributes, metrics[0].attributes);
	assert_int_equal(found->start, metrics[0].start);
	assert_int_equal(found->time, metrics[0].time);
	assert_int_equal(found->temporality, 1);
	assert_int_equal(found->count, TIMES);
	assert_int_equal(found->zero_count, zero);
	assert_true(found->zero_threshold == 16);
	assert_true(fabs(found->sum - sum) < sum / 1e9);
	check_buckets(found, expected);
}

/* The bounds themselves, and those that there are alone. */
TEST(single_times_have_one_bucket)
{
	for (int64_t i = 0; i < NETOBS_TIME_CLASSES; i++) {
		struct netobs_group_record group = make_group();
		struct metric metrics[METRICS_MAX];
		const struct metric *found = &metrics[3];

		add_time(&group.app_latency_times, UINT64_C(16000) << i);
		group.record.has |= NETOBS_GROUP_HAS_APP_LATENCY_TIMES;
		assert_int_equal(read_metrics(&group, metrics), 4);
		assert_string_equal(found->name,
				    "netobs.group.app_latency.duration");
		assert_int_equal(found->count, 1);
		assert_int_equal(found->zero_count, i == 0);
		assert_int_equal(found->n_buckets, i != 0);
		assert_true(!i || found->offset == index_of((double)(16 << i)));
	}
}

/* Bytes that are no UTF-8 become three each, but some names are of ASCII; the buffer is exact, so ASan sees what is beyond. */
TEST(the_fullest_record_fits)
{
	struct netobs_group_record group;
	uint8_t *entry = malloc(OTLP_ENTRY_MAX);

	assert_non_null(entry);
	memset(&group, 0xff, sizeof(group));
	group.record.sz = sizeof(group);
	group.record.type = NETOBS_RECORD_GROUP;
	group.series = NETOBS_SERIES_GROUP;
	memset(group.container_name, 'a',
	       offsetof(struct netobs_group_record, rtt_sum_ns) -
		       offsetof(struct netobs_group_record, container_name));
	assert_true(otlp_entry(&group.record, entry) <= OTLP_ENTRY_MAX);
	assert_int_equal(otlp_items(&group.record), 14);
	free(entry);
}

/* The mean is cut. */
TEST(round_trip_times_add_up)
{
	struct netobs_group_record group = make_group();
	struct metric metrics[METRICS_MAX];

	group.record.has |= NETOBS_GROUP_HAS_RTT;
	group.rtt_sum_ns = 7006;
	group.rtt_ns = 1000;
	group.rtt_samples = 7;
	read_metrics(&group, metrics);
	assert_string_equal(metrics[4].name, "netobs.group.rtt.time");
	assert_int_equal(metrics[4].value, 7006);
}

TEST(a_container_of_a_pod_has_its_name_there)
{
	struct netobs_group_record group = make_group();
	struct metric metrics[METRICS_MAX];

	strcpy(group.container_name, "web");
	read_metrics(&group, metrics);
	assert_non_null(strstr(metrics[0].attributes, "container.name=web "));
	assert_null(strstr(metrics[0].attributes, "k8s.container.name"));
	strcpy(group.pod_name, "web-0");
	read_metrics(&group, metrics);
	assert_non_null(strstr(metrics[0].attributes, " container.name=web "));
	assert_non_null(strstr(metrics[0].attributes, "k8s.container.name=web "));
}

TEST(groups_have_a_sink_of_their_own)
{
	struct test_host host;
	struct otlp otlp;
	struct spec spec;

	test_host_open(&host);
	test_host_spec(&host, "otlp://127.0.0.1", &spec);
	otlp_read(&otlp, &spec, SINK_TYPE(GROUP));
	assert_false(spec.is_wrong);
	otlp_read(&otlp, &spec, SINK_TYPE(GROUP) | SINK_TYPE(FLOW));
	assert_true(spec.is_wrong);
	assert_non_null(strstr(host.logged, "give group a sink of its own"));
	spec_free(&spec);
	test_host_close(&host);
}
