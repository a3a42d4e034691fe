/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Lines of JSON that a program prints, such as ssh, which is not waited for. Whatever it sends,
 * memory and the time to read are bounded.
 */
#ifndef NETOBS_CLI_DIAGNOSE_RECORD_SOURCE_H
#define NETOBS_CLI_DIAGNOSE_RECORD_SOURCE_H

#include <sys/types.h>

#include <netobs/alert.h>
#include <netobs/diagnosis.h>

#include "cli/annotate/record_input.h"

struct record_source {
	const char *name; /* for messages; the caller's */
	pid_t pid;	  /* 0: there is no program */
	struct record_input output;
	int errors; /* its standard error */
	bool has_ended;
	uint64_t records, rubbish; /* lines that were taken, and that were not */
	char said[160];		   /* the first line on standard error */
};

/** Run a program. @param has_stdin  it has that of this process. @return 0; -errno */
int record_source_run(struct record_source *ret_source, const char *name,
		      const char *const argv[], bool has_stdin);

/** Run ssh, or @ssh instead, a command of the shell here. @there: one for the shell of @host. @return as above */
int record_source_reach(struct record_source *ret_source, const char *host,
			const char *ssh, const char *there);

/** Follow what is added to a file. @path: "-": standard input. @return as above */
int record_source_follow(struct record_source *ret_source, const char *path);

/**
 * Read what there is, about 1 MiB at most.
 *
 * @param take  gets each object. @return whether it is of use
 * @return whether there may be more
 */
bool record_source_read(struct record_source *source,
			bool (*take)(const char *line, void *user), void *user);

/** Write to the program's standard input what it reads in time. NULL: that was all */
void record_source_tell(const struct record_source *source, const char *text);

/** End the program, if there is one, and print why it was of no use, if so. */
void record_source_close(struct record_source *source);

/** Read the ends, the time and the name of an alert of TCP. @return false: it is none */
bool record_read_alert(const char *line, struct netobs_alert *ret_alert);

enum { RECORD_HOSTS_MAX = NETOBS_DIAGNOSIS_HOSTS_MAX };

/* Hosts whose records are in files: their HostId, or the file, and HostName and AgentIP, as containers share HostId. */
struct record_hosts {
	char names[RECORD_HOSTS_MAX][160];
	unsigned int n;
};

/** @return the number of the host that made a line of a file; RECORD_HOSTS_MAX: there are too many */
unsigned int record_hosts_find(struct record_hosts *hosts, size_t file,
			       const char *line);

/** Quote a word for a POSIX shell. @return the caller's; NULL: of NULL, or there is no memory */
char *shell_quote(const char *word);

#endif
