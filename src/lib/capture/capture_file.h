/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Capture files, whatever their link type, as Ethernet frames. */
#ifndef NETOBS_CAPTURE_CAPTURE_FILE_H
#define NETOBS_CAPTURE_CAPTURE_FILE_H

#include "base/log.h"
#include "file_interfaces.h"

#include <stdbool.h>
#include <stdint.h>

/* More than the parser reaches, less than the kernel takes, which is a page. */
enum { FRAME_MAX = 1024 };

struct capture_file {
	const struct log *log;
	const char *path;
	struct pcap *pcap;
	struct file_interfaces *interfaces;
	int link; /* DLT_* */
	uint64_t packets;
};

struct frame {
	int64_t ns; /* since 1970 */
	uint32_t len;
	uint32_t wire_len; /* before the capture cut it */
	bool is_cut;
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

/* Its frames have a made-up link header. */
bool capture_file_hides_link(const struct capture_file *file);

#endif
