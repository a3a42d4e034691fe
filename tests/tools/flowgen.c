// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Sends UDP packets of many flows, fast, and says exactly what it sent.
 *
 * The frames go out through an ordinary packet socket, so tc egress sees them.
 * Packets are dealt out in turn: number i has the tuple i modulo --flows, and
 * goes out from CPU i modulo the number of CPUs. With --frames, the tuples are
 * those of a file: frames of --frame-size octets, one after the other.
 */
#define _GNU_SOURCE
#include "packet_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

enum {
	BATCH = 64,
	PORTS = 50000,
	FIRST_PORT = 1024,
	DEST_PORT = 9,
	MAX_CPUS = 64,
	HEADERS = sizeof(struct ether_header) + sizeof(struct iphdr) +
		  sizeof(struct udphdr),
	MAX_PAYLOAD = 1472,
};

struct frame {
	struct ether_header eth;
	struct iphdr ip;
	struct udphdr udp;
	uint8_t payload[MAX_PAYLOAD];
} __attribute__((packed));

struct options {
	const char *interface;
	const char *progress;
	const char *frames_file;
	uint8_t *frames; /* its content; NULL: generated frames */
	uint64_t flows;
	uint64_t packets; /* 0: until --seconds have passed, or a signal */
	double seconds;
	uint64_t rate; /* packets per second of all CPUs; 0: no limit */
	uint64_t payload;
	uint64_t frame_size;
	uint32_t source; /* of flow 0; host byte order */
	uint32_t dest;
	uint8_t dest_mac[6];
	int cpus[MAX_CPUS];
	int n_cpus;
};

struct sender {
	const struct options *opts;
	int index;
	int fd;
	int error;
	uint64_t sent;
	uint64_t refused; /* of them: the interface said no, after tc egress saw it */
	/* sent, shared with processes that map the --progress file */
	volatile uint64_t *progress;
	struct frame frames[BATCH];
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static double now(void)
{
	return tool_clock(CLOCK_MONOTONIC);
}

static uint16_t ip_checksum(const struct iphdr *ip)
{
	const uint16_t *words = (const void *)ip;
	uint32_t sum = 0;

	for (size_t i = 0; i < sizeof(*ip) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static void frame_init(struct frame *frame, const struct options *opts)
{
	uint16_t udp_len = sizeof(frame->udp) + opts->payload;

	memset(frame, 0, sizeof(*frame));
	memcpy(frame->eth.ether_dhost, opts->dest_mac, 6);
	frame->eth.ether_shost[0] = 2; /* a locally administered address */
	frame->eth.ether_type = htons(ETHERTYPE_IP);
	frame->ip.version = 4;
	frame->ip.ihl = 5;
	frame->ip.ttl = 64;
	frame->ip.protocol = IPPROTO_UDP;
	frame->ip.tot_len = htons(sizeof(frame->ip) + udp_len);
	frame->ip.daddr = htonl(opts->dest);
	frame->udp.dest = htons(DEST_PORT);
	frame->udp.len = htons(udp_len); /* checksum 0: none, RFC 768 */
}

/* Flow n: every source port of one source address, then the next address. */
static void frame_set_flow(struct frame *frame, const struct options *opts,
			   uint64_t flow)
{
	struct iphdr ip;

	memcpy(&ip, &frame->ip, sizeof(ip));
	ip.saddr = htonl(opts->source + flow / PORTS);
	ip.check = 0;
	ip.check = ip_checksum(&ip);
	memcpy(&frame->ip, &ip, sizeof(ip));
	frame->udp.source = htons(FIRST_PORT + flow % PORTS);
}

/* The frame that is number @number of all. */
static void part_set(struct iovec *part, struct frame *frame,
		     const struct options *opts, uint64_t number)
{
	uint64_t flow = number % opts->flows;

	if (opts->frames)
		part->iov_base = opts->frames + flow * opts->frame_size;
	else
		frame_set_flow(frame, opts, flow);
}

static int frames_map(struct options *opts)
{
	int fd = open(opts->frames_file, O_RDONLY);
	off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

	if (size < 0)
		return -errno;
	if (!opts->frame_size || !size || size % opts->frame_size)
		return -EINVAL;
	opts->frames =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	opts->flows = size / opts->frame_size;
	return opts->frames == MAP_FAILED ? -ENOMEM : 0;
}

static bool is_over(const struct options *opts, double start, uint64_t number)
{
	if (stopped || (opts->packets && number >= opts->packets))
		return true;
	return opts->seconds > 0 && now() - start >= opts->seconds;
}

static int send_all(struct sender *s)
{
	const struct options *opts = s->opts;
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec parts[BATCH];
	uint64_t number = s->index;
	double start = now();

	for (int i = 0; i < BATCH; i++) {
		frame_init(&s->frames[i], opts);
		parts[i].iov_base = &s->frames[i];
		parts[i].iov_len = opts->frame_size;
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	while (!is_over(opts, start, number)) {
		int n = 0, ret;

		for (; n < BATCH; n++, number += opts->n_cpus) {
			if (opts->packets && number >= opts->packets)
				break;
			part_set(&parts[n], &s->frames[n], opts, number);
		}
		ret = packet_socket_send(s->fd, messages, n, &s->refused);
		if (ret < 0)
			return ret;
		s->sent += n;
		*s->progress = s->sent;
		pace((double)opts->rate / opts->n_cpus, start, s->sent);
	}
	return 0;
}

static void *sender_run(void *arg)
{
	struct sender *s = arg;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(s->opts->cpus[s->index], &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		s->error = -errno;
	else
		s->error = send_all(s);
	return NULL;
}

static volatile uint64_t *progress_map(const struct options *opts)
{
	size_t size = MAX_CPUS * sizeof(uint64_t);
	void *map;
	int fd = -1;

	if (opts->progress) {
		fd = open(opts->progress, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || ftruncate(fd, size))
			return NULL;
	}
	map = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	if (fd >= 0)
		close(fd);
	return map == MAP_FAILED ? NULL : map;
}

static int run(const struct options *opts)
{
	volatile uint64_t *progress = progress_map(opts);
	struct sender *senders = calloc(opts->n_cpus, sizeof(*senders));
	uint64_t sent = 0, refused = 0, each = opts->frame_size;
	pthread_t threads[MAX_CPUS];
	double start = now();
	int error = 0;

	if (!progress || !senders)
		return -ENOMEM;
	for (int i = 0; i < opts->n_cpus; i++) {
		senders[i].opts = opts;
		senders[i].index = i;
		senders[i].progress = progress + i;
		senders[i].fd = packet_socket_open(opts->interface);
		if (senders[i].fd < 0)
			return senders[i].fd;
	}
	for (int i = 0; i < opts->n_cpus; i++)
		if (pthread_create(&threads[i], NULL, sender_run, &senders[i]))
			return -EAGAIN;
	for (int i = 0; i < opts->n_cpus; i++) {
		pthread_join(threads[i], NULL);
		close(senders[i].fd);
		sent += senders[i].sent;
		refused += senders[i].refused;
		error = error ? error : senders[i].error;
	}
	printf("{\"packets\": %ju, \"bytes\": %ju, \"l2_bytes\": %ju, "
	       "\"refused\": %ju, \"seconds\": %.3f}\n",
	       (uintmax_t)sent,
	       (uintmax_t)(sent * (each - sizeof(struct ether_header))),
	       (uintmax_t)(sent * each), (uintmax_t)refused, now() - start);
	free(senders);
	return error;
}

static int parse_cpus(const char *text, void *to)
{
	char *list = strdupa(text);
	struct options *opts = to;

	opts->n_cpus = 0;
	for (char *one = strtok(list, ","); one; one = strtok(NULL, ",")) {
		if (opts->n_cpus == MAX_CPUS)
			return -E2BIG;
		opts->cpus[opts->n_cpus++] = atoi(one);
	}
	return opts->n_cpus ? 0 : -EINVAL;
}

static int parse_mac(const char *text, void *to)
{
	uint8_t *mac = to;

	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1],
		      &mac[2], &mac[3], &mac[4], &mac[5]) == 6 ?
		       0 :
		       -EINVAL;
}

static int parse_address(const char *text, void *to)
{
	struct in_addr address;

	if (inet_pton(AF_INET, text, &address) != 1)
		return -EINVAL;
	*(uint32_t *)to = ntohl(address.s_addr);
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct options opts = {
		.flows = 1,
		.payload = 18,
		.source = 0x0a000001, /* 10.0.0.1 */
		.dest = 0xc6120001,   /* 198.18.0.1, RFC 2544 */
		.dest_mac = { 2, 0xff, 0xff, 0xff, 0xff, 0xff },
		.n_cpus = 1,
	};
	const struct tool_option table[] = {
		{ "interface", tool_read_text, &opts.interface },
		{ "flows", tool_read_number, &opts.flows },
		{ "packets", tool_read_number, &opts.packets },
		{ "seconds", tool_read_real, &opts.seconds },
		{ "rate", tool_read_number, &opts.rate },
		{ "payload", tool_read_number, &opts.payload },
		{ "cpus", parse_cpus, &opts },
		{ "mac", parse_mac, opts.dest_mac },
		{ "source", parse_address, &opts.source },
		{ "dest", parse_address, &opts.dest },
		{ "progress", tool_read_text, &opts.progress },
		{ "frames", tool_read_text, &opts.frames_file },
		{ "frame-size", tool_read_number, &opts.frame_size },
		{ 0 },
	};
	int ret;

	if (tool_options_read(argc, argv, table))
		return 2;
	if (!opts.interface || !opts.flows || opts.payload > MAX_PAYLOAD) {
		fprintf(stderr,
			"flowgen: it needs --interface, flows, and %d bytes at most\n",
			MAX_PAYLOAD);
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (!opts.frames_file)
		opts.frame_size = HEADERS + opts.payload;
	ret = opts.frames_file ? frames_map(&opts) : 0;
	ret = ret < 0 ? ret : run(&opts);
	if (ret < 0)
		fprintf(stderr, "flowgen: %s\n", strerror(-ret));
	return ret < 0;
}
