/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The transport of messages: datagrams, a stream, or files. An output acknowledges the
 * records that arrived, and reports when the others have to be sent again, in another
 * session. Nothing here waits.
 */
#ifndef NETOBS_SINKS_IPFIX_OUTPUT_H
#define NETOBS_SINKS_IPFIX_OUTPUT_H

#include "base/spec.h"
#include "sink/file/rotate.h"
#include "sink/module.h"
#include "sinks/net/address.h"
#include "sinks/net/tls.h"
#include "encoder.h"
#include "layout.h"

#include <netdb.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The target and options of an ipfix sink. */

enum config_transport { CONFIG_UDP, CONFIG_TCP, CONFIG_TLS, CONFIG_FILE };

struct config {
	enum config_transport transport;
	struct address address;
	struct sockaddr_storage source;
	struct tls_context tls;
	char *path;
	bool rotates; /* the file */
	struct rotate_options rotation;
	size_t mtu; /* 0: as suits the transport */
	uint32_t domain;
	uint64_t template_ms, options_ms; /* between repetitions */
	bool has_options;		  /* records beside those of flows */
	struct layout_options layout;
};

/** Read all options; spec_finish() is the caller's. @return 0; -EINVAL, logged; -ENOMEM */
int config_read(struct config *config, struct spec *spec);

void config_free(struct config *config);

struct output;

struct output_message {
	struct encoder_message encoded;
	struct position end; /* behind the last of all so far */
};

struct output_ops {
	size_t size; /* size of the output's struct, which begins with struct output */
	size_t message_size; /* unless the configuration has one */
	/* -errno: the file cannot be written to, which is logged. To be closed anyway. */
	int (*open)(struct output *output);
	/* PEER_NEW: send templates first, then all records that are not acknowledged. */
	enum peer_state (*prepare)(struct output *output);
	/* 0; -EAGAIN: not now; others: call prepare(). */
	int (*send)(struct output *output, const struct output_message *message);
	/* @return when to be called, for wake_in() */
	int (*rest)(struct output *output);
	/* May be NULL. */
	void (*counters)(const struct output *output, sink_counter_fn *take,
			 void *ctx);
	/* As in struct sink_module. May be NULL. */
	int (*reopen)(struct output *output);
	void (*close)(struct output *output);
};

/* Since the start. */
struct output_counts {
	uint64_t messages, octets, records; /* sent so far */
	uint64_t flows; /* flow records that were put into messages, each once */
	uint64_t refused_messages; /* sent messages that were lost, as ICMP reports */
	uint64_t failed_messages; /* were not sent, and tried again */
	uint64_t sessions;	  /* or files */
};

struct output {
	const struct output_ops *ops;
	struct sink_host *host;
	struct config *config;
	size_t size;	   /* size of a message, in this session */
	uint32_t sequence; /* sequence number that a new session begins with */
	struct position acked;
	struct output_counts counts;
};

extern const struct output_ops output_udp, output_stream, output_file;

/* All records before @end have arrived. */
static inline void output_ack(struct output *output, struct position end)
{
	if (!position_is_before(output->acked, end))
		return;
	output->acked = end;
	output->host->ops->ack(output->host, end);
}

static inline void output_count(struct output *output,
				const struct output_message *message)
{
	output->counts.messages++;
	output->counts.octets += message->encoded.len;
	output->counts.records += message->encoded.records;
}

#endif
