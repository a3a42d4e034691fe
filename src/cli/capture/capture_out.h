/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A file of packets, standard output, or a ring of files that takes their places. */
#ifndef NETOBS_CLI_CAPTURE_CAPTURE_OUT_H
#define NETOBS_CLI_CAPTURE_CAPTURE_OUT_H

#include "service/socket/server.h"

#include <netobs/capture.h>
#include <stdbool.h>
#include <time.h>

/* Options of the output of packets. */
struct capture_out_options {
	const char *path; /* "-": standard output */
	enum netobs_packet_format format;
	uint64_t rotate_bytes; /* 0: one file */
	uint32_t keep;	       /* files; 0: all */
};

struct capture_out {
	struct capture_out_options options;
	struct netobs_packet_writer *writer;
	int fd;
	bool is_regular;
	bool is_started;
	int error; /* 0, or the negated errno of the first failure */

	char *buf;
	size_t used;
	uint32_t *ends; /* ends of packets in the buffer */
	uint32_t n_ends;
	uint64_t size;	  /* bytes of the file, without those in the buffer */
	uint64_t packets; /* in all files; complete ones */

	char **names; /* files of the ring, the oldest first */
	uint32_t n_names;
	time_t named;	     /* the second in the latest name */
	unsigned int number; /* number of the file in that second */
};

/*
 * Make the file, before the capture attaches: capture_out_begin() follows, and
 * capture_out_start().
 *
 * @return 0 or -errno
 */
int capture_out_open(struct capture_out *out,
		     const struct capture_out_options *options);

/* Form the beginning of the file. */
int capture_out_begin(struct capture_out *out, struct netobs *capture);

/* Overwrite the file, once the capture has started. */
void capture_out_start(struct capture_out *out);

/* The first error sticks: nothing is written any more, and the file ends with a packet. */
void capture_out_add(struct capture_out *out, const struct netobs_packet *packet);

/* End this file, and continue in the next one of the ring. */
void capture_out_rotate(struct capture_out *out);

/* Write the statistics of the capture so far. */
void capture_out_stats(struct capture_out *out);

void capture_out_flush(struct capture_out *out);

/* Flush and free; error and packets remain. */
void capture_out_close(struct capture_out *out);

/*
 * A socket that readers of packets connect to, such as tshark. Each gets a capture file of its
 * own, from the moment of its connection on. One that reads too slowly misses packets, which its
 * file counts.
 */

enum { CAPTURE_CLIENTS = 64 };

struct capture_listen {
	struct server server;
	enum netobs_packet_format format;
	uint64_t missed;  /* packets, by clients that read too slowly */
	uint64_t refused; /* clients */
};

/* @return why @spec cannot be listened on; NULL: it can */
const char *capture_listen_refuse(const char *spec);

/*
 * @spec: ADDRESS:PORT or [ADDRESS]:PORT of loopback, or unix:PATH.
 *
 * @return 0 or -errno
 */
int capture_listen_open(struct capture_listen *listener, const char *spec,
			enum netobs_packet_format format);

/* Begin a file for each client that has none yet. */
void capture_listen_begin(struct capture_listen *listener,
			  struct netobs *capture);

void capture_listen_add(struct capture_listen *listener,
			const struct netobs_packet *packet);

/* Write statistics to the clients that have room for them. */
void capture_listen_stats(struct capture_listen *listener);

/* Send what clients take now. */
void capture_listen_flush(struct capture_listen *listener);

/* Give clients a moment to read their queues, and close all. */
void capture_listen_close(struct capture_listen *listener);

#endif
