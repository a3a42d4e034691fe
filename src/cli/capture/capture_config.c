/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "service/observe/flows_config.h"

enum format { FORMAT_PCAPNG, FORMAT_PCAP };
enum direction { DIRECTION_BOTH, DIRECTION_INGRESS, DIRECTION_EGRESS };

static const char *const formats[] = {
	[FORMAT_PCAPNG] = "pcapng", [FORMAT_PCAP] = "pcap", NULL
};

static const char *const directions[] = {
	[DIRECTION_BOTH] = "both", [DIRECTION_INGRESS] = "ingress", [DIRECTION_EGRESS] = "egress", NULL
};

static const char *const attach_orders[] = {
	[NETOBS_ATTACH_FIRST] = "first", [NETOBS_ATTACH_LAST] = "last", NULL
};

#define FIELD(name) offsetof(struct capture_config, name)

static const struct args_option options[] = {
	{ 'i', "interface", ARGS_LIST, FIELD(interfaces), "IF", NULL,
	  "capture at IF: a name, /REGEX/ or netns:NAME/IF; repeatable" },
	{ 'x', "exclude", ARGS_LIST, FIELD(exclude), "IF", NULL,
	  "do not capture at IF: a name or /REGEX/; repeatable" },
	{ 0, "direction", ARGS_CHOICE, FIELD(direction), "both|ingress|egress",
	  directions,
	  "direction of packets, as the interface sees it (default both)" },
	{ 'w', "write", ARGS_STRING, FIELD(path), "FILE", NULL,
	  "write packets to FILE (- for stdout)" },
	{ 0, "listen", ARGS_STRING, FIELD(listen.spec), "ADDRESS", NULL,
	  "capture for readers that connect: 127.0.0.1:PORT or unix:PATH" },
	{ 0, "listen-any", ARGS_SWITCH, FIELD(listen.is_any), NULL, NULL,
	  "let --listen have any address; needs the three of --tls-" },
	{ 0, "tls-cert", ARGS_STRING, FIELD(listen.tls_cert), "FILE", NULL,
	  "certificate that readers are shown, with those of its issuers" },
	{ 0, "tls-key", ARGS_STRING, FIELD(listen.tls_key), "FILE", NULL,
	  "private key of it" },
	{ 0, "tls-ca", ARGS_STRING, FIELD(listen.tls_ca), "FILE", NULL,
	  "authorities whose certificates readers must have" },
	{ 0, "format", ARGS_CHOICE, FIELD(format), "pcapng|pcap", formats,
	  "format (default pcapng, but pcap for FILE.pcap)" },
	{ 0, "rotate", ARGS_BYTES, FIELD(rotate_bytes), "BYTES", NULL,
	  "begin a new file after this size, such as 100M" },
	{ 0, "keep", ARGS_NUMBER32, FIELD(keep), "N", NULL,
	  "with --rotate: remove the oldest files beyond N" },
	{ 0, "process", ARGS_SWITCH, FIELD(process), NULL, NULL,
	  "name the processes that packets come from and go to, in pcapng" },
	{ 's', "snap-length", ARGS_NUMBER32, FIELD(snap_length), "BYTES", NULL,
	  "capture so many bytes of each packet (default 262144)" },
	{ 'c', "count", ARGS_NUMBER, FIELD(count), "COUNT", NULL,
	  "stop after this many packets" },
	{ 'd', "duration", ARGS_SECONDS, FIELD(duration_ms), "SECONDS", NULL,
	  "stop after this time" },
	{ 0, "rate", ARGS_NUMBER32, FIELD(rate), "LIMIT", NULL,
	  "capture at most this many packets per second" },
	{ 'B', "buffer", ARGS_BYTES, FIELD(buffer_bytes), "BYTES", NULL,
	  "kernel memory for packets on their way (default 16M)" },
	{ 0, "attach", ARGS_CHOICE, FIELD(attach), "auto|tcx|clsact",
	  flows_attachments, "how to attach to interfaces (default auto)" },
	{ 0, "attach-order", ARGS_CHOICE, FIELD(attach_order), "first|last",
	  attach_orders,
	  "run before or after other tcx programs (default first)" },
	{ 0, "stats", ARGS_SWITCH, FIELD(stats), NULL, NULL,
	  "at the end, print statistics as JSON on stderr" },
	{ 'v', "verbose", ARGS_REPEAT, FIELD(verbose), NULL, NULL,
	  "log more to stderr; -vv: still more" },
	{ 0 }
};

static const struct args_command command = {
	.name = "capture",
	.summary = "Capture the packets that cross this host's interfaces",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = FIELD(filter_words),
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

	*config = (struct capture_config){
		.direction = -1, .format = -1, .attach = -1, .attach_order = -1
	};
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
	opts->interfaces = config->interfaces.items;
	opts->exclude = config->exclude.items;
	opts->filter = config->filter;
	if (config->direction == DIRECTION_INGRESS)
		opts->direction = NETOBS_INGRESS;
	else if (config->direction == DIRECTION_EGRESS)
		opts->direction = NETOBS_EGRESS;
	if (config->attach_order == NETOBS_ATTACH_LAST)
		opts->attach_order = NETOBS_ATTACH_LAST;
	opts->disable_features = flows_attachment_disables(config->attach);
	opts->snap_length = config->snap_length;
	opts->rate = config->rate;
	opts->flags = config->process ? NETOBS_CAPTURE_PROCESSES : 0;
	opts->buffer_bytes = config->buffer_bytes;
}
