/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
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

/* NULL: they are complete. */
static const char *find_tls_fault(const struct capture_listen_options *listen)
{
	const char *const files[] = { listen->tls_cert, listen->tls_key,
				      listen->tls_ca };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		n += files[i] != NULL;
	if (listen->is_any && !n)
		return "--listen-any: needs --tls-cert, --tls-key and --tls-ca";
	if (n % ARRAY_SIZE(files))
		return "--tls-cert, --tls-key and --tls-ca need each other";
	if (!listen->spec && n)
		return "--tls-cert: needs --listen";
	return NULL;
}

static int check_tls(const struct capture_listen_options *listen)
{
	const char *fault = find_tls_fault(listen);

	if (fault)
		args_complain(&command, "%s", fault);
	return fault ? -1 : 0;
}

static int check_listen(struct capture_config *config)
{
	const char *why = capture_listen_refuse(&config->listen);

	if (why)
		args_complain(&command, "--listen '%s': %s",
			      config->listen.spec, why);
	else if (config->path || config->rotate_bytes || config->keep)
		args_complain(&command,
			      "--listen: cannot be combined with -w, --rotate "
			      "and --keep");
	else
		return 0;
	return -1;
}

static int check_target(struct capture_config *config)
{
	const char *extension;

	if (check_tls(&config->listen) < 0)
		return -1;
	if (config->listen.spec)
		return check_listen(config);
	if (!config->path)
		config->path = "-";
	if (!strcmp(config->path, "-") && isatty(STDOUT_FILENO)) {
		args_complain(&command,
			      "-w: name a file, or redirect standard output; "
			      "packets are not for a terminal");
		return -1;
	}
	if (config->rotate_bytes && !strcmp(config->path, "-")) {
		args_complain(
			&command,
			"--rotate: needs -w FILE; standard output is not rotated");
		return -1;
	}
	if (config->keep && !config->rotate_bytes) {
		args_complain(&command, "--keep: needs --rotate");
		return -1;
	}
	extension = strrchr(config->path, '.');
	if (config->format < 0)
		config->format = extension && !strcmp(extension, ".pcap") ?
					 FORMAT_PCAP :
					 FORMAT_PCAPNG;
	return 0;
}

/* Of the format, which is known now. */
static int check_process(const struct capture_config *config)
{
	if (!config->process || config->format != FORMAT_PCAP)
		return 0;
	args_complain(&command, "--process: pcap has no place for names of "
				"processes; use --format pcapng");
	return -1;
}

enum args_result capture_config_parse(struct capture_config *config, int argc,
				      char **argv)
{
	enum args_result result;

	*config = (struct capture_config){ .format = -1 };
	result = args_parse(&command, argc, argv, config);
	if (result != ARGS_RUN)
		return result;
	if (check_target(config) < 0 || check_process(config) < 0 ||
	    flows_join_filter(&command, &config->filter_words, &config->filter) <
		    0)
		return ARGS_WRONG;
	config->listen.format = config->format == FORMAT_PCAP ? NETOBS_PCAP :
								NETOBS_PCAPNG;
	config->out = (struct capture_out_options){
		.path = config->path,
		.format = config->listen.format,
		.rotate_bytes = config->rotate_bytes,
		.keep = config->keep,
	};
	return ARGS_RUN;
}

void capture_config_clear(struct capture_config *config)
{
	args_list_clear(&config->interfaces);
	args_list_clear(&config->exclude);
	args_list_clear(&config->filter_words);
	free(config->filter);
	config->filter = NULL;
}

void capture_config_fill(const struct capture_config *config,
			 struct netobs_capture_opts *opts)
{
	opts->filter = config->filter;
#define SELECT_capture OPTION_SELECTED
#include "service/options/option_fill.h"
}
