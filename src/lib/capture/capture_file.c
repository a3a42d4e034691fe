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

/* @return the bytes in front of the network header, or -EPROTONOSUPPORT */
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

/* Make it an Ethernet frame; of a link type that is not supported, one that is not IP. */
static void build_frame(const struct file_packet *packet, int link,
			struct frame *frame)
{
	const int header_len = link_header_len(link);
	uint32_t skip = header_len > 0 ? header_len : 0, start = 0;

	memset(frame->bytes, 0, ETHER_LEN);
	frame->ns = packet->ns;
	frame->wire_len = packet->wire_len;
	frame->is_cut = packet->len < packet->wire_len;
	frame->is_bare = link != DLT_EN10MB;
	frame->refused = header_len < 0 ? 1 + UNPARSED_LINK : 0;
	frame->interface = packet->interface;
	frame->passed = packet->passed;
	if (frame->is_bare) {
		uint16_t type =
			header_len >= 0 && packet->len >= skip ?
				network_type(packet->bytes, packet->len, link) :
				0;

		frame->bytes[12] = type >> 8;
		frame->bytes[13] = type;
		start = ETHER_LEN;
		skip = min_u64(skip, packet->len);
		frame->wire_len += ETHER_LEN - min_u64(skip, packet->wire_len);
	}
	frame->len = min_u64(packet->len - skip, FRAME_MAX - start);
	memcpy(frame->bytes + start, packet->bytes + skip, frame->len);
	frame->len += start;
}

/* ---- Files of libpcap ------------------------------------------------------------------- */

static int refuse_link(const struct capture_file *file, int link)
{
	log_error(file->log, "%s: link type %d (%s) is not supported",
		  file->path, link, pcap_datalink_val_to_name(link) ?: "unknown");
	return -EPROTONOSUPPORT;
}

/* libpcap takes over @stream. */
static int open_pcap(struct capture_file *file, FILE *stream)
{
	char reason[PCAP_ERRBUF_SIZE];

	file->pcap = pcap_fopen_offline_with_tstamp_precision(
		stream, PCAP_TSTAMP_PRECISION_NANO, reason);
	if (!file->pcap) {
		log_error(file->log, "%s: %s", file->path, reason);
		if (stream != stdin)
			fclose(stream);
		return -EBADMSG;
	}
	file->link = pcap_datalink(file->pcap);
	return link_header_len(file->link) < 0 ? refuse_link(file, file->link) :
						 0;
}

/* Opened with nanosecond precision, tv_usec is in nanoseconds. */
static int next_of_pcap(struct capture_file *file, struct frame *ret_frame)
{
	struct pcap_pkthdr *header;
	const uint8_t *data;
	int ret = pcap_next_ex(file->pcap, &header, &data);
	struct file_packet packet;

	if (ret == PCAP_ERROR_BREAK) /* end of file */
		return 0;
	if (ret != 1) {
		log_error(file->log, "%s: after packet %llu: %s", file->path,
			  (unsigned long long)file->packets,
			  pcap_geterr(file->pcap));
		return -EBADMSG;
	}
	packet = (struct file_packet){
		.ns = header->ts.tv_sec * NSEC_PER_SEC + header->ts.tv_usec,
		.len = header->caplen,
		.wire_len = header->len,
		.bytes = data,
	};
	build_frame(&packet, file->link, ret_frame);
	return 1;
}

/* ---- Files of pcapng ---------------------------------------------------------------- */

/* Other link types have the same number in files and in libpcap. */
static int dlt_of(int linktype)
{
	const int linktype_raw = 101;

	return linktype == linktype_raw ? DLT_RAW : linktype;
}

/* The first packet is read, so that interfaces before it are known. */
static int open_pcapng(struct capture_file *file, FILE *stream)
{
	int link, n = 0, n_supported = 0;

	file->stream = stream;
	file->pcapng = pcapng_open(stream);
	if (!file->pcapng)
		return -ENOMEM;
	file->next_result = pcapng_next(file->pcapng, &file->next);
	file->has_next = true;
	for (; (link = pcapng_link(file->pcapng, n)) >= 0; n++)
		n_supported += link_header_len(dlt_of(link)) >= 0;
	if (file->next_result == -ENOMEM)
		return -ENOMEM;
	if (n_supported)
		return 0;
	if (n)
		return refuse_link(file, dlt_of(pcapng_link(file->pcapng, 0)));
	log_error(file->log, "%s: %s", file->path,
		  file->next_result < 0 ? pcapng_reason(file->pcapng) :
					  "the file describes no interface");
	return -EBADMSG;
}

static void note_unsupported(struct capture_file *file, int link)
{
	if (!file->n_unsupported++)
		file->unsupported = link;
	file->has_others |= link != file->unsupported;
}

static int next_of_pcapng(struct capture_file *file, struct frame *ret_frame)
{
	int link, ret = file->has_next ? file->next_result :
					 pcapng_next(file->pcapng, &file->next);

	file->has_next = false;
	if (ret == -EBADMSG)
		log_error(file->log, "%s: after packet %llu: %s", file->path,
			  (unsigned long long)file->packets,
			  pcapng_reason(file->pcapng));
	if (ret != 1)
		return ret;
	link = dlt_of(file->next.link);
	if (link_header_len(link) < 0)
		note_unsupported(file, link);
	build_frame(&file->next, link, ret_frame);
	return 1;
}

/* ---- Files of both kinds -------------------------------------------------------------- */

static int open_stream(struct capture_file *file, FILE *stream)
{
	const int first = fgetc(stream);

	if (first != EOF)
		ungetc(first, stream);
	return first == PCAPNG_FIRST_BYTE ? open_pcapng(file, stream) :
					    open_pcap(file, stream);
}

int capture_file_open(struct capture_file *file, const char *path,
		      const struct log *log)
{
	FILE *stream = strcmp(path, "-") ? fopen(path, "rbe") : stdin;
	int err = stream ? 0 : -errno;

	*file = (struct capture_file){ .log = log, .path = path };
	if (err) {
		log_error(log, "%s: %s", path, strerror(-err));
		return err;
	}
	err = open_stream(file, stream);
	if (err)
		capture_file_close(file);
	return err;
}

void capture_file_close(struct capture_file *file)
{
	if (file->pcap)
		pcap_close(file->pcap);
	file->pcap = NULL;
	pcapng_close(TAKE_PTR(file->pcapng));
	if (file->stream && file->stream != stdin)
		fclose(file->stream);
	file->stream = NULL;
}

int capture_file_next(struct capture_file *file, struct frame *ret_frame)
{
	int ret = file->pcap ? next_of_pcap(file, ret_frame) :
			       next_of_pcapng(file, ret_frame);

	file->packets += ret == 1;
	return ret;
}

bool capture_file_hides_link(const struct capture_file *file)
{
	int link = file->link;

	if (file->pcap)
		return link != DLT_EN10MB;
	for (uint32_t i = 0; (link = pcapng_link(file->pcapng, i)) >= 0; i++)
		if (link != DLT_EN10MB)
			return true;
	return false;
}

void capture_file_report(const struct capture_file *file)
{
	if (file->n_unsupported)
		log_warning(
			file->log,
			"%s: %llu packets are in no flow: link type %d (%s) %s not supported",
			file->path, (unsigned long long)file->n_unsupported,
			file->unsupported,
			pcap_datalink_val_to_name(file->unsupported) ?: "unknown",
			file->has_others ? "and others are" : "is");
}
