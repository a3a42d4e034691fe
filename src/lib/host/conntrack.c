/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "conntrack.h"

#include "base/util.h"
#include "rtnl.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum {
	READ_SIZE = 32 << 10, /* the kernel's messages fit */
	READ_MAX = 16,	      /* at a time; a caller's loop has other work */
	REQUEST_MAX = 256,
	GET = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET,
	NEW = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW,
	WITHOUT_ZONE = 1 << 8, /* in the number of a request */
};

_Static_assert((int)WITHOUT_ZONE >= (int)CONNTRACK_ASK_MAX, "numbers below it");

int conntrack_open_in(int ns_fd)
{
	return netlink_open_in(ns_fd, NETLINK_NETFILTER, 0);
}

/*
 * Receive a packet of the kernel: other processes may send to a socket of netlink, too.
 *
 * @return as recv(2); 0: another process sent it
 */
static ssize_t receive(int fd, char buf[READ_SIZE], int flags)
{
	struct sockaddr_nl from = { 0 };
	socklen_t size = sizeof(from);
	const ssize_t len = recvfrom(fd, buf, READ_SIZE, flags,
				     (struct sockaddr *)&from, &size);

	return len > 0 && from.nl_family == AF_NETLINK && from.nl_pid ? 0 : len;
}

/* ---- Reading an entry ------------------------------------------------------------- */

static uint32_t read_be32(const struct rtattr *attr)
{
	return be32toh(rtnl_attr_u32(attr));
}

static uint16_t read_u16(const struct rtattr *attr)
{
	uint16_t value = 0;

	if (attr)
		memcpy(&value, RTA_DATA(attr),
		       min_u64(RTA_PAYLOAD(attr), sizeof(value)));
	return value;
}

static uint8_t read_u8(const struct rtattr *attr)
{
	return attr && RTA_PAYLOAD(attr) ? *(const uint8_t *)RTA_DATA(attr) : 0;
}

static bool read_address(const struct rtattr *ip, uint16_t v4, uint16_t v6,
			 struct nat_tuple *tuple, uint32_t words[4])
{
	const struct rtattr *four = rtnl_attr_inside(ip, v4);
	const struct rtattr *six = rtnl_attr_inside(ip, v6);
	const struct rtattr *attr = four ?: six;
	const size_t size = four ? sizeof(words[0]) : 4 * sizeof(words[0]);

	if (!attr || RTA_PAYLOAD(attr) < size)
		return false;
	memcpy(words, RTA_DATA(attr), size);
	tuple->family = four ? AF_INET : AF_INET6;
	return true;
}

/* ICMP fields in the kernel's tuple: the identifier; type, then code. */
static void read_icmp(const struct rtattr *proto, uint16_t id, uint16_t type,
		      uint16_t code, struct nat_tuple *tuple)
{
	tuple->src_port = read_u16(rtnl_attr_inside(proto, id));
	tuple->dst_port =
		htobe16((uint16_t)(read_u8(rtnl_attr_inside(proto, type)) << 8 |
				   read_u8(rtnl_attr_inside(proto, code))));
}

static bool read_nat_tuple(const struct rtattr *attr, struct nat_tuple *tuple)
{
	const struct rtattr *ip = rtnl_attr_inside(attr, CTA_TUPLE_IP);
	const struct rtattr *proto = rtnl_attr_inside(attr, CTA_TUPLE_PROTO);
	const struct rtattr *number = rtnl_attr_inside(proto, CTA_PROTO_NUM);

	if (!number ||
	    !read_address(ip, CTA_IP_V4_SRC, CTA_IP_V6_SRC, tuple, tuple->src) ||
	    !read_address(ip, CTA_IP_V4_DST, CTA_IP_V6_DST, tuple, tuple->dst))
		return false;
	tuple->proto = read_u8(number);
	if (tuple->proto == IPPROTO_ICMP) {
		read_icmp(proto, CTA_PROTO_ICMP_ID, CTA_PROTO_ICMP_TYPE,
			  CTA_PROTO_ICMP_CODE, tuple);
	} else if (tuple->proto == IPPROTO_ICMPV6) {
		read_icmp(proto, CTA_PROTO_ICMPV6_ID, CTA_PROTO_ICMPV6_TYPE,
			  CTA_PROTO_ICMPV6_CODE, tuple);
	} else {
		tuple->src_port =
			read_u16(rtnl_attr_inside(proto, CTA_PROTO_SRC_PORT));
		tuple->dst_port =
			read_u16(rtnl_attr_inside(proto, CTA_PROTO_DST_PORT));
	}
	return true;
}

/* A zone of one direction alone is inside of that direction's tuple. */
static uint16_t read_zone(const struct rtattr *both,
			  const struct rtattr *const tuples[NAT_DIRECTIONS])
{
	const struct rtattr *one =
		rtnl_attr_inside(tuples[NAT_ORIGINAL], CTA_TUPLE_ZONE) ?:
			rtnl_attr_inside(tuples[NAT_REPLY], CTA_TUPLE_ZONE);

	return be16toh(read_u16(both ?: one));
}

static int64_t read_start(const struct rtattr *timestamp)
{
	const struct rtattr *start =
		rtnl_attr_inside(timestamp, CTA_TIMESTAMP_START);
	uint64_t ns = 0;

	if (start && RTA_PAYLOAD(start) >= sizeof(ns))
		memcpy(&ns, RTA_DATA(start), sizeof(ns));
	return (int64_t)be64toh(ns);
}

static bool read_conntrack(const struct nlmsghdr *message,
			   struct conntrack_entry *ret_entry)
{
	const int len = (int)message->nlmsg_len -
			(int)NLMSG_SPACE(sizeof(struct nfgenmsg));
	const struct rtattr *attrs =
		(const void *)((const char *)NLMSG_DATA(message) +
			       NLMSG_ALIGN(sizeof(struct nfgenmsg)));
	const struct rtattr *tuples[NAT_DIRECTIONS];
	uint32_t status;

	*ret_entry = (struct conntrack_entry){ 0 };
	if (message->nlmsg_type != NEW || len <= 0)
		return false;
	tuples[NAT_ORIGINAL] = rtnl_attr_find(attrs, len, CTA_TUPLE_ORIG);
	tuples[NAT_REPLY] = rtnl_attr_find(attrs, len, CTA_TUPLE_REPLY);
	for (int dir = 0; dir < NAT_DIRECTIONS; dir++) {
		ret_entry->tuples[dir].dir = (uint8_t)dir;
		if (!read_nat_tuple(tuples[dir], &ret_entry->tuples[dir]))
			return false;
	}
	ret_entry->zone = read_zone(rtnl_attr_find(attrs, len, CTA_ZONE), tuples);
	status = read_be32(rtnl_attr_find(attrs, len, CTA_STATUS));
	ret_entry->is_answered = status & IPS_SEEN_REPLY;
	ret_entry->is_assured = status & IPS_ASSURED;
	ret_entry->timeout_s = read_be32(rtnl_attr_find(attrs, len, CTA_TIMEOUT));
	ret_entry->start_ns =
		read_start(rtnl_attr_find(attrs, len, CTA_TIMESTAMP));
	return true;
}

/* @return the error of a message of that type, also at the end of a list */
static int error_of(const struct nlmsghdr *message)
{
	int error = 0;

	if (message->nlmsg_len >= NLMSG_LENGTH(sizeof(error)))
		memcpy(&error, NLMSG_DATA(message), sizeof(error));
	return error;
}

/* ---- All entries ------------------------------------------------------------------ */

int conntrack_list_begin(struct conntrack_list *list)
{
	const struct nfgenmsg header = { .nfgen_family = AF_UNSPEC,
					 .version = NFNETLINK_V0 };

	list->is_spoiled = false;
	return rtnl_request_dump(list->fd, GET, &header, sizeof(header));
}

/* @return 1: the list has ended; 0; -errno */
static int take_messages(struct conntrack_list *list, const char *buf,
			 ssize_t len, conntrack_entry_fn *on_entry, void *ctx)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)buf;
	struct conntrack_entry entry;

	for (; NLMSG_OK(message, len); message = NLMSG_NEXT(message, len)) {
		const bool is_end = message->nlmsg_type == NLMSG_DONE;

		list->is_spoiled |= message->nlmsg_flags & NLM_F_DUMP_INTR;
		if (is_end || message->nlmsg_type == NLMSG_ERROR) {
			const int error = error_of(message);

			if (error || is_end)
				return error ?: list->is_spoiled ? -EAGAIN : 1;
		} else if (read_conntrack(message, &entry)) {
			on_entry(ctx, &entry);
		} else {
			list->is_spoiled = true;
		}
	}
	list->is_spoiled |= len > 0;
	return 0;
}

int conntrack_list_read(struct conntrack_list *list, bool wait,
			conntrack_entry_fn *on_entry, void *ctx)
{
	cleanup_free char *buf = malloc(READ_SIZE);
	int done = 0;

	if (!buf)
		return -ENOMEM;
	for (int n = 0; !done && (wait || n < READ_MAX); n++) {
		ssize_t len = receive(list->fd, buf,
				      MSG_TRUNC | (wait ? 0 : MSG_DONTWAIT));

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno == ENOBUFS)
			return -EAGAIN;
		if (len < 0)
			return errno == EAGAIN ? 0 : -errno;
		list->is_spoiled |= len > READ_SIZE;
		done = take_messages(list, buf, (ssize_t)min_u64(len, READ_SIZE),
				     on_entry, ctx);
	}
	return done;
}

/* ---- Single ones ------------------------------------------------------------------ */

/* Messages under construction. */
struct requests {
	char bytes[2 * CONNTRACK_ASK_MAX * REQUEST_MAX]
		__attribute__((aligned(NLMSG_ALIGNTO)));
	size_t len;
	uint32_t n;
};

static void put_attr(struct requests *requests, uint16_t type, const void *data,
		     size_t size)
{
	const struct rtattr attr = { .rta_len = (uint16_t)RTA_LENGTH(size),
				     .rta_type = type };
	char *at = requests->bytes + requests->len;

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + RTA_LENGTH(0), data, size);
	requests->len += RTA_SPACE(size);
}

/* @return the offset for end_nest() */
static size_t begin_nest(struct requests *requests, uint16_t type)
{
	const size_t at = requests->len;

	put_attr(requests, NLA_F_NESTED | type, "", 0);
	return at;
}

static void end_nest(struct requests *requests, size_t at)
{
	struct rtattr *attr = (void *)(requests->bytes + at);

	attr->rta_len = (uint16_t)(requests->len - at);
}

static void put_icmp(struct requests *requests, const struct nat_tuple *tuple)
{
	const bool is_v6 = tuple->proto == IPPROTO_ICMPV6;
	const uint16_t kind = be16toh(tuple->dst_port);
	const uint8_t type = kind >> 8, code = kind & 0xff;

	put_attr(requests, is_v6 ? CTA_PROTO_ICMPV6_ID : CTA_PROTO_ICMP_ID,
		 &tuple->src_port, sizeof(tuple->src_port));
	put_attr(requests, is_v6 ? CTA_PROTO_ICMPV6_TYPE : CTA_PROTO_ICMP_TYPE,
		 &type, sizeof(type));
	put_attr(requests, is_v6 ? CTA_PROTO_ICMPV6_CODE : CTA_PROTO_ICMP_CODE,
		 &code, sizeof(code));
}

static void put_tuple(struct requests *requests, const struct nat_tuple *tuple)
{
	const bool is_v4 = tuple->family == AF_INET;
	const size_t size = is_v4 ? sizeof(tuple->src[0]) : sizeof(tuple->src);
	const size_t outer = begin_nest(requests, CTA_TUPLE_ORIG);
	size_t inner = begin_nest(requests, CTA_TUPLE_IP);

	put_attr(requests, is_v4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, tuple->src,
		 size);
	put_attr(requests, is_v4 ? CTA_IP_V4_DST : CTA_IP_V6_DST, tuple->dst,
		 size);
	end_nest(requests, inner);
	inner = begin_nest(requests, CTA_TUPLE_PROTO);
	put_attr(requests, CTA_PROTO_NUM, &tuple->proto, sizeof(tuple->proto));
	if (tuple->proto == IPPROTO_ICMP || tuple->proto == IPPROTO_ICMPV6) {
		put_icmp(requests, tuple);
	} else {
		put_attr(requests, CTA_PROTO_SRC_PORT, &tuple->src_port,
			 sizeof(tuple->src_port));
		put_attr(requests, CTA_PROTO_DST_PORT, &tuple->dst_port,
			 sizeof(tuple->dst_port));
	}
	end_nest(requests, inner);
	end_nest(requests, outer);
}

static void put_request(struct requests *requests, uint32_t number,
			const struct nat_tuple *tuple, uint16_t zone)
{
	const size_t begin = requests->len;
	const uint16_t be_zone = htobe16(zone);
	struct {
		struct nlmsghdr message;
		struct nfgenmsg family;
	} header = {
		.message = { .nlmsg_type = GET,
			     .nlmsg_flags = NLM_F_REQUEST,
			     .nlmsg_seq = number },
		.family = { .nfgen_family = (uint8_t)tuple->family,
			    .version = NFNETLINK_V0 },
	};

	requests->len += NLMSG_SPACE(sizeof(header.family));
	put_tuple(requests, tuple);
	if (zone)
		put_attr(requests, CTA_ZONE, &be_zone, sizeof(be_zone));
	header.message.nlmsg_len = (uint32_t)(requests->len - begin);
	memcpy(requests->bytes + begin, &header, sizeof(header));
	requests->n++;
	assert(requests->len - begin <= REQUEST_MAX);
}

/* @return 1: the message answers a request; 0; -errno */
static int take_answer(const struct nlmsghdr *message, uint32_t n,
		       conntrack_answer_fn *on_answer, void *ctx)
{
	const uint32_t i = message->nlmsg_seq & ~(uint32_t)WITHOUT_ZONE;
	struct conntrack_entry entry;
	int error;

	if (message->nlmsg_type == NLMSG_ERROR) {
		error = error_of(message);
		if (error != -ENOENT)
			return error;
		if (i < n)
			on_answer(ctx, i, NULL);
		return 1;
	}
	if (!read_conntrack(message, &entry) || i >= n)
		return -EBADMSG;
	on_answer(ctx, i, &entry);
	return 1;
}

static bool is_lost(int error)
{
	return error == -ENOBUFS;
}

/*
 * The kernel has answered within send(2). Answers that did not fit in the receive buffer are lost; the others
 * are read.
 *
 * @return 0; -ENOBUFS: some are lost; others: an error
 */
static int read_answers(int fd, uint32_t n_requests, uint32_t n,
			conntrack_answer_fn *on_answer, void *ctx)
{
	cleanup_free char *buf = malloc(READ_SIZE);
	int lost = 0;

	if (!buf)
		return -ENOMEM;
	while (n_requests) {
		const struct nlmsghdr *message = (const struct nlmsghdr *)buf;
		ssize_t len = receive(fd, buf, MSG_DONTWAIT);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && is_lost(-errno)) {
			lost = -errno;
			continue;
		}
		if (len < 0)
			return lost ?: -errno;
		for (; NLMSG_OK(message, len) && n_requests;
		     message = NLMSG_NEXT(message, len)) {
			int ret = take_answer(message, n, on_answer, ctx);

			if (ret < 0 && !is_lost(ret))
				return ret;
			lost = ret < 0 ? ret : lost;
			n_requests -= ret ? 1 : 0;
		}
	}
	return lost;
}

int conntrack_ask(int fd, const struct conntrack_entry *wanted, uint32_t n,
		  conntrack_answer_fn *on_answer, void *ctx)
{
	struct requests requests = { .len = 0 };

	assert(n <= CONNTRACK_ASK_MAX);
	for (uint32_t i = 0; i < n; i++) {
		const struct conntrack_entry *entry = &wanted[i];
		const struct nat_tuple *tuple = &entry->tuples[NAT_ORIGINAL];

		put_request(&requests, i, tuple, entry->zone);
		/* A zone of the other direction is not part of this tuple: ask without it, too. */
		if (entry->zone)
			put_request(&requests, i | WITHOUT_ZONE, tuple, 0);
	}
	if (n && send(fd, requests.bytes, requests.len, 0) < 0)
		return -errno;
	return read_answers(fd, requests.n, n, on_answer, ctx);
}
