// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "ipfix.h"

#include "base/util.h"
#include "catalogue/records.h"

#include <errno.h>
#include <string.h>

/* Bits that choose a template's lines in the tables below. */
enum {
	V4 = 1 << 0,
	V6 = 1 << 1,
	ICMP = 1 << 2,
	EXTENDED = 1 << 3,
	SAMPLED = 1 << 4,
	HEALTH = 1 << 5,
	PROCESS = 1 << 6,
};

/* ---- Elements of our own: by number ---------------------------------------------- */

/* RFC 5610, 3.10 */
#define SEMANTICS_key FB_IE_IDENTIFIER
#define SEMANTICS_set FB_IE_FLAGS
#define SEMANTICS_sum FB_IE_DELTACOUNTER
#define SEMANTICS_min FB_IE_QUANTITY
#define SEMANTICS_max FB_IE_QUANTITY
#define SEMANTICS_first FB_IE_DEFAULT
#define SEMANTICS_last FB_IE_DEFAULT
#define SEMANTICS_once FB_IE_DEFAULT

#define UNITS_none 0
#define UNITS_octets FB_UNITS_OCTETS
#define UNITS_packets FB_UNITS_PACKETS
#define UNITS_ns FB_UNITS_NANOSECONDS

#define LEN(member) sizeof(((struct record_flow *)0)->member)

#define OWN(member, number, name, flags, type)                                \
	[number] = FB_IE_INIT_FULL(name, 0, number, LEN(member), flags, 0, 0, \
				   type, NULL),

/* Unsigned: of 8, 16, 32 or 64 bits. */
#define own_number(member, number, name, flags)                          \
	OWN(member, number, name,                                        \
	    (flags) | (LEN(member) > 1 ? FB_IE_F_ENDIAN : FB_IE_F_NONE), \
	    FB_UINT_8 + __builtin_ctz(LEN(member)))
#define own_id own_number
#define own_count own_number
#define own_duration own_number
#define own_hash own_number
#define own_netns own_number
#define own_tunnel own_number
#define own_text(member, number, name, flags)                     \
	[number] = FB_IE_INIT_FULL(name, 0, number, FB_IE_VARLEN, \
				   FB_IE_DEFAULT, 0, 0, FB_STRING, NULL),
#define own_tunnel_end(member, number, name, flags) \
	OWN(member, number, name, FB_IE_DEFAULT, FB_IP6_ADDR)

#define ELEMENT(...)
#define MADE_ELEMENT(...)
#define OWN_ELEMENT(type, member, merge, unit, number, name) \
	own_##type(member, number, #name, SEMANTICS_##merge | UNITS_##unit)

#define SEMANTICS_identifier FB_IE_IDENTIFIER
#define SEMANTICS_quantity FB_IE_QUANTITY
#define SEMANTICS_total FB_IE_TOTALCOUNTER
#define UNITS_us FB_UNITS_MICROSECONDS

#define OWN_none(...)
#define OWN_all(...)
#define OWN_time(...)
#define OWN_address(...)
#define OWN_own(unit, at, octets, name, number, semantics)              \
	[number] = FB_IE_INIT_FULL(                                     \
		#name, 0, number, octets,                               \
		SEMANTICS_##semantics | UNITS_##unit |                  \
			((octets) > 1 ? FB_IE_F_ENDIAN : FB_IE_F_NONE), \
		0, 0, FB_UINT_8 + __builtin_ctz(octets), NULL),
#define OWN_text(unit, at, octets, name, number) \
	own_text(, number, #name, FB_IE_DEFAULT)
#define OWN_OF(unit, set, ...) OWN_##set(unit, __VA_ARGS__)
#define OWN_EXPANDED(...) OWN_OF(__VA_ARGS__)

/* The numbers up to 17 are spoken for: loss, and what processes are concerned. */
static const fbInfoElement_t own_elements[] = {
#include "elements.def"
#define FIELD(kind, member, type, has, key, proto, ipfix, unit, ...) \
	OWN_EXPANDED(unit, FIELD_ARGUMENTS ipfix)
#include "catalogue/records.def"
};

const fbInfoElement_t *layout_own_element(unsigned int i)
{
	for (size_t number = 0; number < ARRAY_SIZE(own_elements); number++)
		if (own_elements[number].num && !i--)
			return &own_elements[number];
	return NULL;
}

/* ---- Templates of flows ----------------------------------------------------------- */

/* An element of a template, if the template has all of @flags. */
struct line {
	const char *name; /* NULL: none */
	uint16_t len;
	uint32_t flags;
};

/*
 * The form of an element of that type in struct record_flow, and on the wire. Several
 * have one position, of which no template has two. LINE(position, variant, name,
 * octets in the struct, if the template has, octets on the wire, if the template has)
 */
#define lines_number(LINE, member, at, name, flags) \
	LINE(at, 0, name, LEN(member), 0, LEN(member), flags)
#define lines_id lines_number
#define lines_count lines_number
#define lines_duration lines_number
#define lines_hash lines_number
#define lines_direction lines_number
#define lines_netns lines_number
#define lines_dscp lines_number
#define lines_tunnel lines_number
#define lines_mac lines_number
#define lines_tunnel_end lines_number
#define lines_text lines_number
#define lines_tcp_flags(LINE, member, at, name, flags) \
	LINE(at, 0, name, 2, 0, 1, flags)
#define lines_address(LINE, member, at, name, flags)           \
	LINE(at, 0, name "IPv4Address", 4, 0, 4, (flags) | V4) \
	LINE(at, 1, name "IPv6Address", 16, 0, 16, (flags) | V6)
#define lines_icmp(LINE, member, at, name, flags)        \
	LINE(at, 0, name "IPv4", 2, V4, 2, (flags) | V4) \
	LINE(at, 1, name "IPv6", 2, V6, 2, (flags) | V6)
#define lines_time(LINE, member, at, name, flags) \
	LINE(at, 0, name "Milliseconds", 8, 0, 8, flags)

#define OWN_ELEMENT(...)
#define MADE_ELEMENT(type, ...) ELEMENT(number, __VA_ARGS__)
#define ELEMENT(type, member, flags, at, name) \
	lines_##type(IN_STRUCT, member, at, #name, flags)
#define IN_STRUCT(at, i, name, len, if_in_struct, wire_len, if_on_wire) \
	{ (len) ? name : NULL, len, if_in_struct },

/* In the order of its members. */
static const struct line flow_struct[] = {
#include "elements.def"
};

#define OWN_ELEMENT(...)
#define MADE_ELEMENT(type, ...) ELEMENT(number, __VA_ARGS__)
#define ELEMENT(type, member, flags, at, name) \
	lines_##type(ON_WIRE, member, at, #name, flags)
#define ON_WIRE(at, i, name, len, if_in_struct, wire_len, if_on_wire) \
	[2 * (at) + (i)] = { name, wire_len, if_on_wire },

/* In the order of their positions. */
static const struct line flow_wire[] = {
#include "elements.def"
};

/* ---- Other templates -------------------------------------------------------------- */

/* Options are on the wire as they are in their structs. */
#define OPTIONS(KIND, name, n_scope) \
	static const struct line lines_of_##name[] = {
#define OPTION(type, member, element) { #element, sizeof(type), 0 },
#define OPTIONS_END \
	}           \
	;
#include "options.def"

/*
 * Lines of the other types. Texts have a fixed length, as those of options have: so collectors that
 * read no other records read the flows beside these.
 */
enum { LINES_MAX = 128 };

#define LINES_none(...)
#define LINES_all(at, octets, name) [2 * (at)] = { #name, octets, 0 },
#define LINES_own(at, octets, name, ...) LINES_all(at, octets, name)
#define LINES_text LINES_own
#define LINES_time(at, name) [2 * (at)] = { #name "Milliseconds", 8, 0 },
#define LINES_address(at, name)                      \
	[2 * (at)] = { #name "IPv4Address", 4, V4 }, \
	     [2 * (at) + 1] = { #name "IPv6Address", 16, V6 },
#define LINES_OF(set, ...) LINES_##set(__VA_ARGS__)
#define LINES_EXPANDED(...) LINES_OF(__VA_ARGS__)

#define RECORD(TYPE, kind, ...)                             \
	static const struct line lines_of_##kind[LINES_MAX] \
		__attribute__((unused)) = {
#define FIELD(kind, member, type, has, key, proto, ipfix, ...) \
	LINES_EXPANDED(FIELD_ARGUMENTS ipfix)
#define RECORD_END(...) \
	}               \
	;
#include "catalogue/records.def"

struct lines {
	const struct line *lines;
	size_t n;
};

#define LINES(array)                     \
	{                                \
		array, ARRAY_SIZE(array) \
	}
#define FLOW(flags)                                             \
	{                                                       \
		LINES(flow_struct), LINES(flow_wire), flags, 0, \
			NETOBS_RECORD_FLOW                      \
	}
#define OTHER(array, n_scope)                                               \
	{                                                                   \
		LINES(array), LINES(array), 0, n_scope, NETOBS_RECORD_TYPES \
	}

/* In the order of LAYOUT_FLOW4 to LAYOUT_FLOW4_ICMP_PROCESS. */
#define FLOWS(first, flags)                                          \
	[first] = FLOW(flags), [(first) + 1] = FLOW((flags) | ICMP), \
	[(first) + 2] = FLOW((flags) | HEALTH),                      \
	[(first) + 3] = FLOW((flags) | PROCESS),                     \
	[(first) + 4] = FLOW((flags) | HEALTH | PROCESS),            \
	[(first) + 5] = FLOW((flags) | ICMP | PROCESS)

static const struct {
	struct lines in_struct, on_wire;
	uint32_t flags;
	uint16_t n_scope;
	uint16_t type; /* of records */
} kinds[LAYOUT_KINDS] = {
	FLOWS(LAYOUT_FLOW4, V4),
	FLOWS(LAYOUT_FLOW6, V6),
	FLOWS(LAYOUT_SAMPLED + LAYOUT_FLOW4, V4 | SAMPLED),
	FLOWS(LAYOUT_SAMPLED + LAYOUT_FLOW6, V6 | SAMPLED),
#define KIND(TYPE, kind, version)                                           \
	[LAYOUT_##TYPE##version] = { LINES(lines_of_##kind),                \
				     LINES(lines_of_##kind), V##version, 0, \
				     NETOBS_RECORD_##TYPE },
#define KIND_none(...)
#define KIND_templates(TYPE, kind) KIND(TYPE, kind, 4) KIND(TYPE, kind, 6)
#define RECORD(TYPE, kind, name, number, Message, templates, ...) \
	KIND_##templates(TYPE, kind)
#include "catalogue/records.def"
#define OPTIONS(KIND, name, n_scope) \
	[LAYOUT_##KIND] = OTHER(lines_of_##name, n_scope),
#include "options.def"
};

enum {
	FIRST_ID = 256,
	IDS_PER_LAYOUT = 64,
	LAYOUTS = 65536 / IDS_PER_LAYOUT - 8
};

_Static_assert((int)LAYOUT_KINDS <= (int)IDS_PER_LAYOUT, "an ID for each kind");

static uint32_t flags_of(const struct layout_options *options,
			 enum layout_kind kind)
{
	return kinds[kind].flags | (options->is_extended ? EXTENDED : 0);
}

static bool has_line(const struct line *line, uint32_t flags)
{
	return line->name && (line->flags & flags) == line->flags;
}

static uint32_t mix_template(uint32_t hash, enum layout_kind kind, uint32_t flags)
{
	const struct lines *wire = &kinds[kind].on_wire;

	for (size_t i = 0; i < wire->n; i++) {
		const struct line *line = &wire->lines[i];

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
	if (options->is_extended || options->types)
		hash = fnv_mix(hash, &options->pen, sizeof(options->pen));
	return (uint16_t)(FIRST_ID + hash % LAYOUTS * IDS_PER_LAYOUT);
}

static bool is_own(const char *name)
{
	return !strncmp(name, "netobs", 6);
}

static void measure_template(struct layout_template *template,
			     enum layout_kind kind, uint32_t flags)
{
	const struct lines *wire = &kinds[kind].on_wire;

	template->n_scope = kinds[kind].n_scope;
	template->template_len = template->n_scope ? 6 : 4;
	for (size_t i = 0; i < wire->n; i++) {
		const struct line *line = &wire->lines[i];

		if (!has_line(line, flags))
			continue;
		template->record_len += line->len;
		template->template_len += is_own(line->name) ? 8 : 4;
	}
}

static void add_own_elements(struct layout *layout)
{
	fbInfoElement_t own[ARRAY_SIZE(own_elements) + 1] = { FB_IE_NULL };
	const fbInfoElement_t *element;

	for (unsigned int i = 0; (element = layout_own_element(i)); i++) {
		own[i] = *element;
		own[i].ent = layout->options.pen;
	}
	fbInfoModelAddElementArray(layout->model, own);
}

static bool has_element(const struct lines *lines, uint32_t flags,
			const char *name)
{
	for (size_t i = 0; i < lines->n; i++)
		if (has_line(&lines->lines[i], flags) &&
		    !strcmp(lines->lines[i].name, name))
			return true;
	return false;
}

static bool is_sent(const struct layout_options *options, enum layout_kind kind)
{
	return kinds[kind].type == NETOBS_RECORD_FLOW ?
		       !options->has_no_flows :
		       options->types & 1U << kinds[kind].type;
}

bool layout_uses(const struct layout_options *options, enum layout_kind kind)
{
	if (kind == LAYOUT_ELEMENT)
		return options->types || options->is_extended;
	if (kind == LAYOUT_INTERFACE_NETNS)
		return options->is_extended && !options->has_no_flows;
	if (kinds[kind].n_scope)
		return true;
	return is_sent(options, kind) &&
	       (options->is_extended ||
		!(kinds[kind].flags & (HEALTH | PROCESS)));
}

bool layout_uses_element(const struct layout_options *options,
			 const fbInfoElement_t *element)
{
	for (int kind = LAYOUT_FLOW4; kind < LAYOUT_SAMPLING; kind++)
		if (layout_uses(options, kind) &&
		    has_element(&kinds[kind].on_wire, flags_of(options, kind),
				element->ref.name))
			return true;
	return false;
}

void layout_open(struct layout *layout, const struct layout_options *options)
{
	uint16_t id = first_id(options);

	*layout = (struct layout){ .options = *options };
	layout->model = fbInfoModelAlloc();
	add_own_elements(layout);
	for (int kind = 0; kind < LAYOUT_KINDS; kind++) {
		struct layout_template *template = &layout->templates[kind];

		template->id = id + (uint16_t)kind;
		template->internal_id = FIRST_ID + (uint16_t)kind;
		measure_template(template, kind, flags_of(options, kind));
	}
}

void layout_close(struct layout *layout)
{
	if (layout->model)
		fbInfoModelFree(layout->model);
	layout->model = NULL;
}

static bool append_lines(fbTemplate_t *template, const struct lines *lines,
			 uint32_t flags)
{
	GError *error = NULL;

	for (size_t i = 0; i < lines->n; i++) {
		const struct line *line = &lines->lines[i];
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
			const struct lines *lines, uint32_t flags, uint16_t id,
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

		err = add_template(layout->model, session, &kinds[kind].in_struct,
				   flags, template->internal_id, true, 0);
		if (!err)
			err = add_template(layout->model, session,
					   &kinds[kind].on_wire, flags,
					   template->id, false,
					   template->n_scope);
	}
	return err;
}
