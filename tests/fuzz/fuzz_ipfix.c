// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Any record in, its fields out of the messages. The input says what dialect, how
 * large a message may be, and has the bytes of records.
 */
#include "lib_fuzz.h"
#include "lib_ipfix.h"

#include "sinks/ipfix/ipfix.h"

enum { RECORDS_MAX = 64, POINTS_MAX = 4, DIALECTS = 2 };

struct sample {
	struct netobs_flow flow;
	struct netobs_point points[POINTS_MAX];
	struct netobs_process processes[2];
};

static struct sample samples[RECORDS_MAX];
static struct layout_options options;
static unsigned int n_read;

static int64_t floor_time(int64_t ns)
{
	return ns < 0 ? 0 : ns;
}

static void check_time(const struct ipfix_record *record, int64_t ns,
		       uint16_t element)
{
	ipfix_must(ipfix_value(record, 0, element) ==
		   (uint64_t)floor_time(ns) / 1000000);
}

static void check_bytes(const struct ipfix_record *record, uint32_t pen,
			uint16_t element, const void *expected, size_t len)
{
	static const uint8_t zeros[16];
	size_t real_len;
	const uint8_t *real = ipfix_get(record, pen, element, &real_len);

	ipfix_must(real && real_len == len);
	ipfix_must(!memcmp(real, expected ?: zeros, len));
}

static void check_addresses(const struct ipfix_record *record,
			    const struct netobs_flow *flow)
{
	if (flow->ethertype == 0x0800) {
		check_bytes(record, 0, 8, flow->src + 12, 4);
		check_bytes(record, 0, 12, flow->dst + 12, 4);
		ipfix_must(ipfix_value(record, 0, 60) == 4);
		return;
	}
	check_bytes(record, 0, 27, flow->src, 16);
	check_bytes(record, 0, 28, flow->dst, 16);
	ipfix_must(ipfix_value(record, 0, 60) == 6);
}

static void check_ports(const struct ipfix_record *record,
			const struct netobs_flow *flow)
{
	bool has_ports = flow->has & NETOBS_HAS_PORTS,
	     has_icmp = flow->has & NETOBS_HAS_ICMP;
	uint16_t code = (uint16_t)(flow->icmp_type << 8 | flow->icmp_code);
	uint16_t flags = flow->has & NETOBS_HAS_TCP ? flow->tcp_flags : 0;

	ipfix_must(ipfix_value(record, 0, 7) == (has_ports ? flow->src_port : 0));
	ipfix_must(ipfix_value(record, 0, 11) == (has_icmp  ? code :
						  has_ports ? flow->dst_port :
							      0));
	if (has_icmp)
		ipfix_must(ipfix_value(record, 0,
				       flow->ethertype == 0x0800 ? 32 : 139) ==
			   code);
	else
		ipfix_must(!ipfix_has(record, 32) && !ipfix_has(record, 139));
	ipfix_must(ipfix_value(record, 0, 6) == (uint8_t)flags);
}

static void check_points(const struct ipfix_record *record,
			 const struct netobs_flow *flow)
{
	uint32_t in = 0, out = 0;

	for (uint32_t i = flow->n_points; i; i--)
		if (flow->points[i - 1].direction == NETOBS_INGRESS)
			in = flow->points[i - 1].ifindex;
	for (uint32_t i = 0; i < flow->n_points; i++)
		if (flow->points[i].direction == NETOBS_EGRESS)
			out = flow->points[i].ifindex;
	ipfix_must(ipfix_value(record, 0, 10) == in);
	ipfix_must(ipfix_value(record, 0, 14) == out);
	ipfix_must(ipfix_value(record, 0, 61) ==
		   (flow->n_points && flow->points[0].direction == NETOBS_EGRESS));
}

static void check_extended(const struct ipfix_record *record,
			   const struct netobs_flow *flow)
{
	bool has_tunnel = flow->has & NETOBS_HAS_TUNNEL,
	     has_outer = flow->has & NETOBS_HAS_OUTER;

	ipfix_must(ipfix_value(record, 0, 352) ==
		   (flow->has & NETOBS_HAS_MAC ? flow->l2_bytes : 0));
	ipfix_must(ipfix_value(record, options.pen, 18) == flow->ecn_seen);
	ipfix_must(ipfix_value(record, options.pen, 19) ==
		   (has_tunnel ? flow->tunnel : 0));
	ipfix_must(ipfix_value(record, options.pen, 20) ==
		   (flow->has & NETOBS_HAS_VNI ? flow->vni : 0));
	check_bytes(record, options.pen, 21, has_outer ? flow->outer_src : NULL,
		    16);
	check_bytes(record, options.pen, 22, has_outer ? flow->outer_dst : NULL,
		    16);
}

static void check_record(const struct ipfix_record *record, void *ctx)
{
	const struct netobs_flow *flow = &samples[n_read++].flow;
	bool has_mac = flow->has & NETOBS_HAS_MAC;

	(void)ctx;
	check_time(record, flow->start_ns, 152);
	check_time(record, flow->end_ns, 153);
	ipfix_must(ipfix_value(record, 0, 1) == flow->bytes);
	ipfix_must(ipfix_value(record, 0, 2) == flow->packets);
	ipfix_must(ipfix_value(record, 0, 4) == flow->proto);
	ipfix_must(ipfix_value(record, 0, 5) == (uint8_t)(flow->dscp << 2));
	ipfix_must(ipfix_value(record, 0, 52) == flow->ttl_min);
	ipfix_must(ipfix_value(record, 0, 53) == flow->ttl_max);
	ipfix_must(ipfix_value(record, 0, 136) == flow->end_reason);
	ipfix_must(ipfix_value(record, 0, 256) == flow->ethertype);
	ipfix_must(ipfix_value(record, 0, 58) ==
		   (flow->has & NETOBS_HAS_VLAN ? flow->vlan_id : 0));
	check_bytes(record, 0, 56, has_mac ? flow->src_mac : NULL, 6);
	check_bytes(record, 0, 80, has_mac ? flow->dst_mac : NULL, 6);
	check_addresses(record, flow);
	check_ports(record, flow);
	check_points(record, flow);
	if (options.is_extended)
		check_extended(record, flow);
}

static unsigned int read_samples(const uint8_t *data, size_t size)
{
	unsigned int n = 0;

	for (; size && n < RECORDS_MAX; n++) {
		struct sample *sample = &samples[n];
		struct netobs_flow *flow = &sample->flow;

		fuzz_take(&data, &size, flow, sizeof(*flow));
		fuzz_take(&data, &size, sample->points, sizeof(sample->points));
		fuzz_take(&data, &size, sample->processes,
			  sizeof(sample->processes));
		flow->sz = sizeof(*flow);
		flow->ethertype = flow->ethertype & 1 ? 0x0800 : 0x86dd;
		flow->n_points %= POINTS_MAX + 1;
		flow->points = sample->points;
		flow->src_process = flow->dscp & 1 ? &sample->processes[0] : NULL;
		flow->dst_process = flow->dscp & 2 ? &sample->processes[1] : NULL;
	}
	return n;
}

static void take(struct encoder *encoder, struct ipfix_reader *reader)
{
	struct encoder_message message;
	uint8_t *copy;

	if (encoder_is_empty(encoder))
		return;
	ipfix_must(!encoder_take(encoder, &message));
	ipfix_must(message.len <= encoder->size);
	ipfix_must(message.sequence == reader->sequence);
	copy = malloc(message.len); /* so that no read goes beyond it */
	memcpy(copy, message.bytes, message.len);
	ipfix_read(reader, copy, message.len);
	free(copy);
}

static void add_templates(struct encoder *encoder, struct ipfix_reader *reader)
{
	for (int kind = 0; kind < LAYOUT_KINDS; kind++) {
		if (encoder_add_template(encoder, kind))
			continue;
		take(encoder, reader);
		ipfix_must(encoder_add_template(encoder, kind) == 1);
	}
	take(encoder, reader);
}

/* One of each dialect, since making one takes long. */
static struct encoder *open_encoder(unsigned int dialect)
{
	static struct encoder *encoders[DIALECTS];
	struct encoder **encoder = &encoders[dialect];

	options = (struct layout_options){
		.is_extended = dialect,
		.pen = 32473 + dialect,
	};
	if (!*encoder)
		ipfix_must(!encoder_open(dialect, &options, encoder));
	return *encoder;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ipfix_reader reader = { .on_record = check_record };
	struct encoder *encoder;
	unsigned int n;

	if (size < 6)
		return 0;
	encoder = open_encoder(data[0] % DIALECTS);
	reader.sequence = 0xfffffff0 + (data[1] & 15);
	encoder_start(encoder, ENCODER_SIZE_MIN + (data[2] | data[3] << 8) % 8192,
		      reader.sequence);
	add_templates(encoder, &reader);
	n = read_samples(data + 4, size - 4);
	n_read = 0;
	for (unsigned int i = 0; i < n; i++) {
		if (encoder_add_flow(encoder, &samples[i].flow))
			continue;
		take(encoder, &reader);
		ipfix_must(encoder_add_flow(encoder, &samples[i].flow) == 1);
	}
	take(encoder, &reader);
	ipfix_must(n_read == n && reader.domain == data[0] % DIALECTS);
	return 0;
}
