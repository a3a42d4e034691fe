// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* An alert as JSON: names are those that flow records have for the same things. */
#include <netobs/alert.h>

#include "any.h"
#include "base/json.h"
#include "base/text.h"
#include "base/util.h"

#include <string.h>

static const char *const units[NETOBS_ALERT_METRICS] = {
	[NETOBS_ALERT_RTT] = "ns",
	[NETOBS_ALERT_APP_LATENCY] = "ns",
	[NETOBS_ALERT_RETRANSMITS] = "ppm",
	[NETOBS_ALERT_RATE] = "bit/s",
};

static void add_string(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_string(json, text);
}

/* @text may fill all of its array, of @size. */
static void add_text(struct json *json, const char *key, const char *text,
		     size_t size)
{
	char copy[sizeof(((struct netobs_alert *)NULL)->rule) + 1];
	size_t len = strnlen(text, size);

	if (!len)
		return;
	memcpy(copy, text, len);
	copy[len] = '\0';
	add_string(json, key, copy);
}

#define ADD_TEXT(json, key, member) add_text(json, key, member, sizeof(member))

static void add_address(struct json *json, const char *key, const uint8_t ip[16])
{
	char text[NETOBS_ADDR_STR_MAX + TEXT_SPARE];

	*text_ip(text, ip) = '\0';
	add_string(json, key, text);
}

/* Down to whole milliseconds. */
static void add_ms(struct json *json, const char *key, int64_t ns)
{
	json_key(json, key);
	json_i64(json, ns / NSEC_PER_MSEC - (ns % NSEC_PER_MSEC < 0));
}

static void add_sample(struct json *json, const struct netobs_alert *alert)
{
	const char *metric = netobs_alert_metric_name(alert->metric);

	if (metric) {
		add_string(json, "Metric", metric);
		add_string(json, "Unit", units[alert->metric]);
	}
	json_key_u64(json, "Value", alert->value);
	json_key_u64(json, "Threshold", alert->threshold);
	if (alert->record.has & NETOBS_ALERT_HAS_BASELINE)
		json_key_u64(json, "Baseline", alert->baseline);
	json_key_u64(json, "Hits", alert->hits);
	json_key_u64(json, "Among", alert->among);
}

static void add_connection(struct json *json, const struct netobs_alert *alert)
{
	add_string(json, "Way",
		   alert->way == NETOBS_ALERT_TO_SERVER ? "to_server" :
							  "to_client");
	add_address(json, "SrcAddr", alert->client);
	add_address(json, "DstAddr", alert->server);
	json_key_u64(json, "SrcPort", alert->client_port);
	json_key_u64(json, "DstPort", alert->server_port);
	json_key_u64(json, "Proto", alert->protocol);
	add_ms(json, "TimeFlowStartMs", alert->start_ns);
	ADD_TEXT(json, "Interface", alert->interface);
	if (alert->ifindex)
		json_key_u64(json, "IfIndex", alert->ifindex);
	if (alert->netns_inode)
		json_key_u64(json, "NetnsInode", alert->netns_inode);
	if (!(alert->record.has & NETOBS_ALERT_HAS_PROCESS))
		return;
	ADD_TEXT(json, "Process", alert->process);
	json_key_u64(json, "Pid", alert->pid);
}

int alert_record_json(const struct netobs_record *record, char *buf, size_t size)
{
	const struct netobs_alert *alert = (const void *)record;
	struct json json;

	json_begin(&json, buf, size);
	json_open(&json, '{');
	add_string(&json, "type", netobs_record_type_name(NETOBS_RECORD_ALERT));
	add_ms(&json, "TimeMs", record->time_ns);
	json_key(&json, "TimeNs");
	json_i64(&json, record->time_ns);
	ADD_TEXT(&json, "Alert", alert->name);
	ADD_TEXT(&json, "Rule", alert->rule);
	add_sample(&json, alert);
	add_connection(&json, alert);
	json_close(&json, '}');
	return json_end(&json);
}
