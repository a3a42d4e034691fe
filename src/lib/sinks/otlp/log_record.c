// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A record as a LogRecord: an event whose attributes are the members of JSON. */
#include "otlp.h"

#include "attributes.h"
#include "sinks/pbflow/wire.h"

#include <netobs/record.h>
#include <stdio.h>

/* Numbers in logs.proto. */
enum {
	SCOPE_LOGS_LOG_RECORDS = 2,

	LOG_RECORD_TIME = 1,
	LOG_RECORD_SEVERITY_NUMBER = 2,
	LOG_RECORD_SEVERITY_TEXT = 3,
	LOG_RECORD_ATTRIBUTES = 6,
	LOG_RECORD_OBSERVED_TIME = 11,
	LOG_RECORD_EVENT_NAME = 12,

	SEVERITY_INFO = 9,
	SEVERITY_WARN = 13,
};

/* @return the end of the time that the record is about */
static int64_t end_of(const struct netobs_record *record)
{
	switch (record->type) {
	case NETOBS_RECORD_FLOW:
		return as_flow(record)->end_ns;
	case NETOBS_RECORD_SESSION:
		return ((const struct netobs_session *)record)->end_ns;
	case NETOBS_RECORD_JOURNEY:
		return ((const struct netobs_journey *)record)->end_ns;
	case NETOBS_RECORD_TURN:
		return ((const struct netobs_turn *)record)->end_ns;
	case NETOBS_RECORD_QUEUE:
		return ((const struct netobs_queue *)record)->end_ns;
	case NETOBS_RECORD_HOST:
		return ((const struct netobs_host *)record)->end_ns;
	default:
		return record->time_ns;
	}
}

static uint8_t *put_log_head(uint8_t *to, const struct netobs_record *record)
{
	const bool is_alert = record->type == NETOBS_RECORD_ALERT;
	const char *severity = is_alert ? "WARN" : "INFO";
	const uint64_t end = (uint64_t)end_of(record);
	char name[64];
	int len = snprintf(name, sizeof(name), "netobs.%s",
			   netobs_record_type_name(record->type));

	to = put_fixed64(to, LOG_RECORD_TIME, end);
	to = put_fixed64(to, LOG_RECORD_OBSERVED_TIME, end);
	to = put_number(to, LOG_RECORD_SEVERITY_NUMBER,
			is_alert ? SEVERITY_WARN : SEVERITY_INFO);
	to = put_bytes(to, LOG_RECORD_SEVERITY_TEXT, severity, strlen(severity));
	return put_bytes(to, LOG_RECORD_EVENT_NAME, name, (size_t)len);
}

static uint8_t *put_log_record(uint8_t *to, const struct netobs_record *record)
{
	/* The type is the event's name. */
	static const char *const without[] = { "type", NULL };
	uint8_t *message = to + WIRE_HEAD_MAX;
	uint8_t *end = put_log_head(message, record);

	end = put_record_attributes(end, LOG_RECORD_ATTRIBUTES, record, without);
	return put_moved(to, SCOPE_LOGS_LOG_RECORDS, message,
			 (size_t)(end - message));
}

/* ---- Entries ---------------------------------------------------------------------- */

/* NULL: it goes to logs. */
static const struct netobs_group_record *group_of(const struct netobs_record *record)
{
	return record->type == NETOBS_RECORD_GROUP ? (const void *)record : NULL;
}

size_t otlp_entry(const struct netobs_record *record, uint8_t *to)
{
	const struct netobs_group_record *group = group_of(record);
	uint8_t *end = group ? put_metrics(to, group) :
			       put_log_record(to, record);

	return (size_t)(end - to);
}

uint32_t otlp_items(const struct netobs_record *record)
{
	const struct netobs_group_record *group = group_of(record);

	return group ? count_metrics(group) : 1;
}
