/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_file.h"

#include "bpf/parse/cursor.h"
#include "bpf/parse/headers.h"
#include "base/util.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <pcap/sll.h>
#include <string.h>

enum { ETHER_LEN = sizeof(struct ether_wire) };

/* Where a link header other than Ethernet's ends, and what it carries. */
struct link_view {
	uint32_t skip; /* bytes in front of the network header; UINT32_MAX: they are cut short */
	uint16_t type;	 /* the ethertype that stands for it */
	uint8_t refused; /* as in struct frame */
};

static const struct link_view cut_short = { .skip = UINT32_MAX };

static struct link_view refuse(enum unparsed_reason reason)
{
	return (struct link_view){ .refused = 1 + reason };
}

/* The network header is where the cursor is. */
static struct link_view view_type(const struct cursor *c, uint16_t type)
{
	return (struct link_view){ .skip = cursor_offset(c), .type = type };
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

static uint16_t type_of_version(const struct file_packet *packet)
{
	return packet->len && *packet->bytes >> 4 == 6 ? ETHERTYPE_IPV6 :
							 ETHERTYPE_IPV4;
}

/* RFC 1661, 2 and 6.5: the protocol may have one byte. RFC 1662, 3.1: address and control may be there. */
static struct link_view view_ppp(struct cursor *c)
{
	const uint8_t *first = cursor_take(c, 1);
	uint16_t protocol;

	if (first && *first == 0xff)
		first = cursor_take(c, 1) ? cursor_take(c, 1) : NULL;
	if (!first)
		return cut_short;
	protocol = *first;
	if (!(protocol & 1)) {
		const uint8_t *rest = cursor_take(c, 1);

		if (!rest)
			return cut_short;
		protocol = protocol << 8 | *rest;
	}
	if (protocol == PPP_PROTO_IPV4)
		return view_type(c, ETHERTYPE_IPV4);
	return protocol == PPP_PROTO_IPV6 ? view_type(c, ETHERTYPE_IPV6) :
					    refuse(UNPARSED_PPP);
}

/* RFC 1547, 4.3.1: Cisco's, with an ethertype. */
static struct link_view view_hdlc(struct cursor *c)
{
	const uint8_t *header = cursor_take(c, 4);

	return header ? view_type(c, header[2] << 8 | header[3]) : cut_short;
}

/* The direction, then PPP. */
static struct link_view view_ppp_with_direction(struct cursor *c)
{
	return cursor_take(c, 1) ? view_ppp(c) : cut_short;
}

/* RFC 1662, or Cisco's. */
static struct link_view view_serial(struct cursor *c)
{
	const uint8_t *first = c->pos;

	return first < c->end && (*first & 0x7f) == 0x0f ? view_hdlc(c) :
							   view_ppp(c);
}

/* RFC 2516, 4: a frame of Ethernet without its header. */
static struct link_view view_pppoe(struct cursor *c)
{
	struct cursor ahead = *c;
	const uint8_t *header = cursor_take(&ahead, 2);

	if (!header)
		return cut_short;
	return view_type(c, header[1] ? ETHERTYPE_PPPOE_DISCOVERY :
					ETHERTYPE_PPPOE_SESSION);
}

/* RFC 1042 and 802.1H: LLC with SNAP, in front of the ethertype. */
static bool is_snap(const uint8_t *llc)
{
	return !memcmp(llc, "\xaa\xaa\x03\0\0", 5) && (!llc[5] || llc[5] == 0xf8);
}

/* IEEE 802.11-2020, 9.2.3: data frames that carry an unencrypted packet, or the first fragment of one. */
static struct link_view view_wlan(struct cursor *c)
{
	enum { KIND_MASK = 0x0f, KIND_DATA = 0x08, EMPTY = 0x40, QOS = 0x80 };
	enum { BOTH_DS = 3, PROTECTED = 0x40, ORDER = 0x80, AGGREGATE = 0x80 };
	struct cursor ahead = *c;
	const uint8_t *control = cursor_take(&ahead, 2), *llc;
	uint32_t qos, len;

	if (!control)
		return cut_short;
	if ((control[0] & KIND_MASK) != KIND_DATA || control[0] & EMPTY ||
	    control[1] & PROTECTED)
		return refuse(UNPARSED_WLAN);
	qos = (control[1] & BOTH_DS) == BOTH_DS ? 30 : 24;
	len = qos;
	if (control[0] & QOS)
		len += control[1] & ORDER ? 6 : 2;
	llc = cursor_take(c, len) ? cursor_take(c, 8) : NULL;
	if (!llc)
		return cut_short;
	if (control[22] & 0x0f ||
	    (control[0] & QOS && control[qos] & AGGREGATE) || !is_snap(llc))
		return refuse(UNPARSED_WLAN);
	return view_type(c, llc[6] << 8 | llc[7]);
}

/* A header with its own length in front of 802.11. @is_ppi: and with the type of what follows */
static struct link_view view_radio(struct cursor *c, bool is_ppi)
{
	struct cursor ahead = *c;
	const uint8_t *header = cursor_take(&ahead, is_ppi ? 8 : 4);

	if (!header || !cursor_take(c, header[2] | header[3] << 8))
		return cut_short;
	if (is_ppi && header[4] != DLT_IEEE802_11)
		return refuse(UNPARSED_LINK);
	return view_wlan(c);
}

static struct link_view view_link(const struct file_packet *packet, int link)
{
	struct cursor c = { packet->bytes, packet->bytes,
			    packet->bytes + packet->len };
	const uint8_t *header;

	switch (link) {
	case DLT_EN10MB:
		return view_type(&c, 0);
	case DLT_RAW:
	case DLT_IPV4:
	case DLT_IPV6:
		return view_type(&c, type_of_version(packet));
	case DLT_NULL:
	case DLT_LOOP:
		header = cursor_take(&c, 4);
		return header ? view_type(&c, type_of_family(header, link)) :
				cut_short;
	case DLT_LINUX_SLL: /* the last field */
		header = cursor_take(&c, SLL_HDR_LEN);
		return header ? view_type(&c, header[14] << 8 | header[15]) :
				cut_short;
	case DLT_LINUX_SLL2: /* the first field */
		header = cursor_take(&c, SLL2_HDR_LEN);
		return header ? view_type(&c, header[0] << 8 | header[1]) :
				cut_short;
	case DLT_PPP:
		return view_ppp(&c);
	case DLT_PPP_SERIAL:
		return view_serial(&c);
	case DLT_PPP_ETHER:
		return view_pppoe(&c);
	case DLT_PPP_PPPD:
	case DLT_PPP_WITH_DIR:
		return view_ppp_with_direction(&c);
	case DLT_C_HDLC:
		return view_hdlc(&c);
	case DLT_IEEE802_11:
		return view_wlan(&c);
	case DLT_IEEE802_11_RADIO:
		return view_radio(&c, false);
	case DLT_PPI:
		return view_radio(&c, true);
	default:
		return refuse(UNPARSED_LINK);
	}
}

static bool is_supported(int link)
{
	return view_link(&(struct file_packet){ .bytes = (uint8_t[1]){ 0 } }, link)
		       .refused != 1 + UNPARSED_LINK;
}

/* Make it an Ethernet frame; of a link type that is not supported, one that is not IP. */
static void build_frame(const struct file_packet *packet, int link,
			struct frame *frame)
{
	const struct link_view view = view_link(packet, link);
	const uint32_t skip = min_u64(view.skip, packet->len);
	uint32_t start = 0;

	memset(frame->bytes, 0, ETHER_LEN);
	frame->ns = packet->ns;
	frame->wire_len = packet->wire_len;
	frame->is_cut = packet->len < packet->wire_len;
	frame->is_bare = link != DLT_EN10MB;
	frame->refused = view.refused;
	frame->interface = packet->interface;
	frame->passed = packet->passed;
	if (frame->is_bare) {
		frame->bytes[12] = view.type >> 8;
		frame->bytes[13] = view.type;
		start = ETHER_LEN;
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
	return is_supported(file->link) ? 0 : refuse_link(file, file->link);
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
		n_supported += is_supported(dlt_of(link));
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
	if (!is_supported(link))
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
