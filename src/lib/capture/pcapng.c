/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Capture files: pcapng (draft-ietf-opsawg-pcapng), and pcap with nanoseconds
 * (draft-ietf-opsawg-pcap), both in this machine's byte order.
 */
#include "base/buffer.h"
#include "base/clock_ms.h"
#include "base/options.h"
#include "base/text.h"
#include "base/util.h"

#include <errno.h>
#include <netobs/capture.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

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
	OPTION_COMMENT = 1,
	SECTION_OS = 3,
	SECTION_APPLICATION = 4,
	INTERFACE_NAME = 2,
	INTERFACE_DESCRIPTION = 3,
	INTERFACE_RESOLUTION = 9,
	INTERFACE_FILTER = 11,
	PACKET_FLAGS = 2,
	PACKET_INBOUND = 1,
	PACKET_OUTBOUND = 2,
	PACKET_PROCESS = 8,
	STATISTICS_START = 2,
	STATISTICS_END = 3,
	STATISTICS_RECEIVED = 4,
	STATISTICS_DROPPED = 5,
	STATISTICS_OS_DROPPED = 7,
	STATISTICS_DELIVERED = 8,
};

/* ---- Blocks -------------------------------------------------------------------------- */

/* A block of a capture file while it is formed, in this machine's byte order. Zeroed at first; it keeps its memory for the next one. */
struct block {
	struct buffer buffer;
	bool is_short; /* of memory: it cannot be used */
};

static void block_done(struct block *block)
{
	buffer_free(&block->buffer);
}

static void block_clear(struct block *block)
{
	block->buffer.len = 0;
	block->is_short = false;
}

static void block_put(struct block *block, const void *bytes, size_t len)
{
	if (len && !block->is_short)
		block->is_short = !buffer_add(&block->buffer, bytes, len);
}

static void block_put_u16(struct block *block, uint16_t value)
{
	block_put(block, &value, sizeof(value));
}

static void block_put_u32(struct block *block, uint32_t value)
{
	block_put(block, &value, sizeof(value));
}

/* Begin a block with its type, and room for its length, which block_end() fills. */
static void block_begin(struct block *block, uint32_t type)
{
	block_clear(block);
	block_put_u32(block, type);
	block_put_u32(block, 0);
}

static void block_end(struct block *block)
{
	uint32_t total = block->buffer.len + sizeof(total);

	block_put_u32(block, total);
	if (!block->is_short)
		memcpy(block->buffer.bytes + sizeof(uint32_t), &total,
		       sizeof(total));
}

/* Put a time as two words, the upper one first in either byte order. */
static void block_put_time(struct block *block, int64_t ns)
{
	block_put_u32(block, (uint64_t)ns >> 32);
	block_put_u32(block, ns);
}

/* Pad @len bytes to a multiple of four. */
static void block_put_padding(struct block *block, size_t len)
{
	static const uint8_t zeros[4];

	block_put(block, zeros, -len & 3);
}

static void block_put_option(struct block *block, uint16_t code,
			     const void *value, size_t len)
{
	block_put_u16(block, code);
	block_put_u16(block, len);
	block_put(block, value, len);
	block_put_padding(block, len);
}

static void block_put_text(struct block *block, uint16_t code, const char *text)
{
	block_put_option(block, code, text, strlen(text));
}

/* ---- The file ------------------------------------------------------------------------ */

/* The state of an interface in this file. */
struct section_interface {
	bool is_described;
	uint32_t number; /* in the file, in the order of description */
	uint64_t written;
	uint64_t missed;
	/* Packets that the capture had lost when the file began, and when last written. */
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
	struct block block; /* that is being formed */
};

/* ---- Blocks ------------------------------------------------------------------------ */

static int write_block(struct netobs_packet_writer *writer)
{
	const struct block *block = &writer->block;

	if (block->is_short)
		return -ENOMEM;
	return writer->opts.write(block->buffer.bytes, block->buffer.len,
				  writer->opts.user);
}

/* Complete the block, and write it. */
static int end_block(struct netobs_packet_writer *writer)
{
	block_end(&writer->block);
	return write_block(writer);
}

/* ---- pcapng -------------------------------------------------------------------------- */

static int write_section(struct netobs_packet_writer *writer)
{
	const uint64_t unknown_length = UINT64_MAX;
	struct utsname system;
	char text[160];

	block_begin(&writer->block, BLOCK_SECTION);
	block_put_u32(&writer->block, BYTE_ORDER_MAGIC);
	block_put_u16(&writer->block, 1); /* version 1.0 */
	block_put_u16(&writer->block, 0);
	block_put(&writer->block, &unknown_length, sizeof(unknown_length));
	if (!uname(&system)) {
		snprintf(text, sizeof(text), "%s %s", system.sysname,
			 system.release);
		block_put_text(&writer->block, SECTION_OS, text);
	}
	block_put_text(&writer->block, SECTION_APPLICATION,
		       "netobs " NETOBS_VERSION);
	block_put_option(&writer->block, OPTION_END, NULL, 0);
	return end_block(writer);
}

/* The filter, after a byte that marks it as an expression, not code. */
static void put_filter(struct netobs_packet_writer *writer, const char *filter)
{
	const uint8_t is_expression = 0;
	size_t len = strlen(filter) + sizeof(is_expression);

	block_put_u16(&writer->block, INTERFACE_FILTER);
	block_put_u16(&writer->block, len);
	block_put(&writer->block, &is_expression, sizeof(is_expression));
	block_put(&writer->block, filter, strlen(filter));
	block_put_padding(&writer->block, len);
}

static int write_interface(struct netobs_packet_writer *writer,
			   const struct netobs_capture_interface *interface)
{
	const uint8_t nanoseconds = 9;
	char description[256], text[3 * sizeof(description)];

	block_begin(&writer->block, BLOCK_INTERFACE);
	block_put_u16(&writer->block, interface->link_type);
	block_put_u16(&writer->block, 0);
	block_put_u32(&writer->block, interface->snap_length);
	block_put_text(&writer->block, INTERFACE_NAME,
		       utf8_repair(interface->name, text));
	if (interface->netns) {
		snprintf(description, sizeof(description), "netns:%s/%s",
			 interface->netns, interface->name);
		block_put_text(&writer->block, INTERFACE_DESCRIPTION,
			       utf8_repair(description, text));
	}
	block_put_option(&writer->block, INTERFACE_RESOLUTION, &nanoseconds,
			 sizeof(nanoseconds));
	if (interface->filter)
		put_filter(writer, interface->filter);
	block_put_option(&writer->block, OPTION_END, NULL, 0);
	return end_block(writer);
}

/* A comment, which all programs show. No format has a place for the name of a process. */
static void put_owner(struct netobs_packet_writer *writer, const char *end,
		      const struct netobs_process *process)
{
	char name[3 * sizeof(process->command)], text[192];

	if (!process)
		return;
	snprintf(text, sizeof(text), "%s process: %s[%u]%s%s", end,
		 utf8_repair(process->command, name), process->pid,
		 *process->container_id ? ", container " : "",
		 process->container_id);
	block_put_text(&writer->block, OPTION_COMMENT, text);
}

static void put_owners(struct netobs_packet_writer *writer,
		       const struct netobs_packet *packet)
{
	put_owner(writer, "source", packet->src_process);
	put_owner(writer, "destination", packet->dst_process);
	if (packet->src_process) {
		const uint32_t process[] = { packet->src_process->pid, 0 };

		block_put_option(&writer->block, PACKET_PROCESS, process,
				 sizeof(process));
	}
}

/* In few pieces, as packets are written most often. */
static int write_packet(struct netobs_packet_writer *writer, uint32_t number,
			const struct netobs_packet *packet)
{
	const struct {
		uint32_t type;
		uint32_t total; /* of the block, which end_block() fills */
		uint32_t number;
		uint32_t time_high, time_low;
		uint32_t captured, length;
	} head = {
		.type = BLOCK_PACKET,
		.number = number,
		.time_high = (uint64_t)packet->time_ns >> 32,
		.time_low = packet->time_ns,
		.captured = packet->captured,
		.length = packet->length,
	};
	const struct {
		uint16_t code, len;
		uint32_t flags;
		uint32_t end_of_options;
	} tail = {
		.code = PACKET_FLAGS,
		.len = sizeof(tail.flags),
		.flags = packet->direction == NETOBS_EGRESS ? PACKET_OUTBOUND :
							      PACKET_INBOUND,
	};

	block_clear(&writer->block);
	block_put(&writer->block, &head, sizeof(head));
	block_put(&writer->block, packet->bytes, packet->captured);
	block_put_padding(&writer->block, packet->captured);
	/* A program may have made the packet for an earlier library. */
	if (packet->sz >= sizeof(*packet))
		put_owners(writer, packet);
	block_put(&writer->block, &tail, sizeof(tail));
	return end_block(writer);
}

static void put_time_option(struct netobs_packet_writer *writer,
			    enum option code, int64_t ns)
{
	block_put_u16(&writer->block, code);
	block_put_u16(&writer->block, sizeof(ns));
	block_put_time(&writer->block, ns);
}

static int write_statistics(struct netobs_packet_writer *writer,
			    struct section_interface *known,
			    const struct netobs_capture_interface *interface)
{
	const uint64_t lost = interface->lost - known->lost_before;
	const uint64_t dropped = lost + known->missed + interface->limited -
				 known->limited_before;
	const uint64_t received = known->written + dropped;
	int64_t now = clock_ns(CLOCK_REALTIME);

	known->lost = interface->lost;
	known->limited = interface->limited;
	block_begin(&writer->block, BLOCK_STATISTICS);
	block_put_u32(&writer->block, known->number);
	block_put_time(&writer->block, now);
	put_time_option(writer, STATISTICS_START, writer->start_ns);
	put_time_option(writer, STATISTICS_END, now);
	block_put_option(&writer->block, STATISTICS_RECEIVED, &received,
			 sizeof(received));
	block_put_option(&writer->block, STATISTICS_DROPPED, &dropped,
			 sizeof(dropped));
	block_put_option(&writer->block, STATISTICS_OS_DROPPED, &lost,
			 sizeof(lost));
	block_put_option(&writer->block, STATISTICS_DELIVERED, &known->written,
			 sizeof(known->written));
	block_put_option(&writer->block, OPTION_END, NULL, 0);
	return end_block(writer);
}

/* ---- pcap ------------------------------------------------------------------------------ */

static int write_pcap_header(struct netobs_packet_writer *writer,
			     const struct netobs_capture_interface *interface)
{
	block_clear(&writer->block);
	block_put_u32(&writer->block, PCAP_NANOSECONDS);
	block_put_u16(&writer->block, 2); /* version 2.4 */
	block_put_u16(&writer->block, 4);
	block_put_u32(&writer->block, 0);
	block_put_u32(&writer->block, 0);
	block_put_u32(&writer->block, interface->snap_length);
	block_put_u32(&writer->block, interface->link_type);
	writer->link_type = interface->link_type;
	return write_block(writer);
}

/* A file without packets gets the link type of most interfaces. */
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
	block_clear(&writer->block);
	block_put_u32(&writer->block, packet->time_ns / NSEC_PER_SEC);
	block_put_u32(&writer->block, packet->time_ns % NSEC_PER_SEC);
	block_put_u32(&writer->block, packet->captured);
	block_put_u32(&writer->block, packet->length);
	block_put(&writer->block, packet->bytes, packet->captured);
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
	return array_extend(&writer->interfaces, &writer->n_interfaces,
			    index + 1, sizeof(*writer->interfaces)) ?
		       &writer->interfaces[index] :
		       NULL;
}

static int describe_interface(struct netobs_packet_writer *writer,
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

/* Count the interfaces that have had packets. @return 0; < 0: of the capture */
static int count_interfaces(const struct netobs_packet_writer *writer,
			    uint32_t *ret_n)
{
	struct netobs_capture_stats stats = { .sz = sizeof(stats) };
	int err = netobs_capture_stats_get(writer->opts.capture, &stats);

	*ret_n = stats.interfaces;
	return err;
}

/* Earlier losses do not belong to this file. */
static int note_losses(struct netobs_packet_writer *writer)
{
	uint32_t n;
	int err = count_interfaces(writer, &n);

	for (uint32_t i = 0; !err && i < n; i++) {
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
	writer->start_ns = clock_ns(CLOCK_REALTIME);
	return writer->opts.format == NETOBS_PCAPNG ? write_section(writer) : 0;
}

static int check_writer_options(const struct netobs_packet_writer_opts *opts)
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
	err = check_writer_options(&writer->opts) ?: note_losses(writer);
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
	err = known ? describe_interface(writer, known, packet->interface) :
		      -ENOMEM;
	if (err)
		return err;
	if (writer->opts.format != NETOBS_PCAPNG)
		err = write_pcap_packet(writer, packet);
	else
		err = write_packet(writer, known->number, packet);
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
	uint32_t n;
	int err;

	if (!writer)
		return -EINVAL;
	err = count_interfaces(writer, &n);
	if (writer->opts.format == NETOBS_PCAP)
		return err ?: ensure_pcap_header(writer);
	for (uint32_t i = 0; !err && i < n; i++) {
		struct section_interface *known = ensure_interface(writer, i);
		struct netobs_capture_interface interface;

		err = known ? describe_interface(writer, known, i) : -ENOMEM;
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
	block_done(&writer->block);
	free(writer);
}
