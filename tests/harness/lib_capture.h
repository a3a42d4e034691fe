/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Capture files, written byte by byte. They are in memory: nothing stays behind. */
#ifndef HARNESS_LIB_CAPTURE_H
#define HARNESS_LIB_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

/* LINKTYPE_ values of the file formats. */
enum {
	CAPTURE_NULL = 0,
	CAPTURE_ETHERNET = 1,
	CAPTURE_RAW = 101,
	CAPTURE_LOOP = 108,
	CAPTURE_SLL = 113,
	CAPTURE_IPV4 = 228,
	CAPTURE_IPV6 = 229,
	CAPTURE_SLL2 = 276,
};

struct capture {
	char path[64];
	int fd;
};

/* An empty file, that only this process finds at its path. */
void capture_create(struct capture *capture);
void capture_remove(struct capture *capture);

void capture_write(struct capture *capture, const void *bytes, size_t len);

/* pcap with microseconds, or nanoseconds. */
void capture_start(struct capture *capture, uint32_t link);
void capture_start_nano(struct capture *capture, uint32_t link);

/* The same as pcapng. */
void capture_start_ng(struct capture *capture, uint32_t link);

/* @fraction: of the second, in the file's unit; @wire_len: before the cut. */
void capture_packet(struct capture *capture, uint32_t seconds, uint32_t fraction,
		    const void *bytes, uint32_t len, uint32_t wire_len);
void capture_packet_ng(struct capture *capture, uint64_t us, const void *bytes,
		       uint32_t len, uint32_t wire_len);

#endif
