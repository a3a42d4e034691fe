/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* TUN and TAP devices of tools that are links, and what happens to packets there by chance. */
#ifndef NETOBS_TESTS_TOOLS_TUN_H
#define NETOBS_TESTS_TOOLS_TUN_H

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000LL

enum { TX_QUEUE = 10000 };

static uint64_t random_state;

static inline void fail(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		strerror(errno));
	exit(1);
}

static inline int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/* SplitMix: Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014 */
static inline uint64_t next_random(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static inline void enter_netns(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		fail(path);
	close(fd);
}

/* A device in a namespace, up, without a wait in reads; its MAC address is random. @flags: IFF_TUN or IFF_TAP */
static inline int make_tun(const char *netns, const char *name, short flags)
{
	struct ifreq request = { .ifr_flags = (short)(flags | IFF_NO_PI) };
	int fd, any;

	enter_netns(netns);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
		fail("cannot make a device");
	any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	request.ifr_qlen = TX_QUEUE;
	if (any < 0 || ioctl(any, SIOCSIFTXQLEN, &request))
		fail("txqueuelen");
	request.ifr_flags = IFF_UP;
	if (ioctl(any, SIOCSIFFLAGS, &request))
		fail("up");
	close(any);
	return fd;
}

/* Of a link: it ends with its parent, and its sleeps are exact. */
static inline void be_a_link(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1);
}

#endif
