/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_config.h"

#include <string.h>
#include <unistd.h>

#include "cli/flows/flows_request.h"

enum format { FORMAT_PCAPNG, FORMAT_PCAP };
static const struct args_option options[] = {
#define SELECT_capture OPTION_SELECTED
#define OPTIONS_STRUCT struct capture_config
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "capture",
	.summary = "Capture the packets that cross this host's interfaces",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = offsetof(struct capture_config, filter_words),
	.notes = "FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7).\n"
		 "Without -i, all interfaces are captured at, including new ones.\n"
		 "Without -w and --listen, packets go to stdout if that is not a terminal.\n",
};

static bool is_listen_refused(const struct capture_config *config)
{
	const char *why =
		config->listen ? capture_listen_refuse(config->listen) : NULL;

	if (why)
		args_complain(&command, "--listen '%s': %s", config->listen, why);
	return why;
}

/* @return NULL: no fault */
static const char *find_target_fault(const struct capture_config *config)
{
	const bool is_stdout = !config->out.path ||
			       !strcmp(config->out.path, "-");

	if (config->listen)
		return config->out.path || config->out.rotate_bytes ||
				       config->out.keep ?
			       "--listen: cannot be combined with -w, --rotate "
			       "and --keep" :
			       NULL;
	if (is_stdout && isatty(STDOUT_FILENO))
		return "-w: name a file; or, to read packets on this terminal, add "
		       "'| tcpdump -nr -'";
	if (config->out.rotate_bytes && is_stdout)
		return "--rotate: needs -w FILE; standard output is not rotated";
	if (config->out.keep && !config->out.rotate_bytes)
		return "--keep: needs --rotate";
	return NULL;
}

/* Without --listen, packets go to a file, whose name may give its format. */
static void choose_target(struct capture_config *config)
{
	const char *extension;

	if (config->listen)
		return;
	if (!config->out.path)
		config->out.path = "-";
	extension = strrchr(config->out.path, '.');
	if (config->format < 0)
		config->format = extension && !strcmp(extension, ".pcap") ?
					 FORMAT_PCAP :
					 FORMAT_PCAPNG;
}

static enum args_result check_options(struct capture_config *config)
{
	const char *fault;

	if (is_listen_refused(config))
		return ARGS_WRONG;
	fault = find_target_fault(config);
	choose_target(config);
	if (!fault && config->process && config->format == FORMAT_PCAP)
		fault = "--process: pcap has no place for names of "
			"processes; use --format pcapng";
	if (!fault)
		return ARGS_RUN;
	args_complain(&command, "%s", fault);
	return ARGS_WRONG;
}

enum args_result capture_config_parse(struct capture_config *config, int argc,
				      char **argv)
{
	enum args_result result;

	*config = (struct capture_config){ .format = -1 };
	result = args_parse(&command, argc, argv, config);
	if (result != ARGS_RUN)
		return result;
	if (check_options(config) != ARGS_RUN ||
	    flows_join_filter(&command, &config->filter_words,
			      &config->config.filter) < 0)
		return ARGS_WRONG;
	config->out.format = config->format == FORMAT_PCAP ? NETOBS_PCAP :
							     NETOBS_PCAPNG;
	return ARGS_RUN;
}

void capture_config_clear(struct capture_config *config)
{
	flows_config_clear(&config->config);
	args_list_clear(&config->filter_words);
}

void capture_config_fill(const struct capture_config *config,
			 struct netobs_capture_opts *opts)
{
	const struct flows_config *observed = &config->config;

	*opts = config->opts;
	opts->sz = sizeof(*opts);
	opts->interfaces = observed->interfaces.items;
	opts->exclude = observed->exclude.items;
	opts->filter = observed->filter;
	opts->direction = observed->opts.direction;
	opts->attach_order = observed->opts.attach_order;
	opts->disable_features = flows_attachment_disables(observed->attach);
	opts->flags = config->process ? NETOBS_CAPTURE_PROCESSES : 0;
}
