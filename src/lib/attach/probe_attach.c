// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "probe_attach.h"

#include "host/rtnl.h"
#include "tcx.h"
#include "base/util.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <string.h>
#include <sys/socket.h>

/* There is no interface 0. A kernel without tcx does not get as far as to look. */
int probe_attach_tcx(int program_fd)
{
	cleanup_fd int fd = tcx_link(program_fd, 0, INGRESS, NETOBS_ATTACH_FIRST);

	return fd == -ENODEV ? 0 : fd < 0 ? fd : -EINVAL;
}

/*
 * A qdisc for the loopback interface that cannot be made: a shared block has no
 * number 0. net/sched/sch_api.c looks for the kind of qdisc before it looks at
 * that, and at whether there is such a qdisc before either.
 */
struct bad_qdisc {
	struct nlmsghdr header;
	struct tcmsg tc;
	struct rtattr kind;
	char name[8];
	struct rtattr block;
	uint32_t zero;
};

static int request_qdisc(int fd, const struct bad_qdisc *request)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[256];
	} reply = { 0 };

	if (send(fd, request, sizeof(*request), 0) < 0)
		return -errno;
	if (recv(fd, &reply, sizeof(reply), 0) < 0)
		return -errno;
	return reply.header.nlmsg_type == NLMSG_ERROR ? reply.error.error :
							-EPROTO;
}

int probe_attach_qdisc(const char *kind)
{
	enum { LOOPBACK = 1 }; /* in every namespace */
	struct bad_qdisc request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_NEWQDISC,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK |
					   NLM_F_CREATE | NLM_F_EXCL },
		.tc = { .tcm_ifindex = LOOPBACK,
			.tcm_parent = TC_H_CLSACT,
			.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0) },
		.kind = { RTA_LENGTH(strlen(kind) + 1), TCA_KIND },
		.block = { RTA_LENGTH(sizeof(uint32_t)), TCA_INGRESS_BLOCK },
	};
	cleanup_fd int fd = rtnl_open(0);
	int err;

	memcpy(request.name, kind, strnlen(kind, sizeof(request.name) - 1));
	err = fd < 0 ? fd : request_qdisc(fd, &request);
	return err == -EINVAL || err == -EEXIST ? 0 : err ?: -EPROTO;
}
