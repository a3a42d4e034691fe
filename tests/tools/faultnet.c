// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A network whose faults can be switched, for kernels without netem:
 *
 *   faultnet [-s SEED] [-w FILE] NETNS INTERFACE
 *
 * makes a TUN device in the namespace (a name of ip-netns(8)), and gives it back each packet that is
 * routed to it, late, or not at all. Hosts have numbers from 1 to 7: the third byte of an IPv4 address,
 * or the second 16 bits of an IPv6 address. Each host has a queue, the last link in front of it. Lines
 * of standard input change the network; it answers each with "ok":
 *
 *   path FROM TO delay|loss|late|mtu VALUE   us; packets of a million that are lost, or take
 *                                            LATE_US longer; bytes that are too many, 0: none
 *   host TO rate|queue VALUE                 kbit/s, bytes
 *
 * FILE has a line for each lost packet: its time (ns since 1970), from, to, bytes, why, protocol.
 */
#define _GNU_SOURCE
#include "tun.h"

#include <poll.h>

enum { HOSTS = 8, PACKET_MAX = 2048, BURST = 64, PENDING_MAX = 1 << 16 };
enum { LATE_US = 15000, MILLION = 1000000 };

struct packet {
	int64_t due_ns;
	uint64_t number; /* packets that are due at once stay in order */
	size_t len;
	uint8_t bytes[PACKET_MAX];
};

struct path {
	long delay_us, loss_ppm, late_ppm, mtu;
};

/* The link in front of a host: when it is free again. */
struct link {
	long rate_kbit, queue_bytes;
	int64_t free_ns;
};

static struct path paths[HOSTS][HOSTS];
static struct link links[HOSTS];
static struct packet *pending[PENDING_MAX]; /* a heap */
static size_t n_pending;
static uint64_t n_packets;
static FILE *lost; /* NULL: packets that are lost are not written */

static int is_chosen(long ppm)
{
	return ppm && (long)(next_random() % MILLION) < ppm;
}

static int is_before(const struct packet *a, const struct packet *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns :
					a->number < b->number;
}

static void push(struct packet *packet)
{
	size_t i = n_pending++;

	for (; i && is_before(packet, pending[(i - 1) / 2]); i = (i - 1) / 2)
		pending[i] = pending[(i - 1) / 2];
	pending[i] = packet;
}

static struct packet *pop(void)
{
	struct packet *first = pending[0], *last = pending[--n_pending];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < n_pending; i = child) {
		if (child + 1 < n_pending &&
		    is_before(pending[child + 1], pending[child]))
			child++;
		if (!is_before(pending[child], last))
			break;
		pending[i] = pending[child];
	}
	pending[i] = last;
	return first;
}

/* Returns the protocol, 0 if the packet is not of the laboratory's hosts. */
static int find_hosts(const struct packet *packet, unsigned int *from,
		      unsigned int *to)
{
	const uint8_t *bytes = packet->bytes;
	const int is_ipv4 = packet->len >= 20 && bytes[0] >> 4 == 4;

	if (!is_ipv4 && (packet->len < 40 || bytes[0] >> 4 != 6))
		return 0;
	*from = is_ipv4 ? bytes[14] : bytes[8 + 3];
	*to = is_ipv4 ? bytes[18] : bytes[24 + 3];
	if (*from >= HOSTS || *to >= HOSTS)
		return 0;
	return is_ipv4 ? bytes[9] : bytes[6];
}

/* Returns why the packet is lost, or NULL; @due_ns: when it arrives else */
static const char *send_packet(const struct path *path, struct link *link,
			       size_t len, int64_t *due_ns)
{
	const int64_t now = now_ns(CLOCK_MONOTONIC);
	int64_t begin;

	if (is_chosen(path->loss_ppm))
		return "loss";
	if (path->mtu && len >= (size_t)path->mtu)
		return "mtu";
	begin = link->free_ns > now ? link->free_ns : now;
	if (link->rate_kbit) {
		if ((begin - now) * link->rate_kbit / 8 / MILLION + (int64_t)len >
		    link->queue_bytes)
			return "queue";
		begin += (int64_t)len * 8 * MILLION / link->rate_kbit;
		link->free_ns = begin;
	}
	*due_ns = begin + path->delay_us * 1000;
	if (is_chosen(path->late_ppm))
		*due_ns += LATE_US * 1000;
	return NULL;
}

static void lose_packet(struct packet *packet, const char *why)
{
	unsigned int from, to;
	const int protocol = find_hosts(packet, &from, &to);

	if (lost && protocol)
		fprintf(lost, "%lld %u %u %zu %s %d\n",
			(long long)now_ns(CLOCK_REALTIME), from, to,
			packet->len, why, protocol);
	free(packet);
}

static void take_packet(struct packet *packet)
{
	unsigned int from, to;
	const char *why = "room";

	if (find_hosts(packet, &from, &to) && n_pending < PENDING_MAX)
		why = send_packet(&paths[from][to], &links[to], packet->len,
				  &packet->due_ns);
	if (why) {
		lose_packet(packet, why);
		return;
	}
	packet->number = n_packets++;
	push(packet);
}

static void take_packets(int fd)
{
	for (int i = 0; i < BURST; i++) {
		struct packet *packet = malloc(sizeof(*packet));
		const ssize_t len =
			packet ? read(fd, packet->bytes, PACKET_MAX) : -1;

		if (len <= 0) {
			free(packet);
			return;
		}
		packet->len = (size_t)len;
		take_packet(packet);
	}
}

/* A packet for which the device has no room is lost, as on a real link. */
static void pass_packets(int fd)
{
	const int64_t now = now_ns(CLOCK_MONOTONIC);

	while (n_pending && pending[0]->due_ns <= now) {
		struct packet *packet = pop();

		if (write(fd, packet->bytes, packet->len) < 0)
			lose_packet(packet, "room");
		else
			free(packet);
	}
}

static long *find_knob(const char *line, long *ret_value)
{
	unsigned int from, to;
	char name[8];

	if (sscanf(line, "path %u %u %7s %ld", &from, &to, name, ret_value) == 4 &&
	    from < HOSTS && to < HOSTS) {
		struct path *path = &paths[from][to];

		return !strcmp(name, "delay") ? &path->delay_us :
		       !strcmp(name, "loss")  ? &path->loss_ppm :
		       !strcmp(name, "late")  ? &path->late_ppm :
		       !strcmp(name, "mtu")   ? &path->mtu :
						NULL;
	}
	if (sscanf(line, "host %u %7s %ld", &to, name, ret_value) == 3 &&
	    to < HOSTS)
		return !strcmp(name, "rate")  ? &links[to].rate_kbit :
		       !strcmp(name, "queue") ? &links[to].queue_bytes :
						NULL;
	return NULL;
}

static void obey(const char *line)
{
	long value, *knob = find_knob(line, &value);

	if (!knob)
		exit(2);
	*knob = value;
	puts("ok");
	fflush(stdout);
}

/* Lines may come in pieces. Ends with standard input. */
static void read_commands(void)
{
	static char text[4096];
	static size_t used;
	const ssize_t len = read(0, text + used, sizeof(text) - 1 - used);
	char *line = text, *end;

	if (len <= 0)
		exit(0);
	used += (size_t)len;
	text[used] = '\0';
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		obey(line);
	}
	used -= (size_t)(line - text);
	memmove(text, line, used);
}

static void relay(int fd)
{
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN },
				 { .fd = 0, .events = POLLIN } };

	for (;;) {
		const int64_t due_ns = n_pending ? pending[0]->due_ns : 0;
		const int64_t left_ns = due_ns - now_ns(CLOCK_MONOTONIC);
		const int64_t ns = left_ns > 0 ? left_ns : 0;
		const struct timespec wait = { ns / NSEC_PER_SEC,
					       ns % NSEC_PER_SEC };

		if (ppoll(fds, 2, n_pending ? &wait : NULL, NULL) < 0)
			fail("ppoll");
		if (fds[1].revents)
			read_commands();
		take_packets(fd);
		pass_packets(fd);
	}
}

int main(int argc, char **argv)
{
	const struct sched_param first = { .sched_priority = 10 };
	int option, fd;

	while ((option = getopt(argc, argv, "s:w:")) >= 0) {
		if (option == 's')
			random_state = strtoull(optarg, NULL, 10);
		else if (option != 'w' || !(lost = fopen(optarg, "we")))
			return 2;
	}
	if (argc - optind != 2)
		return 2;
	be_a_link();
	/* Without this privilege, it is late while the machine is busy. */
	sched_setscheduler(0, SCHED_FIFO, &first);
	fd = make_tun(argv[optind], argv[optind + 1], IFF_TUN);
	puts("ready");
	fflush(stdout);
	relay(fd);
	return 0;
}
