// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records other than flows as protobuf-c reads them, which has only netobs.proto: each field of
 * random records has the member that the list here gives it. NETOBS_TEST_SEED repeats a run.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include "sinks/pbflow/pbflow.h"

#include "netobs.pb-c.h"

#include <arpa/inet.h>

enum { ROUNDS = 2000 };

static const struct pbflow_options options = {
	.agent_ip = { [10] = 0xff, 0xff, 192, 0, 2, 9 },
};

enum kind { NUMBER, NS, MS, TEXT, ADDRESS };

/* A field, and the member that it has. */
struct row {
	const char *name;
	size_t offset, size;
	enum kind kind;
	uint32_t has;
};

#define ROW(type, field, kind, has, member)                              \
	{                                                                \
#field, offsetof(struct type, member),                   \
			sizeof(((struct type *)NULL)->member), kind, has \
	}
#define SESSION(...) ROW(netobs_session, __VA_ARGS__)
#define ALERT(...) ROW(netobs_alert, __VA_ARGS__)
#define MAPPING(...) ROW(netobs_mapping, __VA_ARGS__)
#define DROP(...) ROW(netobs_drop, __VA_ARGS__)
#define TRACE(...) ROW(netobs_trace_event, __VA_ARGS__)
#define JOURNEY(...) ROW(netobs_journey, __VA_ARGS__)
#define STEP(...) ROW(netobs_journey_step, __VA_ARGS__)
#define SHARE(...) ROW(netobs_queue_share, __VA_ARGS__)
#define HOST(...) ROW(netobs_host, __VA_ARGS__)

enum {
	START = NETOBS_SESSION_HAS_START,
	RTT = NETOBS_SESSION_HAS_RTT,
	MIN_RTT = NETOBS_SESSION_HAS_MIN_RTT,
	PROCESS = NETOBS_SESSION_HAS_PROCESS,
	BASELINE = NETOBS_ALERT_HAS_BASELINE,
	ALERT_PROCESS = NETOBS_ALERT_HAS_PROCESS,
	PORTS = NETOBS_MAPPING_HAS_PORTS,
	ZONE = NETOBS_MAPPING_HAS_ZONE,
	BEGAN = NETOBS_MAPPING_HAS_START,
	LAST = NETOBS_MAPPING_HAS_LAST,
	END = NETOBS_MAPPING_HAS_END,
	DROP_ADDRS = NETOBS_DROP_HAS_ADDRS,
	DROP_PORTS = NETOBS_DROP_HAS_PORTS,
	DROP_REASON = NETOBS_DROP_HAS_REASON,
	DROP_ORIG = NETOBS_DROP_HAS_ORIG,
	DROP_ORIG_PORTS = NETOBS_DROP_HAS_ORIG_PORTS,
	TRACE_REASON = NETOBS_TRACE_HAS_REASON,
	OWNER = NETOBS_TRACE_HAS_OWNER,
	LIMIT = NETOBS_TRACE_HAS_LIMIT,
	WROTE = NETOBS_JOURNEY_HAS_SEND,
	DID_READ = NETOBS_JOURNEY_HAS_READ,
	ACKED = NETOBS_JOURNEY_HAS_ACKED,
	HOOKED = NETOBS_JOURNEY_HAS_NETFILTER,
};

static const struct row session_rows[] = {
	SESSION(time_ms, MS, 0, record.time_ns),
	SESSION(src_addr, ADDRESS, 0, local_addr),
	SESSION(dst_addr, ADDRESS, 0, remote_addr),
	SESSION(src_port, NUMBER, 0, local_port),
	SESSION(dst_port, NUMBER, 0, remote_port),
	SESSION(proto, NUMBER, 0, protocol),
	SESSION(time_flow_start_ms, MS, START, start_ns),
	SESSION(time_flow_end_ms, MS, 0, end_ns),
	SESSION(opened, NUMBER, 0, opened),
	SESSION(ended, NUMBER, 0, ended),
	SESSION(error, NUMBER, 0, error),
	SESSION(bytes_acked, NUMBER, 0, bytes_acked),
	SESSION(bytes_received, NUMBER, 0, bytes_received),
	SESSION(bytes_sent, NUMBER, 0, bytes_sent),
	SESSION(bytes_retransmitted, NUMBER, 0, bytes_retransmitted),
	SESSION(segments_sent, NUMBER, 0, segments_sent),
	SESSION(segments_received, NUMBER, 0, segments_received),
	SESSION(data_segments_sent, NUMBER, 0, data_segments_sent),
	SESSION(data_segments_received, NUMBER, 0, data_segments_received),
	SESSION(retransmits, NUMBER, 0, retransmits),
	SESSION(lost, NUMBER, 0, lost),
	SESSION(reordering, NUMBER, 0, reordering),
	SESSION(reordered, NUMBER, 0, reordered),
	SESSION(delivered, NUMBER, 0, delivered),
	SESSION(delivered_ce, NUMBER, 0, delivered_ce),
	SESSION(duplicates, NUMBER, 0, duplicates),
	SESSION(cwnd, NUMBER, 0, cwnd),
	SESSION(mss, NUMBER, 0, mss),
	SESSION(time_flow_rtt_ns, NUMBER, RTT, rtt_ns),
	SESSION(rtt_variation_ns, NUMBER, RTT, rtt_variation_ns),
	SESSION(min_rtt_ns, NUMBER, MIN_RTT, min_rtt_ns),
	SESSION(busy_us, NUMBER, 0, busy_us),
	SESSION(window_limited_us, NUMBER, 0, window_limited_us),
	SESSION(buffer_limited_us, NUMBER, 0, buffer_limited_us),
	SESSION(netns_inode, NUMBER, 0, netns_inode),
	SESSION(process_by, NUMBER, PROCESS, process_by),
	SESSION(process, TEXT, PROCESS, process),
	SESSION(thread, TEXT, PROCESS, thread),
	SESSION(process_long_name, TEXT, PROCESS, long_name),
	SESSION(pid, NUMBER, PROCESS, pid),
	SESSION(tid, NUMBER, PROCESS, tid),
	SESSION(uid, NUMBER, PROCESS, uid),
	SESSION(cgroup_id, NUMBER, PROCESS, cgroup_id),
	SESSION(cgroup_path, TEXT, PROCESS, cgroup_path),
	SESSION(container_id, TEXT, PROCESS, container_id),
	SESSION(pod_uid, TEXT, PROCESS, pod_uid),
	SESSION(unit, TEXT, PROCESS, unit),
	SESSION(slice, TEXT, PROCESS, slice),
	SESSION(machine, TEXT, PROCESS, machine),
	SESSION(container_name, TEXT, 0, container_name),
	SESSION(container_image, TEXT, 0, container_image),
	SESSION(pod_name, TEXT, 0, pod_name),
	SESSION(pod_namespace, TEXT, 0, pod_namespace),
	SESSION(conversation_id, NUMBER, 0, conversation_id),
};

static const struct row alert_rows[] = {
	ALERT(time_ms, MS, 0, record.time_ns),
	ALERT(time_ns, NS, 0, record.time_ns),
	ALERT(alert, TEXT, 0, name),
	ALERT(rule, TEXT, 0, rule),
	ALERT(metric, NUMBER, 0, metric),
	ALERT(value, NUMBER, 0, value),
	ALERT(threshold, NUMBER, 0, threshold),
	ALERT(baseline, NUMBER, BASELINE, baseline),
	ALERT(hits, NUMBER, 0, hits),
	ALERT(among, NUMBER, 0, among),
	ALERT(way, NUMBER, 0, way),
	ALERT(src_addr, ADDRESS, 0, client),
	ALERT(dst_addr, ADDRESS, 0, server),
	ALERT(src_port, NUMBER, 0, client_port),
	ALERT(dst_port, NUMBER, 0, server_port),
	ALERT(proto, NUMBER, 0, protocol),
	ALERT(time_flow_start_ms, MS, 0, start_ns),
	ALERT(interface, TEXT, 0, interface),
	ALERT(if_index, NUMBER, 0, ifindex),
	ALERT(netns_inode, NUMBER, 0, netns_inode),
	ALERT(process, TEXT, ALERT_PROCESS, process),
	ALERT(pid, NUMBER, ALERT_PROCESS, pid),
	ALERT(conversation_id, NUMBER, 0, conversation_id),
};

static const struct row mapping_rows[] = {
	MAPPING(time_ms, MS, 0, record.time_ns),
	MAPPING(event, NUMBER, 0, event),
	MAPPING(nat_event, NUMBER, 0, nat_event),
	MAPPING(state, NUMBER, 0, state),
	MAPPING(etype, NUMBER, 0, ethertype),
	MAPPING(proto, NUMBER, 0, protocol),
	MAPPING(translated, NUMBER, 0, translated),
	MAPPING(src_addr, ADDRESS, 0, src),
	MAPPING(dst_addr, ADDRESS, 0, dst),
	MAPPING(src_port, NUMBER, PORTS, src_port),
	MAPPING(dst_port, NUMBER, PORTS, dst_port),
	MAPPING(xlat_src_addr, ADDRESS, 0, post_src),
	MAPPING(xlat_dst_addr, ADDRESS, 0, post_dst),
	MAPPING(xlat_src_port, NUMBER, PORTS, post_src_port),
	MAPPING(xlat_dst_port, NUMBER, PORTS, post_dst_port),
	MAPPING(zone_id, NUMBER, ZONE, zone),
	MAPPING(netns_inode, NUMBER, 0, netns_inode),
	MAPPING(in_if_index, NUMBER, 0, in_ifindex),
	MAPPING(in_interface, TEXT, 0, in_interface),
	MAPPING(out_if_index, NUMBER, 0, out_ifindex),
	MAPPING(out_interface, TEXT, 0, out_interface),
	MAPPING(time_flow_start_ms, MS, BEGAN, start_ns),
	MAPPING(time_flow_end_ms, MS, LAST, last_ns),
	MAPPING(ended_ms, MS, END, end_ns),
	MAPPING(conversation_id, NUMBER, 0, conversation_id),
};

static const struct row drop_rows[] = {
	DROP(time_ms, MS, 0, record.time_ns),
	DROP(time_flow_end_ms, MS, 0, last_ns),
	DROP(pkt_drop_packets, NUMBER, 0, packets),
	DROP(pkt_drop_bytes, NUMBER, 0, bytes),
	DROP(pkt_drop_latest_drop_cause, TEXT, DROP_REASON, cause),
	DROP(reason_number, NUMBER, DROP_REASON, reason),
	DROP(drop_kind, NUMBER, 0, kind),
	DROP(layer, NUMBER, 0, layer),
	DROP(function, TEXT, 0, function),
	DROP(function_offset, NUMBER, 0, offset),
	DROP(etype, NUMBER, 0, ethertype),
	DROP(proto, NUMBER, DROP_ADDRS, protocol),
	DROP(src_addr, ADDRESS, DROP_ADDRS, src),
	DROP(dst_addr, ADDRESS, DROP_ADDRS, dst),
	DROP(src_port, NUMBER, DROP_PORTS, src_port),
	DROP(dst_port, NUMBER, DROP_PORTS, dst_port),
	DROP(unparsed, NUMBER, 0, unparsed),
	DROP(interface, TEXT, 0, interface),
	DROP(if_index, NUMBER, 0, ifindex),
	DROP(netns_inode, NUMBER, 0, netns_inode),
	DROP(orig_src_addr, ADDRESS, DROP_ORIG, orig_src),
	DROP(orig_dst_addr, ADDRESS, DROP_ORIG, orig_dst),
	DROP(orig_src_port, NUMBER, DROP_ORIG_PORTS, orig_src_port),
	DROP(orig_dst_port, NUMBER, DROP_ORIG_PORTS, orig_dst_port),
};

static const struct row trace_rows[] = {
	TRACE(time_ms, MS, 0, record.time_ns),
	TRACE(time_ns, NS, 0, record.time_ns),
	TRACE(connection, NUMBER, 0, connection),
	TRACE(direction, NUMBER, 0, direction),
	TRACE(layer, NUMBER, 0, layer),
	TRACE(point, NUMBER, 0, point),
	TRACE(offset, NUMBER, 0, offset),
	TRACE(bytes, NUMBER, 0, length),
	TRACE(seq, NUMBER, 0, seq),
	TRACE(ack, NUMBER, 0, ack),
	TRACE(proto, NUMBER, 0, protocol),
	TRACE(ip_id, NUMBER, 0, ip_id),
	TRACE(fragment, NUMBER, 0, is_fragment),
	TRACE(socket, NUMBER, 0, socket),
	TRACE(flags, NUMBER, 0, tcp_flags),
	TRACE(src_addr, ADDRESS, 0, src),
	TRACE(dst_addr, ADDRESS, 0, dst),
	TRACE(src_port, NUMBER, 0, src_port),
	TRACE(dst_port, NUMBER, 0, dst_port),
	TRACE(interface, TEXT, 0, interface),
	TRACE(if_index, NUMBER, 0, ifindex),
	TRACE(queue, NUMBER, 0, queue),
	TRACE(netns_inode, NUMBER, 0, netns_inode),
	TRACE(cpu, NUMBER, 0, cpu),
	TRACE(pid, NUMBER, 0, pid),
	TRACE(tid, NUMBER, 0, tid),
	TRACE(command, TEXT, 0, command),
	TRACE(thread, TEXT, 0, thread),
	TRACE(owner_pid, NUMBER, OWNER, owner_pid),
	TRACE(owner_command, TEXT, OWNER, owner_command),
	TRACE(reason_number, NUMBER, TRACE_REASON, reason),
	TRACE(drop_cause, TEXT, TRACE_REASON, cause),
	TRACE(drop_function, TEXT, 0, function),
	TRACE(limit, NUMBER, LIMIT, limit),
	TRACE(buffer, NUMBER, 0, buffer),
};

/* Parts are known by bits of their own. */
static const struct row journey_rows[] = {
	JOURNEY(time_ms, MS, 0, record.time_ns),
	JOURNEY(time_ns, NS, 0, record.time_ns),
	JOURNEY(connection, NUMBER, 0, connection),
	JOURNEY(direction, NUMBER, 0, direction),
	JOURNEY(offset, NUMBER, 0, offset),
	JOURNEY(bytes, NUMBER, 0, length),
	JOURNEY(seq, NUMBER, 0, seq),
	JOURNEY(ip_id, NUMBER, 0, ip_id),
	JOURNEY(proto, NUMBER, 0, protocol),
	JOURNEY(src_addr, ADDRESS, 0, src),
	JOURNEY(dst_addr, ADDRESS, 0, dst),
	JOURNEY(src_port, NUMBER, 0, src_port),
	JOURNEY(dst_port, NUMBER, 0, dst_port),
	JOURNEY(src_pid, NUMBER, WROTE, src_pid),
	JOURNEY(src_command, TEXT, WROTE, src_command),
	JOURNEY(dst_pid, NUMBER, DID_READ, dst_pid),
	JOURNEY(dst_command, TEXT, DID_READ, dst_command),
	JOURNEY(acked_time_ns, NS, ACKED, acked_ns),
	JOURNEY(attempts, NUMBER, 0, n_attempts),
	JOURNEY(drops, NUMBER, 0, n_drops),
	JOURNEY(drop_cause, TEXT, 0, drop_cause),
	JOURNEY(alert, TEXT, 0, alert),
	JOURNEY(alert_time_ns, NS, 0, alert_ns),
	JOURNEY(netfilter_ns, NUMBER, HOOKED, netfilter_ns),
	JOURNEY(unknown_ns, NUMBER, 0, unknown_ns),
};

static const struct row part_rows[NETOBS_JOURNEY_PARTS] = {
	JOURNEY(write_ns, NUMBER, 0, part_ns[NETOBS_JOURNEY_WRITE]),
	JOURNEY(tcp_ns, NUMBER, 0, part_ns[NETOBS_JOURNEY_TCP]),
	JOURNEY(recovery_ns, NUMBER, 0, part_ns[NETOBS_JOURNEY_RECOVERY]),
	JOURNEY(qdisc_ns, NUMBER, 0, part_ns[NETOBS_JOURNEY_QDISC]),
	JOURNEY(device_ns, NUMBER, 0, part_ns[NETOBS_JOURNEY_DEVICE]),
	JOURNEY(network_ns, NUMBER, 0, part_ns[NETOBS_JOURNEY_NETWORK]),
	JOURNEY(forward_ns, NUMBER, 0, part_ns[NETOBS_JOURNEY_FORWARD]),
	JOURNEY(stack_ns, NUMBER, 0, part_ns[NETOBS_JOURNEY_STACK]),
	JOURNEY(gap_ns, NUMBER, 0, part_ns[NETOBS_JOURNEY_GAP]),
	JOURNEY(reader_ns, NUMBER, 0, part_ns[NETOBS_JOURNEY_READER]),
};

/* The other one: after_ns. */
static const struct row step_rows[] = {
	STEP(point, NUMBER, 0, point),
	STEP(layer, NUMBER, 0, layer),
	STEP(attempt, NUMBER, 0, attempt),
	STEP(cpu, NUMBER, 0, cpu),
	STEP(pid, NUMBER, 0, pid),
	STEP(command, TEXT, 0, command),
	STEP(interface, TEXT, 0, interface),
	STEP(if_index, NUMBER, 0, ifindex),
	STEP(netns_inode, NUMBER, 0, netns_inode),
};

/* Of a flow. */
static const struct row share_rows[] = {
	SHARE(amount, NUMBER, 0, amount),
	SHARE(proto, NUMBER, 0, protocol),
	SHARE(src_addr, ADDRESS, 0, src),
	SHARE(dst_addr, ADDRESS, 0, dst),
	SHARE(src_port, NUMBER, 0, src_port),
	SHARE(dst_port, NUMBER, 0, dst_port),
	SHARE(traced, NUMBER, 0, is_traced),
	SHARE(pid, NUMBER, 0, pid),
	SHARE(command, TEXT, 0, command),
	SHARE(container_id, TEXT, 0, container_id),
};

/* The other one: total_ns. */
static const struct row host_rows[] = {
	HOST(time_ms, MS, 0, record.time_ns),
	HOST(time_ns, NS, 0, record.time_ns),
	HOST(node_name, TEXT, 0, host),
	HOST(kernel, TEXT, 0, kernel),
	HOST(netns_inode, NUMBER, 0, netns_inode),
	HOST(missing_points, NUMBER, 0, missing_points),
	HOST(listen_overflows, NUMBER, 0, listen_overflows),
	HOST(listen_drops, NUMBER, 0, listen_drops),
	HOST(conntrack_drops, NUMBER, 0, conntrack_drops),
	HOST(udp_buffer_errors, NUMBER, 0, udp_buffer_errors),
	HOST(carrier_changes, NUMBER, 0, carrier_changes),
	HOST(uplink, TEXT, 0, uplink),
	HOST(neighbour_failures, NUMBER, 0, neighbour_failures),
	HOST(accept_limit, NUMBER, 0, accept_limit),
	HOST(accept_queue, NUMBER, 0, accept_queue),
};

/* ---- Random records ---------------------------------------------------------------- */

static int seed_once(void **state)
{
	(void)state;
	srand(test_seed());
	return 0;
}

/* Of any size: small ones take another number of bytes. */
static void make_number(uint8_t *to, size_t size)
{
	size_t n = (size_t)rand() % (size + 1);

	memset(to, 0, size);
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)rand();
}

/* Letters, up to all of the array. */
static void make_text(uint8_t *to, size_t size)
{
	size_t len = (size_t)rand() % (size + 1);

	memset(to, 0, size);
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)('a' + rand() % 26);
}

static void make_address(uint8_t *to)
{
	make_number(to, 16);
	if (rand() % 2) {
		memset(to, 0, 10);
		memset(to + 10, 0xff, 2);
	}
}

static void make_member(uint8_t *record, const struct row *row)
{
	uint8_t *to = record + row->offset;

	if (row->kind == TEXT)
		make_text(to, row->size);
	else if (row->kind == ADDRESS)
		make_address(to);
	else
		make_number(to, row->size);
	if (row->kind == MS || row->kind == NS)
		to[row->size - 1] &= 0x7f; /* after 1970 */
}

static void make_rows(uint8_t *to, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		make_member(to, &rows[i]);
}

static void make_record(struct netobs_record *record, const struct row *rows,
			size_t n, enum netobs_record_type type)
{
	make_rows((uint8_t *)record, rows, n);
	record->has = (uint32_t)rand() & 31;
	record->type = type;
}

/* ---- What a reader gets ------------------------------------------------------------ */

static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessage *message,
						const char *name)
{
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field_by_name(
			message->descriptor, name);

	if (!field)
		fail_msg("netobs.proto has no %s", name);
	return field;
}

/* Of an integer of @size bytes; little endian, as the tests' machines are. */
static uint64_t read_number(const void *at, size_t size)
{
	uint64_t number = 0;

	memcpy(&number, at, size);
	return number;
}

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
	return field->type == PROTOBUF_C_TYPE_UINT64 ||
			       field->type == PROTOBUF_C_TYPE_INT64 ?
		       8 :
		       4;
}

static void check_address(const Netobs__IP *ip, const uint8_t expected[16])
{
	static const uint8_t v4[12] = { [10] = 0xff, 0xff };

	assert_non_null(ip);
	if (memcmp(expected, v4, sizeof(v4))) {
		assert_int_equal(ip->ip_family_case, NETOBS__IP__IP_FAMILY_IPV6);
		assert_int_equal(ip->ipv6.len, 16);
		assert_memory_equal(ip->ipv6.data, expected, 16);
	} else {
		uint32_t number = htonl(ip->ipv4);

		assert_int_equal(ip->ip_family_case, NETOBS__IP__IP_FAMILY_IPV4);
		assert_memory_equal(&number, expected + 12, 4);
	}
}

static void check_text(const char *text, const char *expected, size_t size,
		       bool is_known)
{
	size_t len = is_known ? strnlen(expected, size) : 0;

	assert_int_equal(strlen(text), len);
	assert_memory_equal(text, expected, len);
}

static void check_number(const ProtobufCMessage *message,
			 const ProtobufCFieldDescriptor *field,
			 const struct row *row, uint64_t expected, bool is_known)
{
	const char *base = (const char *)message;
	const char *value = base + field->offset;

	if (row->kind == MS)
		expected /= NSEC_PER_MSEC;
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		assert_int_equal(read_number(base + field->quantifier_offset, 4),
				 is_known ? field->id : 0);
	if (read_number(value, size_of(field)) != (is_known ? expected : 0))
		fail_msg("%s is %llu and not %llu", row->name,
			 (unsigned long long)read_number(value, size_of(field)),
			 (unsigned long long)expected);
}

static void check_row(const ProtobufCMessage *message, const struct row *row,
		      const void *record, bool is_known)
{
	const ProtobufCFieldDescriptor *field = field_of(message, row->name);
	const void *value = (const char *)message + field->offset;
	const void *member = (const char *)record + row->offset;

	if (row->kind == ADDRESS && !is_known)
		assert_null(*(Netobs__IP *const *)value);
	else if (row->kind == ADDRESS)
		check_address(*(Netobs__IP *const *)value, member);
	else if (row->kind == TEXT)
		check_text(*(char *const *)value, member, row->size, is_known);
	else
		check_number(message, field, row,
			     read_number(member, row->size), is_known);
}

static Netobs__Record *through(const struct netobs_record *record)
{
	uint8_t buf[PBNETOBS_RECORD_MAX];
	size_t len = pbnetobs_record(record, &options, buf);
	Netobs__Record *found = netobs__record__unpack(NULL, len, buf);

	assert_in_range(len, 1, sizeof(buf));
	assert_non_null(found);
	/* Nothing is written twice, no default, and nothing that netobs.proto lacks. */
	assert_int_equal(netobs__record__get_packed_size(found), len);
	return found;
}

static void check_rows(const ProtobufCMessage *message, const struct row *rows,
		       size_t n, const struct netobs_record *record)
{
	assert_int_equal(message->n_unknown_fields, 0);
	for (size_t i = 0; i < n; i++)
		check_row(message, &rows[i], record,
			  !rows[i].has || record->has & rows[i].has);
}

/* A type of records, and what is to check of it beside its rows. */
struct type {
	enum netobs_record_type type;
	uint32_t record_case;
	const ProtobufCMessageDescriptor *message;
	const struct row *rows;
	size_t n_rows, n_others; /* fields */
	void (*make)(union any_record *any);
	void (*check)(const Netobs__Record *found, const union any_record *any);
};

/* Each has agent_ip beside its rows. */
#define TYPE(RECORD, CASE, name, list, others, ...)                     \
	{                                                               \
		.type = NETOBS_RECORD_##RECORD,                         \
		.record_case = NETOBS__RECORD__RECORD_##CASE,           \
		.message = &netobs__##name##__descriptor, .rows = list, \
		.n_rows = ARRAY_SIZE(list), .n_others = 1 + (others),   \
		__VA_ARGS__                                             \
	}

static void check_random(const struct type *type)
{
	assert_int_equal(type->message->n_fields, type->n_rows + type->n_others);
	for (int i = 0; i < ROUNDS; i++) {
		const ProtobufCMessage *message;
		union any_record any = { 0 };
		Netobs__Record *found;

		make_record(&any.record, type->rows, type->n_rows, type->type);
		if (type->make)
			type->make(&any);
		found = through(&any.record);
		assert_int_equal(found->record_case, type->record_case);
		message = &found->session->base; /* or another member of a union */
		check_rows(message, type->rows, type->n_rows, &any.record);
		check_address(
			*(Netobs__IP *const *)((const char *)message +
					       field_of(message, "agent_ip")->offset),
			options.agent_ip);
		if (type->check)
			type->check(found, &any);
		netobs__record__free_unpacked(found, NULL);
	}
}

static void check_duration(const Netobs__Record *found,
			   const union any_record *any)
{
	const struct netobs_session *session = &any->session;

	if (session->record.has & START && session->end_ns >= session->start_ns)
		assert_int_equal(found->session->duration_ms,
				 (session->end_ns - session->start_ns) /
					 NSEC_PER_MSEC);
}

static void check_classes(const uint64_t *found, size_t n,
			  const struct netobs_times *expected)
{
	assert_int_equal(n, NETOBS_TIME_CLASSES);
	assert_memory_equal(found, expected->classes, sizeof(expected->classes));
}

TEST(histograms_of_groups_are_read_as_they_are)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct netobs_group_record group = {
			.record = { .has = NETOBS_GROUP_HAS_RTT_TIMES |
					   NETOBS_GROUP_HAS_APP_LATENCY_TIMES,
				    .type = NETOBS_RECORD_GROUP },
			.connections = 3,
			.connections_failed = 2,
			.drop_bytes = 100,
		};
		const Netobs__Group *found;
		Netobs__Record *record;

		for (int k = 0; k < NETOBS_TIME_CLASSES; k++) {
			make_number((uint8_t *)&group.rtt_times.classes[k], 8);
			make_number((uint8_t *)&group.app_latency_times.classes[k],
				    8);
		}
		record = through(&group.record);
		assert_int_equal(record->record_case,
				 NETOBS__RECORD__RECORD_GROUP_RECORD);
		found = record->group_record;
		check_classes(found->rtt_histogram, found->n_rtt_histogram,
			      &group.rtt_times);
		check_classes(found->app_latency_histogram,
			      found->n_app_latency_histogram,
			      &group.app_latency_times);
		assert_int_equal(found->connections, 3);
		assert_int_equal(found->connections_failed, 2);
		assert_int_equal(found->pkt_drop_bytes, 100);
		netobs__record__free_unpacked(record, NULL);
	}
}

TEST(turns_have_lists_of_times)
{
	const struct netobs_turn turn = {
		.record = { .sz = sizeof(turn),
			    .type = NETOBS_RECORD_TURN,
			    .has = NETOBS_TURN_HAS_READ | NETOBS_TURN_HAS_LIMITS,
			    .time_ns = 5000000 },
		.kind = NETOBS_TURN_SLICE,
		.offset = -7,
		.bytes = 300,
		.in_ns = 5000900,
		.limit_ns = { 1, 0, 300 },
		.unknown_parts = 1U << NETOBS_JOURNEY_GAP,
		.reader_command = "nginx",
	};
	Netobs__Record *record = through(&turn.record);
	const Netobs__Turn *found = record->turn;

	assert_int_equal(record->record_case, NETOBS__RECORD__RECORD_TURN);
	assert_int_equal(found->kind, NETOBS__TURN__TURN_KIND__SLICE);
	assert_int_equal(found->offset, -7);
	assert_int_equal(found->bytes, 300);
	assert_int_equal(found->in_after_ns, 900);
	assert_int_equal(found->out_after_ns, 0);
	assert_true(found->reads);
	assert_false(found->sends);
	assert_int_equal(found->n_limits_ns, NETOBS_TURN_LIMITS);
	assert_int_equal(found->limits_ns[NETOBS_TURN_WINDOW], 300);
	assert_int_equal(found->n_threads_ns, 0);
	assert_int_equal(found->n_unknown_parts, 1);
	assert_int_equal(found->unknown_parts[0], NETOBS_JOURNEY_GAP);
	assert_string_equal(found->reader_command, "nginx");
	netobs__record__free_unpacked(record, NULL);
}

TEST(verdicts_have_parts_and_what_is_missing)
{
	const struct netobs_verdict verdict = {
		.record = { .sz = sizeof(verdict),
			    .type = NETOBS_RECORD_VERDICT,
			    .time_ns = 5000000 },
		.end_ns = 5000900,
		.place = NETOBS_PLACE_BEYOND,
		.cause = NETOBS_CAUSE_LOSS,
		.certainty = NETOBS_CERTAIN,
		.missing = NETOBS_MISSING_BEFORE | NETOBS_MISSING_RECORDS,
		.clock_ns = -7,
		.clock_bound_ns = 1,
		.blamed_ns = 1ULL << 40,
		.n_parts = 2,
		.parts = { [1] = { .place = NETOBS_PLACE_NETWORK,
				   .cause = NETOBS_CAUSE_MTU,
				   .most_ns = 9 } },
		.n_shares = 1,
		.shares = { { .amount = 3, .command = "iperf3" } },
	};
	Netobs__Record *record = through(&verdict.record);
	const Netobs__Verdict *found = record->verdict;

	assert_int_equal(record->record_case, NETOBS__RECORD__RECORD_VERDICT);
	assert_int_equal(found->total_ns, 900);
	assert_int_equal(found->place, NETOBS__VERDICT__VERDICT_PLACE__BEYOND);
	assert_int_equal(found->cause, NETOBS__VERDICT__VERDICT_CAUSE__LOSS);
	assert_int_equal(found->certainty, NETOBS__VERDICT__CERTAINTY__CERTAIN);
	assert_int_equal(found->n_missing, 2);
	assert_int_equal(found->missing[0],
			 NETOBS__VERDICT__VERDICT_MISSING__BEFORE);
	assert_int_equal(found->missing[1],
			 NETOBS__VERDICT__VERDICT_MISSING__RECORDS);
	assert_int_equal(found->clock_ns, -7);
	assert_int_equal(found->blamed_ns, 1ULL << 40);
	assert_int_equal(found->n_parts, 2);
	assert_int_equal(found->parts[1]->place,
			 NETOBS__VERDICT__VERDICT_PLACE__NETWORK);
	assert_int_equal(found->parts[1]->cause,
			 NETOBS__VERDICT__VERDICT_CAUSE__MTU);
	assert_int_equal(found->parts[1]->most_ns, 9);
	assert_int_equal(found->n_shares, 1);
	assert_string_equal(found->shares[0]->command, "iperf3");
	netobs__record__free_unpacked(record, NULL);
}

TEST(queues_have_a_list_of_shares)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct netobs_queue queue = {
			.record = { .sz = sizeof(queue),
				    .type = NETOBS_RECORD_QUEUE },
			.kind = NETOBS_QUEUE_UPLINK,
			.n_shares = (uint16_t)(rand() %
					       (NETOBS_QUEUE_SHARES_MAX + 2)),
		};
		const Netobs__Queue *found;
		Netobs__Record *record;

		for (size_t k = 0; k < NETOBS_QUEUE_SHARES_MAX; k++) {
			make_rows((uint8_t *)&queue.shares[k], share_rows,
				  ARRAY_SIZE(share_rows));
			queue.shares[k].protocol = (uint8_t)(rand() % 2 * 6);
		}
		record = through(&queue.record);
		found = record->queue;
		assert_int_equal(found->kind, NETOBS__QUEUE__QUEUE_KIND__UPLINK);
		assert_int_equal(found->n_shares,
				 min_u64(queue.n_shares, NETOBS_QUEUE_SHARES_MAX));
		for (size_t k = 0; k < found->n_shares; k++)
			for (size_t row = 0; row < ARRAY_SIZE(share_rows); row++)
				check_row(&found->shares[k]->base,
					  &share_rows[row], &queue.shares[k],
					  row < 2 || row > 5 ||
						  queue.shares[k].protocol);
		netobs__record__free_unpacked(record, NULL);
	}
}

static void make_journey(union any_record *any)
{
	struct netobs_journey *journey = &any->journey;

	make_rows((uint8_t *)journey, part_rows, ARRAY_SIZE(part_rows));
	journey->record.has |= (uint32_t)rand() & (NETOBS_JOURNEY_HAS_CUT |
						   NETOBS_JOURNEY_HAS_DROP);
	journey->end_ns = journey->record.time_ns + rand();
	journey->unknown_parts = (uint32_t)rand() &
				 ((1U << NETOBS_JOURNEY_PARTS) - 1) &
				 (uint32_t) - (rand() % 4 > 0);
	journey->n_steps = (uint16_t)(rand() % (NETOBS_JOURNEY_STEPS_MAX + 1));
	for (uint32_t i = 0; i < journey->n_steps; i++) {
		make_rows((uint8_t *)&journey->steps[i], step_rows,
			  ARRAY_SIZE(step_rows));
		journey->steps[i].time_ns = journey->record.time_ns + rand();
	}
}

static void check_steps(const Netobs__Journey *found,
			const struct netobs_journey *journey)
{
	assert_int_equal(found->n_steps, journey->n_steps);
	for (uint32_t i = 0; i < journey->n_steps; i++) {
		const Netobs__JourneyStep *step = found->steps[i];

		for (size_t j = 0; j < ARRAY_SIZE(step_rows); j++)
			check_row(&step->base, &step_rows[j],
				  &journey->steps[i], true);
		assert_int_equal(step->after_ns, journey->steps[i].time_ns -
							 journey->record.time_ns);
	}
}

static void check_parts(const Netobs__Journey *found,
			const struct netobs_journey *journey)
{
	size_t n = 0;

	for (size_t part = 0; part < ARRAY_SIZE(part_rows); part++) {
		const bool is_known = !(journey->unknown_parts & 1U << part);

		check_row(&found->base, &part_rows[part], journey, is_known);
		if (is_known)
			continue;
		assert_true(n < found->n_unknown_parts);
		assert_int_equal(found->unknown_parts[n++], part);
	}
	assert_int_equal(found->n_unknown_parts, n);
}

static void check_journey(const Netobs__Record *record,
			  const union any_record *any)
{
	const struct netobs_journey *journey = &any->journey;
	const Netobs__Journey *found = record->journey;
	const uint32_t has = journey->record.has;

	check_parts(found, journey);
	check_steps(found, journey);
	assert_int_equal(found->total_ns,
			 journey->end_ns - journey->record.time_ns);
	assert_int_equal(!!found->dropped, !!(has & NETOBS_JOURNEY_HAS_DROP));
	assert_int_equal(!!found->steps_cut, !!(has & NETOBS_JOURNEY_HAS_CUT));
}

TEST(random_records_are_read_as_they_are)
{
	static const struct type types[] = {
		TYPE(SESSION, SESSION, session, session_rows, 1,
		     .check = check_duration),
		TYPE(ALERT, ALERT, alert, alert_rows, 0),
		TYPE(MAPPING, MAPPING, mapping, mapping_rows, 0),
		TYPE(DROP, DROP, drop, drop_rows, 0),
		TYPE(TRACE, TRACE_EVENT, trace, trace_rows, 0),
		TYPE(HOST, HOST, host, host_rows, 1),
		/* Parts, total_ns, unknown_parts, steps_cut, dropped and steps. */
		TYPE(JOURNEY, JOURNEY, journey, journey_rows,
		     ARRAY_SIZE(part_rows) + 5, .make = make_journey,
		     .check = check_journey),
	};

	assert_int_equal(netobs__journey_step__descriptor.n_fields,
			 ARRAY_SIZE(step_rows) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		check_random(&types[i]);
}

/* ---- Ends of what there can be ----------------------------------------------------- */

/* Where each byte of all texts has to be replaced, too. */
TEST(largest_records_fit)
{
	static const struct pbflow_options v6 = { .agent_ip = { 0x20, 0x01 } };
	static uint8_t buf[PBNETOBS_ENTRY_MAX];
	union any_record any;
	size_t longest = 0;

	for (uint32_t type = 0; type < NETOBS_RECORD_TYPES; type++) {
		Netobs__Records *records;
		size_t len;

		if (!(PBNETOBS_TYPES & 1U << type))
			continue;
		memset(&any, 0xff, sizeof(any));
		if (type == NETOBS_RECORD_JOURNEY)
			any.journey.unknown_parts = 0;
		any.record.type = type;
		len = pbnetobs_entry(&any.record, &v6, buf);
		assert_in_range(len, 1, sizeof(buf));
		longest = max_u64(longest, len);
		records = netobs__records__unpack(NULL, len, buf);
		assert_non_null(records);
		netobs__records__free_unpacked(records, NULL);
	}
	assert_in_range(longest, PBNETOBS_RECORD_MAX / 2, sizeof(buf));
}

TEST(entries_are_records_in_their_order)
{
	static uint8_t buf[4 * PBNETOBS_ENTRY_MAX];
	struct netobs_session session = { .record.type = NETOBS_RECORD_SESSION };
	struct netobs_alert alert = { .record.type = NETOBS_RECORD_ALERT };
	const struct netobs_record *given[] = { &alert.record, &session.record,
						&session.record, &alert.record };
	Netobs__Records *records;
	size_t len = 0;

	memset(session.cgroup_path, 'x', sizeof(session.cgroup_path));
	session.record.has = PROCESS;
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		len += pbnetobs_entry(given[i], &options, buf + len);
	records = netobs__records__unpack(NULL, len, buf);
	assert_non_null(records);
	assert_int_equal(records->n_entries, ARRAY_SIZE(given));
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		assert_int_equal(records->entries[i]->record_case,
				 given[i]->type == NETOBS_RECORD_SESSION ?
					 NETOBS__RECORD__RECORD_SESSION :
					 NETOBS__RECORD__RECORD_ALERT);
	netobs__records__free_unpacked(records, NULL);
}

TEST(an_unknown_agent_is_left_out)
{
	static const struct pbflow_options unknown;
	const struct netobs_alert alert = { .record.type = NETOBS_RECORD_ALERT };
	uint8_t buf[PBNETOBS_RECORD_MAX];
	Netobs__Record *record = netobs__record__unpack(
		NULL, pbnetobs_record(&alert.record, &unknown, buf), buf);

	assert_non_null(record);
	assert_null(record->alert->agent_ip);
	netobs__record__free_unpacked(record, NULL);
}

int main(void)
{
	return tests_run(seed_once, NULL);
}
