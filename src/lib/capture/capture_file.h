/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Capture files, whatever their link type, as Ethernet frames. */
#ifndef NETOBS_CAPTURE_CAPTURE_FILE_H
#define NETOBS_CAPTURE_CAPTURE_FILE_H

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct crossings;
struct pcapng_file;

/* ---- Files of pcapng ------------------------------------------------------------------ */

/*
 * Packets of a pcapng file (draft-ietf-opsawg-pcapng) with their interfaces, which may differ in link
 * type, snapshot length and resolution of time; libpcap reads files of one kind only. A block
 * is never in memory as a whole, so a wrong length costs nothing.
 */

/* Values of epb_flags of pcapng, section 4.3.1. */
enum passed { PASSED_EITHER, PASSED_IN, PASSED_OUT };

struct file_packet {
	int link;   /* LINKTYPE_*, which is DLT_* but for raw IP */
	int64_t ns; /* since 1970 */
	uint32_t len;
	uint32_t wire_len; /* before the capture cut it */
	const uint8_t *bytes; /* PCAPNG_KEPT of them at most, until the next packet */
	const char *interface; /* until pcapng_close(); NULL: the file does not say */
	enum passed passed;
};

enum { PCAPNG_KEPT = 2048, PCAPNG_FIRST_BYTE = 0x0a };

/* @param stream  the caller closes it, after pcapng_close(). @return NULL: no memory */
struct pcapng_file *pcapng_open(FILE *stream);
void pcapng_close(struct pcapng_file *file);

/* @return 1: @ret_packet is filled; 0: end of file; -EBADMSG: see pcapng_reason(); -ENOMEM */
int pcapng_next(struct pcapng_file *file, struct file_packet *ret_packet);

/* @return the link type of interface @i of those that are known; -ENOENT: there are not as many */
int pcapng_link(const struct pcapng_file *file, uint32_t i);

/* @return what is wrong with the file */
const char *pcapng_reason(const struct pcapng_file *file);

/* ---- Files of any kind ---------------------------------------------------------------- */

/* More than the parser reaches, less than the kernel takes, which is a page. */
enum { FRAME_MAX = 1024 };

struct capture_file {
	const struct log *log;
	const char *path;
	struct pcap *pcap;
	int link;     /* DLT_* of all packets of a pcap file */
	FILE *stream; /* of a pcapng file; NULL: libpcap has it */
	struct pcapng_file *pcapng;
	struct file_packet next; /* of it: the latest, or if has_next the first one */
	int next_result;
	bool has_next;
	uint64_t packets;
	uint64_t n_unsupported; /* packets of link types that are not supported */
	int unsupported;	/* the first of these types */
	bool has_others;	/* and there are more */
};

struct frame {
	int64_t ns; /* since 1970 */
	uint32_t len;
	uint32_t wire_len; /* before the capture cut it */
	bool is_cut;
	uint8_t refused; /* 1 + enum unparsed_reason, by its link header; 0: it is for the parser */
	bool is_bare; /* without a link header of Ethernet: it has one that is made up */
	const char *interface; /* as long as its file; NULL: the file does not say */
	enum passed passed;
	uint8_t bytes[FRAME_MAX];
};

/* "-" is standard input. -EBADMSG, -EPROTONOSUPPORT: see netobs_replay_files(). */
int capture_file_open(struct capture_file *file, const char *path,
		      const struct log *log);
void capture_file_close(struct capture_file *file);

/* 1: @ret_frame is filled; 0: end of file; -EBADMSG: it ends in mid-packet. */
int capture_file_next(struct capture_file *file, struct frame *ret_frame);

/* @return whether its frames, as far as known before the first one, have a made-up link header */
bool capture_file_hides_link(const struct capture_file *file);

/* Log how many packets had link types that are not supported, among others that are. */
void capture_file_report(const struct capture_file *file);

/*
 * Packets of a capture file that passed several interfaces, or one in both directions, and are in it
 * once for each. The n-th packet with some content at one of these points is the n-th with that
 * content at another one, within a second; so as many count as the point has that saw most of them.
 *
 * Content is all from the network header on but what routers change: the type of service, the hop
 * limit and the checksum of the header. Address translation makes other packets, as it does for flows.
 */

/** @return NULL: no memory */
struct crossings *crossings_new(void);
void crossings_free(struct crossings *crossings);

/** Note a packet with an interface. @return whether it has passed another point before */
bool crossings_is_again(struct crossings *crossings, const struct frame *frame);

#endif
