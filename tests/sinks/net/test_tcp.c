// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a connection's TCP says of its peer. */
#include "lib_test.h"

#include "sinks/net/net.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static struct tcp_info info;
static int failure;

/* In place of the kernel. */
int getsockopt(int fd, int level, int name, void *restrict value,
	       socklen_t *restrict len)
{
	assert_int_equal(fd, 7);
	assert_int_equal(level, IPPROTO_TCP);
	assert_int_equal(name, TCP_INFO);
	assert_int_equal(*len, sizeof(info));
	memcpy(value, &info, sizeof(info));
	errno = failure;
	return failure ? -1 : 0;
}

/* To data that it does not acknowledge, or to the question whether its window is still closed. */
TEST(peer_that_does_not_answer_is_silent)
{
	static const struct {
		uint8_t retransmits, probes;
		bool is_silent;
	} cases[] = {
		{ 0, 0, false },
		{ 1, 0, true },
		{ 0, 1, true },
		{ 2, 3, true },
	};
	struct tcp_peer peer;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		info = (struct tcp_info){
			.tcpi_retransmits = cases[i].retransmits,
			.tcpi_probes = cases[i].probes,
			.tcpi_last_ack_recv = 1234,
		};
		assert_int_equal(tcp_look(7, &peer), 0);
		assert_int_equal(peer.is_silent, cases[i].is_silent);
		assert_int_equal(peer.silent_ms, 1234);
	}
}

TEST(failure_is_returned)
{
	struct tcp_peer peer = { .silent_ms = 1 };

	failure = EBADF;
	assert_int_equal(tcp_look(7, &peer), -EBADF);
	assert_int_equal(peer.silent_ms, 1);
	failure = 0;
}
