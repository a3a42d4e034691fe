/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Series: the heaviest groups have one, and the records of an interval. */
#include "lib_series.h"
#include "lib_test.h"

#include "group/keys.h"

/* ---- What has a series ----------------------------------------------------------------- */

static void add_times(struct netobs_series *series, uint32_t service,
		      uint64_t bytes, uint32_t times)
{
	struct netobs_flow flow = series_flow(service, 1, 1, bytes);

	for (uint32_t i = 0; i < times; i++)
		assert_int_equal(netobs_series_add(series, &flow.record), 0);
}

SERIES_TEST(a_heavier_group_takes_the_place_of_the_lightest, "service", 2)
{
	static struct scrape scrape;

	for (int i = 0; i < 8; i++) {
		add_times(series, 1, 5000, 1);
		add_times(series, 2, 100, 1);
		netobs_series_end_interval(series, 0, NULL, NULL);
	}
	add_times(series, 3, 1000, 5); /* in OTHER, as it has no series */
	netobs_series_end_interval(series, 0, NULL, NULL);
	take_scrape(series, &scrape);
	assert_null(find_service(&scrape, 2));
	assert_int_equal(find_service(&scrape, 3)->sum.bytes, 0);
	assert_int_equal(find_row(&scrape, "1  ")->sum.bytes, 5000);
	assert_int_equal(find_row(&scrape, "2  ")->sum.bytes, 800);
	assert_int_equal(find_row(&scrape, "2  ")->sum.flows, 8);
	add_times(series, 3, 1000, 1);
	take_scrape(series, &scrape);
	assert_int_equal(find_service(&scrape, 3)->sum.bytes, 1000);
	assert_int_equal(find_service(&scrape, 1)->sum.bytes, 40000);
}

static void count_record(const struct netobs_record *passed, void *user)
{
	const struct netobs_group_record *record = (const void *)passed;
	assert_int_equal(record->record.type, NETOBS_RECORD_GROUP);
	++*(int *)user;
}

/* Interfaces of two namespaces, with one name. */
SERIES_TEST(groups_that_look_the_same_share_a_series, "interface", 3)
{
	struct netobs_point point = { .name = "eth0" };
	static struct scrape scrape;
	struct netobs_flow flow = series_flow(1, 1, 1, 100);
	int n = 0;

	flow.n_points = 1;
	flow.point_size = sizeof(point);
	flow.points = &point;
	for (uint32_t i = 0; i < 5; i++) {
		point.ifindex = i + 1;
		assert_int_equal(netobs_series_add(series, &flow.record), 0);
	}
	take_scrape(series, &scrape);
	assert_int_equal(scrape.n, 3);
	assert_int_equal(find_row(&scrape, "0 eth0 ")->sum.bytes, 500);
	assert_int_equal(netobs_series_end_interval(series, 0, count_record, &n),
			 5);
	assert_int_equal(n, 5);
}

SERIES_TEST(both_ends_count_for_themselves, "host", 10)
{
	static struct scrape scrape;

	add_times(series, 1, 100, 1);
	take_scrape(series, &scrape);
	assert_int_equal(scrape.n, 4);
	assert_int_equal(scrape.total.bytes, 200);
}

/* An interval of services first .. first + n - 1. */
static void add_services(struct netobs_series *series, uint32_t first,
			 uint32_t n, uint64_t bytes)
{
	for (uint32_t i = first; i < first + n; i++)
		add_times(series, i, bytes, 1);
}

SERIES_TEST(one_interval_alone_gives_no_series, "service", SERIES)
{
	static struct scrape scrape;

	for (uint32_t i = 0; i < 40; i++) {
		add_services(series, 0, SERIES, 100000);
		add_services(series, SERIES + i * 31, 31, 210000);
		netobs_series_end_interval(series, 0, NULL, NULL);
	}
	take_scrape(series, &scrape);
	for (uint32_t i = 0; i < SERIES; i++)
		assert_int_equal(find_service(&scrape, i)->sum.bytes, 4000000);
}

TEST(a_young_series_stays_unless_it_has_half)
{
	static const uint64_t lighter[] = { 260, 1900 };
	static struct scrape scrape;

	for (size_t k = 0; k < ARRAY_SIZE(lighter); k++) {
		struct netobs_series *series = make_series("service", 1);

		for (int i = 0; i < 40; i++) {
			add_times(series, 1, 1000, 1);
			add_times(series, 2, lighter[k], 1);
			netobs_series_end_interval(series, 0, NULL, NULL);
			take_scrape(series, &scrape);
			assert_non_null(find_service(&scrape, 1));
		}
		netobs_series_free(series);
	}
}

SERIES_TEST(bursts_of_one_rate_evict_none, "service", 8)
{
	static struct scrape first, last;

	for (uint32_t i = 0; i < 200; i++) {
		for (uint32_t group = 0; group < 16; group++)
			if ((i + group) % 8 == 0)
				add_times(series, group, 10000, 1);
		netobs_series_end_interval(series, 0, NULL, NULL);
		take_scrape(series, &last);
		if (i == 30)
			first = last;
	}
	assert_int_equal(check_steps(&first, &last), 0);
}

SERIES_TEST(a_series_that_falls_quiet_leaves, "service", 1)
{
	static struct scrape scrape;

	for (int i = 0; i < 240; i++) {
		add_times(series, 1, 100000, i < 40);
		add_times(series, 2, 1000, 1);
		netobs_series_end_interval(series, 0, NULL, NULL);
	}
	take_scrape(series, &scrape);
	assert_null(find_service(&scrape, 1));
	assert_non_null(find_service(&scrape, 2));
}

/* It comes with what it had before, so that a quiet interval does not cost it its place. */
SERIES_TEST(a_group_that_enters_stays, "service", 1)
{
	static struct scrape scrape;
	bool has_entered = false;

	for (int i = 0; i < 60; i++) {
		add_times(series, 1, 100, 1);
		add_times(series, 2, 10000, i % 2);
		add_times(series, 3, 1000, 1);
		netobs_series_end_interval(series, 0, NULL, NULL);
		take_scrape(series, &scrape);
		assert_null(find_service(&scrape, 3));
		has_entered |= !!find_service(&scrape, 2);
		assert_true(!has_entered || find_service(&scrape, 2));
	}
	assert_true(has_entered);
}

static void add_interface(struct netobs_series *series, const char *name,
			  uint32_t ifindex, uint64_t bytes)
{
	const struct netobs_point point = { .name = name, .ifindex = ifindex };
	struct netobs_flow flow = series_flow(1, 1, 1, bytes);

	flow.n_points = 1;
	flow.point_size = sizeof(point);
	flow.points = &point;
	assert_int_equal(netobs_series_add(series, &flow.record), 0);
}

SERIES_TEST(a_value_joins_the_series_with_its_text, "interface", 1)
{
	static struct scrape before, after;

	add_interface(series, "eth0", 1, 100);
	for (uint32_t i = 0; i < 1000; i++) {
		take_scrape(series, &before);
		add_interface(series, "eth0", 2 + i, 100000);
		netobs_series_end_interval(series, 0, NULL, NULL);
		take_scrape(series, &after);
		assert_int_equal(check_steps(&before, &after), 0);
		add_interface(series, "eth0", 2 + i, 1);
		take_scrape(series, &before);
		assert_int_equal(find_row(&before, "0 eth0 ")->sum.bytes,
				 find_row(&after, "0 eth0 ")->sum.bytes + 1);
	}
	assert_int_equal(find_row(&after, "2  ")->sum.bytes, 0);
}

/* ---- Records --------------------------------------------------------------------------- */

static void keep_json(const struct netobs_record *passed, void *user)
{
	const struct netobs_group_record *record = (const void *)passed;
	char(*json)[4096] = user;
	const size_t used = strlen(*json);

	assert_true(netobs_record_json(&record->record, *json + used,
				       sizeof(*json) - used) > 0);
}

static void check_json(const char *keys, const char *expected)
{
	struct netobs_series *series = make_series(keys, 1);
	const struct netobs_process process = { .sz = sizeof(process),
						.pid = 7,
						.command = "curl",
						.container_id = "c0ffee",
						.pod_uid = "uid",
						.unit = "web.service",
						.slice = "system.slice",
						.machine = "vm",
						.container_name = "web",
						.pod_name = "web-0",
						.pod_namespace = "shop" };
	struct netobs_point point = { .ifindex = 2,
				      .direction = NETOBS_EGRESS,
				      .name = "eth0" };
	struct netobs_flow flow = series_flow(1, 1, 2, 100);
	char json[4096] = "", whole[4096];

	flow.has |= NETOBS_HAS_VLAN;
	flow.vlan_id = 5;
	flow.start_ns = 1000000;
	flow.end_ns = 2000000;
	flow.src_process = &process;
	flow.n_points = 1;
	flow.point_size = sizeof(point);
	flow.points = &point;
	assert_int_equal(netobs_series_add(series, &flow.record), 0);
	assert_true(netobs_series_end_interval(series, 3000000, keep_json,
					       &json) > 0);
	snprintf(whole, sizeof(whole),
		 "{\"type\":\"group\",\"TimeMs\":3,\"Group\":\"test\","
		 "\"Series\":\"group\",\"TimeFlowStartMs\":1,"
		 "\"TimeFlowEndMs\":2,\"Flows\":1,\"Packets\":2,\"Bytes\":100%s}",
		 expected);
	assert_string_equal(json, whole);
	netobs_series_free(series);
}

TEST(records_have_what_the_keys_have)
{
	check_json(
		"src,dst,proto",
		",\"SrcAddr\":\"10.1.0.1\",\"DstAddr\":\"10.2.0.1\",\"Proto\":6");
	check_json("client,service",
		   ",\"ClientAddr\":\"10.1.0.1\",\"ServerAddr\":\"10.2.0.1\","
		   "\"ServerPort\":443,\"Proto\":6");
	check_json("pair",
		   ",\"HostAddr\":\"10.1.0.1\",\"PeerAddr\":\"10.2.0.1\"");
	check_json("tuple", ",\"SrcAddr\":\"10.1.0.1\",\"DstAddr\":\"10.2.0.1\","
			    "\"SrcPort\":40000,\"DstPort\":443,\"Proto\":6");
	check_json("port", ",\"ServerPort\":443,\"Proto\":6");
	check_json("interface,direction,vlan",
		   ",\"Interface\":\"eth0\",\"IfIndex\":2,\"IfDirection\":1,"
		   "\"VlanId\":5");
	check_json("process,container",
		   ",\"SentPackets\":2,\"SentBytes\":100,\"Pid\":7,"
		   "\"Process\":\"curl\",\"ContainerId\":\"c0ffee\","
		   "\"ContainerName\":\"web\"");
	check_json("container,pod",
		   ",\"SentPackets\":2,\"SentBytes\":100,"
		   "\"ContainerId\":\"c0ffee\",\"PodUid\":\"uid\","
		   "\"ContainerName\":\"web\",\"PodName\":\"web-0\","
		   "\"PodNamespace\":\"shop\"");
	check_json("unit,slice,machine,container",
		   ",\"SentPackets\":2,\"SentBytes\":100,"
		   "\"ContainerId\":\"c0ffee\",\"ContainerName\":\"web\","
		   "\"Unit\":\"web.service\",\"Slice\":\"system.slice\","
		   "\"Machine\":\"vm\"");
	check_json("network,src_network,dst_network",
		   ",\"ClientNetwork\":\"private\",\"SrcNetwork\":\"private\","
		   "\"DstNetwork\":\"private\"");
	check_json("pod", ",\"SentPackets\":2,\"SentBytes\":100,"
			  "\"PodUid\":\"uid\",\"PodName\":\"web-0\","
			  "\"PodNamespace\":\"shop\"");
}

TEST(each_key_has_records)
{
	for (const struct group_key *key = group_keys_all; key->name; key++) {
		struct netobs_series *series = make_series(key->name, 3);
		const struct netobs_process process = { .sz = sizeof(process),
							.pid = 7,
							.command = "curl" };
		struct netobs_flow flow = series_flow(1, 1, 2, 100);
		char json[4096] = "";

		flow.has |= NETOBS_HAS_TUNNEL | NETOBS_HAS_VNI;
		flow.tunnel = 1;
		flow.vni = 77;
		flow.src_process = &process;
		assert_int_equal(netobs_series_add(series, &flow.record), 0);
		assert_true(netobs_series_end_interval(series, 0, keep_json,
						       &json) > 0);
		assert_non_null(strstr(json, "\"Bytes\":100"));
		netobs_series_free(series);
	}
}

static void ignore_row(const struct netobs_series_row *row, void *user)
{
	(void)row;
	(void)user;
}

TEST(what_is_wrong_is_refused)
{
	char why[NETOBS_ERROR_MAX];
	struct netobs_series_opts opts = { .sz = sizeof(opts), .error = &why };
	struct netobs_series *series;
	char name[65] = "";
	const struct netobs_alert alert = {
		.record = { .sz = sizeof(alert), .type = NETOBS_RECORD_ALERT }
	};

	assert_int_equal(netobs_series_new(&opts, &series), -EINVAL);
	assert_non_null(strstr(why, "keys: series need a key"));
	opts.keys = "servce";
	assert_int_equal(netobs_series_new(&opts, &series), -EINVAL);
	assert_non_null(strstr(why, "did you mean 'service'?"));
	opts.keys = "flow";
	assert_int_equal(netobs_series_new(&opts, &series), -EINVAL);
	opts.keys = "service";
	opts.max_series = NETOBS_SERIES_MAX + 1;
	assert_int_equal(netobs_series_new(&opts, &series), -EINVAL);
	assert_non_null(strstr(why, "max_series: more than 10000"));
	opts.max_series = 1;
	memset(name, 'n', 64);
	opts.name = name;
	assert_int_equal(netobs_series_new(&opts, &series), -EINVAL);
	opts.name = NULL;
	opts.histograms = 4;
	assert_int_equal(netobs_series_new(&opts, &series), -EINVAL);
	assert_non_null(strstr(why, "histograms: there is no such bit"));
	assert_int_equal(netobs_series_new(NULL, &series), -EINVAL);
	assert_int_equal(netobs_series_add(NULL, NULL), -EINVAL);
	assert_int_equal(netobs_series_end_interval(NULL, 0, NULL, NULL),
			 -EINVAL);
	assert_int_equal(netobs_series_each(NULL, ignore_row, NULL), -EINVAL);
	opts.histograms = 0;
	assert_int_equal(netobs_series_new(&opts, &series), 0);
	assert_int_equal(netobs_series_add(series, &alert.record), -EINVAL);
	netobs_series_free(series);
	netobs_series_free(NULL);
}
