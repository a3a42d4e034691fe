/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Each field of the catalogue is in an extended record, in the element that it names. */
#include "sinks/ipfix/ipfix.h"

#include "lib_fields.h"
#include "lib_ipfix.h"
#include "lib_test.h"

enum { PEN = 32473 };

#define name_number(name) #name
#define name_id name_number
#define name_count name_number
#define name_duration name_number
#define name_hash name_number
#define name_tcp_flags name_number
#define name_dscp name_number
#define name_tunnel name_number
#define name_tunnel_end name_number
#define name_text name_number
#define name_mac name_number
#define name_direction name_number
#define name_netns name_number
#define name_time(name) (#name "Milliseconds")
#define name_address(name) (#name "IPv4Address")

#define NAME_derived(type, ...) NULL,
#define NAME_all(type, position, name, ...) name_##type(name),
#define NAME_extended NAME_all
#define NAME_extended6 NAME_all
#define NAME_own NAME_all
#define NAME_health NAME_all
#define NAME_ends NAME_all
#define NAME_ends_own NAME_all
#define NAME_sampled NAME_all
#define NAME_sampled_own NAME_all
#define NAME(type, set, ...) NAME_##set(type, __VA_ARGS__)
#define POINT_FIELD(member, type, json, proto, ipfix, ...) \
	FIELD_CALL(NAME, type, ipfix)
#define FIELD(member, type, bit, merge, json, proto, ipfix, ...) \
	FIELD_CALL(NAME, type, ipfix)

/* In the order of fields[], then of point_fields[]. */
static const char *const names[] = {
#include "catalogue/fields.def"
};

struct seen {
	struct ipfix_template template;
	uint8_t bytes[1024];
};

static void keep(const struct ipfix_record *record, void *ctx)
{
	struct seen *seen = ctx;

	seen->template = *record->template;
	memcpy(seen->bytes, record->bytes, record->template->record_len);
}

static void take(struct encoder *encoder, struct ipfix_reader *reader)
{
	struct encoder_message message;

	assert_int_equal(encoder_take(encoder, &message), 0);
	ipfix_read(reader, message.bytes, message.len);
}

static struct encoder *open_encoder(void)
{
	const struct layout_options options = { .is_extended = true, .pen = PEN };
	struct encoder *encoder;

	assert_int_equal(encoder_open(1, &options, &encoder), 0);
	return encoder;
}

static struct seen through(struct encoder *encoder, const struct netobs_flow *flow)
{
	struct seen seen = { 0 };
	struct ipfix_reader reader = { .on_record = keep, .ctx = &seen };

	assert_int_equal(encoder_start(encoder, ENCODER_SIZE_MAX, 0), 0);
	for (int kind = LAYOUT_FLOW4; kind <= LAYOUT_SAMPLED_LAST; kind++)
		assert_int_equal(encoder_add_template(encoder, kind), 1);
	take(encoder, &reader);
	assert_int_equal(encoder_add_flow(encoder, flow), 1);
	take(encoder, &reader);
	return seen;
}

static const uint8_t *octets_of(const struct seen *seen,
				const fbInfoElement_t *element, size_t *ret_len)
{
	const struct ipfix_record record = { &seen->template, seen->bytes };

	return ipfix_get(&record, element->ent, element->num, ret_len);
}

static void assert_differ(struct encoder *encoder, const char *name,
			  const struct netobs_flow *flow,
			  const struct netobs_flow *changed)
{
	const fbInfoElement_t *element =
		fbInfoModelGetElementByName(encoder->layout.model, name);
	struct seen before = through(encoder, flow),
		    after = through(encoder, changed);
	const uint8_t *was, *is;
	size_t len;

	assert_non_null(element);
	was = octets_of(&before, element, &len);
	is = octets_of(&after, element, &len);
	if (!was || !is || !memcmp(was, is, len))
		fail_msg("%s does not have the field", name);
}

/* A field without an element of its own must be part of another element. */
static void assert_records_differ(struct encoder *encoder, const char *member,
				  const struct netobs_flow *flow,
				  const struct netobs_flow *changed)
{
	struct seen before = through(encoder, flow),
		    after = through(encoder, changed);

	if (before.template.id == after.template.id &&
	    !memcmp(before.bytes, after.bytes, before.template.record_len))
		fail_msg("no element has %s", member);
}

TEST(records_have_each_field)
{
	struct encoder *encoder = open_encoder();

	for (size_t i = 0; i < N_FIELDS; i++) {
		struct netobs_flow flow = fields_flow(), changed;

		/* A type of ICMP is sent as a port, too. */
		if (fields[i].has != NETOBS_HAS_ICMP)
			flow.has &= ~(uint64_t)NETOBS_HAS_ICMP;
		if (fields[i].has == NETOBS_HAS_FLOW_LABEL)
			flow.ethertype = 0x86dd;
		changed = flow;
		field_change(&changed, &fields[i]);
		if (names[i])
			assert_differ(encoder, names[i], &flow, &changed);
		else if (strcmp(fields[i].type, "tcp_combined"))
			assert_records_differ(encoder, fields[i].member, &flow,
					      &changed);
	}
	encoder_free(encoder);
}

#define SOURCE_process(src, dst, name, ...) "netobsSource" #name,
#define SOURCE_derived(...) NULL,
#define SOURCE(set, ...) SOURCE_##set(__VA_ARGS__)
#define CALL(macro, ...) macro(__VA_ARGS__)
#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, json, proto, ipfix, ...) \
	CALL(SOURCE, FIELD_ARGUMENTS ipfix)

/* In the order of process_fields[]; fields of the destination have another prefix. */
static const char *const source_names[] = {
#include "catalogue/fields.def"
};

TEST(records_have_each_field_of_processes)
{
	struct encoder *encoder = open_encoder();

	for (size_t i = 0; i < N_PROCESS_FIELDS; i++) {
		struct netobs_process process = fields_process(), other = process;
		struct netobs_flow flow = fields_flow(), changed;
		char name[64];

		if (!source_names[i])
			continue;
		/* One of ICMP has no ports, and so no process. */
		flow.has &= ~(uint64_t)NETOBS_HAS_ICMP;
		flow.src_process = flow.dst_process = &process;
		field_change(&other, &process_fields[i]);
		changed = flow;
		changed.src_process = &other;
		assert_differ(encoder, source_names[i], &flow, &changed);
		snprintf(name, sizeof(name), "netobsDestination%s",
			 source_names[i] + strlen("netobsSource"));
		changed = flow;
		changed.dst_process = &other;
		assert_differ(encoder, name, &flow, &changed);
	}
	encoder_free(encoder);
}

/* The name is in options records. */
TEST(records_have_each_field_of_a_point)
{
	struct encoder *encoder = open_encoder();

	for (size_t i = 0; i < N_POINT_FIELDS; i++) {
		struct netobs_flow flow = fields_flow(), changed = flow;
		struct netobs_point point = *flow.points;
		const char *name = names[N_FIELDS + i];

		field_change(&point, &point_fields[i]);
		changed.points = &point;
		if (name)
			assert_differ(encoder, name, &flow, &changed);
		else if (strcmp(point_fields[i].type, "name"))
			assert_records_differ(encoder, point_fields[i].member,
					      &flow, &changed);
	}
	encoder_free(encoder);
}

/* Also of records that a run with another sampling left behind. */
TEST(sampling_is_that_of_the_record)
{
	static const uint8_t wanted[] = { 0, 0, 0, 50 };

	for (uint32_t i = 0; i < 2; i++) {
		struct encoder *encoder = open_encoder();
		const fbInfoElement_t *element = fbInfoModelGetElementByName(
			encoder->layout.model, "samplingInterval");
		struct netobs_flow flow = fields_flow();
		const uint8_t *octets;
		struct seen seen;
		size_t len = 0;

		flow.sampling = 50;
		flow.has &= ~(uint64_t)NETOBS_HAS_SAMPLING;
		flow.has |= i ? NETOBS_HAS_SAMPLING : 0;
		seen = through(encoder, &flow);
		octets = octets_of(&seen, element, &len);
		assert_int_equal(octets != NULL, i);
		if (octets)
			assert_memory_equal(octets, wanted, sizeof(wanted));
		encoder_free(encoder);
	}
}
