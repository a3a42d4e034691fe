// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "layout.h"

#include "fnv.h"
#include "record.h"
#include "util.h"

#include <errno.h>
#include <string.h>

/* Which lines of the tables below a template has. */
enum {
	V4 = 1 << 0,
	V6 = 1 << 1,
	ICMP = 1 << 2,
	EXTENDED = 1 << 3,
	MS = 1 << 4,
	US = 1 << 5,
	NS = 1 << 6,
	NARROW_FLAGS = 1 << 7,
	WIDE_FLAGS = 1 << 8,
};

/*
 * Elements of our own. The numbers up to 17 are spoken for: latency, loss and what
 * processes are concerned.
 */
#define OWN(name, number, len, flags, type) \
	FB_IE_INIT_FULL(name, 0, number, len, flags, 0, 0, type, NULL)

static const fbInfoElement_t own_elements[] = {
	OWN("netobsNetnsInode", 12, 8, FB_IE_IDENTIFIER | FB_IE_F_ENDIAN,
	    FB_UINT_64),
	OWN("netobsEcnSeen", 18, 1, FB_IE_FLAGS, FB_UINT_8),
	OWN("netobsTunnelType", 19, 1, FB_IE_IDENTIFIER, FB_UINT_8),
	OWN("netobsTunnelId", 20, 4, FB_IE_IDENTIFIER | FB_IE_F_ENDIAN,
	    FB_UINT_32),
	OWN("netobsOuterSourceAddress", 21, 16, FB_IE_DEFAULT, FB_IP6_ADDR),
	OWN("netobsOuterDestinationAddress", 22, 16, FB_IE_DEFAULT, FB_IP6_ADDR),
	OWN("netobsOuterSourcePort", 23, 2, FB_IE_IDENTIFIER | FB_IE_F_ENDIAN,
	    FB_UINT_16),
	OWN("netobsOuterDestinationPort", 24, 2,
	    FB_IE_IDENTIFIER | FB_IE_F_ENDIAN, FB_UINT_16),
	FB_IE_NULL,
};

const fbInfoElement_t *layout_own_element(unsigned int i)
{
	return i < ARRAY_SIZE(own_elements) - 1 ? &own_elements[i] : NULL;
}

/* An element of a template, if the template has all of @flags. */
struct line {
	const char *name;
	uint16_t len;
	uint32_t flags;
};

/* struct record_flow: all that it has. */
static const struct line flow_struct[] = {
	{ "flowStartMilliseconds", 8, MS },
	{ "flowEndMilliseconds", 8, MS },
	{ "flowStartMicroseconds", 8, US },
	{ "flowEndMicroseconds", 8, US },
	{ "flowStartNanoseconds", 8, NS },
	{ "flowEndNanoseconds", 8, NS },
	{ "octetDeltaCount", 8, 0 },
	{ "packetDeltaCount", 8, 0 },
	{ "flowId", 8, 0 },
	{ "layer2OctetDeltaCount", 8, 0 },
	{ "layer2SegmentId", 8, 0 },
	{ "netobsNetnsInode", 8, 0 },
	{ "sourceIPv4Address", 4, 0 },
	{ "destinationIPv4Address", 4, 0 },
	{ "ingressInterface", 4, 0 },
	{ "egressInterface", 4, 0 },
	{ "netobsTunnelId", 4, 0 },
	{ "sourceTransportPort", 2, 0 },
	{ "destinationTransportPort", 2, 0 },
	{ "tcpControlBits", 2, 0 },
	{ "icmpTypeCodeIPv4", 2, V4 },
	{ "icmpTypeCodeIPv6", 2, V6 },
	{ "ethernetType", 2, 0 },
	{ "vlanId", 2, 0 },
	{ "postVlanId", 2, 0 },
	{ "dot1qVlanId", 2, 0 },
	{ "dot1qCustomerVlanId", 2, 0 },
	{ "netobsOuterSourcePort", 2, 0 },
	{ "netobsOuterDestinationPort", 2, 0 },
	{ "sourceIPv6Address", 16, 0 },
	{ "destinationIPv6Address", 16, 0 },
	{ "netobsOuterSourceAddress", 16, 0 },
	{ "netobsOuterDestinationAddress", 16, 0 },
	{ "sourceMacAddress", 6, 0 },
	{ "destinationMacAddress", 6, 0 },
	{ "protocolIdentifier", 1, 0 },
	{ "ipClassOfService", 1, 0 },
	{ "ipVersion", 1, 0 },
	{ "flowDirection", 1, 0 },
	{ "flowEndReason", 1, 0 },
	{ "minimumTTL", 1, 0 },
	{ "maximumTTL", 1, 0 },
	{ "netobsEcnSeen", 1, 0 },
	{ "netobsTunnelType", 1, 0 },
	{ 0 },
};

static const struct line flow_wire[] = {
	{ "flowStartMilliseconds", 8, MS },
	{ "flowEndMilliseconds", 8, MS },
	{ "flowStartMicroseconds", 8, US },
	{ "flowEndMicroseconds", 8, US },
	{ "flowStartNanoseconds", 8, NS },
	{ "flowEndNanoseconds", 8, NS },
	{ "octetDeltaCount", 8, 0 },
	{ "packetDeltaCount", 8, 0 },
	{ "sourceIPv4Address", 4, V4 },
	{ "destinationIPv4Address", 4, V4 },
	{ "sourceIPv6Address", 16, V6 },
	{ "destinationIPv6Address", 16, V6 },
	{ "sourceTransportPort", 2, 0 },
	{ "destinationTransportPort", 2, 0 },
	{ "protocolIdentifier", 1, 0 },
	{ "ipClassOfService", 1, 0 },
	{ "tcpControlBits", 1, NARROW_FLAGS },
	{ "tcpControlBits", 2, WIDE_FLAGS },
	{ "ipVersion", 1, 0 },
	{ "ingressInterface", 4, 0 },
	{ "egressInterface", 4, 0 },
	{ "flowDirection", 1, 0 },
	{ "flowEndReason", 1, 0 },
	{ "vlanId", 2, 0 },
	{ "postVlanId", 2, 0 },
	{ "ethernetType", 2, 0 },
	{ "sourceMacAddress", 6, 0 },
	{ "destinationMacAddress", 6, 0 },
	{ "icmpTypeCodeIPv4", 2, V4 | ICMP },
	{ "icmpTypeCodeIPv6", 2, V6 | ICMP },
	{ "flowId", 8, 0 },
	{ "minimumTTL", 1, 0 },
	{ "maximumTTL", 1, 0 },
	{ "layer2OctetDeltaCount", 8, EXTENDED },
	{ "layer2SegmentId", 8, EXTENDED },
	{ "dot1qVlanId", 2, EXTENDED },
	{ "dot1qCustomerVlanId", 2, EXTENDED },
	{ "netobsNetnsInode", 8, EXTENDED },
	{ "netobsEcnSeen", 1, EXTENDED },
	{ "netobsTunnelType", 1, EXTENDED },
	{ "netobsTunnelId", 4, EXTENDED },
	{ "netobsOuterSourceAddress", 16, EXTENDED },
	{ "netobsOuterDestinationAddress", 16, EXTENDED },
	{ "netobsOuterSourcePort", 2, EXTENDED },
	{ "netobsOuterDestinationPort", 2, EXTENDED },
	{ 0 },
};

/* The rest is on the wire as it is in its struct. */
static const struct line nat_spec[] = {
	{ "observationTimeMilliseconds", 8, 0 },
	{ "natEvent", 1, 0 },
	{ "sourceIPv4Address", 4, 0 },
	{ "destinationIPv4Address", 4, 0 },
	{ "postNATSourceIPv4Address", 4, 0 },
	{ "postNATDestinationIPv4Address", 4, 0 },
	{ "sourceTransportPort", 2, 0 },
	{ "destinationTransportPort", 2, 0 },
	{ "postNAPTSourceTransportPort", 2, 0 },
	{ "postNAPTDestinationTransportPort", 2, 0 },
	{ "protocolIdentifier", 1, 0 },
	{ 0 },
};

static const struct line sampling_spec[] = {
	{ "observationDomainId", 4, 0 },
	{ "samplingInterval", 4, 0 },
	{ 0 },
};

static const struct line selector_spec[] = {
	{ "selectorId", 8, 0 },
	{ "samplingPacketInterval", 4, 0 },
	{ "samplingPacketSpace", 4, 0 },
	{ "selectorAlgorithm", 2, 0 },
	{ 0 },
};

/* Of a fixed length: nfcapd drops what varies. */
static const struct line interface_spec[] = {
	{ "ingressInterface", 4, 0 },
	{ "interfaceName", RECORD_NAME_SIZE, 0 },
	{ 0 },
};

static const struct line metering_spec[] = {
	{ "observationDomainId", 4, 0 },
	{ "exportedMessageTotalCount", 8, 0 },
	{ "exportedFlowRecordTotalCount", 8, 0 },
	{ "exportedOctetTotalCount", 8, 0 },
	{ "observedFlowTotalCount", 8, 0 },
	{ 0 },
};

static const struct line metering_loss_spec[] = {
	{ "observationDomainId", 4, 0 },    { "ignoredPacketTotalCount", 8, 0 },
	{ "ignoredOctetTotalCount", 8, 0 }, { "flowStartMilliseconds", 8, 0 },
	{ "flowEndMilliseconds", 8, 0 },    { 0 },
};

static const struct line exporting_loss_spec[] = {
	{ "exportingProcessId", 4, 0 },
	{ "notSentFlowTotalCount", 8, 0 },
	{ "notSentPacketTotalCount", 8, 0 },
	{ "notSentOctetTotalCount", 8, 0 },
	{ "flowStartMilliseconds", 8, 0 },
	{ "flowEndMilliseconds", 8, 0 },
	{ 0 },
};

/* Of a fixed length, as above. */
static const struct line element_spec[] = {
	{ "privateEnterpriseNumber", 4, 0 },
	{ "informationElementId", 2, 0 },
	{ "informationElementDataType", 1, 0 },
	{ "informationElementSemantics", 1, 0 },
	{ "informationElementUnits", 2, 0 },
	{ "informationElementName", RECORD_ELEMENT_NAME_SIZE, 0 },
	{ 0 },
};

static const struct {
	const struct line *in_struct, *on_wire;
	uint32_t flags;
	uint16_t n_scope;
} kinds[LAYOUT_KINDS] = {
	[LAYOUT_FLOW4] = { flow_struct, flow_wire, V4, 0 },
	[LAYOUT_FLOW4_ICMP] = { flow_struct, flow_wire, V4 | ICMP, 0 },
	[LAYOUT_FLOW6] = { flow_struct, flow_wire, V6, 0 },
	[LAYOUT_FLOW6_ICMP] = { flow_struct, flow_wire, V6 | ICMP, 0 },
	[LAYOUT_NAT] = { nat_spec, nat_spec, 0, 0 },
	[LAYOUT_SAMPLING] = { sampling_spec, sampling_spec, 0, 1 },
	[LAYOUT_SELECTOR] = { selector_spec, selector_spec, 0, 1 },
	[LAYOUT_INTERFACE] = { interface_spec, interface_spec, 0, 1 },
	[LAYOUT_METERING] = { metering_spec, metering_spec, 0, 1 },
	[LAYOUT_METERING_LOSS] = { metering_loss_spec, metering_loss_spec, 0, 1 },
	[LAYOUT_EXPORTING_LOSS] = { exporting_loss_spec, exporting_loss_spec, 0,
				    1 },
	[LAYOUT_ELEMENT] = { element_spec, element_spec, 0, 2 },
};

enum {
	FIRST_ID = 256,
	IDS_PER_LAYOUT = 16,
	LAYOUTS = 65536 / IDS_PER_LAYOUT - 16
};

_Static_assert((int)LAYOUT_KINDS <= (int)IDS_PER_LAYOUT, "an ID for each kind");

static uint32_t flags_of(const struct layout_options *options,
			 enum layout_kind kind)
{
	static const uint32_t timestamps[] = { MS, US, NS };

	return kinds[kind].flags | timestamps[options->timestamps] |
	       (options->wide_tcp_flags ? WIDE_FLAGS : NARROW_FLAGS) |
	       (options->is_extended ? EXTENDED : 0);
}

static bool has_line(const struct line *line, uint32_t flags)
{
	return (line->flags & flags) == line->flags;
}

static uint32_t mix_template(uint32_t hash, enum layout_kind kind, uint32_t flags)
{
	const struct line *line = kinds[kind].on_wire;

	for (; line->name; line++) {
		if (!has_line(line, flags))
			continue;
		hash = fnv_mix(hash, line->name, strlen(line->name) + 1);
		hash = fnv_mix(hash, &line->len, sizeof(line->len));
	}
	return hash;
}

static uint16_t first_id(const struct layout_options *options)
{
	uint32_t hash = FNV_START;

	for (int kind = 0; kind < LAYOUT_KINDS; kind++)
		hash = mix_template(hash, kind, flags_of(options, kind));
	if (options->is_extended)
		hash = fnv_mix(hash, &options->pen, sizeof(options->pen));
	return (uint16_t)(FIRST_ID + hash % LAYOUTS * IDS_PER_LAYOUT);
}

static bool is_own(const char *name)
{
	return !strncmp(name, "netobs", 6);
}

static void measure(struct layout_template *template, enum layout_kind kind,
		    uint32_t flags)
{
	const struct line *line = kinds[kind].on_wire;

	template->n_scope = kinds[kind].n_scope;
	template->template_len = template->n_scope ? 6 : 4;
	for (; line->name; line++) {
		if (!has_line(line, flags))
			continue;
		template->record_len += line->len;
		template->template_len += is_own(line->name) ? 8 : 4;
	}
}

void layout_open(struct layout *layout, const struct layout_options *options)
{
	fbInfoElement_t own[ARRAY_SIZE(own_elements)];
	uint16_t id = first_id(options);

	memcpy(own, own_elements, sizeof(own));
	for (size_t i = 0; i < ARRAY_SIZE(own) - 1; i++)
		own[i].ent = options->pen;
	*layout = (struct layout){ .options = *options };
	layout->model = fbInfoModelAlloc();
	fbInfoModelAddElementArray(layout->model, own);
	for (int kind = 0; kind < LAYOUT_KINDS; kind++) {
		struct layout_template *template = &layout->templates[kind];

		template->id = id + (uint16_t)kind;
		template->internal_id = FIRST_ID + (uint16_t)kind;
		measure(template, kind, flags_of(options, kind));
	}
}

void layout_close(struct layout *layout)
{
	if (layout->model)
		fbInfoModelFree(layout->model);
	layout->model = NULL;
}

static bool append_lines(fbTemplate_t *template, const struct line *line,
			 uint32_t flags)
{
	GError *error = NULL;

	for (; line->name; line++) {
		fbInfoElementSpec_t spec = { (char *)line->name, line->len, 0 };

		if (has_line(line, flags) &&
		    !fbTemplateAppendSpec(template, &spec, 0, &error)) {
			g_clear_error(&error);
			return false;
		}
	}
	return true;
}

static int add_template(fbInfoModel_t *model, fbSession_t *session,
			const struct line *lines, uint32_t flags, uint16_t id,
			bool is_internal, uint16_t n_scope)
{
	fbTemplate_t *template = fbTemplateAlloc(model);
	GError *error = NULL;

	if (!append_lines(template, lines, flags)) {
		fbTemplateFreeUnused(template);
		return -EIO;
	}
	if (n_scope)
		fbTemplateSetOptionsScope(template, n_scope);
	if (fbSessionAddTemplate(session, is_internal, id, template, &error))
		return 0;
	g_clear_error(&error);
	return -EIO;
}

int layout_add_to(const struct layout *layout, fbSession_t *session)
{
	int err = 0;

	for (int kind = 0; kind < LAYOUT_KINDS && !err; kind++) {
		const struct layout_template *template = &layout->templates[kind];
		uint32_t flags = flags_of(&layout->options, kind);

		err = add_template(layout->model, session, kinds[kind].in_struct,
				   flags, template->internal_id, true, 0);
		err = err   ?:
			      add_template(layout->model, session,
					   kinds[kind].on_wire, flags,
					   template->id, false,
					   template->n_scope);
	}
	return err;
}
