/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flows_config.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGES_SIZE = 32 << 10 }; /* the kernel's parts of a dump fit */

struct visit {
	void (*take)(const char *name, const char *altname, void *arg);
	void *arg;
};

/* The kernel ends each text with a NUL. */
static void visit_list(const struct visit *visit, const char *name,
		       const struct rtattr *list)
{
	const struct rtattr *attr = RTA_DATA(list);
	int len = (int)RTA_PAYLOAD(list);

	for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len))
		if ((attr->rta_type & NLA_TYPE_MASK) == IFLA_ALT_IFNAME)
			visit->take(name, RTA_DATA(attr), visit->arg);
}

static void visit_link(const struct visit *visit, const struct nlmsghdr *message)
{
	const struct rtattr *attr = IFLA_RTA(NLMSG_DATA(message));
	int len = (int)IFLA_PAYLOAD(message);
	const char *name = NULL;

	for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
		const int type = attr->rta_type & NLA_TYPE_MASK;

		if (type == IFLA_IFNAME)
			name = RTA_DATA(attr);
		else if (type == IFLA_PROP_LIST && name)
			visit_list(visit, name, attr);
	}
}

/* @return 1: the end of the dump; 0: there is more; or -errno */
static int read_messages(int fd, const struct visit *visit)
{
	_Alignas(struct nlmsghdr) char bytes[MESSAGES_SIZE];
	const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
	const struct nlmsghdr *message = (const void *)bytes;
	unsigned int len = n > 0 ? (unsigned int)n : 0;

	if (n <= 0)
		return n ? -errno : -EIO;
	for (; NLMSG_OK(message, len); message = NLMSG_NEXT(message, len)) {
		if (message->nlmsg_type == NLMSG_DONE)
			return 1;
		if (message->nlmsg_type == NLMSG_ERROR)
			return -EIO;
		if (message->nlmsg_type == RTM_NEWLINK)
			visit_link(visit, message);
	}
	return 0;
}

int altnames_each(void (*take)(const char *name, const char *altname, void *arg),
		  void *arg)
{
	const struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
	};
	const struct visit visit = { take, arg };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), r;

	if (fd < 0)
		return -errno;
	r = send(fd, &request, sizeof(request), 0) < 0 ? -errno : 0;
	while (r == 0)
		r = read_messages(fd, &visit);
	close(fd);
	return r < 0 ? r : 0;
}

struct search {
	const char *text;
	char *name;
	bool is_found;
};

static void compare(const char *name, const char *altname, void *arg)
{
	struct search *search = arg;

	if (search->is_found || strcmp(altname, search->text))
		return;
	snprintf(search->name, IF_NAMESIZE, "%s", name);
	search->is_found = true;
}

bool altnames_find(const char *text, char (*ret_name)[IF_NAMESIZE])
{
	const unsigned int index = if_nametoindex(text);
	struct search search = { .text = text, .name = *ret_name };

	if (index)
		return if_indextoname(index, *ret_name);
	altnames_each(compare, &search);
	return search.is_found;
}
