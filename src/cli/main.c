/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <netobs/version.h>

#include "service/options/args.h"
#include "cmd.h"
#include "base/options.h"

static const struct verb {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
} verbs[] = {
#define VERB(name, summary) { #name, summary, cmd_##name },
#include "catalogue/verbs.def"
	{ NULL, NULL, NULL }
};

static const struct verb *find_verb(const char *name)
{
	for (const struct verb *verb = verbs; verb->name; verb++) {
		if (!strcmp(verb->name, name))
			return verb;
	}
	return NULL;
}

static int print_usage(FILE *file)
{
	fprintf(file,
		"Usage: netobsctl VERB [OPTIONS]\n"
		"       netobsctl -h | --help | --version\n"
		"Observe the network flows of this host, down to every packet.\n\nVerbs:\n");
	for (const struct verb *verb = verbs; verb->name; verb++)
		fprintf(file, "  %-8s %s\n", verb->name, verb->summary);
	fprintf(file, "\n'netobsctl VERB -h' lists a verb's options.\n"
		      "Manual page: netobsctl(8)\n");
	return file == stdout ? EXIT_FINE : EXIT_USAGE;
}

static int refuse_verb(const char *name)
{
	struct suggestion suggestion = suggestion_for(name, strlen(name));
	const char *best;

	for (const struct verb *verb = verbs; verb->name; verb++)
		suggestion_offer(&suggestion, verb->name);
	best = suggestion_best(&suggestion);
	fprintf(stderr, "netobsctl: unknown %s '%s'%s%s%s\nTry 'netobsctl -h'.\n",
		*name == '-' ? "option" : "verb", name,
		best ? "; did you mean '" : "", best ? best : "",
		best ? "'?" : "");
	return EXIT_USAGE;
}

int cmd_help(int argc, char **argv)
{
	const struct verb *verb;

	if (argc < 2 || !strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))
		return print_usage(stdout);
	verb = find_verb(argv[1]);
	if (!verb)
		return refuse_verb(argv[1]);
	if (argc > 2) {
		fprintf(stderr,
			"netobsctl help: '%s': help explains one verb\n"
			"Try 'netobsctl -h'.\n",
			argv[2]);
		return EXIT_USAGE;
	}
	if (verb->run == cmd_help)
		return print_usage(stdout);
	return verb->run(2, (char *[]){ argv[1], (char[]){ "-h" }, NULL });
}

static int dispatch_verb(int argc, char **argv)
{
	const struct verb *verb;

	if (argc < 2)
		return print_usage(stderr);
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))
		return print_usage(stdout);
	/* Accept it as an option, also of a verb, and as a verb. */
	if (!strcmp(argv[argc - 1], "--version") ||
	    (argc == 2 && !strcmp(argv[1], "version")))
		return printf("netobsctl %s\n", netobs_version()) < 0 ?
			       EXIT_FAILED :
			       EXIT_FINE;
	verb = find_verb(argv[1]);
	return verb ? verb->run(argc - 1, argv + 1) : refuse_verb(argv[1]);
}

/*
 * Closed standard descriptors would be given to BPF objects, which would then
 * be written to. Read-only, standard output fails as it did before.
 */
static void fill_standard_fds(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			open("/dev/null",
			     fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
	}
}

/* A spool on disk has a descriptor for each of its files; a long backlog, thousands. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit); /* on failure, the limit stays as it is */
}

int main(int argc, char **argv)
{
	int status;

	fill_standard_fds();
	allow_descriptors();
	signal(SIGPIPE, SIG_IGN);
	status = dispatch_verb(argc, argv);
	if (fflush(stdout) == 0 || errno == EPIPE)
		return status;
	fprintf(stderr, "netobsctl: cannot write to standard output: %s\n",
		strerror(errno));
	return EXIT_FAILED;
}
