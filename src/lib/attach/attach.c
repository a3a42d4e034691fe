/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "attach.h"

#include "base/util.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct attach_options attach_options_of(const struct log *log, uint64_t disable,
					enum netobs_direction direction,
					enum netobs_attach_order order)
{
	return (struct attach_options){
		.log = log,
		.use_tcx = !(disable & 1 << NETOBS_FEATURE_TCX),
		.use_clsact = !(disable & 1 << NETOBS_FEATURE_CLSACT),
		.may_expedite = !(disable & 1 << NETOBS_FEATURE_EXPEDITE),
		.order = order,
		.directions = {
			[INGRESS] = direction != NETOBS_EGRESS,
			[EGRESS] = direction != NETOBS_INGRESS,
		},
	};
}

bool is_attached(const struct attachment *attachment)
{
	return hook_is_attached(&attachment->hooks[INGRESS]) ||
	       hook_is_attached(&attachment->hooks[EGRESS]);
}

bool has_link(const struct attachment *attachment)
{
	return attachment->hooks[INGRESS].link_fd >= 0 ||
	       attachment->hooks[EGRESS].link_fd >= 0;
}

/* The kernel has no tcx, as opposed to: it has, and something else is wrong. */
static bool is_unsupported(int err)
{
	return err == -EINVAL || err == -EOPNOTSUPP;
}

static int add_hook(const struct attach_options *options, uint32_t ifindex,
		    enum direction direction, int program_fd, struct hook *hook)
{
	int fd = -EOPNOTSUPP;

	if (options->use_tcx)
		fd = tcx_link(program_fd, ifindex, direction, options->order);
	if (fd >= 0) {
		hook->link_fd = fd;
		return 0;
	}
	if (!options->use_clsact || !is_unsupported(fd))
		return fd;
	/* For clsact, only libbpf's messages explain an error. */
	log_borrow_libbpf(options->log);
	fd = clsact_add(ifindex, direction, program_fd, &hook->filter);
	log_return_libbpf();
	return fd;
}

static int add_hooks(const struct attach_options *options, uint32_t ifindex,
		     const struct programs *programs,
		     struct attachment *attachment)
{
	for (int d = INGRESS; d <= EGRESS; d++) {
		int err;

		if (!options->directions[d] ||
		    hook_is_attached(&attachment->hooks[d]))
			continue;
		err = add_hook(options, ifindex, d, programs->fds[d],
			       &attachment->hooks[d]);
		if (err)
			return err;
	}
	return 0;
}

int attach(const struct attach_options *options, uint32_t ifindex,
	   const char *name, const struct programs *programs,
	   struct attachment *attachment)
{
	int err = add_hooks(options, ifindex, programs, attachment);

	if (err) {
		log_error(options->log, "%s: cannot attach: %s", name,
			  strerror(-err));
		detach(options->log, attachment, ifindex);
	}
	return err;
}

static int hook_replace(const struct hook *hook, int program_fd)
{
	int err = 0;

	if (hook->link_fd >= 0)
		err = bpf_link_update(hook->link_fd, program_fd, NULL);
	if (!err && hook->filter.jump_fd >= 0)
		err = clsact_replace(&hook->filter, program_fd);
	return err == -ENOLINK ? 0 : err; /* the interface is gone */
}

int attachment_replace(const struct attachment *attachment,
		       const struct programs *programs)
{
	int err = 0;

	for (int d = INGRESS; d <= EGRESS; d++)
		err = err ?: hook_replace(&attachment->hooks[d], programs->fds[d]);
	return err;
}

void attachment_verify(struct attachment *attachment, uint32_t ifindex)
{
	for (int d = INGRESS; d <= EGRESS; d++) {
		struct hook *hook = &attachment->hooks[d];

		if (hook->link_fd >= 0 &&
		    tcx_link_ifindex(hook->link_fd) != ifindex)
			close_fd(&hook->link_fd);
		if (hook->filter.jump_fd >= 0 &&
		    !clsact_is_there(ifindex, d, &hook->filter))
			close_fd(&hook->filter.jump_fd);
	}
}

void attachment_forget_filters(struct attachment *attachment)
{
	for (int d = INGRESS; d <= EGRESS; d++)
		close_fd(&attachment->hooks[d].filter.jump_fd);
}

void attachment_drop(struct attachment *attachment)
{
	attachment_forget_filters(attachment);
	for (int d = INGRESS; d <= EGRESS; d++)
		close_fd(&attachment->hooks[d].link_fd);
}

/*
 * COMPAT(<6.18): programs of a link that was pinned go on for a grace period after the link
 * has been closed. So the link is detached first, which returns when none of them runs.
 */
static void detach_link(struct hook *hook)
{
	if (hook->link_fd >= 0)
		bpf_link_detach(hook->link_fd);
	close_fd(&hook->link_fd);
}

void detach(const struct log *log, struct attachment *attachment, uint32_t ifindex)
{
	for (int d = INGRESS; d <= EGRESS; d++) {
		detach_link(&attachment->hooks[d]);
		if (attachment->hooks[d].filter.jump_fd < 0)
			continue;
		log_borrow_libbpf(log);
		clsact_delete(ifindex, d, &attachment->hooks[d].filter);
		log_return_libbpf();
	}
	attachment_drop(attachment);
}

/* ---- tcx links ----------------------------------------------------------------------- */

/* enum bpf_attach_type and BPF_F_BEFORE of Linux 6.6's include/uapi/linux/bpf.h. */
enum { TCX_INGRESS = 46, TCX_EGRESS = 47, LINK_BEFORE = 1 << 3 };

static uint32_t hook_of(enum direction direction)
{
	return direction == EGRESS ? TCX_EGRESS : TCX_INGRESS;
}

int tcx_link(int program_fd, uint32_t ifindex, enum direction direction,
	     enum netobs_attach_order order)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = order == NETOBS_ATTACH_FIRST ? LINK_BEFORE : 0);

	return bpf_link_create(program_fd, ifindex,
			       (enum bpf_attach_type)hook_of(direction), &opts);
}

/* There is no interface 0. A kernel without tcx does not get as far as to look. */
int tcx_probe(int program_fd)
{
	cleanup_fd int fd = tcx_link(program_fd, 0, INGRESS, NETOBS_ATTACH_FIRST);

	return fd == -ENODEV ? 0 : fd < 0 ? fd : -EINVAL;
}

/* struct bpf_link_info of a tcx link, as Linux 6.6 has it. */
struct tcx_link_info {
	uint32_t type;
	uint32_t id;
	uint32_t prog_id;
	uint32_t padding;
	uint32_t ifindex;
	uint32_t attach_type;
};

uint32_t tcx_link_ifindex(int link_fd)
{
	struct tcx_link_info info = { 0 };
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(link_fd, &info, &len) ? 0 : info.ifindex;
}

/* BPF_PROG_QUERY's part of union bpf_attr, as Linux 6.6 has it. */
struct tcx_query {
	uint32_t ifindex;
	uint32_t attach_type;
	uint32_t flags;
	uint32_t attach_flags;
	uint64_t program_ids;
	uint32_t count;
	uint32_t more[9];
};

int tcx_programs(uint32_t ifindex, enum direction direction,
		 uint32_t ret_ids[TCX_PROGRAMS_MAX])
{
	struct tcx_query query = {
		.ifindex = ifindex,
		.attach_type = hook_of(direction),
		.program_ids = (uintptr_t)ret_ids,
		.count = TCX_PROGRAMS_MAX,
	};

	if (syscall(__NR_bpf, BPF_PROG_QUERY, &query, sizeof(query)) < 0)
		return -errno;
	return query.count < TCX_PROGRAMS_MAX ? (int)query.count :
						TCX_PROGRAMS_MAX;
}

/* ---- Short grace periods ------------------------------------------------------------- */

static const char knob[] = "/sys/kernel/rcu_expedited";

/* "nobs" in ASCII: any number but 0 means yes. */
static const char mark[] = "1852793459";

static int open_knob(void)
{
	return open(knob, O_RDWR | O_CLOEXEC);
}

int expedite_probe(void)
{
	cleanup_fd int fd = open_knob();

	return fd < 0 ? -errno : 0;
}

static void replace_text(const char *from, const char *to)
{
	cleanup_fd int fd = open_knob();
	char now[16] = "";
	ssize_t len;

	if (fd < 0)
		return;
	len = pread(fd, now, sizeof(now) - 1, 0);
	if (len <= 0)
		return;
	now[strcspn(now, "\n")] = '\0';
	if (!strcmp(now, from))
		(void)!pwrite(fd, to, strlen(to), 0);
}

void expedite_begin(void)
{
	replace_text("0", mark);
}

void expedite_end(void)
{
	replace_text(mark, "0");
}
