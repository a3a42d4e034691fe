/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flows_config.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/netobs.h>

#include "base/util.h"
#include "base/value.h"
#include "service/control/control.h"
#include "service/text/human.h"

enum { DEFAULT_INTERVAL_MS = 5000, MIN_INTERVAL_MS = 10 }; /* the library's */

const char *const flows_directions[] = {
	[FLOWS_BOTH] = "both", [FLOWS_INGRESS] = "ingress", [FLOWS_EGRESS] = "egress", NULL
};

static const char *const timestamps[] = {
	[TIMESTAMPS_COARSE] = "coarse", [TIMESTAMPS_PRECISE] = "precise", NULL
};

const char *const flows_attachments[] = {
	[ATTACH_AUTO] = "auto", [ATTACH_TCX] = "tcx", [ATTACH_CLSACT] = "clsact", NULL
};

const char *const flows_rtt_modes[] = {
	[NETOBS_RTT_OFF] = "off", [NETOBS_RTT_RING] = "timers", [NETOBS_RTT_LRU] = "lru", NULL
};

static const char *const attach_orders[] = {
	[NETOBS_ATTACH_FIRST] = "first", [NETOBS_ATTACH_LAST] = "last", NULL
};

#define FIELD(name) offsetof(struct flows_config, name)

static const struct args_option options[] = {
	{ 'i', "interface", ARGS_LIST, FIELD(interfaces), "IF", NULL,
	  "observe IF: a name, /REGEX/ or netns:NAME/IF; repeatable" },
	{ 'x', "exclude", ARGS_LIST, FIELD(exclude), "IF", NULL,
	  "do not observe IF: a name or /REGEX/; repeatable" },
	{ 'D', "list-interfaces", ARGS_SWITCH, FIELD(list), NULL, NULL,
	  "print the interfaces and namespaces that -i accepts, and exit" },
	{ 0, "direction", ARGS_CHOICE, FIELD(direction), "both|ingress|egress",
	  flows_directions,
	  "direction of packets, as the interface sees it (default both)" },
	{ 'o', "output", ARGS_LIST, FIELD(output_specs), "OUTPUT", NULL,
	  "table, json[:...], ipfix:..., kafka:..., grpc:..., http[s]:...; repeatable" },
	{ 0, "by", ARGS_STRING, FIELD(by), "KEY[,KEY]...", NULL,
	  "group flows by these keys; flow: do not group" },
	{ 0, "sort", ARGS_STRING, FIELD(sort), "COLUMN", NULL,
	  "order of rows: bytes, packets, flows, sent, duration, time, rtt, retransmits or a KEY" },
	{ 0, "top", ARGS_NUMBER32, FIELD(top), "N", NULL,
	  "show at most N rows per interval, and the sum of the others" },
	{ 'N', "names", ARGS_SWITCH, FIELD(want_names), NULL, NULL,
	  "show names of hosts and ports in tables as soon as they are known" },
	{ 0, "rules", ARGS_STRING, FIELD(rules_path), "FILE", NULL,
	  "select packets by the rules in FILE; SIGHUP: read it again" },
	{ 'd', "duration", ARGS_SECONDS, FIELD(duration_ms), "SECONDS", NULL,
	  "stop after this time" },
	{ 'n', "count", ARGS_NUMBER, FIELD(count), "COUNT", NULL,
	  "stop after this many records" },
	{ 0, "interval", ARGS_SECONDS, FIELD(interval_ms), "SECONDS", NULL,
	  "time between reports (default 5)" },
	{ 0, "sampling", ARGS_STRING, FIELD(sampling), "N|flow:N", NULL,
	  "count one packet of N, at random, or the packets of one flow of N" },
	{ 0, "rtt", ARGS_MODE, FIELD(rtt), "timers|lru", flows_rtt_modes,
	  "measure round-trip times, application latency and losses of TCP" },
	{ 0, "process", ARGS_SWITCH, FIELD(process), NULL, NULL,
	  "find the processes that flows come from and go to" },
	{ 0, "max-connections", ARGS_NUMBER32, FIELD(max_connections), "N", NULL,
	  "with --rtt: connections that are measured at a time (default 65536)" },
	{ 0, "min-bytes", ARGS_BYTES, FIELD(min_bytes), "BYTES", NULL,
	  "leave out records with fewer bytes" },
	{ 0, "active-timeout", ARGS_SECONDS, FIELD(active_ms), "SECONDS", NULL,
	  "how often to report a flow with traffic (default: every interval)" },
	{ 0, "idle-timeout", ARGS_SECONDS, FIELD(idle_ms), "SECONDS", NULL,
	  "end a flow after this time without traffic (default 15)" },
	{ 0, "per-interface", ARGS_SWITCH, FIELD(per_interface), NULL, NULL,
	  "one record per interface and direction where a flow is seen" },
	{ 0, "timestamps", ARGS_CHOICE, FIELD(timestamps), "coarse|precise",
	  timestamps,
	  "accuracy of a flow's last packet (default coarse: a timer tick)" },
	{ 0, "max-flows", ARGS_NUMBER32, FIELD(max_flows), "N", NULL,
	  "upper bound of flows in an interval (default 1048576)" },
	{ 0, "max-memory", ARGS_BYTES, FIELD(max_memory), "BYTES", NULL,
	  "upper bound of memory for new flows, such as 64M (default: as --max-flows needs)" },
	{ 0, "attach", ARGS_CHOICE, FIELD(attach), "auto|tcx|clsact",
	  flows_attachments, "how to attach to interfaces (default auto)" },
	{ 0, "attach-order", ARGS_CHOICE, FIELD(attach_order), "first|last",
	  attach_orders,
	  "run before or after other tcx programs (default first)" },
	{ 'r', "read", ARGS_LIST, FIELD(files), "FILE", NULL,
	  "read packets from a pcap or pcapng file (- for stdin); repeatable" },
	{ 0, "live", ARGS_SWITCH, FIELD(live), NULL, NULL,
	  "show the records of the running service instead of observing" },
	{ 0, "socket", ARGS_STRING, FIELD(socket), "PATH", NULL,
	  "with --live: the socket of the service (default " CONTROL_SOCKET ")" },
	{ 0, "metrics", ARGS_STRING, FIELD(metrics.listen), "ADDRESS", NULL,
	  "serve metrics over HTTP at ADDRESS:PORT or unix:PATH" },
	{ 0, "metrics-listen-any", ARGS_SWITCH, FIELD(metrics.listen_any), NULL,
	  NULL, "allow --metrics at other than loopback addresses" },
	{ 0, "metrics-tls-cert", ARGS_STRING, FIELD(metrics.tls_cert), "FILE",
	  NULL, "serve metrics over HTTPS with this certificate" },
	{ 0, "metrics-tls-key", ARGS_STRING, FIELD(metrics.tls_key), "FILE",
	  NULL, "the key of the certificate" },
	{ 0, "metrics-tls-ca", ARGS_STRING, FIELD(metrics.tls_ca), "FILE", NULL,
	  "serve only clients that have a certificate of this authority" },
	{ 0, "metrics-textfile", ARGS_STRING, FIELD(metrics.textfile), "FILE",
	  NULL, "write metrics to FILE after each interval" },
	{ 0, "stats", ARGS_SWITCH, FIELD(stats), NULL, NULL,
	  "at the end, print statistics of all packets on stderr" },
	{ 'v', "verbose", ARGS_REPEAT, FIELD(verbose), NULL, NULL,
	  "log more to stderr; -vv: still more" },
	{ 0 }
};

const struct args_command flows_command = {
	.name = "flows",
	.summary = "Show the flows that cross this host's interfaces",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = FIELD(filter_words),
	.notes =
		"FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7).\n"
		"Without -i, all interfaces are observed, including new ones.\n"
		"KEY is src, dst, client, service, host, tuple, pair, port, proto, interface,\n"
		"direction, vlan, tunnel, process, container or pod. The live table groups by\n"
		"client,service without --by.\n"
		"Without -o, the output is table on a terminal, json otherwise.\n"
		"SECONDS may have a fraction, such as 0.5, or a unit, such as 90s or 5m.\n",
};

/* What is observed, and how, is the configuration of a running service, or is in a file. */
static int check_source(const struct flows_config *config)
{
	const struct {
		bool is_given, is_of_packets; /* of a file as well */
		const char *option;
	} options_given[] = {
		{ config->interfaces.n, false, "-i" },
		{ config->exclude.n, false, "-x" },
		{ config->direction >= 0, false, "--direction" },
		{ config->attach >= 0, false, "--attach" },
		{ config->attach_order >= 0, false, "--attach-order" },
		{ config->metrics.listen, false, "--metrics" },
		{ config->metrics.textfile, false, "--metrics-textfile" },
		{ config->files.n, true, "-r" },
		{ config->filter_words.n, true, "FILTER" },
		{ config->rules_path, true, "--rules" },
		{ config->interval_ms, true, "--interval" },
		{ config->sampling, true, "--sampling" },
		{ config->rtt, true, "--rtt" },
		{ config->process, false, "--process" },
		{ config->max_connections, true, "--max-connections" },
		{ config->min_bytes, true, "--min-bytes" },
		{ config->active_ms, true, "--active-timeout" },
		{ config->idle_ms, true, "--idle-timeout" },
		{ config->per_interface, true, "--per-interface" },
		{ config->timestamps >= 0, true, "--timestamps" },
		{ config->max_flows, true, "--max-flows" },
		{ config->max_memory, true, "--max-memory" },
		{ config->stats, true, "--stats" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(options_given); i++) {
		if (!options_given[i].is_given ||
		    !(config->live ||
		      (config->files.n && !options_given[i].is_of_packets)))
			continue;
		args_complain(config->command, "%s: cannot be combined with %s",
			      options_given[i].option,
			      config->live ?
				      "--live: the service has a configuration" :
				      "-r, which observes no interface");
		return -1;
	}
	return 0;
}

static int check_combinations(const struct flows_config *config)
{
	size_t n_stdin = 0;

	for (size_t i = 0; i < config->files.n; i++)
		n_stdin += !strcmp(config->files.items[i], "-");
	if (n_stdin > 1)
		args_complain(config->command,
			      "-r: standard input can be read only once");
	else if (config->socket && !config->live)
		args_complain(config->command, "--socket: it is for --live");
	else if (config->max_connections && !config->rtt && !config->live)
		args_complain(config->command,
			      "--max-connections: it is for --rtt");
	else if (config->files.n && config->duration_ms)
		args_complain(
			config->command,
			"-d: cannot be combined with -r, which observes no interface");
	else
		return check_source(config);
	return -1;
}

static int check_live_output(const struct flows_config *config)
{
	const struct output *output = config->outputs;

	if (!config->live ||
	    (config->n_outputs == 1 &&
	     (output->kind != &output_sink || !strcmp(output->spec, "json"))))
		return 0;
	args_complain(config->command,
		      "-o: with --live it is one of table and json");
	return -1;
}

const struct args_option *flows_config_find(const char *name)
{
	for (const struct args_option *option = options; option->name; option++)
		if (!strcmp(option->name, name))
			return option;
	return NULL;
}

/* A shell's pattern, which the library would take for a name. */
bool flows_check_interface(const char *name, char *ret_why, size_t size)
{
	if (*name == '/' || !strncmp(name, "netns:", 6) ||
	    !strpbrk(name, "*?[") || if_nametoindex(name))
		return true;
	snprintf(ret_why, size,
		 "no such interface; patterns are regular expressions between "
		 "slashes, such as /^veth/");
	return false;
}

static int check_names(const struct flows_config *config,
		       const struct args_list *names, const char *option)
{
	char why[160];

	for (size_t i = 0; i < names->n; i++) {
		if (flows_check_interface(names->items[i], why, sizeof(why)))
			continue;
		args_complain(config->command, "%s '%s': %s", option,
			      names->items[i], why);
		return -1;
	}
	return 0;
}

static int check_output(const struct flows_config *config, const char *spec)
{
	char why[160];

	if (!output_refuse(spec, why, sizeof(why)))
		return 0;
	args_complain(config->command, "-o '%s': %s", spec, why);
	return -1;
}

static int parse_outputs(struct flows_config *config)
{
	static const char *const by_default[] = { NULL };
	const char *const *specs = by_default;
	size_t n = 1, on_stdout = 0;

	if (config->output_specs.n) {
		specs = config->output_specs.items;
		n = config->output_specs.n;
	}
	config->outputs = calloc(n, sizeof(*config->outputs));
	if (!config->outputs)
		args_out_of_memory(config->command);
	for (; config->n_outputs < n; config->n_outputs++) {
		struct output *output = &config->outputs[config->n_outputs];

		if (specs[config->n_outputs] &&
		    check_output(config, specs[config->n_outputs]) < 0)
			return -1;
		*output = output_of(specs[config->n_outputs], config->has_screen);
		if (config->is_tcp)
			output->kind = output->kind == &output_live ?
					       &output_tcp :
					       &output_tcp_lines;
		else if (output->kind == &output_live && config->is_top)
			output->kind = &output_top;
		on_stdout += output->is_stdout;
		if (config->is_alerts &&
		    output_take_records(output, "alert", &output_alerts) < 0)
			args_out_of_memory(config->command);
	}
	if (on_stdout > 1) {
		args_complain(config->command, "%s", OUTPUT_STDOUT_TWICE);
		return -1;
	}
	return 0;
}

static int refuse_view(const struct flows_config *config, const char *option,
		       const char *value, const char *why)
{
	args_complain(config->command, "%s%s%s%s: %s", option,
		      value ? " '" : "", value ?: "", value ? "'" : "", why);
	return -1;
}

/* The output that shows rows; NULL: there is none. */
static struct output *find_viewer(const struct flows_config *config)
{
	for (size_t i = 0; i < config->n_outputs; i++)
		if (output_is_for_people(&config->outputs[i]) ||
		    config->outputs[i].kind == &output_groups)
			return &config->outputs[i];
	return NULL;
}

static int group_outputs(struct flows_config *config)
{
	for (size_t i = 0; i < config->n_outputs; i++) {
		if (output_take_groups(&config->outputs[i]))
			continue;
		args_complain(config->command,
			      "-o '%s': it takes flows only; groups (--by) go to "
			      "standard output, as table or json",
			      config->outputs[i].spec);
		return -1;
	}
	return 0;
}

/*
 * On a host with many connections, the rows of a screen would differ in the client's port
 * only; who talks to which service is what fits on it.
 */
static int parse_by(struct flows_config *config)
{
	const struct output *viewer = find_viewer(config);
	char why[192];

	if (config->by && by_parse(config->by, &config->view.by, why, sizeof(why)))
		return refuse_view(config, "--by", config->by, why);
	if (config->view.by.of_process && config->files.n)
		return refuse_view(
			config, "--by", config->by,
			"a file does not have the processes of its packets");
	config->view.by.shows_rtt = config->rtt;
	config->process |= config->view.by.of_process && !config->live;
	if (config->view.by.n)
		return group_outputs(config);
	if (!config->by && viewer && output_is_screen(viewer))
		by_parse("client,service", &config->view.by, why, sizeof(why));
	return 0;
}

/* Of connections, which have columns of their own. */
static int parse_tcp_view(struct flows_config *config)
{
	struct output *output = config->outputs;

	config->view.want_names = config->want_names;
	config->view.top = config->top;
	config->view.by.shows_process = config->process;
	output->view = &config->view;
	output->conns_sort = config->conns_sort;
	return 0;
}

static int parse_view(struct flows_config *config)
{
	struct view_options *view = &config->view;
	struct output *viewer;
	bool is_lines;
	char why[192];

	if (config->is_tcp)
		return parse_tcp_view(config);
	if (config->is_alerts)
		return 0;
	if (parse_by(config) < 0)
		return -1;
	viewer = find_viewer(config);
	if (!viewer && (config->sort || config->top))
		return refuse_view(config, config->sort ? "--sort" : "--top",
				   NULL,
				   "records are sent as they come; for rows in an "
				   "order, use -o table or --by");
	if (config->want_names && (!viewer || !output_is_for_people(viewer)))
		return refuse_view(config, "-N", NULL,
				   "only a table has names: use -o table");
	if (!viewer)
		return 0;
	viewer->view = view;
	view->by.shows_process = config->process;
	is_lines = !output_is_screen(viewer);
	view->top = config->top;
	view->want_names = config->want_names;
	view->order.sort = view->by.n || !is_lines ? SORT_BYTES : SORT_TIME;
	if (config->sort && view_parse_sort(config->sort, &view->by, is_lines,
					    &view->order, why, sizeof(why)))
		return refuse_view(config, "--sort", config->sort, why);
	return 0;
}

bool flows_parse_sampling(struct flows_config *config, char *ret_why, size_t size)
{
	static const char prefix[] = "flow:";
	const char *text = config->sampling;
	const bool is_of_flows = text && !strncmp(text, prefix, strlen(prefix));
	uint64_t interval = 1;

	if (text && value_parse(VALUE_NUMBER,
				is_of_flows ? text + strlen(prefix) : text, 1,
				UINT32_MAX, &interval)) {
		snprintf(ret_why, size,
			 "'%s' is not a whole number from 1 to 4294967295, or "
			 "flow: and such a number",
			 text);
		return false;
	}
	if (is_of_flows)
		config->sampling_mode = NETOBS_SAMPLE_FLOWS;
	config->sampling_interval = interval > 1 ? (uint32_t)interval : 0;
	return true;
}

static void describe(struct flows_config *config)
{
	const size_t size = sizeof(config->subject);
	char *text = config->subject;
	size_t used = 0;

	/* First, so that few screens are too narrow for it. */
	if (config->sampling_interval)
		used = (size_t)snprintf(text, size, "1 of %u %s of ",
					config->sampling_interval,
					human_sampled(config->sampling_mode));
	for (size_t i = 0; i < config->files.n && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s",
					 i ? ", " : "", config->files.items[i]);
	if (!config->files.n && !config->interfaces.n)
		used += (size_t)snprintf(text + used, size - used,
					 "all interfaces");
	for (size_t i = 0; i < config->interfaces.n && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s",
					 i ? ", " : "",
					 config->interfaces.items[i]);
	for (size_t i = 0; i < config->exclude.n && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s",
					 i ? ", " : " but not ",
					 config->exclude.items[i]);
	if (config->direction > 0 && used < size)
		used += (size_t)snprintf(text + used, size - used, " (%s)",
					 flows_directions[config->direction]);
	if (config->filter && used < size)
		snprintf(text + used, size - used, ": %s", config->filter);
	if (config->rules_path && used < size)
		snprintf(text + used, size - used, ": rules of %s",
			 config->rules_path);
	human_clean(text);
}

int flows_join_filter(const struct args_command *for_command,
		      const struct args_list *words, char **ret_filter)
{
	size_t size = 1;
	char *end;

	if (!words->n)
		return 0;
	if (words->n == 1 && if_nametoindex(words->items[0])) {
		args_complain(for_command,
			      "'%s': to observe this interface: -i %s",
			      words->items[0], words->items[0]);
		return -1;
	}
	for (size_t i = 0; i < words->n; i++)
		size += strlen(words->items[i]) + 1;
	end = malloc(size);
	if (!end)
		args_out_of_memory(for_command);
	*ret_filter = end;
	for (size_t i = 0; i < words->n; i++)
		end += sprintf(end, "%s%s", i ? " " : "", words->items[i]);
	return 0;
}

static int read_rules(struct flows_config *config)
{
	char why[512];

	if (!config->rules_path)
		return 0;
	if (config->filter)
		snprintf(why, sizeof(why),
			 "it cannot be combined with an expression, which can be a rule: '%.200s'",
			 config->filter);
	else if (rules_read(config->rules_path, true, &config->rules, why,
			    sizeof(why)))
		return 0;
	args_complain(config->command, "--rules: %s", why);
	return -1;
}

bool flows_check_interval(uint32_t interval_ms, char *ret_why, size_t size)
{
	if (!interval_ms || interval_ms >= MIN_INTERVAL_MS)
		return true;
	snprintf(ret_why, size, "it must be at least %d ms", MIN_INTERVAL_MS);
	return false;
}

static int check_values(struct flows_config *config)
{
	char why[320];

	if (!flows_check_interval(config->interval_ms, why, sizeof(why)))
		args_complain(config->command, "--interval: %s", why);
	else if (!flows_parse_sampling(config, why, sizeof(why)))
		args_complain(config->command, "--sampling: %s", why);
	else if (!metrics_check(&config->metrics, "--metrics-listen-any", why,
				sizeof(why)))
		args_complain(config->command, "--metrics: %s", why);
	else
		return 0;
	return -1;
}

void flows_config_init(struct flows_config *config,
		       const struct args_command *command)
{
	*config = (struct flows_config){ .command = command,
					 .direction = -1,
					 .timestamps = -1,
					 .attach = -1,
					 .attach_order = -1,
					 .conns_sort = -1 };
}

enum args_result flows_config_one_output(struct flows_config *config)
{
	static const char *const table = "table";
	const struct args_list *specs = &config->output_specs;
	const char *spec = specs->n ? specs->items[0] : table;

	if (specs->n > 1 || (strcmp(spec, table) && strcmp(spec, "json"))) {
		args_complain(
			config->command,
			"-o: it is either table or json; netobsctl flows has others");
		return ARGS_WRONG;
	}
	if (specs->n)
		return ARGS_RUN;
	config->output_specs.items = calloc(2, sizeof(*specs->items));
	if (!config->output_specs.items)
		args_out_of_memory(config->command);
	config->output_specs.items[0] = table;
	config->output_specs.n = 1;
	return ARGS_RUN;
}

void flows_config_observe_once(struct flows_config *config)
{
	if (!config->once || config->files.n)
		return;
	config->duration_ms = config->interval_ms;
	config->interval_ms = 2 * config->duration_ms;
}

enum args_result flows_config_finish(struct flows_config *config)
{
	if (check_combinations(config) < 0 || check_values(config) < 0 ||
	    check_names(config, &config->interfaces, "-i") < 0 ||
	    check_names(config, &config->exclude, "-x") < 0 ||
	    flows_join_filter(config->command, &config->filter_words,
			      &config->filter) < 0 ||
	    read_rules(config) < 0 || parse_outputs(config) < 0 ||
	    check_live_output(config) < 0 || parse_view(config) < 0)
		return ARGS_WRONG;

	describe(config);
	for (size_t i = 0; i < config->n_outputs; i++) {
		config->outputs[i].subject = config->subject;
		config->outputs[i].is_file = config->files.n;
		config->outputs[i].sampling = config->sampling_interval;
		config->outputs[i].sampling_mode = config->sampling_mode;
		config->outputs[i].interval_ms = config->interval_ms ?
							 config->interval_ms :
							 DEFAULT_INTERVAL_MS;
	}
	return ARGS_RUN;
}

void flows_config_clear(struct flows_config *config)
{
	args_list_clear(&config->interfaces);
	args_list_clear(&config->exclude);
	args_list_clear(&config->files);
	args_list_clear(&config->output_specs);
	args_list_clear(&config->filter_words);
	args_list_clear(&config->alert_specs);
	alert_rules_clear(&config->alerts);
	free(config->filter);
	config->filter = NULL;
	rules_clear(&config->rules);
	for (size_t i = 0; i < config->n_outputs; i++)
		output_done(&config->outputs[i]);
	free(config->outputs);
	config->outputs = NULL;
	config->n_outputs = 0;
}
