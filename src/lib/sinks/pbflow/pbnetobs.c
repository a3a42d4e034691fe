// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Written straight from netobs.def, as flows are from the catalogue: see pbflow.c. */
#include "pbnetobs.h"

#include "catalogue/fields.h"
#include "wire.h"

/* Numbers in netobs.proto.in that netobs.def does not have. */
enum { RECORDS_ENTRY = 1, RECORD_SESSION = 1, RECORD_ALERT = 2 };

enum { ALWAYS = 0 };

/* ---- Values ------------------------------------------------------------------------ */

/* @has: the bit that says whether it is known, if there is one: so 0 is a value, too. */
inlined uint8_t *put_value(uint8_t *to, uint32_t number, uint64_t value,
			   uint32_t has)
{
	return has ? put_any_number(to, number, value) :
		     put_number(to, number, value);
}

/* Down to whole ones. */
static inline uint64_t whole_ms(int64_t ns)
{
	return (uint64_t)(ns / NSEC_PER_MSEC - (ns % NSEC_PER_MSEC < 0));
}

#define PUT_number(number, has, value) put_value(to, number, value, has)
#define PUT_count PUT_number
#define PUT_ns(number, has, value) put_value(to, number, (uint64_t)(value), has)
#define PUT_ms(number, has, value) put_value(to, number, whole_ms(value), has)
#define PUT_address(number, has, value) \
	put_ip(to, number, value, is_v4_mapped(value))
#define PUT_agent(number, has, value) put_agent(to, number, options->agent_ip)
#define PUT_array(number, has, value) \
	put_array(to, number, value, sizeof(value))
#define PUT_Opened(number, has, value) put_number(to, number, value)
#define PUT_Ended PUT_Opened
#define PUT_By PUT_Opened
#define PUT_Metric PUT_Opened
#define PUT_Way PUT_Opened

#define PUT_FIELD(number, type, name, json, bit, value, text) \
	if (!(bit) || it->record.has & (bit))                 \
		to = PUT_##type(number, bit, value);

/* ---- Messages ---------------------------------------------------------------------- */

static uint8_t *put_session(uint8_t *to, const struct netobs_session *it,
			    const struct pbflow_options *options)
{
#define SESSION_FIELD PUT_FIELD
#include "netobs.def"
	return to;
}

static uint8_t *put_alert(uint8_t *to, const struct netobs_alert *it,
			  const struct pbflow_options *options)
{
#define ALERT_FIELD PUT_FIELD
#include "netobs.def"
	return to;
}

size_t pbnetobs_record(const struct netobs_record *record,
		       const struct pbflow_options *options, uint8_t *buf)
{
	const bool is_session = record->type == NETOBS_RECORD_SESSION;
	uint8_t *message = buf + WIRE_HEAD_MAX;
	const uint8_t *end =
		is_session ? put_session(message, (const void *)record, options) :
			     put_alert(message, (const void *)record, options);

	assert(pbnetobs_has(record));
	end = put_moved(buf, is_session ? RECORD_SESSION : RECORD_ALERT,
			message, (size_t)(end - message));
	return (size_t)(end - buf);
}

size_t pbnetobs_entry(const struct netobs_record *record,
		      const struct pbflow_options *options, uint8_t *buf)
{
	uint8_t *message = buf + WIRE_HEAD_MAX;
	size_t len = pbnetobs_record(record, options, message);

	return (size_t)(put_moved(buf, RECORDS_ENTRY, message, len) - buf);
}
