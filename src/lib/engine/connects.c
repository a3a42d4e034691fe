// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "connects.h"

#include "base/clock.h"
#include "base/util.h"
#include "cgroup_root.h"
#include "connect.skel.h"
#include "map.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static const struct log silent;

/* Where a look at all sockets takes longer, such looks take a tenth of the time. */
enum { SHORT_NS = 10 * NSEC_PER_MSEC, REST = 9 };

static const struct attach_point points[CONNECT_POINTS] = {
	{ .program = "netobs_con_end", .kind = ATTACH_SECTION },
	{ .program = "netobs_con_rel", .kind = ATTACH_CGROUP },
	{ .program = "netobs_con_ls",
	  .kind = ATTACH_ITERATOR,
	  .map = "connect_sockets" },
	{ .program = "netobs_con_tcp", .kind = ATTACH_CGROUP },
	{ .program = "netobs_con_t4", .kind = ATTACH_CGROUP },
	{ .program = "netobs_con_t6", .kind = ATTACH_CGROUP },
	{ .program = "netobs_con_4", .kind = ATTACH_CGROUP_FIRST },
	{ .program = "netobs_con_6", .kind = ATTACH_CGROUP_FIRST },
	{ .program = "netobs_con_s4", .kind = ATTACH_CGROUP_FIRST },
	{ .program = "netobs_con_s6", .kind = ATTACH_CGROUP_FIRST },
};

static int take_connect_event(void *ctx, void *data, size_t size)
{
	const struct connects *connects = ctx;

	if (size >= sizeof(struct connect_event))
		connects->on_event(connects->ctx, data);
	return 0;
}

static int open_connect_maps(struct connects *connects)
{
	connects->counters = program_set_mmap(&connects->set, "connect_counters",
					      sizeof(*connects->counters));
	if (!connects->counters)
		return -errno;
	connects->ring_fd = program_set_map_fd(&connects->set, "connect_events");
	connects->ring = ring_buffer__new(connects->ring_fd, take_connect_event,
					  connects, NULL);
	return connects->ring ? 0 : -errno;
}

static int open_programs(struct connects *connects)
{
	int err;

	if (connects->cgroup_fd < 0)
		return connects->cgroup_fd;
	err = program_set_ref(&connects->set);
	log_borrow_libbpf(&silent);
	err = err ?: open_connect_maps(connects);
	log_return_libbpf();
	return err;
}

int connects_open(struct connects *connects,
		  void (*on_event)(void *ctx, const struct connect_event *event),
		  void *ctx)
{
	int err;

	*connects = (struct connects){
		.set = { .name = "connect_bpf",
			 .elf = connect_bpf__elf_bytes,
			 .doing = "load BPF programs for sockets that connect",
			 .log = &silent,
			 .points = connects->points,
			 .n_points = CONNECT_POINTS },
		.cgroup_fd = cgroup_root_open(),
		.on_event = on_event,
		.ctx = ctx,
	};
	for (size_t i = 0; i < CONNECT_POINTS; i++) {
		connects->points[i] = points[i];
		connects->points[i].cgroup_fd = connects->cgroup_fd;
	}
	err = open_programs(connects);
	if (err)
		connects_close(connects);
	return err;
}

void connects_close(struct connects *connects)
{
	if (!connects->set.name)
		return;
	ring_buffer__free(connects->ring);
	if (connects->counters)
		map_munmap(connects->counters, sizeof(*connects->counters));
	program_set_unref(&connects->set);
	close_fd(&connects->cgroup_fd);
	*connects = (struct connects){ 0 };
}

int connects_fd(const struct connects *connects)
{
	return connects->ring ? connects->ring_fd : -1;
}

void connects_read(const struct connects *connects)
{
	if (connects->ring)
		ring_buffer__consume(connects->ring);
}

/* It writes nothing. */
static void visit_sockets(const struct connects *connects)
{
	cleanup_fd int fd =
		program_set_open_iterator(&connects->set, "netobs_con_ls");
	char none[64];
	ssize_t n;

	if (fd < 0)
		return;
	do {
		n = read(fd, none, sizeof(none));
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
}

static void list_new(struct connects *connects)
{
	const uint64_t n =
		__atomic_load_n(&connects->counters->udp, __ATOMIC_RELAXED);
	const int64_t began_ns = clock_boot_ns();
	int64_t took_ns;

	if ((n == connects->n_listed && !connects->is_new) ||
	    began_ns < connects->rests_until_ns)
		return;
	visit_sockets(connects);
	took_ns = clock_boot_ns() - began_ns;
	if (took_ns > SHORT_NS)
		connects->rests_until_ns = began_ns + (1 + REST) * took_ns;
	connects->is_new = n != connects->n_listed;
	connects->n_listed = n;
}

void connects_list(struct connects *connects)
{
	if (!connects->ring)
		return;
	list_new(connects);
	connects_read(connects);
}

uint64_t connects_lost(const struct connects *connects)
{
	return connects->ring ? __atomic_load_n(&connects->counters->lost,
						__ATOMIC_RELAXED) :
				0;
}
