// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * kernelrtt FILE COMMAND...
 *
 * runs COMMAND in a control group of its own, and writes a line to FILE for each round-trip time
 * that the kernel takes of a TCP connection that it opens, and the least one until then:
 * microseconds. These are those of BPF_SOCK_OPS_RTT_CB, about one per round trip, also of the
 * FIN. Ends as COMMAND does.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdint.h>

#include "own_group.h"

#include "kernelrtt.skel.h"

enum { POLL_MS = 50 };

static int print_sample(void *file, void *data, size_t size)
{
	uint32_t us[2];

	(void)size;
	memcpy(us, data, sizeof(us));
	fprintf(file, "%u %u\n", us[0], us[1]);
	return 0;
}

static int follow(pid_t pid, struct kernelrtt_bpf *skel, FILE *file)
{
	struct ring_buffer *ring = ring_buffer__new(
		bpf_map__fd(skel->maps.samples), print_sample, file, NULL);
	int status;

	if (!ring)
		fail("ring buffer");
	while (!waitpid(pid, &status, WNOHANG)) {
		if (is_ended) /* the group can be removed behind it */
			kill(pid, SIGKILL);
		ring_buffer__poll(ring, POLL_MS);
	}
	ring_buffer__consume(ring);
	ring_buffer__free(ring);
	if (skel->bss->lost) {
		fprintf(stderr, "kernelrtt: %u samples were lost\n",
			skel->bss->lost);
		return EXIT_UNABLE;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_UNABLE;
}

int main(int argc, char **argv)
{
	struct kernelrtt_bpf *skel;
	FILE *file;
	int group, code;

	if (argc < 3) {
		fprintf(stderr, "kernelrtt: see the head of kernelrtt.c\n");
		return 2;
	}
	signal(SIGTERM, end);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	file = fopen(argv[1], "we");
	if (!file)
		fail(argv[1]);
	group = make_group();
	skel = kernelrtt_bpf__open_and_load();
	if (!skel || bpf_prog_attach(bpf_program__fd(skel->progs.watch), group,
				     BPF_CGROUP_SOCK_OPS, 0))
		fail("sockops");
	code = follow(start(group, argv + 2), skel, file);
	kernelrtt_bpf__destroy(skel);
	if (fclose(file))
		fail(argv[1]);
	return code;
}
