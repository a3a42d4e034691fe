// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "ipfix.h"

#include "base/clock_ms.h"
#include "base/text.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- Names of interfaces ----------------------------------------------------------- */

bool names_is_new(const struct slots *names, const struct netobs_point *point,
		  struct name *ret_name)
{
	const struct name *known = NULL;
	uint32_t at;

	if (!point->ifindex || !point->name)
		return false;
	*ret_name = (struct name){ .ifindex = point->ifindex,
				   .netns_inode = point->netns_inode };
	memcpy(ret_name->text, point->name,
	       strnlen(point->name, sizeof(ret_name->text)));
	at = slots_find(names, ret_name);
	if (at != SLOT_NONE)
		known = slots_at(names, at);
	return !known || memcmp(known, ret_name, sizeof(*known)) != 0;
}

void names_note(struct slots *names, const struct name *name)
{
	uint32_t at;

	if (names->n == NAMES_MAX && slots_find(names, name) == SLOT_NONE)
		slots_clear(names);
	at = slots_get(names, name, offsetof(struct name, text), sizeof(*name));
	if (at != SLOT_NONE)
		memcpy(slots_at(names, at), name, sizeof(*name));
}

static uint64_t wall_ms(void)
{
	return (uint64_t)clock_ms(CLOCK_REALTIME);
}

void reports_open(struct reports *reports, const struct config *config,
		  struct sink_host *host)
{
	*reports = (struct reports){ .config = config, .host = host };
	reports->start_ms = wall_ms();
	reports->next = (unsigned int)REPORTS_NONE;
}

void reports_begin(struct reports *reports)
{
	reports->next = 0;
}

/* ---- One of each --------------------------------------------------------------- */

struct round {
	struct reports *reports;
	struct encoder *encoder;
	const struct output_counts *counts;
};

/* @return as encoder_add(); also 1 if there is nothing to report */
typedef int add_fn(const struct round *round);

static int add_sampling_report(const struct round *round)
{
	struct record_sampling record = {
		.domain = round->reports->config->domain,
		.interval = round->reports->host->sampling,
	};

	return encoder_add(round->encoder, LAYOUT_SAMPLING, &record,
			   sizeof(record));
}

static int add_metering(const struct round *round)
{
	struct netobs_stats stats;
	struct record_metering record = {
		.domain = round->reports->config->domain,
		.messages = round->counts->messages,
		.flows_exported = round->counts->flows,
		.octets = round->counts->octets,
	};

	if (!round->reports->host->ops->get_stats(round->reports->host, &stats))
		return 1;
	record.flows_observed = stats.flows;
	return encoder_add(round->encoder, LAYOUT_METERING, &record,
			   sizeof(record));
}

/* Packets of IP that were seen, and are in no flow. */
static struct netobs_count sum_ignored(const struct netobs_stats *stats)
{
	static const enum netobs_unparsed_reason broken[] = {
		NETOBS_UNPARSED_SHORT,
		NETOBS_UNPARSED_BAD_HEADER,
		NETOBS_UNPARSED_TOO_DEEP,
	};
	struct netobs_count sum = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++)
		count_add(&sum, &stats->unparsed[broken[i]]);
	for (int i = 0; i < NETOBS_LOST_REASONS; i++)
		count_add(&sum, &stats->lost[i]);
	return sum;
}

static int add_metering_loss(const struct round *round)
{
	struct record_metering_loss record = {
		.domain = round->reports->config->domain,
		.start_ms = round->reports->start_ms,
		.end_ms = wall_ms(),
	};
	struct netobs_stats stats;
	struct netobs_count ignored;

	if (!round->reports->host->ops->get_stats(round->reports->host, &stats))
		return 1;
	ignored = sum_ignored(&stats);
	record.packets = ignored.packets;
	record.octets = ignored.bytes;
	return encoder_add(round->encoder, LAYOUT_METERING_LOSS, &record,
			   sizeof(record));
}

static int add_exporting_loss(const struct round *round)
{
	struct record_exporting_loss record = {
		.process = (uint32_t)getpid(),
		.flows = round->reports->not_sent.seq,
		.packets = round->reports->not_sent.packets,
		.octets = round->reports->not_sent.bytes,
		.start_ms = round->reports->start_ms,
		.end_ms = wall_ms(),
	};

	return encoder_add(round->encoder, LAYOUT_EXPORTING_LOSS, &record,
			   sizeof(record));
}

/* @return whether interfaces of other namespaces have the index, and another name */
static bool is_ambiguous(const struct slots *names, const struct name *name)
{
	for (uint32_t i = 0; i < names->n; i++) {
		const struct name *other = slots_at(names, i);

		if (other->ifindex == name->ifindex &&
		    other->netns_inode != name->netns_inode &&
		    memcmp(other->text, name->text, sizeof(name->text)) != 0)
			return true;
	}
	return false;
}

/* Where an index alone has several names, an empty one takes the place of the last that was sent. */
static int add_name(const struct reports *reports, struct encoder *encoder,
		    const struct name *name)
{
	struct record_interface_netns record = {
		.ifindex = name->ifindex,
		.netns_inode = name->netns_inode,
	};
	struct record_interface plain = { .ifindex = name->ifindex };
	int added = 1;

	safe_utf8_cut(record.name, sizeof(record.name), name->text,
		      sizeof(name->text));
	if (layout_uses(&encoder->layout.options, LAYOUT_INTERFACE_NETNS))
		added = encoder_add(encoder, LAYOUT_INTERFACE_NETNS, &record,
				    sizeof(record));
	if (added != 1)
		return added;
	if (!is_ambiguous(&reports->names, name))
		memcpy(plain.name, record.name, sizeof(plain.name));
	return encoder_add(encoder, LAYOUT_INTERFACE, &plain, sizeof(plain));
}

/* Describes one of our own elements, so that collectors know its name: RFC 5610. */
static int add_element(const struct round *round, const fbInfoElement_t *element)
{
	struct record_element record = {
		.pen = round->reports->config->layout.pen,
		.id = element->num,
		.type = element->type,
		.semantics = FB_IE_SEMANTIC(element->flags),
		.units = FB_IE_UNITS(element->flags),
	};

	strncpy(record.name, element->ref.name, sizeof(record.name) - 1);
	return encoder_add(round->encoder, LAYOUT_ELEMENT, &record,
			   sizeof(record));
}

/* ---- All ----------------------------------------------------------------------- */

static add_fn *const reports_of_round[] = {
	add_sampling_report,
	add_metering,
	add_metering_loss,
	add_exporting_loss,
};

enum {
	FIXED = ARRAY_SIZE(reports_of_round),
	ELEMENTS_MAX = 128,
	ALL = FIXED + ELEMENTS_MAX + NAMES_MAX,
};

/* Number @i of a round: 1 also where there is none. */
static int add_report(const struct round *round, unsigned int i)
{
	const struct slots *names = &round->reports->names;
	const fbInfoElement_t *element;

	if (i < FIXED)
		return reports_of_round[i](round);
	i -= FIXED;
	if (i < ELEMENTS_MAX) {
		element = layout_own_element(i);
		if (!element ||
		    !layout_uses_element(&round->reports->config->layout, element))
			return 1;
		return add_element(round, element);
	}
	i -= ELEMENTS_MAX;
	return i < names->n ? add_name(round->reports, round->encoder,
				       slots_at(names, i)) :
			      1;
}

int reports_add(struct reports *reports, struct encoder *encoder,
		const struct output_counts *counts)
{
	const struct round round = { reports, encoder, counts };
	int added = 1;

	if (reports->next == (unsigned int)REPORTS_NONE)
		return 1;
	for (; reports->next < ALL; reports->next++) {
		added = add_report(&round, reports->next);
		if (!added)
			return 0;
		if (added < 0)
			break;
	}
	reports->next = (unsigned int)REPORTS_NONE;
	return added;
}

/* Notes the name only once it is in a message, so that it is retried without room. */
static int add_name_of(struct reports *reports, struct encoder *encoder,
		       const struct netobs_point *point)
{
	struct name name = { 0 };

	if (!point || !names_is_new(&reports->names, point, &name))
		return 1;
	switch (add_name(reports, encoder, &name)) {
	case 0:
		return 0;
	case 1:
		names_note(&reports->names, &name);
		return 1;
	default:
		return -EIO;
	}
}

int reports_add_names(struct reports *reports, struct encoder *encoder,
		      const struct netobs_flow *flow)
{
	int added = add_name_of(reports, encoder, record_ingress(flow));

	return added == 1 ? add_name_of(reports, encoder, record_egress(flow)) :
			    added;
}

/* ---- When templates are sent ------------------------------------------------------- */

/* Soon at first: the first message with the templates may be lost. */
static const unsigned int first_ms[] = { 1000, 4000 };

void refresh_start(struct refresh *refresh, int64_t now_ms)
{
	refresh->rounds = 0;
	refresh->due_ms = now_ms;
}

bool refresh_is_due(const struct refresh *refresh, int64_t now_ms)
{
	return !refresh->rounds ||
	       (refresh->repeats && now_ms >= refresh->due_ms);
}

void refresh_done(struct refresh *refresh, int64_t now_ms)
{
	uint64_t wait_ms = refresh->interval_ms;

	if (refresh->rounds < ARRAY_SIZE(first_ms))
		wait_ms = min_u64(wait_ms, first_ms[refresh->rounds]);
	refresh->rounds++;
	refresh->due_ms = now_ms + (int64_t)wait_ms;
}
