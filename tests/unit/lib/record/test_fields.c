/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Each field of the catalogue is in the record, in JSON, in a spool and in the table. */
#include "lib_fields.h"
#include "lib_test.h"

#include "cli/view/row.h"
#include "cli/view/view.h"
#include "record/any.h"

static void claim(uint8_t *is_named, size_t offset, size_t size)
{
	for (size_t i = offset; i < offset + size; i++)
		assert_int_equal(is_named[i]++, 0);
}

#define CLAIM(is_named, structure, member)                  \
	claim(is_named, offsetof(struct structure, member), \
	      FIELD_SIZE(structure, member))

TEST(catalogue_has_each_member_once)
{
	uint8_t flow[sizeof(struct netobs_flow)] = { 0 },
				   point[sizeof(struct netobs_point)] = { 0 };

	for (size_t i = 0; i < N_FIELDS; i++)
		claim(flow, fields[i].offset, fields[i].size);
	CLAIM(flow, netobs_flow, sz);
	CLAIM(flow, netobs_flow, has);
	CLAIM(flow, netobs_flow, type);
	CLAIM(flow, netobs_flow, reserved);
	CLAIM(flow, netobs_flow, n_points);
	CLAIM(flow, netobs_flow, point_size);
	CLAIM(flow, netobs_flow, points);
	CLAIM(flow, netobs_flow, src_process);
	CLAIM(flow, netobs_flow, dst_process);
	CLAIM(flow, netobs_flow, reserved2);
	CLAIM(flow, netobs_flow, reserved3);
	claim(flow, offsetof(struct netobs_flow, points) - 4, 4); /* padding */
	assert_null(memchr(flow, 0, sizeof(flow)));

	for (size_t i = 0; i < N_POINT_FIELDS; i++)
		claim(point, point_fields[i].offset, point_fields[i].size);
	CLAIM(point, netobs_point, reserved);
	assert_null(memchr(point, 0, sizeof(point)));
}

/* Both ends of @flow are one process, which outlives it. */
static struct netobs_flow with_process(struct netobs_flow flow,
				       const struct netobs_process *process)
{
	flow.src_process = flow.dst_process = process;
	return flow;
}

TEST(catalogue_has_each_member_of_a_process_once)
{
	uint8_t process[sizeof(struct netobs_process)] = { 0 };

	for (size_t i = 0; i < N_PROCESS_FIELDS; i++)
		claim(process, process_fields[i].offset, process_fields[i].size);
	CLAIM(process, netobs_process, sz);
	assert_null(memchr(process, 0, sizeof(process)));
}

/* ---- JSON ------------------------------------------------------------------------- */

/* What follows the key, up to the next one; "": it is absent. */
static const char *json_value(const struct netobs_flow *flow, const char *key)
{
	static char values[2][NETOBS_FLOW_JSON_MAX];
	static int turn;
	char *json = values[turn ^= 1], quoted[64], *value, *end;

	assert_true(netobs_flow_json(flow, json, NETOBS_FLOW_JSON_MAX) > 0);
	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	value = strstr(json, quoted);
	if (!value)
		return "";
	value += strlen(quoted);
	end = strstr(value, ",\"");
	if (end)
		*end = '\0';
	return value;
}

static void assert_json_has(const struct field *field,
			    const struct netobs_flow *flow,
			    const struct netobs_flow *changed)
{
	const char *before = json_value(flow, field->key),
		   *after = json_value(changed, field->key);

	if (!*before || !*after || !strcmp(before, after))
		fail_msg("%s: \"%s\", then \"%s\"", field->member, before, after);
}

TEST(json_has_each_field)
{
	for (size_t i = 0; i < N_FIELDS; i++) {
		struct netobs_flow flow = fields_flow(), changed = flow;

		if (!*fields[i].key)
			continue; /* see tcp_combined in the catalogue */
		field_change(&changed, &fields[i]);
		assert_json_has(&fields[i], &flow, &changed);
		changed.has &= ~fields[i].has;
		assert_int_equal(!*json_value(&changed, fields[i].key),
				 fields[i].has != 0);
	}
	for (size_t i = 0; i < N_POINT_FIELDS; i++) {
		struct netobs_flow flow = fields_flow(), changed = flow;
		struct netobs_point point = *flow.points;

		field_change(&point, &point_fields[i]);
		changed.points = &point;
		assert_json_has(&point_fields[i], &flow, &changed);
	}
}

TEST(json_has_each_field_of_a_process)
{
	for (size_t i = 0; i < N_PROCESS_FIELDS; i++) {
		struct netobs_process process = fields_process(), other = process;
		struct netobs_flow flow = with_process(fields_flow(), &process);
		struct netobs_flow changed = with_process(fields_flow(), &other);

		field_change(&other, &process_fields[i]);
		for (int end = 0; end < 2; end++) {
			struct field field = process_fields[i];
			char key[32];

			snprintf(key, sizeof(key), "%s%s", end ? "Dst" : "Src",
				 field.key);
			field.key = key;
			assert_json_has(&field, &flow, &changed);
		}
	}
}

/* ---- Spool ------------------------------------------------------------------------ */

TEST(spool_has_each_field)
{
	static _Alignas(PACK_ALIGN) char packed[PACK_MAX];
	static struct unpacked unpacked;
	const struct netobs_record *record;
	size_t len;

	for (size_t i = 0; i < N_FIELDS; i++) {
		const struct field *field = &fields[i];
		struct netobs_flow flow = fields_flow();

		field_change(&flow, field);
		len = pack_record(&flow.record, packed);
		record = packed_record(packed);
		assert_memory_equal((char *)record + field->offset,
				    (char *)&flow + field->offset, field->size);
		assert_int_equal(unpack_record(packed, len, &unpacked, &record),
				 0);
		assert_memory_equal((char *)record + field->offset,
				    (char *)&flow + field->offset, field->size);
	}
}

/* With one of the ends, the other, or both; and where it is read in place. */
TEST(spool_has_processes)
{
	static _Alignas(PACK_ALIGN) char packed[PACK_MAX];
	static struct unpacked unpacked;
	const struct netobs_record *record;

	for (int ends = 0; ends < 4; ends++) {
		const struct netobs_process process = fields_process();
		struct netobs_flow flow = fields_flow();
		const struct netobs_flow *got;
		size_t len;

		flow.src_process = ends & 1 ? &process : NULL;
		flow.dst_process = ends & 2 ? &process : NULL;
		len = pack_record(&flow.record, packed);
		assert_true(len <= pack_room(&flow.record));
		for (int is_moved = 0; is_moved < 2; is_moved++) {
			record = packed_record(packed);
			if (is_moved)
				assert_int_equal(unpack_record(packed, len,
							       &unpacked, &record),
						 0);
			got = (const struct netobs_flow *)record;
			assert_int_equal(!got->src_process, !flow.src_process);
			assert_int_equal(!got->dst_process, !flow.dst_process);
			if (flow.src_process)
				assert_memory_equal(got->src_process, &process,
						    sizeof(process));
			if (flow.dst_process)
				assert_memory_equal(got->dst_process, &process,
						    sizeof(process));
		}
		while (ends && len-- > sizeof(struct packed_head) + sizeof(flow))
			assert_int_equal(unpack_record(packed, len, &unpacked,
						       &record),
					 -EBADMSG);
	}
}

/* ---- The table -------------------------------------------------------------------- */

#define COLUMN(name, ...) #name,

static const char *const column_names[] = {
#include "catalogue/columns.def"
};

static void assert_column(const struct field *field,
			  const struct netobs_flow *flow,
			  const struct netobs_flow *changed)
{
	static const struct view_options by_flow = {
		.order.sort = NETOBS_GROUP_BY_TIME
	};
	struct cells before, after;
	struct layout layout;
	struct view view;

	layout_init(&layout, &by_flow.by, LAYOUT_LINES);
	assert_int_equal(view_init(&view, &by_flow, 0), 0);
	view_add(&view, flow);
	view_add(&view, changed);
	layout_cells(&layout, rows_at(&view.next, 0), &before);
	layout_cells(&layout, rows_at(&view.next, 1), &after);
	for (size_t i = 0; i < layout.n; i++)
		if (!strcmp(column_names[layout.columns[i].id], field->column) &&
		    !strcmp(before.text[i], after.text[i]))
			fail_msg("%s: column %s is \"%s\" all the same",
				 field->member, field->column, after.text[i]);
	view_free(&view);
}

TEST(table_has_the_fields_that_have_a_column)
{
	for (size_t i = 0; i < N_FIELDS; i++) {
		struct netobs_flow flow = fields_flow(), changed;

		if (fields[i].has == NETOBS_HAS_ICMP)
			flow.has &= ~(uint64_t)NETOBS_HAS_TCP;
		if (!strcmp(fields[i].member, "tunnel"))
			flow.has &= ~(uint64_t)NETOBS_HAS_VNI;
		changed = flow;
		field_change(&changed, &fields[i]);
		assert_column(&fields[i], &flow, &changed);
	}
}
