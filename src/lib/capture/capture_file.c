/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_file.h"

#include "bpf/parse/headers.h"
#include "base/util.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <pcap/sll.h>
#include <stdio.h>
#include <string.h>

enum { ETHER_LEN = sizeof(struct ether_wire) };

/* What precedes the network header: its length, or -EPROTONOSUPPORT. */
static int link_header_len(int link)
{
	switch (link) {
	case DLT_EN10MB:
	case DLT_RAW:
	case DLT_IPV4:
	case DLT_IPV6:
		return 0;
	case DLT_NULL:
	case DLT_LOOP:
		return 4;
	case DLT_LINUX_SLL:
		return SLL_HDR_LEN;
	case DLT_LINUX_SLL2:
		return SLL2_HDR_LEN;
	default:
		return -EPROTONOSUPPORT;
	}
}

/* The address family of BSD's loopback header; the writer's AF_INET6 varies. */
static uint16_t type_of_family(const uint8_t *header, int link)
{
	uint32_t family;

	memcpy(&family, header, sizeof(family));
	if (link == DLT_LOOP)
		family = bpf_ntohl(family);
	else if (family > 0xffff) /* written on a machine of other byte order */
		family = __builtin_bswap32(family);
	switch (family) {
	case 2:
		return ETHERTYPE_IPV4;
	case 10: /* Linux */
	case 24: /* NetBSD, OpenBSD */
	case 28: /* FreeBSD */
	case 30: /* Darwin */
		return ETHERTYPE_IPV6;
	default:
		return 0;
	}
}

static uint16_t type_of_version(const uint8_t *ip, uint32_t len)
{
	return len && *ip >> 4 == 6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4;
}

/* The ethertype that a link header other than Ethernet's names. */
static uint16_t network_type(const uint8_t *frame, uint32_t len, int link)
{
	switch (link) {
	case DLT_NULL:
	case DLT_LOOP:
		return type_of_family(frame, link);
	case DLT_LINUX_SLL: /* the last field */
		return frame[14] << 8 | frame[15];
	case DLT_LINUX_SLL2: /* the first field */
		return frame[0] << 8 | frame[1];
	default:
		return type_of_version(frame, len);
	}
}

/*
 * Opened with nanosecond precision, tv_usec is in nanoseconds. A pcapng file may say any
 * time; the year 2255 leaves room for sums.
 */
static int64_t time_of(const struct timeval *time)
{
	const int64_t seconds_max = 9000000000;
	int64_t seconds = time->tv_sec;

	if (seconds < 0 || seconds > seconds_max)
		seconds = seconds_max;
	return seconds * NSEC_PER_SEC + time->tv_usec;
}

/* Make it an Ethernet frame. */
static void build_frame(const struct capture_file *file,
			const struct pcap_pkthdr *header, const uint8_t *data,
			struct frame *frame)
{
	uint32_t skip = link_header_len(file->link), start = 0;

	memset(frame->bytes, 0, ETHER_LEN);
	frame->ns = time_of(&header->ts);
	frame->wire_len = header->len;
	frame->is_cut = header->caplen < header->len;
	if (file->link != DLT_EN10MB) {
		uint16_t type =
			header->caplen >= skip ?
				network_type(data, header->caplen, file->link) :
				0;

		frame->bytes[12] = type >> 8;
		frame->bytes[13] = type;
		start = ETHER_LEN;
		skip = min_u64(skip, header->caplen);
		frame->wire_len += ETHER_LEN - min_u64(skip, header->len);
	}
	frame->len = min_u64(header->caplen - skip, FRAME_MAX - start);
	memcpy(frame->bytes + start, data + skip, frame->len);
	frame->len += start;
}

static void close_stream(FILE **stream)
{
	if (*stream && *stream != stdin)
		fclose(*stream);
}

/* @return what libpcap reads; NULL: no memory */
static FILE *look_inside(struct capture_file *file, FILE *stream)
{
	FILE *outer;

	return file_interfaces_open(stream, &file->interfaces, &outer) ? NULL :
									 outer;
}

static FILE *open_stream(const char *path)
{
	return strcmp(path, "-") ? fopen(path, "rbe") : stdin;
}

int capture_file_open(struct capture_file *file, const char *path,
		      const struct log *log)
{
	__attribute__((cleanup(close_stream))) FILE *stream = open_stream(path);
	char reason[PCAP_ERRBUF_SIZE];
	FILE *outer;

	*file = (struct capture_file){ .log = log, .path = path };
	if (!stream) {
		int err = -errno;

		log_error(log, "%s: %s", path, strerror(-err));
		return err;
	}
	outer = look_inside(file, stream);
	if (!outer)
		return -ENOMEM;
	stream = NULL; /* @outer's now, which libpcap takes over */
	file->pcap = pcap_fopen_offline_with_tstamp_precision(
		outer, PCAP_TSTAMP_PRECISION_NANO, reason);
	if (!file->pcap) {
		log_error(log, "%s: %s", path, reason);
		fclose(outer);
		capture_file_close(file);
		return -EBADMSG;
	}
	file->link = pcap_datalink(file->pcap);
	if (link_header_len(file->link) < 0) {
		log_error(log, "%s: link type %d (%s) is not supported", path,
			  file->link,
			  pcap_datalink_val_to_name(file->link) ?: "unknown");
		capture_file_close(file);
		return -EPROTONOSUPPORT;
	}
	return 0;
}

void capture_file_close(struct capture_file *file)
{
	if (file->pcap)
		pcap_close(file->pcap);
	file->pcap = NULL;
	file_interfaces_free(TAKE_PTR(file->interfaces));
}

int capture_file_next(struct capture_file *file, struct frame *ret_frame)
{
	struct pcap_pkthdr *header;
	const uint8_t *data;
	int ret = pcap_next_ex(file->pcap, &header, &data);

	if (ret == 1) {
		file->packets++;
		build_frame(file, header, data, ret_frame);
		ret_frame->interface = file_interfaces_next(file->interfaces,
							    &ret_frame->passed);
		return 1;
	}
	if (ret == PCAP_ERROR_BREAK) /* end of file */
		return 0;
	log_error(file->log, "%s: after packet %llu: %s", file->path,
		  (unsigned long long)file->packets, pcap_geterr(file->pcap));
	return -EBADMSG;
}

bool capture_file_hides_link(const struct capture_file *file)
{
	return file->link != DLT_EN10MB;
}
