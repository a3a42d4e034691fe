/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_lab.h"

#include "lib_test.h"
#include "lib_wait.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>

enum {
	BURST = 64, /* packets that the queue of a CPU has room for */
};

void lab_enter(struct lab *lab)
{
	lab->home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(lab->home >= 0);
	if (unshare(CLONE_NEWNET))
		fail_msg("a network namespace cannot be made: run as root");
	lab_run("ip link set lo up");
}

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Threads that detach programs outlive their context, and their descriptors with them. */
static void await_threads(void)
{
	enum {
		MAIN_THREAD = 3,
		POLLS = 500
	}; /* "." and ".." are entries, too */

	for (int i = 0;
	     count_entries("/proc/self/task") > MAIN_THREAD && i < POLLS; i++)
		usleep(10000);
}

void lab_leave(struct lab *lab)
{
	await_threads();
	assert_int_equal(setns(lab->home, CLONE_NEWNET), 0);
	close(lab->home);
	lab->home = -1;
}

void lab_run(const char *format, ...)
{
	char command[256];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command))
		fail_msg("failed: %s", command);
}

void lab_read(const char *command, char *buf, uint32_t size)
{
	FILE *pipe = popen(command, "re");
	size_t len;

	assert_non_null(pipe);
	len = fread(buf, 1, size - 1, pipe);
	buf[len] = '\0';
	assert_int_equal(pclose(pipe), 0);
}

/* enum bpf_attach_type of Linux 6.6's include/uapi/linux/bpf.h. */
enum { TCX_INGRESS = 46, TCX_EGRESS = 47 };

static int query_tcx(uint32_t ifindex, bool egress, uint32_t *ids, uint32_t *n)
{
	int type = egress ? TCX_EGRESS : TCX_INGRESS;

	return bpf_prog_query(ifindex, (enum bpf_attach_type)type, 0, NULL, ids,
			      n);
}

uint64_t lab_lacks(uint64_t features)
{
	static uint64_t lacking;
	static bool is_known;
	struct netobs_feature all[NETOBS_FEATURES];

	if (!is_known)
		assert_true(netobs_probe(0, NULL, NULL, all, NETOBS_FEATURES,
					 sizeof(all[0])) >= 0);
	for (int i = 0; !is_known && i < NETOBS_FEATURES; i++)
		lacking |= (uint64_t)!all[i].available << i;
	is_known = true;
	return features & lacking;
}

bool lab_has_tcx(void)
{
	uint32_t loopback = 1, ids[16], n = 16;

	return query_tcx(loopback, false, ids, &n) != -EINVAL;
}

/* COMPAT(<6.6): without tcx there is nothing to ask for. */
uint32_t lab_count_tcx(const char *interface, bool egress)
{
	uint32_t ids[16], n = 16;

	return query_tcx(if_nametoindex(interface), egress, ids, &n) ? 0 : n;
}

bool lab_is_bare(const char *interface)
{
	char command[64], shown[1024];

	snprintf(command, sizeof(command), "tc qdisc show dev %s", interface);
	lab_read(command, shown, sizeof(shown));
	return !strstr(shown, "clsact") && !lab_count_tcx(interface, false) &&
	       !lab_count_tcx(interface, true);
}

void lab_await_bare(const char *interface)
{
	enum { STEP_US = 10000 }; /* for a process each */

	await_by(lab_is_bare(interface), usleep(STEP_US));
}

uint32_t lab_shrink(void)
{
	const char *given = getenv("NETOBS_TEST_SHRINK");
	const int shrink = given ? atoi(given) : 1;

	return shrink > 1 ? (uint32_t)shrink : 1;
}

/**
 * UDP packets that IP has received at least, in this namespace: /proc/net/snmp without errors of
 * ICMP, which are counted when they are sent, before IP receives them.
 */
static uint64_t received(void)
{
	FILE *file = fopen("/proc/thread-self/net/snmp", "re");
	uint64_t all = 0, errors = 0;
	char line[1024];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "Ip: %*u %*u %" SCNu64, &all);
		/* Of 14 counters of what comes in, what goes out is the 15th. */
		sscanf(line,
		       "Icmp: %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64,
		       &errors);
	}
	fclose(file);
	return all - errors;
}

static void send_burst(int fd, const struct sockaddr_in *to, uint32_t n)
{
	static const char data[LAB_BYTES - 28];
	const uint64_t expected = received() + n;

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(sendto(fd, data, sizeof(data), 0,
					(const struct sockaddr *)to, sizeof(*to)),
				 sizeof(data));
	await(received() >= expected);
}

struct sockaddr_in lab_address(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

int lab_bind(int type, uint16_t *port)
{
	struct sockaddr_in address = lab_address(*port);
	socklen_t len = sizeof(address);
	const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), on = 1;

	/* A server's last connections may not have ended yet. */
	if (type == SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, (void *)&address, len), 0);
	assert_int_equal(getsockname(fd, (void *)&address, &len), 0);
	*port = ntohs(address.sin_port);
	return fd;
}

int lab_listen(uint16_t *port, int backlog)
{
	const int fd = lab_bind(SOCK_STREAM, port);

	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

int lab_connect(uint16_t port)
{
	const struct sockaddr_in address = lab_address(port);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const void *)&address, sizeof(address)), 0);
	return fd;
}

void lab_reset(int fd)
{
	const struct linger at_once = { .l_onoff = 1 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once,
				    sizeof(at_once)),
			 0);
	close(fd);
}

void lab_send(uint16_t port, uint32_t n)
{
	const struct sockaddr_in to = lab_address(port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	for (; n > BURST; n -= BURST)
		send_burst(fd, &to, BURST);
	send_burst(fd, &to, n);
	close(fd);
}

int lab_count_fds(void)
{
	return count_entries("/proc/self/fd");
}

void lab_await_fds(int n)
{
	await(lab_count_fds() == n);
}
