// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause

#include "attach.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void add_shadow(struct netobs_shadow *shadow, enum netobs_shadow_kind kind,
		       uint32_t program_id, uint32_t priority, const char *name)
{
	if (shadow->kind) {
		shadow->others++;
		return;
	}
	shadow->kind = kind;
	shadow->program_id = program_id;
	shadow->priority = priority;
	snprintf(shadow->name, sizeof(shadow->name), "%s", name);
}

/* Needs CAP_SYS_ADMIN; without it, the name stays empty. */
static void read_name(uint32_t program_id, char name[16])
{
	cleanup_fd int fd = bpf_prog_get_fd_by_id(program_id);
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	name[0] = '\0';
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len))
		snprintf(name, 16, "%.15s", info.name);
}

/* Programs of netobs, of this or another process, hide nothing. */
static bool is_ours(const char *name)
{
	return !strncmp(name, "netobs_", strlen("netobs_"));
}

struct chain {
	int n;
	uint32_t ids[TCX_PROGRAMS_MAX];
	char names[TCX_PROGRAMS_MAX][16];
};

static bool has_ours(const struct chain *chain, int i)
{
	return *chain->names[i] ? is_ours(chain->names[i]) :
				  program_sign_is_there(chain->ids[i]);
}

/* @return how many programs of the chain run before ours */
static int count_before(const struct shadow_subject *subject,
			const struct chain *chain)
{
	if (subject->priority)
		return chain->n;
	for (int i = chain->n - 1; i >= 0; i--)
		if (subject->program_id ? chain->ids[i] == subject->program_id :
					  has_ours(chain, i))
			return i;
	return 0;
}

static void find_tcx(const struct shadow_subject *subject,
		     struct netobs_shadow *shadow)
{
	struct chain chain;

	chain.n = tcx_programs(subject->ifindex, subject->direction, chain.ids);
	for (int i = 0; i < chain.n; i++)
		read_name(chain.ids[i], chain.names[i]);
	chain.n = count_before(subject, &chain);
	for (int i = 0; i < chain.n; i++)
		if (!has_ours(&chain, i))
			add_shadow(shadow, NETOBS_SHADOW_TCX, chain.ids[i], 0,
				   chain.names[i]);
}

struct search {
	const struct shadow_subject *subject;
	struct netobs_shadow *shadow;
};

/* Filters come in the order of their priorities. */
static void on_filter(void *ctx, const struct nlmsghdr *message)
{
	const struct tcmsg *tc = NLMSG_DATA(message);
	uint32_t priority = TC_H_MAJ(tc->tcm_info) >> 16;
	const struct rtattr *attrs = TCA_RTA(tc), *options, *name;
	const struct search *search = ctx;
	int len = TCA_PAYLOAD(message);
	char text[16] = "";

	if (priority >= search->subject->priority || clsact_is_reserved(priority))
		return;
	options = rtnl_attr_find(attrs, len, TCA_OPTIONS);
	name = rtnl_attr_inside(options, TCA_BPF_NAME) ?:
		       rtnl_attr_find(attrs, len, TCA_KIND);
	if (name)
		snprintf(text, sizeof(text), "%.*s", (int)RTA_PAYLOAD(name),
			 (const char *)RTA_DATA(name));
	add_shadow(search->shadow, NETOBS_SHADOW_CLSACT,
		   rtnl_attr_u32(rtnl_attr_inside(options, TCA_BPF_ID)),
		   priority, text);
}

static void on_link(void *ctx, const struct nlmsghdr *message)
{
	const struct ifinfomsg *info = NLMSG_DATA(message);
	int len = (int)message->nlmsg_len - (int)NLMSG_SPACE(sizeof(*info));
	const struct search *search = ctx;
	const struct rtattr *xdp;
	char name[16];
	uint32_t id;

	if (message->nlmsg_type != RTM_NEWLINK)
		return;
	xdp = rtnl_attr_find(IFLA_RTA(info), len, IFLA_XDP);
	if (!rtnl_attr_u32(rtnl_attr_inside(xdp, IFLA_XDP_ATTACHED)))
		return;
	id = rtnl_attr_u32(rtnl_attr_inside(xdp, IFLA_XDP_PROG_ID));
	read_name(id, name);
	add_shadow(search->shadow, NETOBS_SHADOW_XDP, id, 0, name);
}

static void find_xdp(struct search *search)
{
	struct ifinfomsg header = { .ifi_index = search->subject->ifindex };
	cleanup_fd int fd = rtnl_open_in(-1, 0);

	if (fd >= 0)
		rtnl_ask(fd, RTM_GETLINK, &header, sizeof(header), on_link,
			 search);
}

void shadow_find(const struct shadow_subject *subject,
		 struct netobs_shadow *ret_shadow)
{
	struct netobs_shadow shadow = { .ifindex = subject->ifindex,
					.direction = direction_of_index(
						subject->direction) };
	struct search search = { subject, &shadow };

	if (subject->direction == INGRESS)
		find_xdp(&search);
	find_tcx(subject, &shadow);
	if (subject->priority)
		clsact_for_each_filter(subject->ifindex, subject->direction,
				       on_filter, &search);
	*ret_shadow = shadow;
}

static void describe_shadow(const struct netobs_shadow *shadow, char *text,
			    size_t size)
{
	if (shadow->kind == NETOBS_SHADOW_CLSACT)
		snprintf(text, size, "clsact filter '%s' of priority %u",
			 shadow->name, shadow->priority);
	else
		snprintf(text, size, "%s program '%s' (id %u)",
			 shadow->kind == NETOBS_SHADOW_XDP ? "XDP" : "tcx",
			 shadow->name, shadow->program_id);
}

void shadow_log(const struct log *log, int level, const char *interface,
		const struct netobs_shadow *shadow)
{
	const char *way = shadow->direction == NETOBS_EGRESS ? "egress" :
							       "ingress";
	char what[64], more[32] = "";

	if (!shadow->kind) {
		log_info(log, "%s: no program hides packets on %s any more",
			 interface, way);
		return;
	}
	describe_shadow(shadow, what, sizeof(what));
	if (shadow->others)
		snprintf(more, sizeof(more), " and %u more", shadow->others);
	log_write(log, level,
		  "%s: %s%s, before netobs on %s, may hide packets from it",
		  interface, what, more, way);
}

bool shadow_is_same(const struct netobs_shadow *a, const struct netobs_shadow *b)
{
	return a->kind == b->kind && a->program_id == b->program_id &&
	       a->priority == b->priority && a->others == b->others;
}

/* @return the priority of the clsact filter that a context would have; 0: it would use tcx */
static uint32_t expected_priority(uint32_t ifindex, bool use_tcx)
{
	uint32_t ids[TCX_PROGRAMS_MAX];

	use_tcx &= tcx_programs(ifindex, INGRESS, ids) >= 0;
	return use_tcx ? 0 : CLSACT_PRIORITY_FIRST;
}

int netobs_shadows(uint64_t disable,
		   void (*on_shadow)(const struct netobs_shadow *shadow,
				     void *user),
		   void *user)
{
	bool use_tcx = !(disable & 1 << NETOBS_FEATURE_TCX);
	struct if_nameindex *interfaces;
	int n = 0;

	if (!on_shadow)
		return -EINVAL;
	interfaces = if_nameindex();
	if (!interfaces)
		return -errno;
	for (const struct if_nameindex *it = interfaces; it->if_index; it++) {
		for (int d = INGRESS; d <= EGRESS; d++) {
			const struct shadow_subject subject = {
				.ifindex = it->if_index,
				.direction = d,
				.priority =
					expected_priority(it->if_index, use_tcx),
			};
			struct netobs_shadow shadow;

			shadow_find(&subject, &shadow);
			if (!shadow.kind)
				continue;
			snprintf(shadow.interface, sizeof(shadow.interface),
				 "%s", it->if_name);
			on_shadow(&shadow, user);
			n++;
		}
	}
	if_freenameindex(interfaces);
	return n;
}

/* ---- Signs of programs -------------------------------------------------------------- */

/* Make an abstract address. @return its length, which ends the name: unix(7) */
static socklen_t name_of(uint32_t program_id, struct sockaddr_un *ret_address)
{
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
	       (socklen_t)snprintf(ret_address->sun_path + 1,
				   sizeof(ret_address->sun_path) - 1,
				   "netobs/program/%u", program_id);
}

static int open_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

int program_sign_open(int program_fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	cleanup_fd int fd = -1;
	struct sockaddr_un address;
	socklen_t size;
	int err = bpf_obj_get_info_by_fd(program_fd, &info, &len);

	if (err)
		return err;
	fd = open_socket();
	size = name_of(info.id, &address);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, size) ||
	    listen(fd, SOMAXCONN))
		return -errno;
	return TAKE_FD(fd);
}

void program_sign_answer(int sign)
{
	int fd;

	while (sign >= 0 && (fd = accept4(sign, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(fd);
}

bool program_sign_is_there(uint32_t program_id)
{
	cleanup_fd int fd = open_socket();
	struct ucred owner;
	socklen_t len = sizeof(owner), size;
	struct sockaddr_un address;

	if (fd < 0)
		return false;
	size = name_of(program_id, &address);
	return !connect(fd, (const struct sockaddr *)&address, size) &&
	       !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &len) &&
	       (!owner.uid || owner.uid == geteuid());
}
