// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_summary.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <time.h>

#include "base/text.h"
#include "base/util.h"
#include "service/text/human.h"

/* @line: a buffer of TRACE_LINE_MAX bytes */
#define put(line, ...) text_append(line, TRACE_LINE_MAX, __VA_ARGS__)

/* ---- Pieces -------------------------------------------------------------------------------- */

static void put_time(char *line, int64_t ns)
{
	const int64_t s = ns / NSEC_PER_SEC - (ns % NSEC_PER_SEC < 0);
	const time_t seconds = (time_t)s;
	struct tm tm = { 0 };

	localtime_r(&seconds, &tm);
	put(line, "%02d:%02d:%02d.%09d", tm.tm_hour, tm.tm_min, tm.tm_sec,
	    (int)(ns - s * NSEC_PER_SEC));
}

/* TCP is not named. */
static void put_protocol(char *line, uint8_t protocol)
{
	if (protocol == IPPROTO_UDP)
		put(line, " udp");
	else if (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6)
		put(line, " icmp");
}

static void put_ends(char *line, const uint8_t src[16], uint16_t src_port,
		     const uint8_t dst[16], uint16_t dst_port)
{
	char text[2][NETOBS_ADDR_STR_MAX + 16];

	human_address(text[0], sizeof(text[0]), src, src_port);
	human_address(text[1], sizeof(text[1]), dst, dst_port);
	put(line, " %s > %s", text[0], text[1]);
}

static void put_bytes(char *line, int64_t offset, uint32_t length)
{
	char text[32];

	human_bytes(text, sizeof(text), length);
	put(line, " %+" PRId64 " %s", offset, text);
}

static void put_latency(char *line, uint64_t ns)
{
	char text[32];

	human_latency(text, sizeof(text), ns);
	put(line, " %s", ns ? text : "0 us");
}

static void put_process(char *line, const char command[16], uint32_t pid)
{
	put(line, "%.16s[%" PRIu32 "]", *command ? command : "?", pid);
}

/* ---- A journey ----------------------------------------------------------------------------- */

static void put_parts(char *line, const struct netobs_journey *journey)
{
	const char *before = ": ";

	for (unsigned int part = 0; part < NETOBS_JOURNEY_PARTS; part++) {
		if (!journey->part_ns[part])
			continue;
		put(line, "%s%s", before, netobs_journey_part_name(part));
		put_latency(line, journey->part_ns[part]);
		before = ", ";
	}
	if (!journey->unknown_parts && !journey->unknown_ns)
		return;
	put(line, "%sunknown", before);
	if (journey->unknown_ns)
		put_latency(line, journey->unknown_ns);
	before = " (";
	for (unsigned int part = 0; part < NETOBS_JOURNEY_PARTS; part++) {
		if (!(journey->unknown_parts & 1U << part))
			continue;
		put(line, "%s%s", before, netobs_journey_part_name(part));
		before = ", ";
	}
	put(line, "%s", journey->unknown_parts ? ")" : "");
}

static void put_processes(char *line, const struct netobs_journey *journey)
{
	const bool has_send = journey->record.has & NETOBS_JOURNEY_HAS_SEND;
	const bool has_read = journey->record.has & NETOBS_JOURNEY_HAS_READ;
	const struct netobs_journey_step *steps = journey->steps;
	const uint32_t n =
		(uint32_t)min_u64(journey->n_steps, NETOBS_JOURNEY_STEPS_MAX);

	if (!n || !(has_send || has_read))
		return;
	put(line, "; ");
	if (has_send)
		put_process(line, steps[0].command, steps[0].pid);
	put(line, has_send && has_read ? " > " : has_read ? "> " : " >");
	if (has_read)
		put_process(line, steps[n - 1].command, steps[n - 1].pid);
}

void trace_line_journey(char buf[TRACE_LINE_MAX],
			const struct netobs_journey *journey)
{
	*buf = '\0';

	put_time(buf, journey->record.time_ns);
	put_protocol(buf, journey->protocol);
	put_ends(buf, journey->src, journey->src_port, journey->dst,
		 journey->dst_port);
	put_bytes(buf, journey->offset, journey->length);
	put(buf, " in");
	put_latency(buf, (uint64_t)journey->end_ns -
				 (uint64_t)journey->record.time_ns);
	put_parts(buf, journey);
	if (journey->record.has & NETOBS_JOURNEY_HAS_NETFILTER) {
		put(buf, "; netfilter");
		put_latency(buf, journey->netfilter_ns);
	}
	if (journey->n_attempts > 1)
		put(buf, "; %" PRIu32 " attempts", journey->n_attempts);
	if (journey->n_drops)
		put(buf, "; %" PRIu32 " drop%s", journey->n_drops,
		    journey->n_drops == 1 ? "" : "s");
	if (*journey->drop_cause)
		put(buf, " %.64s", journey->drop_cause);
	put_processes(buf, journey);
	if (*journey->alert)
		put(buf, "; alert %.64s", journey->alert);
	safe_cell(buf);
}

/* ---- A turn -------------------------------------------------------------------------------- */

/* A time of the last byte, from the beginning on. */
static void put_stamp(char *line, const struct netobs_turn *turn,
		      const char *name, int64_t ns)
{
	if (!ns)
		return;
	put(line, ", %s", name);
	put_latency(line, (uint64_t)ns - (uint64_t)turn->record.time_ns);
}

void trace_line_turn(char buf[TRACE_LINE_MAX], const struct netobs_turn *turn)
{
	*buf = '\0';

	put_time(buf, turn->record.time_ns);
	put_protocol(buf, turn->protocol);
	put_ends(buf, turn->src, turn->src_port, turn->dst, turn->dst_port);
	put_bytes(buf, turn->offset, turn->bytes);
	put(buf, " %s in", netobs_turn_kind_name(turn->kind) ?: "?");
	put_latency(buf, (uint64_t)turn->end_ns - (uint64_t)turn->record.time_ns);
	put_stamp(buf, turn, "written", turn->written_ns);
	put_stamp(buf, turn, "sent", turn->sent_ns);
	put_stamp(buf, turn, "out", turn->out_ns);
	put_stamp(buf, turn, "in", turn->in_ns);
	put_stamp(buf, turn, "ready", turn->ready_ns);
	put_stamp(buf, turn, "read", turn->read_ns);
	put_stamp(buf, turn, "acked", turn->acked_ns);
	put_stamp(buf, turn, "answered", turn->answer_ns);
	if (turn->attempts > 1)
		put(buf, "; %" PRIu32 " attempts", turn->attempts);
	if (turn->drops)
		put(buf, "; %" PRIu32 " dropped %.64s", turn->drops,
		    turn->drop_cause);
	if (turn->record.has & NETOBS_TURN_HAS_PROCESS) {
		put(buf, "; ");
		put_process(buf, turn->command, turn->pid);
	}
	if (turn->one_of > 1)
		put(buf, "; one of %" PRIu32, turn->one_of);
	if (!(turn->record.has & NETOBS_TURN_HAS_END))
		put(buf, "; not over");
	safe_cell(buf);
}

/* ---- An event ------------------------------------------------------------------------------ */

static void put_flags(char *line, uint8_t flags)
{
	static const char letters[] = "FSRPAUEC";

	if (flags)
		put(line, " ");
	for (int i = 0; i < 8; i++)
		if (flags & 1U << i)
			put(line, "%c", letters[i]);
}

static void put_header(char *line, const struct netobs_trace_event *event)
{
	if (event->protocol != IPPROTO_UDP)
		put(line, " seq %" PRIu32, event->seq);
	if (event->tcp_flags) {
		put(line, " ack %" PRIu32, event->ack);
		put_flags(line, event->tcp_flags);
	}
}

static void put_place(char *line, const struct netobs_trace_event *event)
{
	if (*event->interface)
		put(line, " %.16s", event->interface);
	else if (event->ifindex)
		put(line, " #%" PRIu32, event->ifindex);
	put(line, " netns %" PRIu32 " cpu %" PRIu32 " ", event->netns_inode,
	    event->cpu);
}

static const char *or_unknown(const char *name)
{
	return name ? name : "?";
}

void trace_line_event(char buf[TRACE_LINE_MAX],
		      const struct netobs_trace_event *event)
{
	*buf = '\0';

	put_time(buf, event->record.time_ns);
	put(buf, " %-6s %-10s", or_unknown(netobs_trace_layer_name(event->layer)),
	    or_unknown(netobs_trace_point_name(event->point)));
	put_protocol(buf, event->protocol);
	put_ends(buf, event->src, event->src_port, event->dst, event->dst_port);
	put_bytes(buf, event->offset, event->length);
	put_header(buf, event);
	put_place(buf, event);
	put_process(buf, event->command, event->pid);
	if (event->record.has & NETOBS_TRACE_HAS_OWNER &&
	    event->owner_pid != event->pid) {
		put(buf, " for ");
		put_process(buf, event->owner_command, event->owner_pid);
	}
	if (event->record.has & NETOBS_TRACE_HAS_REASON)
		put(buf, " %.64s", *event->cause ? event->cause : "no reason");
	safe_cell(buf);
}

void trace_line_alert(char buf[TRACE_LINE_MAX], const struct netobs_alert *alert)
{
	*buf = '\0';

	put_time(buf, alert->record.time_ns);
	put_ends(buf, alert->client, alert->client_port, alert->server,
		 alert->server_port);
	put(buf, " alert %.64s%s%.512s", alert->name, *alert->name ? ": " : "",
	    alert->rule);
	safe_cell(buf);
}
