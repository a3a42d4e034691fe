// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_outputs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <netobs/capture.h>

#include "base/slots.h"
#include "base/text.h"
#include "base/util.h"
#include "cli/capture/capture_out.h"

enum { COMMENT_MAX = 384, SNAP_LENGTH = 262144 };

/* An interface in the file: one of a namespace, or a layer of it where no interface is known. */
struct place {
	char name[20];
	char netns[16]; /* inode of the namespace */
};

struct trace_pcapng {
	struct capture_out out;
	struct slots places;
};

/* ---- Interfaces ---------------------------------------------------------------------------- */

static void describe_place(uint32_t index,
			   struct netobs_capture_interface *ret_interface,
			   void *user)
{
	const struct trace_pcapng *pcapng = user;
	const struct place *place = slots_at(&pcapng->places, index);

	ret_interface->name = place->name;
	ret_interface->netns = place->netns;
	ret_interface->link_type = NETOBS_LINK_RAW;
	ret_interface->snap_length = SNAP_LENGTH;
}

static struct place place_of(const struct netobs_trace_event *event)
{
	struct place place = { 0 };

	if (*event->interface)
		snprintf(place.name, sizeof(place.name), "%.16s",
			 event->interface);
	else
		snprintf(place.name, sizeof(place.name), "(%s)",
			 netobs_trace_layer_name(event->layer) ?: "?");
	snprintf(place.netns, sizeof(place.netns), "%" PRIu32,
		 event->netns_inode);
	return place;
}

/* ---- Comments ------------------------------------------------------------------------------ */

#define say(text, ...) text_append(text, COMMENT_MAX, __VA_ARGS__)

static void make_comment(char comment[COMMENT_MAX],
			 const struct netobs_trace_event *event)
{
	*comment = '\0';
	say(comment, "%s %s", netobs_trace_layer_name(event->layer) ?: "?",
	    netobs_trace_point_name(event->point) ?: "?");
	say(comment, ", process %.16s[%" PRIu32 "]", event->command, event->pid);
	if (event->record.has & NETOBS_TRACE_HAS_OWNER)
		say(comment, " for %.16s[%" PRIu32 "]", event->owner_command,
		    event->owner_pid);
	if (event->record.has & NETOBS_TRACE_HAS_REASON)
		say(comment, ", reason %.64s",
		    *event->cause ? event->cause : "unknown");
	say(comment,
	    ", cpu %" PRIu32 ", connection %" PRIu64
	    ", direction %u, offset %" PRId64 ", netns %" PRIu32,
	    event->cpu, event->connection, event->direction, event->offset,
	    event->netns_inode);
	say(comment, "; headers made from the event");
	safe_cell(comment);
}

/* ---- Packets ------------------------------------------------------------------------------- */

/* The direction at the interface; NETOBS_BOTH: unknown. */
static uint8_t direction_of(const struct netobs_trace_event *event)
{
	switch (event->point) {
	case NETOBS_TRACE_ARRIVE:
	case NETOBS_TRACE_RECEIVE:
	case NETOBS_TRACE_SEGMENT:
	case NETOBS_TRACE_PREROUTING:
	case NETOBS_TRACE_PREROUTING_END:
	case NETOBS_TRACE_INPUT:
	case NETOBS_TRACE_INPUT_END:
		return NETOBS_INGRESS;
	case NETOBS_TRACE_DROP:
		return NETOBS_BOTH;
	default:
		return NETOBS_EGRESS;
	}
}

bool trace_pcapng_add(struct trace_pcapng *pcapng,
		      const struct netobs_trace_event *event)
{
	const struct place place = place_of(event);
	struct netobs_trace_packet made;
	char comment[COMMENT_MAX];
	uint32_t index;

	if (netobs_trace_packet_make(event, &made) <= 0)
		return false;
	index = slots_get(&pcapng->places, &place, sizeof(place), sizeof(place));
	if (index == SLOT_NONE) {
		pcapng->out.error = pcapng->out.error ?: -ENOMEM;
		return true;
	}
	make_comment(comment, event);
	capture_out_add(&pcapng->out, &(struct netobs_packet){
					      .sz = sizeof(struct netobs_packet),
					      .time_ns = event->record.time_ns,
					      .bytes = made.bytes,
					      .captured = made.captured,
					      .length = made.length,
					      .interface = index,
					      .direction = direction_of(event),
					      .comment = comment,
				      });
	return true;
}

/* ---- Its life ------------------------------------------------------------------------------ */

int trace_pcapng_flush(struct trace_pcapng *pcapng)
{
	capture_out_flush(&pcapng->out);
	return pcapng->out.error;
}

int trace_pcapng_close(struct trace_pcapng *pcapng)
{
	int err;

	if (!pcapng)
		return 0;
	if (pcapng->out.is_started)
		capture_out_stats(&pcapng->out);
	capture_out_close(&pcapng->out);
	err = pcapng->out.error;
	slots_free(&pcapng->places);
	free(pcapng);
	return err;
}

int trace_pcapng_open(const char *path, struct trace_pcapng **ret_pcapng)
{
	const struct capture_out_options options = { .path = path,
						     .format = NETOBS_PCAPNG };
	struct trace_pcapng *pcapng = calloc(1, sizeof(*pcapng));
	int err;

	if (!pcapng)
		return -ENOMEM;
	err = capture_out_open(&pcapng->out, &options);
	err = err ?: capture_out_begin_own(&pcapng->out, describe_place, pcapng);
	if (err) {
		trace_pcapng_close(pcapng);
		return err;
	}
	*ret_pcapng = pcapng;
	return 0;
}

void trace_pcapng_start(struct trace_pcapng *pcapng)
{
	capture_out_start(&pcapng->out);
}
