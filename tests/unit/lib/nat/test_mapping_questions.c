/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What becomes of questions that the kernel does not answer, in one of two namespaces. */
#include "nat/mappings.h"

#include "base/clock.h"
#include "bpf/parse/headers.h"
#include "host/host.h"
#include "lib_test.h"
#include "lib_witness.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <sys/socket.h>

enum { SPACES = 2, KERNEL = 0, READER = 1 };

/* Of the test that runs: what a socket of a namespace is. */
static struct {
	int err; /* or, if it is 0, one of these */
	int ends[2];
	uint32_t n_opened;
} sockets[SPACES];

struct state {
	struct translation_table table;
	struct mappings mappings;
	struct mapping_questions questions;
	struct clock clock;
	struct host host;
	struct netns netns[SPACES];
	struct witness witness;
	struct log log;
};

static int open_socket(const struct host *host, uint16_t netns)
{
	(void)host;
	sockets[netns].n_opened++;
	if (sockets[netns].err)
		return sockets[netns].err;
	close_fd(&sockets[netns].ends[KERNEL]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets[netns].ends),
			 0);
	return sockets[netns].ends[READER]; /* which is closed by its user */
}

static void begin(struct state *made)
{
	for (uint32_t i = 0; i < SPACES; i++) {
		made->netns[i] = (struct netns){ .inode = 100 + i, .rtnl_fd = 0 };
		sockets[i].err = 0;
		sockets[i].n_opened = 0;
		sockets[i].ends[KERNEL] = -1;
	}
	made->host.netns = made->netns;
	made->host.n_netns = SPACES;
	made->log = witness_log(&made->witness);
	assert_int_equal(translation_table_init(&made->table), 0);
	mappings_init(&made->mappings, &made->table, &made->clock, &made->host,
		      true, NULL, NULL);
	mapping_questions_init(&made->questions, &made->mappings, &made->log);
	made->questions.open = open_socket;
}

static void end(struct state *made)
{
	mapping_questions_done(&made->questions);
	mappings_done(&made->mappings);
	translation_table_done(&made->table);
	for (uint32_t i = 0; i < SPACES; i++)
		close_fd(&sockets[i].ends[KERNEL]);
}

TEST_FIXTURE(struct state, begin, end)

static void pass_s(struct state *state, int64_t seconds)
{
	state->clock.namespace_offset -= seconds * NSEC_PER_SEC;
}

/* The end of a list, or an error instead of it. */
static void answer(uint16_t netns, uint16_t type, int error)
{
	struct {
		struct nlmsghdr header;
		int error;
	} message = { .header = { .nlmsg_len = sizeof(message),
				  .nlmsg_type = type },
		      .error = error };

	assert_int_equal(send(sockets[netns].ends[KERNEL], &message,
			      sizeof(message), 0),
			 sizeof(message));
}

static void read_end(struct state *state, uint16_t netns, int error)
{
	answer(netns, error ? NLMSG_ERROR : NLMSG_DONE, error);
	mapping_questions_read(&state->questions);
}

static const struct mapping_space *space_of(struct state *state, uint16_t netns)
{
	return mappings_space(&state->mappings, netns);
}

#define CASE(name) TEST_OF(name, struct state *s, set_up, tear_down)

CASE(one_namespace_after_the_other_is_listed)
{
	assert_int_equal(mapping_questions_fd(&s->questions), -1);
	for (uint16_t i = 0; i < SPACES; i++) {
		mapping_questions_ask(&s->questions);
		assert_int_equal(s->questions.list_netns, i);
		read_end(s, i, 0);
		assert_true(space_of(s, i)->complete_ns);
	}
	mapping_questions_ask(&s->questions);
	assert_int_equal(sockets[0].n_opened, 1);
	assert_int_equal(sockets[1].n_opened, 1);
	assert_int_equal(mapping_questions_fd(&s->questions), -1);
}

CASE(a_refusal_is_that_of_its_namespace)
{
	sockets[0].err = -EPERM;
	mapping_questions_ask(&s->questions);
	read_end(s, 1, 0);
	assert_true(space_of(s, 0)->cannot_ask);
	assert_false(space_of(s, 1)->cannot_ask);
	assert_int_equal(s->witness.warnings, 1);
}

CASE(a_list_that_failed_is_begun_again_later)
{
	static const int errors[] = { -EPERM, -ENOMEM, -EPROTONOSUPPORT };

	s->host.n_netns = 1;
	for (uint32_t i = 0; i < ARRAY_SIZE(errors); i++) {
		mapping_questions_ask(&s->questions);
		assert_int_equal(sockets[0].n_opened, i + 1);
		read_end(s, 0, errors[i]);
		assert_int_equal(space_of(s, 0)->cannot_ask,
				 errors[i] != -ENOMEM || i > 0);
		/* Not at once. */
		mapping_questions_ask(&s->questions);
		assert_int_equal(sockets[0].n_opened, i + 1);
		pass_s(s, 31);
	}
	mapping_questions_ask(&s->questions);
	read_end(s, 0, 0);
	assert_true(space_of(s, 0)->complete_ns);
	assert_false(space_of(s, 0)->cannot_ask);
	assert_int_equal(s->witness.warnings, 1);
}

CASE(without_memory_nothing_is_known_to_be_refused)
{
	static const int errors[] = { -ENOMEM, -ENOBUFS, -EMFILE };

	s->host.n_netns = 1;
	for (uint32_t i = 0; i < ARRAY_SIZE(errors); i++) {
		sockets[0].err = errors[i];
		mapping_questions_ask(&s->questions);
		assert_false(space_of(s, 0)->cannot_ask);
		pass_s(s, 31);
	}
	assert_int_equal(sockets[0].n_opened, ARRAY_SIZE(errors));
	assert_int_equal(s->witness.warnings, 0);
}

CASE(the_list_of_a_namespace_that_goes_away_ends)
{
	mapping_questions_ask(&s->questions);
	assert_int_equal(s->questions.list_netns, 0);
	s->netns[0].rtnl_fd = -1;
	mapping_questions_ask(&s->questions);
	assert_int_equal(s->questions.list_netns, 1);
	/* Another one takes its place. */
	s->netns[1].inode++;
	answer(1, NLMSG_DONE, 0);
	mapping_questions_read(&s->questions);
	assert_int_equal(mapping_questions_fd(&s->questions), -1);
	assert_int_equal(space_of(s, 1)->complete_ns, 0);
	mapping_questions_ask(&s->questions);
	read_end(s, 1, 0);
	assert_true(space_of(s, 1)->complete_ns);
	assert_int_equal(space_of(s, 1)->inode, 102);
}

static void report(struct state *state, uint16_t netns)
{
	struct nat_event event = {
		.time_ns =
			(uint64_t)clock_to_stamp(&state->clock, clock_boot_ns()),
		.ifindex = 4,
		.from_ifindex = 3,
		.netns = netns,
	};

	for (int i = 0; i < NAT_DIRECTIONS; i++)
		event.tuples[i] = (struct nat_tuple){
			.src = { htonl(0x0a000002 + (uint32_t)i) },
			.dst = { htonl(0xc0000201) },
			.src_port = htons(1024),
			.dst_port = htons(80),
			.family = AF_INET,
			.proto = IP_PROTO_TCP
		};
	translation_table_note(&state->table, &event);
}

/* Those of the other one are known for as long as they last. */
CASE(what_cannot_be_asked_for_is_forgotten_in_its_namespace)
{
	for (uint16_t i = 0; i < SPACES; i++)
		report(s, i);
	sockets[0].err = -EPERM;
	sockets[1].err = -ENOMEM;
	for (int i = 0; i < 3; i++) {
		mapping_questions_ask(&s->questions);
		pass_s(s, 40);
	}
	assert_int_equal(s->mappings.active, 1);
	assert_int_equal(s->mappings.n_forgotten, 1);
	assert_int_equal(s->mappings.n_ended, 0);
	assert_true(s->questions.n_asked_again > 0);
}
