// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "record_source.h"

#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/json_reader.h"
#include "base/text.h"

enum {
	READ_MAX = 1 << 20, /* bytes at a time */
	RUBBISH_MAX = 100, /* lines that it may send beyond the number of records */
	WAITS = 50,	   /* of 20 ms, for it to end */
};

/* In a process group of its own, so that keys of the terminal reach only this command. */
static _Noreturn void run_child(int fd, int errors, const char *const argv[],
				bool has_stdin)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGPIPE, SIG_DFL);
	if (!has_stdin)
		dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

int record_source_run(struct record_source *ret_source, const char *name,
		      const char *const argv[], bool has_stdin)
{
	cleanup_fd int fd = -1, child_fd = -1, errors = -1, child_errors = -1;
	int fds[2], error_fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	fd = fds[0];
	child_fd = fds[1];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, error_fds))
		return -errno;
	errors = error_fds[0];
	child_errors = error_fds[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		run_child(child_fd, child_errors, argv, has_stdin);
	setpgid(pid, pid); /* whichever process is first */
	fcntl(fd, F_SETFL, O_NONBLOCK);
	*ret_source = (struct record_source){
		.name = name,
		.pid = pid,
		.output = { .path = name, .fd = TAKE_FD(fd) },
		.errors = TAKE_FD(errors),
	};
	return 0;
}

int record_source_reach(struct record_source *ret_source, const char *host,
			const char *ssh, const char *there)
{
	const char *command = ssh ?: getenv("NETOBS_SSH");
	cleanup_free char *here = NULL;

	if (asprintf(&here, "exec %s \"$@\"", command ?: "ssh") < 0)
		return -ENOMEM;
	return record_source_run(
		ret_source, host,
		(const char *const[]){ "sh", "-c", here, "ssh", "-T", "-o",
				       "BatchMode=yes", host, "--", there, NULL },
		false);
}

int record_source_follow(struct record_source *ret_source, const char *path)
{
	const bool is_file = strcmp(path, "-") != 0;
	const char *const argv[] = { is_file ? "tail" : "cat",
				     is_file ? "-n0" : NULL,
				     "-F",
				     "--",
				     path,
				     NULL };

	if (is_file && access(path, R_OK))
		fprintf(stderr, "netobsctl diagnose: %s: %s: waiting for it\n",
			path, strerror(errno));
	return record_source_run(ret_source, path, argv, true);
}

void record_source_tell(const struct record_source *source, const char *text)
{
	if (text)
		send(source->output.fd, text, strlen(text),
		     MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		shutdown(source->output.fd, SHUT_WR);
}

/* Keep the beginning; read all, so that the program can go on. */
static void read_errors(struct record_source *source)
{
	char buf[4096];
	ssize_t n, all = 0;

	while (all < READ_MAX && (n = recv(source->errors, buf, sizeof(buf) - 1,
					   MSG_DONTWAIT)) > 0) {
		buf[n] = '\0';
		text_append(source->said, sizeof(source->said), "%s", buf);
		all += n;
	}
}

bool record_source_read(struct record_source *source,
			bool (*take)(const char *line, void *user), void *user)
{
	struct record_line line;
	size_t bytes = 0;
	int r = 1;

	read_errors(source);
	while (!source->has_ended && bytes < READ_MAX) {
		r = record_input_next(&source->output, &line);
		if (r <= 0)
			break;
		bytes += line.len;
		if (line.kind == LINE_RECORD && take(line.text, user))
			source->records++;
		else if (line.kind != LINE_BLANK)
			source->rubbish++;
	}
	source->has_ended |= (r <= 0 && r != -EAGAIN) ||
			     source->rubbish > RUBBISH_MAX + source->records;
	return !source->has_ended;
}

/* A program that has closed its output may end by itself. @return its status, if it did */
static int end_program(const struct record_source *source)
{
	static const int signals[] = { 0, SIGTERM, SIGKILL };
	int status = 0;

	for (size_t i = !source->has_ended; i < ARRAY_SIZE(signals); i++) {
		if (signals[i])
			kill(-source->pid, signals[i]);
		for (int wait = 0; wait < WAITS; wait++) {
			if (waitpid(source->pid, &status, WNOHANG))
				return i ? 0 : status;
			usleep(20000);
		}
	}
	return 0;
}

void record_source_close(struct record_source *source)
{
	char text[400];
	int status;

	if (!source->pid)
		return;
	record_input_close(&source->output); /* which ends one that writes */
	status = end_program(source);
	read_errors(source);
	close(source->errors);
	source->said[strcspn(source->said, "\n")] = '\0';
	if (source->rubbish)
		snprintf(text, sizeof(text), "%" PRIu64 " lines are no records",
			 source->rubbish);
	else if (status || !source->records)
		snprintf(text, sizeof(text), "it %s",
			 status ? "has failed" : "has sent no records");
	else
		return;
	if (*source->said)
		text_append(text, sizeof(text), ": %s", source->said);
	safe_cell(text);
	fprintf(stderr, "netobsctl diagnose: %s: %s\n", source->name, text);
}

bool record_read_alert(const char *line, struct netobs_alert *ret_alert)
{
	const struct json_value json = json_parse(line);
	struct netobs_alert alert = {
		.record = { .sz = sizeof(alert),
			    .type = NETOBS_RECORD_ALERT,
			    .time_ns = json_signed(json_get(json, "TimeNs")) },
		.client_port = (uint16_t)json_number(json_get(json, "SrcPort")),
		.server_port = (uint16_t)json_number(json_get(json, "DstPort")),
		.protocol = (uint8_t)json_number(json_get(json, "Proto")),
	};
	char type[16], client[48], server[48];

	json_get_text(json, "type", type, sizeof(type));
	json_get_text(json, "Alert", alert.name, sizeof(alert.name));
	json_get_text(json, "SrcAddr", client, sizeof(client));
	json_get_text(json, "DstAddr", server, sizeof(server));
	if (strcmp(type, "alert") != 0 || alert.protocol != IPPROTO_TCP ||
	    !ip_read(client, alert.client) || !ip_read(server, alert.server))
		return false;
	*ret_alert = alert;
	return true;
}

unsigned int record_hosts_find(struct record_hosts *hosts, size_t file,
			       const char *line)
{
	const struct json_value json = json_parse(line);
	char name[sizeof(hosts->names[0])], id[40], host[64], agent[48];
	unsigned int i = 0;

	json_get_text(json, "HostId", id, sizeof(id));
	json_get_text(json, "HostName", host, sizeof(host));
	json_get_text(json, "AgentIP", agent, sizeof(agent));
	if (!*id)
		snprintf(id, sizeof(id), "%zu", file);
	snprintf(name, sizeof(name), "%s %s %s", id, host, agent);
	while (i < hosts->n && strcmp(hosts->names[i], name) != 0)
		i++;
	if (i == hosts->n && i < RECORD_HOSTS_MAX)
		strcpy(hosts->names[hosts->n++], name);
	return i;
}

char *shell_quote(const char *word)
{
	char *quoted = word ? malloc(4 * strlen(word) + 3) : NULL;
	char *to = quoted;

	if (!quoted)
		return NULL;
	*to++ = '\'';
	for (; *word; word++) {
		*to++ = *word;
		if (*word == '\'')
			to = stpcpy(to, "\\''");
	}
	strcpy(to, "'");
	return quoted;
}
