/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Encodes records as IPFIX messages (RFC 7011, 3), for all transports. */
#ifndef NETOBS_SINKS_IPFIX_IPFIX_H
#define NETOBS_SINKS_IPFIX_IPFIX_H

#include "base/slots.h"
#include "base/spec.h"
#include "catalogue/fields.h"
#include "sink/file/rotate.h"
#include "sink/module.h"
#include "sinks/net/net.h"

#include <netobs/flow.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <fixbuf/public.h>
#pragma GCC diagnostic pop

/*
 * The layout of records on the wire, RFC 7011 and 7012: a template per kind of record.
 * Their IDs are derived from their contents, since collectors keep templates by address,
 * domain and ID, also beyond a restart with other options.
 */

struct layout_options {
	bool is_extended;
	uint32_t pen; /* private enterprise number of our elements */
	bool has_no_flows;
	uint32_t types; /* types of records, beside flows, that are sent: bits */
};

enum layout_kind {
	LAYOUT_FLOW4,
	LAYOUT_FLOW4_ICMP,
	LAYOUT_FLOW4_HEALTH, /* extended, with what was measured of TCP */
	/* extended, with the processes at its ends, their addresses by NAT, and drops */
	LAYOUT_FLOW4_PROCESS,
	LAYOUT_FLOW4_BOTH,	   /* with both */
	LAYOUT_FLOW4_ICMP_PROCESS, /* with the latter */
	LAYOUT_FLOW6,
	LAYOUT_FLOW6_ICMP,
	LAYOUT_FLOW6_HEALTH,
	LAYOUT_FLOW6_PROCESS,
	LAYOUT_FLOW6_BOTH,
	LAYOUT_FLOW6_ICMP_PROCESS,
	LAYOUT_SAMPLED, /* the same twelve, of sampled flows */
	LAYOUT_SAMPLED_LAST = LAYOUT_SAMPLED + LAYOUT_FLOW6_ICMP_PROCESS,
/* LAYOUT_TYPE4 and LAYOUT_TYPE6 of each other type that has templates */
#define KINDS_none(TYPE)
#define KINDS_templates(TYPE) LAYOUT_##TYPE##4, LAYOUT_##TYPE##6,
#define RECORD(TYPE, kind, name, number, Message, templates, ...) \
	KINDS_##templates(TYPE)
#include "catalogue/records.def"
	LAYOUT_SAMPLING,	/* samplingInterval, as NetFlow had it */
	LAYOUT_INTERFACE,	/* name of an ifindex */
	LAYOUT_INTERFACE_NETNS, /* extended: of an ifindex in a network namespace */
	LAYOUT_METERING,	/* RFC 7011, 4.1 */
	LAYOUT_METERING_LOSS,  /* 4.2 */
	LAYOUT_EXPORTING_LOSS, /* 4.3 */
	LAYOUT_ELEMENT,	       /* one of ours: RFC 5610 */
	LAYOUT_KINDS,
};

struct layout_template {
	uint16_t id;
	uint16_t internal_id; /* id of the struct in record.h */
	uint16_t record_len;
	uint16_t template_len; /* length with its header */
	uint16_t n_scope;      /* fields; 0: no options template */
};

struct layout {
	fbInfoModel_t *model;
	struct layout_template templates[LAYOUT_KINDS];
	struct layout_options options;
};

/* FNV-1a, 32 bits: always the same number for the same bytes. */
#define FNV_START 2166136261U

static inline uint32_t fnv_mix(uint32_t hash, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len--)
		hash = (hash ^ *at++) * 16777619;
	return hash;
}

/* @return one of our own elements; NULL: there are no more */
const fbInfoElement_t *layout_own_element(unsigned int i);

/* @return whether records with these options may have it */
bool layout_uses_element(const struct layout_options *options,
			 const fbInfoElement_t *element);

/* @return whether records with these options may use a template */
bool layout_uses(const struct layout_options *options, enum layout_kind kind);

/* Aborts without memory, as GLib does. */
void layout_open(struct layout *layout, const struct layout_options *options);

void layout_close(struct layout *layout);

/** Add all templates to a session, without sending them. @return 0; -EIO: an element is missing */
int layout_add_to(const struct layout *layout, fbSession_t *session);

/* ---- Records: the structs that libfixbuf makes them from, in this machine's byte order: layout.c -- */

enum { RECORD_OTHER_SIZE = 1024 }; /* room for any type but flows */

#define slot_number(member) typeof(((struct netobs_flow *)0)->member) member;
#define slot_id slot_number
#define slot_count slot_number
#define slot_duration slot_number
#define slot_hash slot_number
#define slot_mac slot_number
#define slot_tunnel_end slot_number
#define slot_text slot_number
#define slot_tcp_flags slot_number
#define slot_dscp slot_number
#define slot_tunnel slot_number
#define slot_time(member) uint64_t member; /* ms since 1970 */
#define slot_address(member)  \
	uint32_t member##_v4; \
	uint8_t member##_v6[16];
#define slot_icmp(member) uint16_t member;
#define slot_netns(member) uint64_t member;
#define slot_direction(member) uint8_t member;

#define OWN_ELEMENT(...)
#define MADE_ELEMENT(type, member, ...) type member;
#define ELEMENT(type, member, ...) slot_##type(member)

/* The elements of all templates of flows. */
struct record_flow {
#include "elements.def"
} __attribute__((packed));

#define OPTIONS(KIND, name, n_scope) struct record_##name {
#define OPTION(type, member, element) __typeof__(type) member;
#define OPTIONS_END \
	}           \
	__attribute__((packed));
#include "options.def"

/** @return the point where the flow came in, or went out; NULL: unknown */
const struct netobs_point *record_ingress(const struct netobs_flow *flow);
const struct netobs_point *record_egress(const struct netobs_flow *flow);

/** @return the kind of template that the record fits */
enum layout_kind record_from_flow(struct record_flow *record,
				  const struct netobs_flow *flow,
				  const struct layout_options *options);

/**
 * Write a record of another type as it is on the wire, but in this machine's byte order.
 *
 * @param to  has RECORD_OTHER_SIZE bytes
 * @return the kind of template that the record fits
 */
enum layout_kind record_from_other(uint8_t *to,
				   const struct netobs_record *record);

/** @return @ns since 1970 in ms: RFC 7011, 6.1.8 */
uint64_t record_time(int64_t ns);

/* ---- Messages --------------------------------------------------------------------- */

enum { ENCODER_SIZE_MIN = 776, ENCODER_SIZE_MAX = 65535 };

struct encoder_message {
	const uint8_t *bytes; /* valid until the next one is taken */
	size_t len;
	uint32_t sequence;
	uint32_t records;
};

struct encoder {
	struct layout layout;
	uint32_t domain;
	fBuf_t *fbuf; /* has the session and the exporter */
	size_t size;  /* size of a message at most */
	size_t used;  /* bytes of the current message; 0: it is empty */
	uint16_t set; /* the last one in it */
	uint32_t records;
	uint32_t sequence; /* data records before it: 3.1 */
	uint8_t bytes[ENCODER_SIZE_MAX];
};

/** @return 0; -EIO: libfixbuf lacks an element; -ENOMEM */
int encoder_open(uint32_t domain, const struct layout_options *options,
		 struct encoder **ret_encoder);

void encoder_free(struct encoder *encoder);

/** Begin a session with messages of @size, without what was added. @return 0 or -EIO */
int encoder_start(struct encoder *encoder, size_t size, uint32_t sequence);

/**
 * Add to the message that is filled. Templates and records are not in one message.
 *
 * @return 1; 0: the message has no room, and is to be taken first; -EIO: libfixbuf refused
 *         it, and the message is unchanged
 */
int encoder_add_template(struct encoder *encoder, enum layout_kind kind);
int encoder_add_flow(struct encoder *encoder, const struct netobs_flow *flow);
/* For records of the other types that have templates. */
int encoder_add_other(struct encoder *encoder,
		      const struct netobs_record *record);

/* @record: the struct of that kind. */
int encoder_add(struct encoder *encoder, enum layout_kind kind, void *record,
		size_t len);

static inline bool encoder_is_empty(const struct encoder *encoder)
{
	return !encoder->used;
}

/** @return 0; -EIO: the message is lost */
int encoder_take(struct encoder *encoder, struct encoder_message *ret_message);

/*
 * The transport of messages: datagrams, a stream, or files. An output acknowledges the
 * records that arrived, and reports when the others have to be sent again, in another
 * session. Nothing here waits.
 */

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
	/* Has the meaning of that in struct sink_module. May be NULL. */
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

/* ---- Options records --------------------------------------------------------------------- */

/* Options records: RFC 7011, 4, sampling, and names of interfaces. */

/* With more interfaces, all names are sent again now and then. */
enum { NAMES_MAX = 2048 };

/* A name that the collector has received, by the first two members. */
struct name {
	uint32_t ifindex;
	uint32_t netns_inode;
	char text[sizeof(((struct record_interface *)NULL)->name)];
};

/** @return whether the collector lacks the name of a point: send @ret_name */
bool names_is_new(const struct slots *names, const struct netobs_point *point,
		  struct name *ret_name);

/* Note a name that was sent. */
void names_note(struct slots *names, const struct name *name);

struct reports {
	const struct config *config;
	struct sink_host *host;
	struct slots names;
	uint64_t start_ms; /* since 1970: the start of the counts */
	struct position not_sent;
	unsigned int next; /* of a round; REPORTS_NONE: none is under way */
};

enum { REPORTS_NONE = -1 };

void reports_open(struct reports *reports, const struct config *config,
		  struct sink_host *host);

/* Send all again. */
void reports_begin(struct reports *reports);

/** Add the records that are due. @return 1; 0: no room for all; -EIO: as encoder_add() */
int reports_add(struct reports *reports, struct encoder *encoder,
		const struct output_counts *counts);

/** Add the names of a flow, unless they were sent. @return as reports_add() */
int reports_add_names(struct reports *reports, struct encoder *encoder,
		      const struct netobs_flow *flow);

/*
 * Templates are sent at the start of a session; over UDP, where they may be lost or forgotten, also
 * at intervals.
 */

struct refresh {
	uint64_t interval_ms;
	bool repeats;
	unsigned int rounds; /* rounds of this session */
	int64_t due_ms;	     /* the next one */
};

void refresh_start(struct refresh *refresh, int64_t now_ms);

bool refresh_is_due(const struct refresh *refresh, int64_t now_ms);

/* Call when all templates were sent. */
void refresh_done(struct refresh *refresh, int64_t now_ms);

#endif
