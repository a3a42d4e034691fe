/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Capture files: pcapng (draft-ietf-opsawg-pcapng), and pcap with nanoseconds
 * (draft-ietf-opsawg-pcap), both in this machine's byte order.
 */
#include "base/sized.h"
#include "base/util.h"

#include <errno.h>
#include <netobs/capture.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#define BYTE_ORDER_MAGIC 0x1a2b3c4dU
#define PCAP_NANOSECONDS 0xa1b23c4dU
enum { SNAP_ANY = 262144 };

enum block_type {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
};

enum option {
	OPTION_END = 0,
	SECTION_OS = 3,
	SECTION_APPLICATION = 4,
	INTERFACE_NAME = 2,
	INTERFACE_DESCRIPTION = 3,
	INTERFACE_RESOLUTION = 9,
	INTERFACE_FILTER = 11,
	PACKET_FLAGS = 2,
	PACKET_INBOUND = 1,
	PACKET_OUTBOUND = 2,
	STATISTICS_START = 2,
	STATISTICS_END = 3,
	STATISTICS_RECEIVED = 4,
	STATISTICS_DROPPED = 5,
	STATISTICS_OS_DROPPED = 7,
	STATISTICS_DELIVERED = 8,
};

/* What this file has of an interface. */
struct section_interface {
	bool is_described;
	uint32_t number; /* in the file, in the order of description */
	uint64_t written;
	uint64_t missed;
	/* What the capture lacked at the beginning of the file, and when last written. */
	uint64_t lost_before, limited_before;
	uint64_t lost, limited;
};

struct netobs_packet_writer {
	struct netobs_packet_writer_opts opts;
	struct section_interface *interfaces; /* by netobs_packet.interface */
	uint32_t n_interfaces;
	uint32_t n_described;
	uint32_t link_type; /* pcap: of all packets; 0: none came yet */
	int64_t start_ns;
	uint8_t *block; /* that is being formed */
	size_t len, size;
	bool is_short; /* of memory */
};

/* ---- Blocks ------------------------------------------------------------------------ */

static void put_bytes(struct netobs_packet_writer *writer, const void *bytes,
		      size_t len)
{
	size_t size = writer->size ?: 4096;
	uint8_t *block = writer->block;

	while (size < writer->len + len)
		size *= 2;
	if (size != writer->size) {
		block = realloc(writer->block, size);
		writer->is_short |= !block;
		if (!block)
			return;
		writer->block = block;
		writer->size = size;
	}
	if (len)
		memcpy(block + writer->len, bytes, len);
	writer->len += len;
}

static void put_u16(struct netobs_packet_writer *writer, uint16_t value)
{
	put_bytes(writer, &value, sizeof(value));
}

static void put_u32(struct netobs_packet_writer *writer, uint32_t value)
{
	put_bytes(writer, &value, sizeof(value));
}

static void put_padding(struct netobs_packet_writer *writer, size_t len)
{
	static const uint8_t zeros[4];

	put_bytes(writer, zeros, -len & 3);
}

static void put_option(struct netobs_packet_writer *writer, enum option code,
		       const void *value, size_t len)
{
	put_u16(writer, code);
	put_u16(writer, len);
	put_bytes(writer, value, len);
	put_padding(writer, len);
}

static void put_text(struct netobs_packet_writer *writer, enum option code,
		     const char *text)
{
	put_option(writer, code, text, strlen(text));
}

/* Times are two words, the upper one first, in either byte order. */
static void put_time(struct netobs_packet_writer *writer, int64_t ns)
{
	put_u32(writer, (uint64_t)ns >> 32);
	put_u32(writer, ns);
}

static void begin_block(struct netobs_packet_writer *writer, enum block_type type)
{
	writer->len = 0;
	writer->is_short = false;
	put_u32(writer, type);
	put_u32(writer, 0); /* its length: end_block() */
}

static int write_block(struct netobs_packet_writer *writer)
{
	if (writer->is_short)
		return -ENOMEM;
	return writer->opts.write(writer->block, writer->len, writer->opts.user);
}

static int end_block(struct netobs_packet_writer *writer)
{
	uint32_t total = writer->len + sizeof(total);

	put_u32(writer, total);
	if (!writer->is_short)
		memcpy(writer->block + sizeof(uint32_t), &total, sizeof(total));
	return write_block(writer);
}

/* ---- pcapng -------------------------------------------------------------------------- */

static int write_section(struct netobs_packet_writer *writer)
{
	const uint64_t unknown_length = UINT64_MAX;
	struct utsname system;
	char text[160];

	begin_block(writer, BLOCK_SECTION);
	put_u32(writer, BYTE_ORDER_MAGIC);
	put_u16(writer, 1); /* version 1.0 */
	put_u16(writer, 0);
	put_bytes(writer, &unknown_length, sizeof(unknown_length));
	if (!uname(&system)) {
		snprintf(text, sizeof(text), "%s %s", system.sysname,
			 system.release);
		put_text(writer, SECTION_OS, text);
	}
	put_text(writer, SECTION_APPLICATION, "netobs " NETOBS_VERSION);
	put_option(writer, OPTION_END, NULL, 0);
	return end_block(writer);
}

/* Behind a byte that says that it is an expression, and not code. */
static void put_filter(struct netobs_packet_writer *writer, const char *filter)
{
	const uint8_t is_expression = 0;
	size_t len = strlen(filter) + sizeof(is_expression);

	put_u16(writer, INTERFACE_FILTER);
	put_u16(writer, len);
	put_bytes(writer, &is_expression, sizeof(is_expression));
	put_bytes(writer, filter, strlen(filter));
	put_padding(writer, len);
}

static int write_interface(struct netobs_packet_writer *writer,
			   const struct netobs_capture_interface *interface)
{
	const uint8_t nanoseconds = 9;
	char description[256];

	begin_block(writer, BLOCK_INTERFACE);
	put_u16(writer, interface->link_type);
	put_u16(writer, 0);
	put_u32(writer, interface->snap_length);
	put_text(writer, INTERFACE_NAME, interface->name);
	if (interface->netns) {
		snprintf(description, sizeof(description), "netns:%s/%s",
			 interface->netns, interface->name);
		put_text(writer, INTERFACE_DESCRIPTION, description);
	}
	put_option(writer, INTERFACE_RESOLUTION, &nanoseconds,
		   sizeof(nanoseconds));
	if (interface->filter)
		put_filter(writer, interface->filter);
	put_option(writer, OPTION_END, NULL, 0);
	return end_block(writer);
}

/* Before and behind its bytes: in one piece each, as these are written most often. */
struct packet_head {
	uint32_t type;
	uint32_t total; /* bytes of the block */
	uint32_t number;
	uint32_t time_high, time_low;
	uint32_t captured, length;
};

struct packet_tail {
	uint16_t code, len;
	uint32_t flags;
	uint32_t end_of_options;
	uint32_t total;
};

static int write_packet(struct netobs_packet_writer *writer, uint32_t number,
			const struct netobs_packet *packet)
{
	const uint32_t padding = -packet->captured & 3;
	struct packet_head head = {
		.type = BLOCK_PACKET,
		.total = sizeof(head) + packet->captured + padding +
			 sizeof(struct packet_tail),
		.number = number,
		.time_high = (uint64_t)packet->time_ns >> 32,
		.time_low = packet->time_ns,
		.captured = packet->captured,
		.length = packet->length,
	};
	const struct packet_tail tail = {
		.code = PACKET_FLAGS,
		.len = sizeof(tail.flags),
		.flags = packet->direction == NETOBS_EGRESS ? PACKET_OUTBOUND :
							      PACKET_INBOUND,
		.total = head.total,
	};

	writer->len = 0;
	writer->is_short = false;
	put_bytes(writer, &head, sizeof(head));
	put_bytes(writer, packet->bytes, packet->captured);
	put_padding(writer, packet->captured);
	put_bytes(writer, &tail, sizeof(tail));
	return write_block(writer);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static void put_time_option(struct netobs_packet_writer *writer,
			    enum option code, int64_t ns)
{
	put_u16(writer, code);
	put_u16(writer, sizeof(ns));
	put_time(writer, ns);
}

static int write_statistics(struct netobs_packet_writer *writer,
			    struct section_interface *known,
			    const struct netobs_capture_interface *interface)
{
	const uint64_t lost = interface->lost - known->lost_before;
	const uint64_t dropped = lost + known->missed + interface->limited -
				 known->limited_before;
	const uint64_t received = known->written + dropped;
	int64_t now = now_ns();

	known->lost = interface->lost;
	known->limited = interface->limited;
	begin_block(writer, BLOCK_STATISTICS);
	put_u32(writer, known->number);
	put_time(writer, now);
	put_time_option(writer, STATISTICS_START, writer->start_ns);
	put_time_option(writer, STATISTICS_END, now);
	put_option(writer, STATISTICS_RECEIVED, &received, sizeof(received));
	put_option(writer, STATISTICS_DROPPED, &dropped, sizeof(dropped));
	put_option(writer, STATISTICS_OS_DROPPED, &lost, sizeof(lost));
	put_option(writer, STATISTICS_DELIVERED, &known->written,
		   sizeof(known->written));
	put_option(writer, OPTION_END, NULL, 0);
	return end_block(writer);
}

/* ---- pcap ------------------------------------------------------------------------------ */

static int write_pcap_header(struct netobs_packet_writer *writer,
			     const struct netobs_capture_interface *interface)
{
	writer->len = 0;
	writer->is_short = false;
	put_u32(writer, PCAP_NANOSECONDS);
	put_u16(writer, 2); /* version 2.4 */
	put_u16(writer, 4);
	put_u32(writer, 0);
	put_u32(writer, 0);
	put_u32(writer, interface->snap_length);
	put_u32(writer, interface->link_type);
	writer->link_type = interface->link_type;
	return write_block(writer);
}

/* Of a file without packets; its link type is that of most interfaces. */
static int ensure_pcap_header(struct netobs_packet_writer *writer)
{
	const struct netobs_capture_interface none = {
		.link_type = NETOBS_LINK_ETHERNET,
		.snap_length = SNAP_ANY,
	};

	return writer->link_type ? 0 : write_pcap_header(writer, &none);
}

static int write_pcap_packet(struct netobs_packet_writer *writer,
			     const struct netobs_packet *packet)
{
	writer->len = 0;
	writer->is_short = false;
	put_u32(writer, packet->time_ns / NSEC_PER_SEC);
	put_u32(writer, packet->time_ns % NSEC_PER_SEC);
	put_u32(writer, packet->captured);
	put_u32(writer, packet->length);
	put_bytes(writer, packet->bytes, packet->captured);
	return write_block(writer);
}

/* ---- The public life of a writer -------------------------------------------------------- */

static struct netobs_capture_interface
read_interface(const struct netobs_packet_writer *writer, uint32_t index)
{
	struct netobs_capture_interface interface = { .sz = sizeof(interface) };

	netobs_capture_interface(writer->opts.capture, index, &interface);
	return interface;
}

/* NULL: no memory. */
static struct section_interface *
ensure_interface(struct netobs_packet_writer *writer, uint32_t index)
{
	struct section_interface *grown = writer->interfaces;

	if (index < writer->n_interfaces)
		return &writer->interfaces[index];
	grown = reallocarray(grown, index + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	memset(grown + writer->n_interfaces, 0,
	       (index + 1 - writer->n_interfaces) * sizeof(*grown));
	writer->interfaces = grown;
	writer->n_interfaces = index + 1;
	return &grown[index];
}

static int describe(struct netobs_packet_writer *writer,
		    struct section_interface *known, uint32_t index)
{
	struct netobs_capture_interface interface;
	int err;

	if (known->is_described)
		return 0;
	interface = read_interface(writer, index); /* takes a system call */
	if (writer->opts.format == NETOBS_PCAPNG)
		err = write_interface(writer, &interface);
	else if (writer->link_type)
		err = writer->link_type == interface.link_type ?
			      0 :
			      -EPROTONOSUPPORT;
	else
		err = write_pcap_header(writer, &interface);
	if (err)
		return err;
	known->is_described = true;
	known->number = writer->n_described++;
	return 0;
}

/* Earlier losses do not belong to this file. */
static int note_losses(struct netobs_packet_writer *writer)
{
	struct netobs_capture_stats stats = { .sz = sizeof(stats) };
	int err = netobs_capture_stats_get(writer->opts.capture, &stats);

	for (uint32_t i = 0; !err && i < stats.interfaces; i++) {
		const struct netobs_capture_interface interface =
			read_interface(writer, i);
		struct section_interface *known = ensure_interface(writer, i);

		if (!known)
			return -ENOMEM;
		known->lost_before = known->lost = interface.lost;
		known->limited_before = known->limited = interface.limited;
	}
	return err;
}

static int begin_file(struct netobs_packet_writer *writer)
{
	writer->start_ns = now_ns();
	return writer->opts.format == NETOBS_PCAPNG ? write_section(writer) : 0;
}

static int check_options(const struct netobs_packet_writer_opts *opts)
{
	if (opts->format != NETOBS_PCAPNG && opts->format != NETOBS_PCAP)
		return -EINVAL;
	return opts->capture && opts->write && !opts->reserved ? 0 : -EINVAL;
}

int netobs_packet_writer_new(const struct netobs_packet_writer_opts *opts,
			     struct netobs_packet_writer **ret_writer)
{
	static const struct log silent;
	struct netobs_packet_writer *writer;
	int err;

	if (!opts || !ret_writer || sized_check(opts, sizeof(*opts), &silent))
		return -EINVAL;
	writer = calloc(1, sizeof(*writer));
	if (!writer)
		return -ENOMEM;
	memcpy(&writer->opts, opts, min_u64(opts->sz, sizeof(*opts)));
	err = check_options(&writer->opts) ?: note_losses(writer);
	err = err ?: begin_file(writer);
	if (err) {
		netobs_packet_writer_free(writer);
		return err;
	}
	*ret_writer = writer;
	return 0;
}

int netobs_packet_writer_add(struct netobs_packet_writer *writer,
			     const struct netobs_packet *packet)
{
	struct section_interface *known;
	int err;

	if (!writer || !packet)
		return -EINVAL;
	known = ensure_interface(writer, packet->interface);
	err = known ? describe(writer, known, packet->interface) : -ENOMEM;
	if (err)
		return err;
	if (writer->opts.format == NETOBS_PCAPNG)
		err = write_packet(writer, known->number, packet);
	else
		err = write_pcap_packet(writer, packet);
	known->written += !err;
	return err;
}

int netobs_packet_writer_miss(struct netobs_packet_writer *writer,
			      const struct netobs_packet *packet)
{
	struct section_interface *known;

	if (!writer || !packet)
		return -EINVAL;
	known = ensure_interface(writer, packet->interface);
	if (!known)
		return -ENOMEM;
	known->missed++;
	return 0;
}

int netobs_packet_writer_stats(struct netobs_packet_writer *writer)
{
	struct netobs_capture_stats stats = { .sz = sizeof(stats) };
	int err;

	if (!writer)
		return -EINVAL;
	err = netobs_capture_stats_get(writer->opts.capture, &stats);
	if (writer->opts.format == NETOBS_PCAP)
		return err ?: ensure_pcap_header(writer);
	for (uint32_t i = 0; !err && i < stats.interfaces; i++) {
		struct section_interface *known = ensure_interface(writer, i);
		struct netobs_capture_interface interface;

		err = known ? describe(writer, known, i) : -ENOMEM;
		if (err)
			break;
		interface = read_interface(writer, i);
		err = write_statistics(writer, known, &interface);
	}
	return err;
}

int netobs_packet_writer_restart(struct netobs_packet_writer *writer)
{
	if (!writer)
		return -EINVAL;
	for (uint32_t i = 0; i < writer->n_interfaces; i++) {
		struct section_interface *known = &writer->interfaces[i];

		*known = (struct section_interface){
			.lost_before = known->lost,
			.lost = known->lost,
			.limited_before = known->limited,
			.limited = known->limited,
		};
	}
	writer->n_described = 0;
	writer->link_type = 0;
	return begin_file(writer);
}

void netobs_packet_writer_free(struct netobs_packet_writer *writer)
{
	if (!writer)
		return;
	free(writer->interfaces);
	free(writer->block);
	free(writer);
}
