// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Control groups that no socket has any more are removed, a part at a time. */
#include "lib_lab.h"
#include "lib_test.h"

#include "who/sessions.h"

#include <bpf/bpf.h>
#include <sys/socket.h>

enum {
	GONE = 6000,
	ENOUGH = SESSION_CGROUPS_MAX, /* that were added: more than it waits for */
	STEPS_LEAST = 10,
};

#define FIRST_GONE (1ULL << 40)

struct fixture {
	struct lab lab;
	struct session_programs programs;
	struct cgroups_upkeep upkeep;
	uint64_t kept;
	int fds[2];
};

static const struct log silent;

/* A connection with both ends in this process. */
static void connect_to_itself(int ret_fds[2])
{
	uint16_t port = 0;
	int listener = lab_listen(&port, 1);

	ret_fds[0] = lab_connect(port);
	ret_fds[1] = accept(listener, NULL, NULL);
	assert_true(ret_fds[1] >= 0);
	close(listener);
}

static void add_those_that_are_gone(const struct fixture *f)
{
	const struct session_cgroup names = { 0 };

	for (uint64_t i = 0; i < GONE; i++) {
		const struct session_cgroup_key key = { .id = FIRST_GONE + i };

		assert_int_equal(bpf_map_update_elem(f->upkeep.cgroups_fd, &key,
						     &names, BPF_NOEXIST),
				 0);
	}
}

/* How many there are of those, and of others. */
static void count(const struct fixture *f, uint32_t ret_n[2])
{
	struct session_cgroup_key key, *before = NULL;

	ret_n[0] = ret_n[1] = 0;
	while (!bpf_map_get_next_key(f->upkeep.cgroups_fd, before, &key)) {
		ret_n[key.id >= FIRST_GONE]++;
		before = &key;
	}
}

/* @return in how many parts */
static uint32_t look_after(struct fixture *f)
{
	uint32_t steps = 1;

	f->kept += ENOUGH;
	cgroups_look_after(&f->upkeep, &f->programs, f->kept, &silent);
	while (f->upkeep.phase != CGROUPS_AT_REST)
		steps += cgroups_step(&f->upkeep, &f->programs, &silent);
	return steps;
}

static void begin(struct fixture *f)
{
	lab_enter(&f->lab);
	f->fds[0] = f->fds[1] = -1;
}

static void end(struct fixture *f)
{
	close_fd(&f->fds[0]);
	close_fd(&f->fds[1]);
	session_programs_close(&f->programs);
	lab_leave(&f->lab);
}

TEST_FIXTURE(struct fixture, begin, end)

TEST_WITH(those_without_a_socket_are_removed_in_parts, set_up, tear_down)
{
	const struct session_knobs knobs = { .ring_bytes = 1 << 20 };
	struct fixture *f = *state;
	uint32_t n[2];

	if (lab_lacks(LAB_FEATURE(SESSIONS))) {
		assert_true(session_programs_open(&f->programs, &knobs,
						  &silent) < 0);
		return;
	}
	assert_int_equal(session_programs_open(&f->programs, &knobs, &silent), 0);
	f->upkeep.cgroups_fd =
		program_set_map_fd(&f->programs.sockets, "session_cgroups");
	f->upkeep.round_fd =
		program_set_map_fd(&f->programs.sockets, "session_round");
	connect_to_itself(f->fds);
	add_those_that_are_gone(f);
	count(f, n);
	assert_true(n[0] > 0);
	assert_int_equal(n[1], GONE);
	/* Too few were added since. */
	cgroups_look_after(&f->upkeep, &f->programs, 1, &silent);
	assert_false(cgroups_step(&f->upkeep, &f->programs, &silent));

	/* There may still be a record of a group that has just gone. */
	assert_true(look_after(f) > STEPS_LEAST);
	count(f, n);
	assert_int_equal(n[1], GONE);
	look_after(f);
	count(f, n);
	assert_true(n[0] > 0);
	assert_int_equal(n[1], 0);
}
