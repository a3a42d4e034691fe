/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "runner.h"

#include "bench.h"
#include "attach/attach.h"
#include "base/util.h"
#include "host/netns.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NEAR_END "bench0"
#define FAR_END "bench1"

/* ---- The pair: by ip(8) ------------------------------------------------------ */

/* One end here, the other in namespace @receiver; an end cannot be up before there are both. */
static int make_pair(int receiver)
{
	char command[256];
	int back, err;

	snprintf(command, sizeof(command),
		 "ip link add " NEAR_END " up type veth peer name " FAR_END
		 " netns /proc/%d/fd/%d",
		 getpid(), receiver);
	err = system(command) ? -EIO : netns_enter(receiver, &back);
	if (err)
		return err;
	err = system("ip link set " FAR_END " up") ? -EIO : 0;
	netns_leave(back);
	return err;
}

/* ---- Namespaces -------------------------------------------------------------- */

/* Move this thread into a new namespace, without IPv6: else the kernel sends packets of its own. */
static int enter_new_netns(void)
{
	static const char path[] = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
	cleanup_fd int fd = -1;

	if (unshare(CLONE_NEWNET))
		return -errno;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "1", 1) < 0)
		fprintf(stderr, "netobsctl bench: %s: %s\n", path,
			strerror(errno));
	return 0;
}

static int build_wire(struct wire *wire)
{
	int err;

	wire->outside = netns_open_own();
	if (wire->outside < 0)
		return wire->outside;
	err = enter_new_netns();
	if (err)
		return err;
	wire->receiver = netns_open_own();
	if (wire->receiver < 0)
		return wire->receiver;
	err = enter_new_netns();
	return err ?: make_pair(wire->receiver);
}

/* ---- The sender --------------------------------------------------------------- */

static int open_sender(struct wire *wire)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET,
				       .sll_ifindex = if_nametoindex(NEAR_END) };

	/* Protocol 0: it receives nothing. */
	wire->socket_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (wire->socket_fd < 0 ||
	    bind(wire->socket_fd, (struct sockaddr *)&address, sizeof(address)))
		return -errno;
	for (int i = 0; i < WIRE_BATCH; i++) {
		frame_make(wire->frames[i]);
		wire->parts[i] = (struct iovec){ wire->frames[i], FRAME };
		wire->messages[i].msg_hdr.msg_iov = &wire->parts[i];
		wire->messages[i].msg_hdr.msg_iovlen = 1;
	}
	return 0;
}

int wire_send(struct wire *wire, const uint32_t *flows, uint32_t n)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < n; i++)
		frame_set_flow(wire->frames[i], flows[i]);
	/* Each packet once, also where the other end has no room for it: it passed egress. */
	while (done < n) {
		int ret = sendmmsg(wire->socket_fd, &wire->messages[done],
				   n - done, 0);

		if (ret > 0)
			done += ret;
		else if (errno == ENOBUFS)
			done++;
		else if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return 0;
}

/* ---- The whole --------------------------------------------------------------- */

int wire_open(struct wire *wire)
{
	int err;

	*wire = (struct wire){
		.outside = -1, .receiver = -1, .link_fd = -1, .socket_fd = -1
	};
	err = build_wire(wire);
	err = err ?: open_sender(wire);
	if (err)
		wire_close(wire);
	return failure_report("cannot make a veth pair with iproute2", err);
}

void wire_close(struct wire *wire)
{
	wire_detach(wire);
	close_fd(&wire->socket_fd);
	close_fd(&wire->receiver);
	if (wire->outside >= 0)
		netns_leave(TAKE_FD(wire->outside));
}

int wire_attach(struct wire *wire, int prog_fd)
{
	int err;

	if (wire->link_fd >= 0) {
		err = bpf_link_update(wire->link_fd, prog_fd, NULL);
	} else {
		wire->link_fd = tcx_link(prog_fd, if_nametoindex(NEAR_END),
					 EGRESS, NETOBS_ATTACH_FIRST);
		err = min_i64(wire->link_fd, 0);
	}
	return failure_report("--live needs tcx links, as of Linux 6.6", err);
}

void wire_detach(struct wire *wire)
{
	close_fd(&wire->link_fd);
}

uint64_t wire_sent(void)
{
	unsigned long long sent, dropped, found = 0;
	FILE *file = fopen("/proc/thread-self/net/dev", "re");
	char line[512];

	/* What the other end refused has passed the hook, too. */
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line,
			   " " NEAR_END ": %*u %*u %*u %*u %*u %*u %*u %*u"
			   " %*u %llu %*u %llu",
			   &sent, &dropped) == 2)
			found = sent + dropped;
	if (file)
		fclose(file);
	return found;
}
