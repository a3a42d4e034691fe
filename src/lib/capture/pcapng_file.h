/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Packets of a pcapng file (draft-ietf-opsawg-pcapng) with their interfaces, which may differ in link
 * type, snapshot length and resolution of time; libpcap reads files of one kind only. A block
 * is never in memory as a whole, so a wrong length costs nothing.
 */
#ifndef NETOBS_CAPTURE_PCAPNG_FILE_H
#define NETOBS_CAPTURE_PCAPNG_FILE_H

#include <stdint.h>
#include <stdio.h>

struct pcapng_file;

/* As epb_flags has it: 4.3.1. */
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

#endif
