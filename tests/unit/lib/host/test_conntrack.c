/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Answers of ctnetlink, made by hand: whole, odd, cut short and interrupted; and the kernel's, for which there is no room. */
#include "lib_test.h"
#include "host/conntrack.h"

#include <arpa/inet.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <sys/socket.h>

enum {
	NEW = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW,
	KERNEL = 0,
	READER = 1,
	PACKET_MAX = 2048,
	FOUND_MAX = 8,
};

/* A packet of messages under construction. */
struct packet {
	char bytes[PACKET_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
	size_t len, begin; /* of the last message */
};

struct state {
	int ends[2]; /* the kernel's, and the reader's */
	struct conntrack_list list;
	struct conntrack_entry found[FOUND_MAX];
	uint32_t n;
};

static void begin(struct state *made)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, made->ends), 0);
	made->list.fd = made->ends[READER];
}

static void end(struct state *made)
{
	close(made->ends[KERNEL]);
	close(made->ends[READER]);
}

TEST_FIXTURE(struct state, begin, end)

static void begin_message(struct packet *packet, uint16_t type, uint16_t flags)
{
	const struct nlmsghdr header = { .nlmsg_type = type,
					 .nlmsg_flags = flags };

	packet->begin = packet->len;
	memcpy(packet->bytes + packet->len, &header, sizeof(header));
	packet->len += NLMSG_HDRLEN;
}

static void put_bytes(struct packet *packet, const void *data, size_t len)
{
	memcpy(packet->bytes + packet->len, data, len);
	packet->len += NLMSG_ALIGN(len);
}

static void end_message(struct packet *packet)
{
	const uint32_t len = (uint32_t)(packet->len - packet->begin);

	memcpy(packet->bytes + packet->begin, &len, sizeof(len));
}

static void put(struct packet *packet, uint16_t type, const void *data, size_t len)
{
	const struct rtattr attr = { .rta_len = RTA_LENGTH(len),
				     .rta_type = type };

	put_bytes(packet, &attr, sizeof(attr));
	put_bytes(packet, data, len);
}

static size_t nest(struct packet *packet, uint16_t type)
{
	const size_t at = packet->len;

	put(packet, NLA_F_NESTED | type, "", 0);
	return at;
}

static void unnest(struct packet *packet, size_t at)
{
	const uint16_t len = (uint16_t)(packet->len - at);

	memcpy(packet->bytes + at, &len, sizeof(len));
}

struct ends {
	const char *src, *dst;
	uint16_t src_port, dst_port;
	uint16_t zone; /* of this direction alone; 0: none */
};

static void put_tuple(struct packet *packet, uint16_t type,
		      const struct ends *ends)
{
	const bool is_v6 = strchr(ends->src, ':');
	const size_t size = is_v6 ? 16 : 4, outer = nest(packet, type);
	const uint16_t src = htons(ends->src_port), dst = htons(ends->dst_port);
	const uint16_t zone = htons(ends->zone);
	const uint8_t proto = IPPROTO_TCP;
	uint8_t addr[16];
	size_t inner = nest(packet, CTA_TUPLE_IP);

	assert_int_equal(inet_pton(is_v6 ? AF_INET6 : AF_INET, ends->src, addr),
			 1);
	put(packet, is_v6 ? CTA_IP_V6_SRC : CTA_IP_V4_SRC, addr, size);
	assert_int_equal(inet_pton(is_v6 ? AF_INET6 : AF_INET, ends->dst, addr),
			 1);
	put(packet, is_v6 ? CTA_IP_V6_DST : CTA_IP_V4_DST, addr, size);
	unnest(packet, inner);
	inner = nest(packet, CTA_TUPLE_PROTO);
	put(packet, CTA_PROTO_NUM, &proto, sizeof(proto));
	put(packet, CTA_PROTO_SRC_PORT, &src, sizeof(src));
	put(packet, CTA_PROTO_DST_PORT, &dst, sizeof(dst));
	unnest(packet, inner);
	if (zone)
		put(packet, CTA_TUPLE_ZONE, &zone, sizeof(zone));
	unnest(packet, outer);
}

static const struct ends to4 = { "10.0.0.2", "192.0.2.1", 40000, 80, 0 };
static const struct ends back4 = { "10.0.9.9", "198.51.100.1", 8080, 50000, 0 };

static void put_entry(struct packet *packet, const struct ends *to,
		      const struct ends *back, uint16_t flags)
{
	const struct nfgenmsg family = { .nfgen_family = AF_INET };
	const uint32_t timeout = htonl(77);
	/* Of IPv4 alone, so that there is one without. */
	const uint32_t status =
		htonl(IPS_CONFIRMED | IPS_SEEN_REPLY | IPS_ASSURED);

	begin_message(packet, NEW, NLM_F_MULTI | flags);
	put_bytes(packet, &family, sizeof(family));
	put_tuple(packet, CTA_TUPLE_ORIG, to);
	put_tuple(packet, CTA_TUPLE_REPLY, back);
	put(packet, CTA_TIMEOUT, &timeout, sizeof(timeout));
	if (!strchr(to->src, ':'))
		put(packet, CTA_STATUS, &status, sizeof(status));
	end_message(packet);
}

static void put_end(struct packet *packet, uint16_t flags)
{
	const int error = 0;

	begin_message(packet, NLMSG_DONE, NLM_F_MULTI | flags);
	put_bytes(packet, &error, sizeof(error));
	end_message(packet);
}

static void send_packet(const struct state *state, const struct packet *packet)
{
	assert_int_equal(send(state->ends[KERNEL], packet->bytes, packet->len, 0),
			 packet->len);
}

static void take_entry(void *ctx, const struct conntrack_entry *entry)
{
	struct state *state = ctx;

	assert_true(state->n < FOUND_MAX);
	state->found[state->n++] = *entry;
}

static int read_list(struct state *state)
{
	return conntrack_list_read(&state->list, false, take_entry, state);
}

#define CASE(name) TEST_OF(name, struct state *s, set_up, tear_down)

CASE(a_list_has_its_entries)
{
	static const struct ends to6 = { "fd00::2", "2001:db8::1", 1, 2, 5 };
	static const struct ends back6 = { "fd02::2", "fd00::2", 3, 4, 0 };
	struct packet first = { .len = 0 }, second = { .len = 0 };
	const struct nat_tuple *tuple = s->found[0].tuples;

	put_entry(&first, &to4, &back4, 0);
	put_entry(&first, &to6, &back6, 0);
	send_packet(s, &first);
	assert_int_equal(read_list(s), 0);
	put_end(&second, 0);
	send_packet(s, &second);
	assert_int_equal(read_list(s), 1);
	assert_int_equal(s->n, 2);
	assert_int_equal(s->found[0].timeout_s, 77);
	assert_true(s->found[0].is_answered && s->found[0].is_assured);
	assert_false(s->found[1].is_answered || s->found[1].is_assured);
	assert_int_equal(s->found[0].zone, 0);
	assert_int_equal(s->found[1].zone, 5);
	assert_int_equal(tuple[NAT_ORIGINAL].family, AF_INET);
	assert_int_equal(tuple[NAT_ORIGINAL].src_port, htons(40000));
	assert_int_equal(tuple[NAT_REPLY].dst_port, htons(50000));
	assert_int_equal(tuple[NAT_REPLY].src[0], inet_addr("10.0.9.9"));
	assert_int_equal(s->found[1].tuples[0].family, AF_INET6);
}

static int open_netlink(struct sockaddr_nl *ret_addr)
{
	socklen_t size = sizeof(*ret_addr);
	const int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);

	*ret_addr = (struct sockaddr_nl){ .nl_family = AF_NETLINK };
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (void *)ret_addr, size), 0);
	assert_int_equal(getsockname(fd, (void *)ret_addr, &size), 0);
	return fd;
}

static void take_no_answer(void *ctx, uint32_t i,
			   const struct conntrack_entry *entry)
{
	(void)ctx;
	(void)i;
	(void)entry;
	fail();
}

/* Any process may send to a socket of netlink. */
CASE(what_others_send_is_no_list)
{
	struct packet packet = { .len = 0 };
	struct sockaddr_nl to, from;
	const int other = open_netlink(&from);
	int reader = open_netlink(&to);
	struct conntrack_entry wanted = { .zone = 0 };

	put_entry(&packet, &to4, &back4, 0);
	put_end(&packet, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sendto(other, packet.bytes, packet.len, 0,
					(void *)&to, sizeof(to)),
				 packet.len);
	s->list.fd = reader;
	assert_int_equal(read_list(s), 0);
	assert_int_equal(s->n, 0);
	/* Nor an answer. */
	wanted.tuples[NAT_ORIGINAL].family = AF_INET;
	assert_int_equal(connect(reader, (void *)&from, sizeof(from)), 0);
	assert_int_equal(sendto(other, packet.bytes, packet.len, 0, (void *)&to,
				sizeof(to)),
			 packet.len);
	assert_int_equal(conntrack_ask(reader, &wanted, 1, take_no_answer, s),
			 -EAGAIN);
	assert_int_equal(s->n, 0);
	close(other);
	close(reader);
}

CASE(an_interrupted_list_is_not_complete)
{
	struct packet packet = { .len = 0 };

	put_entry(&packet, &to4, &back4, NLM_F_DUMP_INTR);
	put_end(&packet, 0);
	send_packet(s, &packet);
	assert_int_equal(read_list(s), -EAGAIN);
}

/* A length that cuts an entry, or is more than the packet has, before an end of its own. */
CASE(what_cannot_be_read_spoils_a_list)
{
	for (size_t cut = NLMSG_HDRLEN + sizeof(struct nfgenmsg); cut <= 100;
	     cut += 4) {
		struct packet packet = { .len = 0 }, end = { .len = 0 };
		const bool is_more = cut == 100;
		uint32_t len;

		put_entry(&packet, &to4, &back4, 0);
		len = is_more ? (uint32_t)packet.len + 4 : (uint32_t)cut;
		memcpy(packet.bytes, &len, sizeof(len));
		packet.len = is_more ? packet.len : cut;
		s->list.is_spoiled = false;
		send_packet(s, &packet);
		put_end(&end, 0);
		send_packet(s, &end);
		assert_int_equal(read_list(s), -EAGAIN);
	}
	assert_int_equal(s->n, 0);
}

CASE(a_refusal_is_returned)
{
	const struct nlmsgerr error = { .error = -EPERM };
	struct packet packet = { .len = 0 };

	begin_message(&packet, NLMSG_ERROR, 0);
	put_bytes(&packet, &error, sizeof(error));
	end_message(&packet);
	send_packet(s, &packet);
	assert_int_equal(read_list(s), -EPERM);
}

/* ---- The kernel's -------------------------------------------------------------------- */

enum { ENTRIES = 2000, MORE = 3000, ROUNDS = CONNTRACK_ASK_MAX };

/* In a network namespace of its own. @return a socket with the smallest receive buffer; -1: not allowed */
static int open_kernel(void)
{
	const int least = 1;
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return -1;
	fd = conntrack_open_in(-1);
	assert_true(fd >= 0);
	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)), 0);
	return fd;
}

static struct ends end_to(uint32_t number)
{
	struct ends ends = to4;

	ends.src_port = (uint16_t)(1000 + number);
	return ends;
}

static void make_entries(uint32_t first, uint32_t end)
{
	const int fd = conntrack_open_in(-1);

	assert_true(fd >= 0);
	for (; first < end; first++) {
		const struct ends to = end_to(first);
		struct ends back = back4;
		struct packet packet = { .len = 0 };

		back.dst_port = to.src_port;
		put_entry(&packet, &to, &back, NLM_F_REQUEST | NLM_F_CREATE);
		assert_int_equal(send(fd, packet.bytes, packet.len, 0),
				 packet.len);
	}
	close(fd);
}

static void count_entry(void *ctx, const struct conntrack_entry *entry)
{
	uint32_t *n = ctx;

	(void)entry;
	++*n;
}

/* The kernel waits for its reader, and entries begin meanwhile. */
TEST(a_list_with_little_room_is_complete)
{
	struct conntrack_list list = { .fd = open_kernel() };
	uint32_t n = 0;
	int ret;

	if (list.fd < 0)
		skip();
	make_entries(0, ENTRIES);
	assert_int_equal(conntrack_list_begin(&list), 0);
	make_entries(ENTRIES, ENTRIES + MORE);
	ret = conntrack_list_read(&list, true, count_entry, &n);
	/* Of a table that has grown, it may be incomplete, and says so. */
	assert_true(ret == 1 || ret == -EAGAIN);
	if (ret == -EAGAIN) {
		close(list.fd);
		list.fd = conntrack_open_in(-1);
		assert_true(list.fd >= 0);
		n = 0;
		assert_int_equal(conntrack_list_begin(&list), 0);
		assert_int_equal(
			conntrack_list_read(&list, true, count_entry, &n), 1);
		assert_int_equal(n, ENTRIES + MORE);
	}
	assert_in_range(n, ENTRIES, ENTRIES + MORE);
	close(list.fd);
}

static void note_answer(void *ctx, uint32_t i, const struct conntrack_entry *entry)
{
	bool *is_answered = ctx;

	assert_false(is_answered[i]);
	assert_non_null(entry);
	is_answered[i] = true;
}

/* What is left of @wanted, in place. @return how many */
static uint32_t remove_answered(struct conntrack_entry *wanted, uint32_t n,
				const bool *is_answered)
{
	uint32_t n_left = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!is_answered[i])
			wanted[n_left++] = wanted[i];
	return n_left;
}

TEST(answers_without_room_are_lost_alone)
{
	struct conntrack_entry wanted[CONNTRACK_ASK_MAX] = { { .zone = 0 } };
	uint32_t n = CONNTRACK_ASK_MAX, n_lost = 0;
	int fd = open_kernel();

	if (fd < 0)
		skip();
	make_entries(0, n);
	for (uint32_t i = 0; i < n; i++) {
		struct nat_tuple *tuple = &wanted[i].tuples[NAT_ORIGINAL];

		*tuple = (struct nat_tuple){ .src_port = htons(end_to(i).src_port),
					     .dst_port = htons(to4.dst_port),
					     .family = AF_INET,
					     .proto = IPPROTO_TCP };
		assert_int_equal(inet_pton(AF_INET, to4.src, tuple->src), 1);
		assert_int_equal(inet_pton(AF_INET, to4.dst, tuple->dst), 1);
	}
	for (int round = 0; n && round < ROUNDS; round++) {
		bool is_answered[CONNTRACK_ASK_MAX] = { false };
		const uint32_t before = n;
		const int ret =
			conntrack_ask(fd, wanted, n, note_answer, is_answered);

		n = remove_answered(wanted, n, is_answered);
		assert_int_equal(ret, n ? -ENOBUFS : 0);
		assert_true(n < before);
		n_lost += ret != 0;
	}
	assert_int_equal(n, 0);
	assert_true(n_lost > 0);
	close(fd);
}
