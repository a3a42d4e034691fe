// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Messages, read by libfixbuf's own reader and by one that owes it nothing. */
#include "sinks/ipfix/ipfix.h"

#include "lib_ipfix.h"
#include "lib_test.h"

static const struct netobs_point points[] = {
	{ .ifindex = 5, .direction = NETOBS_INGRESS, .name = "veth5" },
	{ .ifindex = 6, .direction = NETOBS_INGRESS, .name = "br0" },
	{ .ifindex = 7, .direction = NETOBS_EGRESS, .name = "br0" },
	{ .ifindex = 8, .direction = NETOBS_EGRESS, .name = "eth0" },
};

static struct netobs_flow make_flow(uint64_t n)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.has = NETOBS_HAS_PORTS | NETOBS_HAS_TCP | NETOBS_HAS_MAC |
		       NETOBS_HAS_VLAN,
		.start_ns = 1700000000123456789LL,
		.end_ns = 1700000001987654321LL,
		.packets = 3 + n,
		.bytes = (5ULL << 32) + n,
		.l2_bytes = (6ULL << 32) + n,
		.src = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.dst = { [10] = 0xff, 0xff, 198, 51, 100, 2 },
		.src_port = 40000,
		.dst_port = 443,
		.ethertype = 0x0800,
		.tcp_flags = 0x11b,
		.proto = 6,
		.dscp = 46,
		.ttl_min = 60,
		.ttl_max = 64,
		.end_reason = NETOBS_END_DETECTED,
		.src_mac = { 2, 0, 0, 0, 0, 1 },
		.dst_mac = { 2, 0, 0, 0, 0, 2 },
		.vlan_id = 77,
		.n_points = 4,
		.points = points,
	};
}

static struct encoder *open_encoder(const struct layout_options *options,
				    size_t size)
{
	struct encoder *encoder;

	assert_int_equal(encoder_open(99, options, &encoder), 0);
	assert_int_equal(encoder_start(encoder, size, 0), 0);
	return encoder;
}

/* Returns the number of messages that they needed. */
static int send_templates(struct encoder *encoder, struct ipfix_reader *reader)
{
	struct encoder_message message;
	int n = 0;

	for (int kind = 0; kind < LAYOUT_KINDS; kind++) {
		int added = encoder_add_template(encoder, kind);

		if (added == 1)
			continue;
		assert_int_equal(added, 0);
		assert_int_equal(encoder_take(encoder, &message), 0);
		assert_true(message.len <= encoder->size);
		ipfix_read(reader, message.bytes, message.len);
		n++;
		assert_int_equal(encoder_add_template(encoder, kind), 1);
	}
	assert_int_equal(encoder_take(encoder, &message), 0);
	assert_int_equal(message.records, 0);
	ipfix_read(reader, message.bytes, message.len);
	return n + 1;
}

/* ---- With libfixbuf's reader ---------------------------------------------------- */

struct seen {
	uint64_t start, octets, packets;
	uint32_t source, ingress, egress;
	uint16_t sport, dport, flags, vlan, post_vlan, ethertype;
	uint8_t direction, reason, proto, tos;
	uint8_t mac[6], padding[2];
};

static const fbInfoElementSpec_t seen_spec[] = {
	{ (char *)"flowStartMilliseconds", 8, 0 },
	{ (char *)"octetDeltaCount", 8, 0 },
	{ (char *)"packetDeltaCount", 8, 0 },
	{ (char *)"sourceIPv4Address", 4, 0 },
	{ (char *)"ingressInterface", 4, 0 },
	{ (char *)"egressInterface", 4, 0 },
	{ (char *)"sourceTransportPort", 2, 0 },
	{ (char *)"destinationTransportPort", 2, 0 },
	{ (char *)"tcpControlBits", 2, 0 },
	{ (char *)"vlanId", 2, 0 },
	{ (char *)"postVlanId", 2, 0 },
	{ (char *)"ethernetType", 2, 0 },
	{ (char *)"flowDirection", 1, 0 },
	{ (char *)"flowEndReason", 1, 0 },
	{ (char *)"protocolIdentifier", 1, 0 },
	{ (char *)"ipClassOfService", 1, 0 },
	{ (char *)"sourceMacAddress", 6, 0 },
	{ (char *)"paddingOctets", 2, 0 },
	FB_IESPEC_NULL,
};

static struct seen read_by_libfixbuf(fbInfoModel_t *model,
				     const struct encoder_message *templates,
				     const struct encoder_message *data)
{
	fbSession_t *session = fbSessionAlloc(model);
	fbTemplate_t *template = fbTemplateAlloc(model);
	struct seen seen = { 0 };
	size_t len = sizeof(seen);
	GError *error = NULL;
	fBuf_t *fbuf;

	assert_true(fbTemplateAppendSpecArray(
		template, (fbInfoElementSpec_t *)seen_spec, UINT32_MAX, &error));
	assert_true(fbSessionAddTemplate(session, TRUE, 999, template, &error));
	fbuf = fBufAllocForCollection(session, NULL);
	assert_true(fBufSetInternalTemplate(fbuf, 999, &error));
	fBufSetBuffer(fbuf, (uint8_t *)templates->bytes, templates->len);
	assert_false(fBufNext(fbuf, (uint8_t *)&seen, &len, &error));
	g_clear_error(&error);
	fBufSetBuffer(fbuf, (uint8_t *)data->bytes, data->len);
	assert_true(fBufNext(fbuf, (uint8_t *)&seen, &len, &error));
	fBufFree(fbuf);
	return seen;
}

static struct seen send_and_read(const struct layout_options *options)
{
	static uint8_t first[2048];
	struct encoder *encoder = open_encoder(options, 1400);
	struct encoder_message templates, data;
	struct netobs_flow flow = make_flow(0);
	struct seen seen;

	assert_int_equal(encoder_add_template(encoder, LAYOUT_FLOW4), 1);
	assert_int_equal(encoder_take(encoder, &templates), 0);
	memcpy(first, templates.bytes, templates.len);
	templates.bytes = first;
	assert_int_equal(encoder_add_flow(encoder, &flow), 1);
	assert_int_equal(encoder_take(encoder, &data), 0);
	assert_int_equal(data.records, 1);
	seen = read_by_libfixbuf(encoder->layout.model, &templates, &data);
	encoder_free(encoder);
	return seen;
}

TEST(interfaces_are_those_of_their_direction)
{
	struct netobs_flow flow = {
		.n_points = 2,
		.point_size = sizeof(points[0]),
		.points = points,
	};

	assert_ptr_equal(record_ingress(&flow), &points[0]);
	assert_null(record_egress(&flow));
	flow.points = &points[2];
	assert_null(record_ingress(&flow));
	assert_ptr_equal(record_egress(&flow), &points[3]);
}

TEST(namespace_is_that_of_the_interface)
{
	const struct netobs_point sent_by_container[] = {
		{ .ifindex = 2, .netns_inode = 10, .direction = NETOBS_EGRESS },
		{ .ifindex = 5, .netns_inode = 20, .direction = NETOBS_INGRESS },
		{ .ifindex = 3, .netns_inode = 20, .direction = NETOBS_EGRESS },
	};
	const struct layout_options options = { .is_extended = true };
	struct netobs_flow flow = {
		.n_points = 3,
		.point_size = sizeof(sent_by_container[0]),
		.points = sent_by_container,
	};
	struct record_flow record;

	record_from_flow(&record, &flow, &options);
	assert_int_equal(record.ingress_interface, 5);
	assert_int_equal(record.egress_interface, 3);
	assert_int_equal(record.netns_inode, 20);
	flow.n_points = 1;
	record_from_flow(&record, &flow, &options);
	assert_int_equal(record.egress_interface, 2);
	assert_int_equal(record.netns_inode, 10);
}

TEST(libfixbuf_reads_what_was_written)
{
	const struct layout_options options = { .pen = 32473 };
	struct seen seen = send_and_read(&options);

	assert_int_equal(seen.start, 1700000000123);
	assert_int_equal(seen.octets, 5ULL << 32);
	assert_int_equal(seen.packets, 3);
	assert_int_equal(seen.source, 0xc0000201);
	assert_int_equal(seen.ingress, 5);   /* the first one */
	assert_int_equal(seen.egress, 8);    /* the last one */
	assert_int_equal(seen.direction, 0); /* RFC 5102 5.11.2 */
	assert_int_equal(seen.sport, 40000);
	assert_int_equal(seen.dport, 443);
	assert_int_equal(seen.flags, 0x1b);
	assert_int_equal(seen.vlan, 77);
	assert_int_equal(seen.post_vlan, 77);
	assert_int_equal(seen.ethertype, 0x0800);
	assert_int_equal(seen.reason, NETOBS_END_DETECTED);
	assert_int_equal(seen.proto, 6);
	assert_int_equal(seen.tos, 46 << 2);
	assert_memory_equal(seen.mac, make_flow(0).src_mac, 6);
}

/* ---- Sizes and numbers ------------------------------------------------------------ */

TEST(each_record_and_template_fits_the_smallest_message)
{
	enum { HEADERS = 16 + 4 };

	for (int i = 0; i < 2; i++) {
		const struct layout_options options = {
			.is_extended = i,
			.pen = 1,
		};
		struct encoder *encoder =
			open_encoder(&options, ENCODER_SIZE_MIN);

		for (int kind = 0; kind < LAYOUT_KINDS; kind++) {
			const struct layout_template *template =
				&encoder->layout.templates[kind];

			assert_in_range(template->record_len + HEADERS, 1,
					ENCODER_SIZE_MIN);
			assert_in_range(template->template_len + HEADERS, 1,
					ENCODER_SIZE_MIN);
		}
		encoder_free(encoder);
	}
}

TEST(messages_are_full_and_never_too_large)
{
	const struct layout_options options = { .is_extended = true, .pen = 1 };

	for (size_t size = ENCODER_SIZE_MIN; size < 2000; size += 7) {
		struct encoder *encoder = open_encoder(&options, size);
		struct ipfix_reader reader = { 0 };
		struct encoder_message message;

		send_templates(encoder, &reader);
		assert_int_equal(reader.n_templates, LAYOUT_KINDS);
		for (uint64_t n = 0; n < 100; n++) {
			struct netobs_flow flow = make_flow(n);

			flow.ethertype = n % 3 ? 0x0800 : 0x86dd;
			if (encoder_add_flow(encoder, &flow))
				continue;
			assert_int_equal(encoder_take(encoder, &message), 0);
			assert_in_range(message.len, size - 220, size);
			ipfix_read(&reader, message.bytes, message.len);
			assert_int_equal(encoder_add_flow(encoder, &flow), 1);
		}
		assert_int_equal(encoder_take(encoder, &message), 0);
		ipfix_read(&reader, message.bytes, message.len);
		assert_int_equal(reader.sequence, 100);
		assert_int_equal(reader.domain, 99);
		encoder_free(encoder);
	}
}

TEST(largest_message_is_allowed)
{
	const struct layout_options options = { .pen = 1 };
	struct encoder *encoder = open_encoder(&options, ENCODER_SIZE_MAX);
	struct ipfix_reader reader = { 0 };
	struct encoder_message message;
	struct netobs_flow flow = make_flow(1);

	/* pmacct misreads all options templates of a set but the first. */
	assert_int_equal(send_templates(encoder, &reader), 7);
	assert_int_equal(reader.most_options, 1);
	while (encoder_add_flow(encoder, &flow) == 1)
		;
	assert_int_equal(encoder_take(encoder, &message), 0);
	assert_in_range(message.len, ENCODER_SIZE_MAX - 100, ENCODER_SIZE_MAX);
	ipfix_read(&reader, message.bytes, message.len);
	encoder_free(encoder);
}

TEST(session_starts_with_the_number_it_is_given)
{
	const struct layout_options options = { .pen = 1 };
	struct encoder *encoder = open_encoder(&options, 1400);
	struct netobs_flow flow = make_flow(1);
	struct encoder_message message;

	for (uint32_t start = UINT32_MAX - 1; start != 2; start++) {
		struct ipfix_reader reader = { .sequence = start };

		/* What is not taken is not in the next session. */
		assert_int_equal(encoder_add_flow(encoder, &flow), 1);
		assert_int_equal(encoder_start(encoder, 1400, start), 0);
		assert_true(encoder_is_empty(encoder));
		send_templates(encoder, &reader);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(encoder_add_flow(encoder, &flow), 1);
			assert_int_equal(encoder_take(encoder, &message), 0);
			assert_int_equal(message.sequence, start + (uint32_t)i);
			ipfix_read(&reader, message.bytes, message.len);
		}
	}
	encoder_free(encoder);
}

TEST(templates_and_records_do_not_mix)
{
	const struct layout_options options = { .pen = 1 };
	struct encoder *encoder = open_encoder(&options, 1400);
	struct netobs_flow flow = make_flow(1);
	struct encoder_message message;

	assert_int_equal(encoder_add_template(encoder, LAYOUT_FLOW4), 1);
	assert_int_equal(encoder_add_flow(encoder, &flow), 0);
	assert_int_equal(encoder_take(encoder, &message), 0);
	assert_int_equal(encoder_add_flow(encoder, &flow), 1);
	assert_int_equal(encoder_add_template(encoder, LAYOUT_FLOW4), 0);
	encoder_free(encoder);
}

/* ---- Records ---------------------------------------------------------------------- */

TEST(times_are_whole_milliseconds)
{
	assert_int_equal(record_time(-1), 0);
	assert_int_equal(record_time(1999999), 1);
}

TEST(flow_ids_tell_flows_apart)
{
	const struct layout_options options = { 0 };
	struct netobs_flow flow = make_flow(0), other = make_flow(7);
	struct record_flow record, same;

	record_from_flow(&record, &flow, &options);
	record_from_flow(&same, &other, &options);
	assert_int_equal(record.flow_id, same.flow_id);
	other.dst_port++;
	record_from_flow(&same, &other, &options);
	assert_int_not_equal(record.flow_id, same.flow_id);
}
