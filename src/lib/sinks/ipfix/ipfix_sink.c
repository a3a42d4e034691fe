// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * IPFIX: records become messages, which an output takes. A session begins with
 * templates alone; after those, a collector is left some time, since some handle
 * messages at the same time and would not know what data mean that come at once.
 */
#include "ipfix.h"
#include "base/clock_ms.h"

#include <errno.h>

enum {
	QUIET_MS = 200,	  /* after the first templates, over UDP */
	GATHER_MS = 1000, /* a message that is not full waits for so long */
	SLICE_MS = 10,	  /* time of work, then the caller has its turn */
};

struct ipfix {
	struct sink_host *host;
	struct config config;
	struct encoder *encoder;
	struct output *output;
	struct refresh refresh;
	struct reports reports;
	enum layout_kind next_template; /* LAYOUT_KINDS: none is under way */
	int64_t quiet_until_ms;
	int64_t options_due_ms;
	int64_t gathered_ms; /* since when the encoder has something */
	bool is_flushing;    /* nothing is to wait for more */
	bool is_counting;    /* a record was read before */
	bool has_message;    /* the message was not sent yet */
	struct output_message message;
	struct position end; /* position behind the last record read */
	uint64_t furthest; /* largest number of `end`, also in earlier sessions */
	uint64_t failed_records;
};

/* ---- Messages ------------------------------------------------------------------ */

static bool take_message(struct ipfix *ipfix)
{
	if (encoder_is_empty(ipfix->encoder) ||
	    encoder_take(ipfix->encoder, &ipfix->message.encoded))
		return false;
	ipfix->message.end = ipfix->end;
	ipfix->has_message = true;
	return true;
}

static bool is_used(const struct ipfix *ipfix, enum layout_kind kind)
{
	const struct layout *layout = &ipfix->encoder->layout;

	if (!layout_uses(&layout->options, kind))
		return false;
	return ipfix->config.has_options || !layout->templates[kind].n_scope;
}

/* Make a message of as many templates as fit. */
static bool make_templates(struct ipfix *ipfix)
{
	for (; ipfix->next_template < LAYOUT_KINDS; ipfix->next_template++)
		if (is_used(ipfix, ipfix->next_template) &&
		    !encoder_add_template(ipfix->encoder, ipfix->next_template))
			return take_message(ipfix);
	refresh_done(&ipfix->refresh, now_ms());
	if (ipfix->refresh.rounds == 1 && ipfix->config.transport == CONFIG_UDP)
		ipfix->quiet_until_ms = now_ms() + QUIET_MS;
	return take_message(ipfix);
}

static void note_gathered(struct ipfix *ipfix, bool was_empty)
{
	if (was_empty && !encoder_is_empty(ipfix->encoder))
		ipfix->gathered_ms = now_ms();
}

/* True: a message is full, and there may be more reports. */
static bool add_reports(struct ipfix *ipfix)
{
	bool was_empty = encoder_is_empty(ipfix->encoder);
	int added = reports_add(&ipfix->reports, ipfix->encoder,
				&ipfix->output->counts);

	note_gathered(ipfix, was_empty);
	return !added && take_message(ipfix);
}

/* Records between two that follow each other here were dropped. */
static void count_not_sent(struct ipfix *ipfix, const struct sink_item *item)
{
	struct position start = position_sub(item->end, item->own);

	if (ipfix->is_counting && position_is_before(ipfix->end, start))
		ipfix->reports.not_sent =
			position_add(ipfix->reports.not_sent,
				     position_sub(start, ipfix->end));
	ipfix->is_counting = true;
}

/* Add a flow, with the names that it needs. 0: there is no room. */
static int add_flow(struct ipfix *ipfix, const struct netobs_flow *flow)
{
	int added = 1;

	if (ipfix->config.has_options)
		added = reports_add_names(&ipfix->reports, ipfix->encoder, flow);
	return added ? encoder_add_flow(ipfix->encoder, flow) : 0;
}

/* 0: there is no room. */
static int encode_record(struct ipfix *ipfix, const struct netobs_record *record)
{
	return record->type == NETOBS_RECORD_FLOW ?
		       add_flow(ipfix, as_flow(record)) :
		       encoder_add_other(ipfix->encoder, record);
}

/*
 * True: a message is full. The record that found no room is at once the first of the
 * next message, since it cannot be kept.
 */
static bool take_item(struct ipfix *ipfix, const struct sink_item *item)
{
	bool was_empty = encoder_is_empty(ipfix->encoder), is_full;
	const bool is_flow = item->record->type == NETOBS_RECORD_FLOW;
	int added = encode_record(ipfix, item->record);

	is_full = !added && take_message(ipfix);
	if (is_full) {
		added = encode_record(ipfix, item->record);
		was_empty = true;
	}
	if (is_flow && item->end.seq > ipfix->furthest && added == 1)
		ipfix->output->counts.flows++;
	ipfix->furthest = max_u64(ipfix->furthest, item->end.seq);
	ipfix->end = item->end;
	ipfix->failed_records += added != 1;
	note_gathered(ipfix, was_empty);
	return is_full;
}

static bool add_records(struct ipfix *ipfix)
{
	struct sink_item item;

	while (ipfix->host->ops->next(ipfix->host, &item)) {
		count_not_sent(ipfix, &item);
		if (take_item(ipfix, &item))
			return true;
	}
	return false;
}

static bool is_gathered(const struct ipfix *ipfix)
{
	return ipfix->is_flushing || ipfix->gathered_ms + GATHER_MS <= now_ms();
}

/* False: there is nothing to send now. */
static bool make_message(struct ipfix *ipfix)
{
	int64_t now = now_ms();

	if (ipfix->next_template == LAYOUT_KINDS &&
	    refresh_is_due(&ipfix->refresh, now)) {
		ipfix->next_template = 0;
		if (take_message(ipfix)) /* first, send the gathered records */
			return true;
	}
	if (ipfix->next_template < LAYOUT_KINDS)
		return make_templates(ipfix);
	if (now < ipfix->quiet_until_ms)
		return false;
	if (ipfix->config.has_options && now >= ipfix->options_due_ms) {
		ipfix->options_due_ms = now + (int64_t)ipfix->config.options_ms;
		reports_begin(&ipfix->reports);
	}
	if (add_reports(ipfix) || add_records(ipfix))
		return true;
	if (encoder_is_empty(ipfix->encoder)) {
		ipfix->is_flushing = false;
		return false;
	}
	return is_gathered(ipfix) && take_message(ipfix);
}

/* ---- Sessions ------------------------------------------------------------------ */

static void start_session(struct ipfix *ipfix)
{
	encoder_start(ipfix->encoder, ipfix->output->size,
		      ipfix->output->sequence);
	ipfix->host->ops->rewind(ipfix->host);
	ipfix->end = ipfix->output->acked;
	ipfix->is_counting = ipfix->end.seq; /* else its beginning is unknown */
	ipfix->has_message = false;
	ipfix->next_template = LAYOUT_KINDS;
	ipfix->quiet_until_ms = 0;
	ipfix->options_due_ms = 0;
	slots_clear(&ipfix->reports.names);
	refresh_start(&ipfix->refresh, now_ms());
}

/* Nothing to be sent now, and the output is ready: when there will be something. */
static int time_to_work(const struct ipfix *ipfix)
{
	int ms;

	if (now_ms() < ipfix->quiet_until_ms)
		return left_ms(ipfix->quiet_until_ms);
	ms = ipfix->config.has_options ? left_ms(ipfix->options_due_ms) : -1;
	if (ipfix->refresh.repeats)
		ms = sooner_ms(ms, left_ms(ipfix->refresh.due_ms));
	if (!encoder_is_empty(ipfix->encoder))
		ms = sooner_ms(ms, left_ms(ipfix->gathered_ms + GATHER_MS));
	return ms;
}

/* @return when to continue, for wake_in(); -1: when the output can */
static int send_all(struct ipfix *ipfix)
{
	const struct output_ops *ops = ipfix->output->ops;
	int64_t end_ms = now_ms() + SLICE_MS;
	enum peer_state state;

	while ((state = ops->prepare(ipfix->output)) != PEER_AWAY) {
		if (state == PEER_NEW)
			start_session(ipfix);
		if (!ipfix->has_message && !make_message(ipfix))
			return time_to_work(ipfix);
		switch (ops->send(ipfix->output, &ipfix->message)) {
		case 0:
			ipfix->has_message = false;
			break;
		case -EAGAIN:
			return -1;
		default:
			break; /* prepare() decides when to continue */
		}
		if (now_ms() >= end_ms)
			return 0;
	}
	return -1;
}

static int ipfix_work(void *arg, bool flush)
{
	struct ipfix *ipfix = arg;
	int ms;

	ipfix->is_flushing |= flush;
	ms = send_all(ipfix);
	ms = sooner_ms(ms, ipfix->output->ops->rest(ipfix->output));
	ipfix->host->ops->wake_in(ipfix->host, ms);
	return 0;
}

/* ---- Opening ------------------------------------------------------------------- */

static void ipfix_close(void *arg)
{
	struct ipfix *ipfix = arg;

	if (ipfix->output)
		ipfix->output->ops->close(ipfix->output);
	free(ipfix->output);
	slots_free(&ipfix->reports.names);
	encoder_free(ipfix->encoder);
	config_free(&ipfix->config);
}

static const struct output_ops *choose_output(const struct config *config)
{
	switch (config->transport) {
	case CONFIG_UDP:
		return &output_udp;
	case CONFIG_FILE:
		return &output_file;
	default:
		return &output_stream;
	}
}

static int open_ipfix_output(struct ipfix *ipfix)
{
	const struct output_ops *ops = choose_output(&ipfix->config);

	ipfix->output = calloc(1, ops->size);
	if (!ipfix->output)
		return -ENOMEM;
	*ipfix->output = (struct output){
		.ops = ops,
		.host = ipfix->host,
		.config = &ipfix->config,
		.size = ipfix->config.mtu ?: ops->message_size,
	};
	return ops->open(ipfix->output);
}

static void set_layout_options(struct layout_options *layout,
			       const struct sink_host *host)
{
	layout->has_no_flows = !(host->types & SINK_TYPE(FLOW));
	layout->types = host->types & ~SINK_TYPE(FLOW);
}

static int ipfix_open(struct spec *spec, struct sink_host *host, void *arg)
{
	struct ipfix *ipfix = arg;
	int err = config_read(&ipfix->config, spec);

	ipfix->host = host;
	err = err ?: spec_finish(spec);
	set_layout_options(&ipfix->config.layout, host);
	if (!err)
		err = encoder_open(ipfix->config.domain, &ipfix->config.layout,
				   &ipfix->encoder);
	if (err == -EIO)
		spec_refuse(spec, "libfixbuf does not know what is needed");
	err = err ?: open_ipfix_output(ipfix);
	if (err)
		return err;
	ipfix->next_template = LAYOUT_KINDS;
	ipfix->refresh = (struct refresh){
		.interval_ms = ipfix->config.template_ms,
		.repeats = ipfix->config.transport == CONFIG_UDP,
	};
	reports_open(&ipfix->reports, &ipfix->config, host);
	/* Templates can be there before the first record is. */
	host->ops->wake_in(host, 0);
	return 0;
}

static void ipfix_counters(const void *arg, sink_counter_fn *take, void *ctx)
{
	const struct ipfix *ipfix = arg;
	const struct output_counts *counts = &ipfix->output->counts;

	take(ctx, "messages", counts->messages);
	take(ctx, "octets", counts->octets);
	take(ctx, "data_records", counts->records);
	take(ctx, "refused_messages", counts->refused_messages);
	take(ctx, "failed_messages", counts->failed_messages);
	take(ctx, "sessions", counts->sessions);
	take(ctx, "failed_records", ipfix->failed_records);
	if (ipfix->output->ops->counters)
		ipfix->output->ops->counters(ipfix->output, take, ctx);
}

static int ipfix_reopen(void *arg)
{
	const struct ipfix *ipfix = arg;
	const struct output_ops *ops = ipfix->output->ops;

	return ops->reopen ? ops->reopen(ipfix->output) : 0;
}

__attribute__((visibility("default")))
const struct sink_module netobs_sink_module = {
	.version = NETOBS_VERSION,
	.types = SINK_TYPE(FLOW)
#define TYPES_none(TYPE)
#define TYPES_templates(TYPE) | SINK_TYPE(TYPE)
#define RECORD(TYPE, kind, name, number, Message, templates, ...) \
	TYPES_##templates(TYPE)
#include "catalogue/records.def"
		,
	.state_size = sizeof(struct ipfix),
	.open = ipfix_open,
	.work = ipfix_work,
	.close = ipfix_close,
	.counters = ipfix_counters,
	.reopen = ipfix_reopen,
};
