/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "attach.h"

#include "base/util.h"

#include "stub.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <string.h>
#include <sys/socket.h>

enum {
	/* The handle tells later runs whether the qdisc was made for the filter. */
	HANDLE_GUEST = 1,
	HANDLE_OWNER = 2,
};

/* libbpf wants the struct's padding to be zero as well. */
static void hook_init(struct bpf_tc_hook *hook, uint32_t ifindex,
		      enum bpf_tc_attach_point point)
{
	memset(hook, 0, sizeof(*hook));
	hook->sz = sizeof(*hook);
	hook->ifindex = ifindex;
	hook->attach_point = point;
}

static enum bpf_tc_attach_point point_of(enum direction direction)
{
	return direction == EGRESS ? BPF_TC_EGRESS : BPF_TC_INGRESS;
}

/* The filters of one direction. */
struct filters {
	uint32_t count;
	struct {
		uint32_t handle; /* 0: free */
		uint32_t program_id;
	} ours[CLSACT_PRIORITIES]; /* by priority - CLSACT_PRIORITY_FIRST: ours, or in the way */
};

static void note_filter(void *ctx, const struct nlmsghdr *message)
{
	const struct tcmsg *tc = NLMSG_DATA(message);
	uint32_t i = (TC_H_MAJ(tc->tcm_info) >> 16) - CLSACT_PRIORITY_FIRST;
	const struct rtattr *options =
		rtnl_attr_find(TCA_RTA(tc), TCA_PAYLOAD(message), TCA_OPTIONS);
	struct filters *filters = ctx;

	filters->count++;
	if (i >= CLSACT_PRIORITIES)
		return;
	filters->ours[i].handle = tc->tcm_handle;
	filters->ours[i].program_id =
		rtnl_attr_u32(rtnl_attr_inside(options, TCA_BPF_ID));
}

struct filter_visit {
	rtnl_message_fn on_filter;
	void *ctx;
};

static void visit_filter(void *ctx, const struct nlmsghdr *message)
{
	const struct tcmsg *tc = NLMSG_DATA(message);
	const struct filter_visit *visit = ctx;

	/* Handle 0 is not a filter but its chain. */
	if (message->nlmsg_type == RTM_NEWTFILTER && tc->tcm_handle)
		visit->on_filter(visit->ctx, message);
}

int clsact_for_each_filter(uint32_t ifindex, enum direction direction,
			   rtnl_message_fn on_filter, void *ctx)
{
	uint32_t minor = direction == EGRESS ? TC_H_MIN_EGRESS : TC_H_MIN_INGRESS;
	struct tcmsg header = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = ifindex,
		.tcm_parent = TC_H_MAKE(TC_H_CLSACT, minor),
	};
	struct filter_visit visit = { on_filter, ctx };
	cleanup_fd int fd = rtnl_open_in(-1, 0);

	return fd < 0 ? fd :
			rtnl_dump(fd, RTM_GETTFILTER, &header, sizeof(header),
				  visit_filter, &visit);
}

static int list_filters(uint32_t ifindex, enum direction direction,
			struct filters *ret_filters)
{
	*ret_filters = (struct filters){ 0 };
	return clsact_for_each_filter(ifindex, direction, note_filter,
				      ret_filters);
}

/* @return whether the program array of a stub has been cleared */
static bool is_cleared(uint32_t map_id)
{
	cleanup_fd int fd = bpf_map_get_fd_by_id(map_id);
	uint32_t key = 0, program_id;

	return fd >= 0 && bpf_map_lookup_elem(fd, &key, &program_id) == -ENOENT;
}

static bool is_stale_stub(uint32_t program_id)
{
	uint32_t map_ids[1] = { 0 };
	struct bpf_prog_info info = {
		.nr_map_ids = ARRAY_SIZE(map_ids),
		.map_ids = (uintptr_t)map_ids,
	};
	uint32_t len = sizeof(info);
	cleanup_fd int fd = bpf_prog_get_fd_by_id(program_id);

	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len) &&
	       !strcmp(info.name, "netobs_stub") && is_cleared(map_ids[0]);
}

static void delete_filter(const struct bpf_tc_hook *hook, uint32_t priority,
			  uint32_t handle)
{
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = handle, .priority = priority);

	bpf_tc_detach(hook, &opts);
}

/* @return whether the qdisc was made for a removed stub, so that it is ours to remove now */
static bool remove_stale(const struct bpf_tc_hook *hook, struct filters *filters)
{
	bool inherits = false;

	for (uint32_t i = 0; i < CLSACT_PRIORITIES; i++) {
		uint32_t handle = filters->ours[i].handle;

		if (!handle || !is_stale_stub(filters->ours[i].program_id))
			continue;
		delete_filter(hook, CLSACT_PRIORITY_FIRST + i, handle);
		filters->ours[i].handle = 0;
		inherits |= handle == HANDLE_OWNER;
	}
	return inherits;
}

static int add_filter(const struct bpf_tc_hook *hook,
		      const struct filters *filters, int stub_fd,
		      struct clsact_filter *filter)
{
	for (int i = CLSACT_PRIORITIES - 1; i >= 0; i--) {
		LIBBPF_OPTS(bpf_tc_opts, opts, .handle = filter->handle,
			    .priority = CLSACT_PRIORITY_FIRST + i,
			    .prog_fd = stub_fd);

		if (filters->ours[i].handle) /* another observer's */
			continue;
		filter->priority = opts.priority;
		return bpf_tc_attach(hook, &opts);
	}
	return -EBUSY;
}

static int ensure_qdisc(uint32_t ifindex, bool *ret_created)
{
	struct bpf_tc_hook hook;
	int err;

	hook_init(&hook, ifindex, BPF_TC_INGRESS | BPF_TC_EGRESS);
	err = bpf_tc_hook_create(&hook);
	*ret_created = !err;
	return err == -EEXIST ? 0 : err;
}

static void remove_unused_qdisc(uint32_t ifindex)
{
	struct filters ingress, egress;
	struct bpf_tc_hook hook;

	if (list_filters(ifindex, INGRESS, &ingress) ||
	    list_filters(ifindex, EGRESS, &egress) || ingress.count ||
	    egress.count)
		return;
	hook_init(&hook, ifindex, BPF_TC_INGRESS | BPF_TC_EGRESS);
	bpf_tc_hook_destroy(&hook);
}

/* A filter of ours records it; the last filter removes the qdisc. */
static bool owns_qdisc(const struct filters *filters)
{
	for (uint32_t i = 0; i < CLSACT_PRIORITIES; i++)
		if (filters->ours[i].handle == HANDLE_OWNER)
			return true;
	return false;
}

static int put_filter(uint32_t ifindex, enum direction direction, bool created,
		      int stub_fd, struct clsact_filter *filter)
{
	struct filters filters, others;
	struct bpf_tc_hook hook;
	int err = list_filters(ifindex, direction, &filters);

	err = err ?: list_filters(ifindex, !direction, &others);
	if (err)
		return err;
	hook_init(&hook, ifindex, point_of(direction));
	created |= remove_stale(&hook, &filters);
	created |= owns_qdisc(&filters) || owns_qdisc(&others);
	filter->handle = created ? HANDLE_OWNER : HANDLE_GUEST;
	return add_filter(&hook, &filters, stub_fd, filter);
}

static void destroy_stub(struct stub_bpf **stub)
{
	stub_bpf__destroy(*stub);
}

static int set_jump(int jump_fd, int program_fd)
{
	uint32_t slot = 0;

	return bpf_map_update_elem(jump_fd, &slot, &program_fd, BPF_ANY);
}

static int load_stub(int program_fd, struct stub_bpf **ret_stub,
		     uint32_t *ret_program_id)
{
	struct stub_bpf *stub = stub_bpf__open_and_load();
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int err;

	if (!stub)
		return -errno;
	*ret_stub = stub;
	err = bpf_obj_get_info_by_fd(bpf_program__fd(stub->progs.netobs_stub),
				     &info, &len);
	*ret_program_id = info.id;
	return err ?: set_jump(bpf_map__fd(stub->maps.jump), program_fd);
}

int clsact_add(uint32_t ifindex, enum direction direction, int program_fd,
	       struct clsact_filter *ret_filter)
{
	__attribute__((cleanup(destroy_stub))) struct stub_bpf *stub = NULL;
	struct clsact_filter filter = CLSACT_FILTER_NONE;
	bool created = false;
	cleanup_fd int jump_fd = -1;
	int err = load_stub(program_fd, &stub, &filter.program_id);

	if (err)
		return err;
	jump_fd = fcntl(bpf_map__fd(stub->maps.jump), F_DUPFD_CLOEXEC, 0);
	err = jump_fd < 0 ? -errno : 0;
	err = err ?: ensure_qdisc(ifindex, &created);
	if (!err)
		err = put_filter(ifindex, direction, created,
				 bpf_program__fd(stub->progs.netobs_stub),
				 &filter);
	if (err) {
		if (created)
			remove_unused_qdisc(ifindex);
		return err;
	}
	filter.jump_fd = TAKE_FD(jump_fd);
	*ret_filter = filter;
	return 0;
}

int clsact_replace(const struct clsact_filter *filter, int program_fd)
{
	return set_jump(filter->jump_fd, program_fd);
}

void clsact_delete(uint32_t ifindex, enum direction direction,
		   struct clsact_filter *filter)
{
	struct bpf_tc_hook hook;

	if (filter->jump_fd < 0)
		return;
	hook_init(&hook, ifindex, point_of(direction));
	delete_filter(&hook, filter->priority, filter->handle);
	close_fd(&filter->jump_fd);
	if (filter->handle == HANDLE_OWNER)
		remove_unused_qdisc(ifindex);
}

bool clsact_is_there(uint32_t ifindex, enum direction direction,
		     const struct clsact_filter *filter)
{
	uint32_t i = filter->priority - CLSACT_PRIORITY_FIRST;
	struct filters filters;

	return i < CLSACT_PRIORITIES &&
	       !list_filters(ifindex, direction, &filters) &&
	       filters.ours[i].handle == filter->handle &&
	       filters.ours[i].program_id == filter->program_id;
}

/* ---- Probing ------------------------------------------------------------------------- */

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

int clsact_probe(const char *kind)
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
	cleanup_fd int fd = rtnl_open_in(-1, 0);
	int err;

	memcpy(request.name, kind, strnlen(kind, sizeof(request.name) - 1));
	err = fd < 0 ? fd : request_qdisc(fd, &request);
	return err == -EINVAL || err == -EEXIST ? 0 : err ?: -EPROTO;
}
