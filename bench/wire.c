/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "wire.h"

#include "bench.h"
#include "attach/tcx.h"
#include "base/util.h"
#include "host/netns.h"
#include "host/rtnl.h"

#include <bpf/bpf.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/veth.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { BATCH = 64, SETTLE_MS = 10 };

#define NEAR_END "bench0"
#define FAR_END "bench1"

/* ---- Netlink: one request for one thing ------------------------------------- */

struct wire_request {
	struct nlmsghdr header;
	struct ifinfomsg link;
	char attrs[256];
};

static struct rtattr *request_add(struct wire_request *request, uint16_t type,
				  const void *data, size_t len)
{
	uint32_t at = NLMSG_ALIGN(request->header.nlmsg_len);
	struct rtattr *attr = (void *)((char *)request + at);

	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(attr), data, len);
	request->header.nlmsg_len = at + RTA_ALIGN(attr->rta_len);
	return attr;
}

/* All that was added since @attr is in it. */
static void request_close(const struct wire_request *request, struct rtattr *attr)
{
	attr->rta_len = (const char *)request + request->header.nlmsg_len -
			(const char *)attr;
}

/* About a link that is up. */
static struct wire_request request_new(uint16_t flags)
{
	return (struct wire_request){
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
			    .nlmsg_type = RTM_NEWLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags },
		.link = { .ifi_flags = IFF_UP, .ifi_change = IFF_UP },
	};
}

/* On a socket of rtnl_open(), which it closes; or returns the error that is in its place. */
static int request_send(const struct wire_request *request, int socket_fd)
{
	cleanup_fd int fd = socket_fd;
	struct {
		struct nlmsghdr header;
		struct nlmsgerr body;
		char request[sizeof(*request)];
	} answer;

	if (fd < 0)
		return fd;
	if (send(fd, request, request->header.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < 0)
		return -errno;
	return answer.body.error;
}

/* A veth pair: one end here, the other in namespace @receiver, where it is not up yet. */
static int make_pair(int receiver)
{
	struct wire_request request = request_new(NLM_F_CREATE | NLM_F_EXCL);
	const struct ifinfomsg far_end = { 0 };
	struct rtattr *info, *data, *peer;

	request_add(&request, IFLA_IFNAME, NEAR_END, sizeof(NEAR_END));
	info = request_add(&request, IFLA_LINKINFO, NULL, 0);
	request_add(&request, IFLA_INFO_KIND, "veth", strlen("veth"));
	data = request_add(&request, IFLA_INFO_DATA, NULL, 0);
	peer = request_add(&request, VETH_INFO_PEER, &far_end, sizeof(far_end));
	request_add(&request, IFLA_IFNAME, FAR_END, sizeof(FAR_END));
	request_add(&request, IFLA_NET_NS_FD, &receiver, sizeof(receiver));
	request_close(&request, peer);
	request_close(&request, data);
	request_close(&request, info);
	return request_send(&request, rtnl_open(0));
}

static int set_far_end_up(int receiver)
{
	struct wire_request request = request_new(0);

	request_add(&request, IFLA_IFNAME, FAR_END, sizeof(FAR_END));
	return request_send(&request, rtnl_open_in(receiver, 0));
}

/* ---- Namespaces -------------------------------------------------------------- */

/* Else the kernel sends packets of its own. */
static void disable_ipv6(void)
{
	static const char path[] = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1", 1) < 0)
		fprintf(stderr, "netobsctl bench: %s: %s\n", path,
			strerror(errno));
}

/* Move this thread into a new namespace. */
static int enter_new_netns(void)
{
	if (unshare(CLONE_NEWNET))
		return -errno;
	disable_ipv6();
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
	err = err ?: make_pair(wire->receiver);
	return err ?: set_far_end_up(wire->receiver);
}

/* ---- Senders ----------------------------------------------------------------- */

struct wire_sender {
	int fd;
	enum traffic traffic; /* of the frames */
	uint8_t frames[BATCH][FRAME];
	struct iovec parts[BATCH];
	struct mmsghdr messages[BATCH];
};

static int sender_open(struct wire_sender *sender)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET,
				       .sll_ifindex = if_nametoindex(NEAR_END) };

	/* Protocol 0: it receives nothing. */
	sender->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (sender->fd < 0 ||
	    bind(sender->fd, (struct sockaddr *)&address, sizeof(address)))
		return -errno;
	sender->traffic = TRAFFICS;
	for (int i = 0; i < BATCH; i++) {
		sender->parts[i] = (struct iovec){ sender->frames[i], FRAME };
		sender->messages[i].msg_hdr.msg_iov = &sender->parts[i];
		sender->messages[i].msg_hdr.msg_iovlen = 1;
	}
	return 0;
}

static void sender_prepare(struct wire_sender *sender, enum traffic traffic)
{
	if (sender->traffic == traffic)
		return;
	for (int i = 0; i < BATCH; i++)
		frame_make(traffic, sender->frames[i]);
	sender->traffic = traffic;
}

/* Each packet once, also where the other end has no room for it: it passed egress. */
static int sender_flush(struct wire_sender *sender, uint32_t n)
{
	uint32_t done = 0;

	while (done < n) {
		int ret = sendmmsg(sender->fd, &sender->messages[done],
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

int wire_send(const struct wire *wire, uint32_t cpu, uint32_t n, uint32_t *ret_ns)
{
	struct wire_sender *sender = &wire->senders[cpu];
	int64_t start = clock_ns(CLOCK_MONOTONIC);
	uint32_t flows[BATCH], left = n, batch;
	int err = 0;

	assert(n);
	sender_prepare(sender, wire->spread->traffic);
	for (; left && !err; left -= batch) {
		batch = min_u64(left, BATCH);
		spread_take(wire->spread, cpu, flows, batch);
		for (uint32_t i = 0; i < batch; i++)
			spread_write(wire->spread, sender->frames[i], flows[i]);
		err = sender_flush(sender, batch);
	}
	*ret_ns = (clock_ns(CLOCK_MONOTONIC) - start + n / 2) / n;
	return err;
}

static int open_senders(struct wire *wire)
{
	uint32_t n = wire->spread->n_cpus;
	int err = 0;

	wire->senders = calloc(n, sizeof(*wire->senders));
	if (!wire->senders)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		wire->senders[i].fd = -1;
	for (uint32_t i = 0; i < n && !err; i++)
		err = sender_open(&wire->senders[i]);
	return err;
}

static void close_senders(struct wire *wire)
{
	for (uint32_t i = 0; wire->senders && i < wire->spread->n_cpus; i++)
		close_fd(&wire->senders[i].fd);
	free(TAKE_PTR(wire->senders));
}

/* ---- The whole --------------------------------------------------------------- */

int wire_open(struct wire *wire, const struct spread *spread)
{
	int err;

	*wire = (struct wire){
		.spread = spread, .outside = -1, .receiver = -1, .link_fd = -1
	};
	err = build_wire(wire);
	err = err ?: open_senders(wire);
	if (err) {
		fprintf(stderr, "netobsctl bench: cannot make a veth pair: %s\n",
			strerror(-err));
		wire_close(wire);
	}
	return err;
}

void wire_close(struct wire *wire)
{
	wire_detach(wire);
	close_senders(wire);
	close_fd(&wire->receiver);
	if (wire->outside >= 0)
		netns_leave(TAKE_FD(wire->outside));
}

static int link_far_end(const struct wire *wire, int prog_fd)
{
	int back, link, err = netns_enter(wire->receiver, &back);

	if (err)
		return err;
	link = tcx_link(prog_fd, if_nametoindex(FAR_END), INGRESS,
			NETOBS_ATTACH_FIRST);
	netns_leave(back);
	return link;
}

int wire_attach(struct wire *wire, enum direction direction, int prog_fd)
{
	int err = 0;

	if (wire->link_fd >= 0 && wire->direction != direction)
		wire_detach(wire);
	if (wire->link_fd >= 0) {
		err = bpf_link_update(wire->link_fd, prog_fd, NULL);
	} else {
		int link = direction == INGRESS ?
				   link_far_end(wire, prog_fd) :
				   tcx_link(prog_fd, if_nametoindex(NEAR_END),
					    direction, NETOBS_ATTACH_FIRST);

		wire->link_fd = link;
		wire->direction = direction;
		err = link < 0 ? link : 0;
	}
	if (err)
		fprintf(stderr,
			"netobsctl bench: --live needs tcx links, as of Linux 6.6: %s\n",
			strerror(-err));
	return err;
}

void wire_detach(struct wire *wire)
{
	close_fd(&wire->link_fd);
}

uint64_t wire_sent(const struct wire *wire)
{
	unsigned long long sent, dropped, found = 0;
	FILE *file;
	char line[512];

	/* The queue between the ends is worked off meanwhile. */
	if (wire->direction == INGRESS)
		usleep(1000 * SETTLE_MS);
	file = fopen("/proc/thread-self/net/dev", "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line,
			   " " NEAR_END ": %*u %*u %*u %*u %*u %*u %*u %*u"
			   " %*u %llu %*u %llu",
			   &sent, &dropped) != 2)
			continue;
		/* What the other end refused has passed the sender's hook only. */
		found = sent + (wire->direction == EGRESS ? dropped : 0);
	}
	fclose(file);
	return found;
}
