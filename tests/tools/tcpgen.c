// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Opens and closes TCP connections fast, and says exactly what it sent.
 *
 * Both ends are here: the client's segments go out of an interface, the server's out of another
 * one, which is in the network namespace --peer, through packet sockets. So the tc hooks of both
 * see them, and no TCP of the kernel does: their destination is the MAC address of neither.
 *
 * Number i has the tuple i. It opens, with a request and its answer; when --open others have
 * opened after it, it closes. With --flood, there are SYNs and their answers only. All that is
 * on its way is behind the programs before the next segment of a connection is sent.
 */
#define _GNU_SOURCE
#include "packet_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

enum {
	BATCH = 64,
	PORTS = 50000,
	FIRST_PORT = 1024,
	SERVER_PORT = 80,
	REQUEST = 100, /* bytes of data */
	ANSWER = 200,
	CLIENT = 0,
	SERVER = 1,
};

struct frame {
	struct ether_header eth;
	struct iphdr ip;
	struct tcphdr tcp;
	uint8_t payload[ANSWER];
} __attribute__((packed));

enum { HEADERS = offsetof(struct frame, payload) };

struct options {
	const char *interface;
	const char *peer; /* the path of a namespace */
	const char *peer_interface;
	uint64_t connections;
	uint64_t open; /* at once; 0: until the end */
	uint64_t first;
	uint64_t rate; /* connections per second; 0: no limit */
	double hold; /* seconds for which all that are open stay so, before the last close */
	bool is_flood;
};

/* Of a connection's life; numbers are behind those of its SYNs. */
struct step {
	int from;
	uint8_t flags;
	uint16_t len;
	uint32_t sent[2]; /* bytes before it, of both ends */
};

static const struct step opening[] = {
	{ CLIENT, TH_SYN, 0, { 0, 0 } },
	{ SERVER, TH_SYN | TH_ACK, 0, { 0, 0 } },
	{ CLIENT, TH_ACK, 0, { 1, 1 } },
	{ CLIENT, TH_ACK | TH_PUSH, REQUEST, { 1, 1 } },
	{ SERVER, TH_ACK | TH_PUSH, ANSWER, { 1 + REQUEST, 1 } },
	{ CLIENT, TH_ACK, 0, { 1 + REQUEST, 1 + ANSWER } },
};

static const struct step closing[] = {
	{ CLIENT, TH_ACK | TH_FIN, 0, { 1 + REQUEST, 1 + ANSWER } },
	{ SERVER, TH_ACK | TH_FIN, 0, { 2 + REQUEST, 1 + ANSWER } },
	{ CLIENT, TH_ACK, 0, { 2 + REQUEST, 2 + ANSWER } },
};

enum {
	FLOOD_STEPS = 2,
	OPEN_STEPS = sizeof(opening) / sizeof(opening[0]),
	CLOSE_STEPS = sizeof(closing) / sizeof(closing[0]),
};

struct generator {
	struct options opts;
	int fds[2];
	uint64_t sent[2];  /* packets of each end */
	uint64_t bytes[2]; /* of them at layer 3 */
	uint64_t refused[2]; /* of them: the interface said no, after tc egress saw it */
	struct frame frames[BATCH];
};

static double now(void)
{
	return tool_clock(CLOCK_MONOTONIC);
}

static int namespace_enter(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (setns(fd, CLONE_NEWNET))
		err = -errno;
	close(fd);
	return err;
}

static void frame_init(struct frame *frame)
{
	memset(frame, 0, sizeof(*frame));
	memset(frame->eth.ether_dhost + 1, 0xff, 5);
	frame->eth.ether_dhost[0] = 2; /* locally administered, of no interface */
	frame->eth.ether_shost[0] = 2;
	frame->eth.ether_type = htons(ETHERTYPE_IP);
	frame->ip.version = 4;
	frame->ip.ihl = 5;
	frame->ip.ttl = 64;
	frame->ip.protocol = IPPROTO_TCP;
	frame->tcp.th_off = sizeof(struct tcphdr) / 4;
	frame->tcp.th_win = htons(0xffff);
}

/* Connection @number's segment. Every port of one client's address, then the next address. */
static size_t frame_set(struct frame *frame, const struct step *step,
			uint64_t number)
{
	const uint32_t client = htonl(0x0a000001 + number / PORTS); /* 10.0.0.1 */
	const uint32_t server = htonl(0xc6120001); /* 198.18.0.1, RFC 2544 */
	const uint16_t port = htons(FIRST_PORT + number % PORTS);
	const bool is_answer = step->from == SERVER;
	/* Where the numbers of both ends begin: different for each connection. */
	const uint32_t isns[] = { number * 2654435761U, ~(number * 2654435761U) };

	frame->ip.saddr = is_answer ? server : client;
	frame->ip.daddr = is_answer ? client : server;
	frame->ip.tot_len =
		htons(sizeof(frame->ip) + sizeof(frame->tcp) + step->len);
	frame->tcp.th_sport = is_answer ? htons(SERVER_PORT) : port;
	frame->tcp.th_dport = is_answer ? port : htons(SERVER_PORT);
	frame->tcp.th_flags = step->flags;
	frame->tcp.th_seq = htonl(isns[step->from] + step->sent[step->from]);
	frame->tcp.th_ack = 0;
	if (step->flags == (TH_SYN | TH_ACK))
		frame->tcp.th_ack = htonl(isns[CLIENT] + 1);
	else if (step->flags & TH_ACK)
		frame->tcp.th_ack =
			htonl(isns[!step->from] + step->sent[!step->from]);
	return HEADERS + step->len;
}

/* The same step of connections @first to @first + @n - 1. */
static int send_step(struct generator *gen, const struct step *step,
		     uint64_t first, int n)
{
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec parts[BATCH];

	for (int i = 0; i < n; i++) {
		parts[i].iov_base = &gen->frames[i];
		parts[i].iov_len = frame_set(&gen->frames[i], step,
					     gen->opts.first + first + i);
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	gen->sent[step->from] += n;
	gen->bytes[step->from] +=
		n * (HEADERS + step->len - sizeof(struct ether_header));
	return packet_socket_send(gen->fds[step->from], messages, n,
				  &gen->refused[step->from]);
}

static int send_steps(struct generator *gen, const struct step *steps,
		      int n_steps, uint64_t first, uint64_t end)
{
	int err = 0;

	for (uint64_t at = first; !err && at < end; at += BATCH) {
		const int n = end - at < BATCH ? end - at : BATCH;

		for (int i = 0; !err && i < n_steps; i++)
			err = send_step(gen, &steps[i], at, n);
	}
	return err;
}

/* Connections below @closed have closed. @return how many have, or a negated errno */
static int64_t open_all(struct generator *gen)
{
	const struct options *opts = &gen->opts;
	const double start = now();
	uint64_t closed = 0;
	int err = 0;

	for (uint64_t at = 0; !err && at < opts->connections; at += BATCH) {
		const uint64_t end = at + BATCH < opts->connections ?
					     at + BATCH :
					     opts->connections;

		err = send_steps(gen, opening,
				 opts->is_flood ? FLOOD_STEPS : OPEN_STEPS, at,
				 end);
		if (!err && !opts->is_flood && opts->open &&
		    end > closed + opts->open) {
			err = send_steps(gen, closing, CLOSE_STEPS, closed,
					 end - opts->open);
			closed = end - opts->open;
		}
		pace(opts->rate, start, end);
	}
	return err ?: (int64_t)closed;
}

static int run(struct generator *gen)
{
	const struct options *opts = &gen->opts;
	const double start = now();
	int64_t closed;
	int err;

	for (int i = 0; i < BATCH; i++)
		frame_init(&gen->frames[i]);
	closed = open_all(gen);
	if (closed < 0)
		return closed;
	if (opts->hold > 0)
		usleep(opts->hold * 1e6);
	err = opts->is_flood ? 0 :
			       send_steps(gen, closing, CLOSE_STEPS, closed,
					  opts->connections);
	printf("{\"connections\": %ju, \"client\": {\"packets\": %ju, \"bytes\": %ju, "
	       "\"refused\": %ju}, \"server\": {\"packets\": %ju, \"bytes\": %ju, "
	       "\"refused\": %ju}, \"seconds\": %.3f}\n",
	       (uintmax_t)opts->connections, (uintmax_t)gen->sent[CLIENT],
	       (uintmax_t)gen->bytes[CLIENT], (uintmax_t)gen->refused[CLIENT],
	       (uintmax_t)gen->sent[SERVER], (uintmax_t)gen->bytes[SERVER],
	       (uintmax_t)gen->refused[SERVER], now() - start);
	return err;
}

static int open_both(struct generator *gen)
{
	int err;

	gen->fds[CLIENT] = packet_socket_open(gen->opts.interface);
	if (gen->fds[CLIENT] < 0)
		return gen->fds[CLIENT];
	err = namespace_enter(gen->opts.peer);
	if (err)
		return err;
	gen->fds[SERVER] = packet_socket_open(gen->opts.peer_interface);
	return gen->fds[SERVER] < 0 ? gen->fds[SERVER] : 0;
}

int main(int argc, char **argv)
{
	static struct generator gen;
	struct options *opts = &gen.opts;
	const struct tool_option table[] = {
		{ "interface", tool_read_text, &opts->interface },
		{ "peer", tool_read_text, &opts->peer },
		{ "peer-interface", tool_read_text, &opts->peer_interface },
		{ "connections", tool_read_number, &opts->connections },
		{ "open", tool_read_number, &opts->open },
		{ "first", tool_read_number, &opts->first },
		{ "rate", tool_read_number, &opts->rate },
		{ "hold", tool_read_real, &opts->hold },
		{ "flood", NULL, &opts->is_flood },
		{ 0 },
	};
	int ret;

	if (tool_options_read(argc, argv, table))
		return 2;
	if (!opts->interface || !opts->peer || !opts->peer_interface) {
		fprintf(stderr,
			"tcpgen: --interface, --peer and --peer-interface are needed\n");
		return 2;
	}
	ret = open_both(&gen) ?: run(&gen);
	if (ret < 0)
		fprintf(stderr, "tcpgen: %s\n", strerror(-ret));
	return ret < 0;
}
