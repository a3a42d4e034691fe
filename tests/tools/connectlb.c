// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * connectlb [--root] FILE COMMAND...
 *
 * runs COMMAND in a control group of its own, in which connections to the services of FILE go to
 * backends, and datagrams that say where they go to: by programs at that group, or with --root at
 * the root, where they concern all processes. FILE has lines
 *
 *	tcp|udp ADDRESS PORT BACKEND PORT
 *
 * several for a service that has several backends. Ends as COMMAND does; SIGUSR1 detaches the
 * programs before.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/types.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "connectlb.h"
#include "own_group.h"

#include "connectlb.skel.h"

enum { POLL_MS = 20, PROGRAMS = 4 };

static struct bpf_link *links[PROGRAMS];

static volatile sig_atomic_t is_detached;

static void detach(int signal)
{
	(void)signal;
	is_detached = 1;
}

static struct end read_end(const char *address, unsigned int port)
{
	struct end end = { .port = htons((uint16_t)port) };

	end.words[2] = htonl(0xffff);
	if (inet_pton(AF_INET, address, &end.words[3]) != 1 &&
	    inet_pton(AF_INET6, address, end.words) != 1) {
		errno = EINVAL;
		fail(address);
	}
	return end;
}

static void add_backend(int map, const struct service *service,
			const struct end *end)
{
	struct backends backends = { 0 };

	bpf_map_lookup_elem(map, service, &backends);
	if (backends.n == BACKENDS_MAX)
		fail("too many backends");
	backends.ends[backends.n++] = *end;
	if (bpf_map_update_elem(map, service, &backends, BPF_ANY))
		fail("services");
}

static void read_services(const char *path, int map)
{
	char protocol[4], address[64], backend[64];
	FILE *file = fopen(path, "re");
	unsigned int port, backend_port;

	if (!file)
		fail(path);
	while (fscanf(file, "%3s %63s %u %63s %u", protocol, address, &port,
		      backend, &backend_port) == 5) {
		const struct service service = {
			.end = read_end(address, port),
			.protocol = strcmp(protocol, "tcp") ? IPPROTO_UDP :
							      IPPROTO_TCP,
		};
		const struct end end = read_end(backend, backend_port);

		add_backend(map, &service, &end);
	}
	fclose(file);
}

static struct connectlb_bpf *attach(const char *path, int group)
{
	struct connectlb_bpf *skel = connectlb_bpf__open_and_load();
	struct bpf_program *programs[PROGRAMS];

	if (!skel)
		fail("cannot load programs");
	read_services(path, bpf_map__fd(skel->maps.services));
	programs[0] = skel->progs.connect4;
	programs[1] = skel->progs.connect6;
	programs[2] = skel->progs.sendmsg4;
	programs[3] = skel->progs.sendmsg6;
	for (int i = 0; i < PROGRAMS; i++) {
		links[i] = bpf_program__attach_cgroup(programs[i], group);
		if (!links[i])
			fail("cannot attach programs");
	}
	return skel;
}

static int follow(pid_t pid)
{
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (is_ended) /* the group can be removed behind it */
			kill(pid, SIGKILL);
		for (int i = 0; is_detached && i < PROGRAMS; i++) {
			bpf_link__destroy(links[i]);
			links[i] = NULL;
		}
		usleep(POLL_MS * 1000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	const bool at_root = argc > 1 && !strcmp(argv[1], "--root");
	struct connectlb_bpf *skel;
	int group, code;

	argv += at_root;
	if (argc - at_root < 3) {
		fprintf(stderr, "usage: connectlb [--root] FILE COMMAND...\n");
		return EXIT_UNABLE;
	}
	signal(SIGTERM, end);
	signal(SIGINT, end);
	signal(SIGUSR1, detach);
	group = make_group();
	skel = attach(argv[1], at_root ? hierarchy : group);
	code = follow(start(group, argv + 2));
	fprintf(stderr, "connectlb: translated %llu\n",
		(unsigned long long)skel->bss->translated);
	connectlb_bpf__destroy(skel);
	close(group);
	return code;
}
