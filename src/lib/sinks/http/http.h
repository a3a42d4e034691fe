/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * POST requests by libcurl, whose sockets the sink's loop waits for. Nothing here waits;
 * libcurl looks up names in a thread of its own.
 */
#ifndef NETOBS_SINKS_HTTP_HTTP_H
#define NETOBS_SINKS_HTTP_HTTP_H

#include "base/buffer.h"
#include "base/spec.h"
#include "record/any.h"
#include "sink/host_fields.h"
#include "sink/module.h"
#include "sink/pack/packer.h"
#include "sinks/batch/batch.h"
#include "sinks/otlp/otlp.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The answer to a _bulk request of Elasticsearch or OpenSearch, read as it comes: whether
 * there are errors, and the status of each item, in the order of the request.
 *
 *	{"errors":true,"items":[{"create":{"status":201}},
 *	  {"create":{"status":400,"error":{"reason":"failed to parse"}}}]}
 */

enum { BULK_TEXT_MAX = 256 };

struct bulk_answer {
	/* An item; its status, 0 if it has none, and its error in words, or "". */
	void (*take_item)(void *ctx, int status, const char *reason);
	void *ctx;

	bool has_errors; /* the answer reports errors */
	bool is_answer;	 /* the answer has "errors", true or false */

	/* State of the JSON parser. */
	unsigned int depth;
	bool is_in_items, is_in_string, is_escaped;
	bool has_value; /* text is a value, or a key */
	size_t len;
	char text[BULK_TEXT_MAX], key[BULK_TEXT_MAX];
	int status; /* status of the item that is being read */
	char reason[BULK_TEXT_MAX];
};

/** Begin another answer. */
void bulk_answer_begin(struct bulk_answer *answer,
		       void (*take_item)(void *ctx, int status,
					 const char *reason),
		       void *ctx);

/** Read @len more bytes of it, which may be anything. */
void bulk_answer_read(struct bulk_answer *answer, const char *bytes, size_t len);

/* The format of a batch of records in the body of a request. */

struct format;

/* The report on the records in an answer with a status of success. */
enum format_answer {
	FORMAT_ANSWERS_NOTHING,
	FORMAT_ANSWERS_ITEMS, /* the outcome of each: bulk_answer_read() */
	FORMAT_ANSWERS_COUNT, /* the number of refused ones: otlp_read_answer() */
};

/* An encoding of bodies. */
struct encoding {
	const char *content_type;
	enum format_answer answer;
	/* For format_record() and format_body(). */
	size_t (*put_record)(const struct format *format,
			     const struct netobs_record *record, char *to);
	bool (*put_body)(const struct format *format,
			 const struct batch *records, struct buffer *body);
};

/* A record takes so many bytes at most: in a Loki line, each may be escaped. */
enum { FORMAT_ROOM = 2 * SINK_JSON_MAX + 256 };

struct format {
	const struct encoding *encoding;
	struct host_fields host_fields;
	char *labels; /* of Loki, the same for all records, as members of JSON */
	struct otlp otlp;
};

_Static_assert((int)OTLP_ENTRY_MAX <= (int)FORMAT_ROOM, "there is room for all");

/**
 * Read the options encoding (not of OTLP), label.NAME and those of host_fields.h. @types: of the sink's records.
 *
 * @return 0 or -ENOMEM; wrong values are refused with a message
 */
int format_read(struct format *format, struct spec *spec, uint32_t types);
void format_free(struct format *format);

/**
 * Write a record as it is in a body.
 *
 * @param to  has FORMAT_ROOM
 * @return bytes
 */
size_t format_record(const struct format *format,
		     const struct netobs_record *record, char *to);

/** @return how many of what an answer counts a record is: FORMAT_ANSWERS_COUNT */
uint32_t format_items(const struct format *format,
		      const struct netobs_record *record);

/** @return the path of a URL that has none; NULL: as it is */
const char *format_path(const struct format *format, uint32_t types);

/**
 * Put a body together of the records that are tried.
 *
 * @return false: no memory
 */
bool format_body(const struct format *format, const struct batch *records,
		 struct buffer *body);

/* Options of an HTTP server in a spec: see netobs-sinks(7). */

enum {
	HTTP_REQUESTS_MAX = 16,
	HTTP_BATCH_MIN = 64 << 10,
	HTTP_PACKED_MAX = 1 << 20, /* bytes of text in a batch that is compressed */
};

struct http_options {
	char *url;
	char name[512]; /* without its parameters, for messages */
	struct format format;
	size_t batch_bytes; /* bytes of text, before compression */
	uint32_t batch_records;
	uint32_t batch_delay_ms;
	uint32_t requests; /* at a time */
	uint32_t timeout_ms;
	struct packer_options packer;
	struct curl_slist *headers;
	char *credentials; /* NULL, or USER:PASSWORD */
	/* The spec's, of which libcurl makes copies: paths, and what it takes for a proxy. NULL: none. */
	const char *ca, *cert, *key, *proxy;
};

/**
 * Read all options; spec_finish() is the caller's.
 *
 * @param types  of records of the sink
 *
 * @return 0; -EINVAL: something is wrong, which was logged; -ENOMEM. To be freed in all
 *         cases
 */
int http_options_read(struct http_options *options, struct spec *spec,
		      uint32_t types);
void http_options_free(struct http_options *options);

/* ---- Requests --------------------------------------------------------------------- */

enum { REQUEST_ANSWER_MAX = 256 }; /* bytes of an answer that are kept */

/* Limits of an answer: bytes, and bytes for each record of a request. More is refused. */
enum {
	ANSWER_MAX = 1 << 20,
	ANSWER_ITEM_MAX = 4 << 10,
	ANSWER_HEADERS_MAX =
		32 << 10, /* also of interim answers, and behind the body */
};

struct transfer {
	struct sink_host *host;
	CURLM *multi;
	int epoll_fd;	  /* has libcurl's sockets */
	int64_t timer_ms; /* when to call libcurl; 0: not needed */
	int64_t end_ms;	  /* end of the time of this call */
};

/* Takes an answer with a status of success, piece by piece. */
struct answer_reader {
	void (*read)(void *ctx, const char *bytes, size_t len);
	void *ctx;
};

enum request_phase { REQUEST_NONE, REQUEST_OPEN, REQUEST_ENDED };

/* A request, and its connection; one request at a time. */
struct request {
	CURL *easy;
	struct answer_reader reader;
	enum request_phase phase;
	const struct transfer *transfer;
	size_t header_bytes;
	uint64_t answered,
		answer_max; /* bytes of the answer, and how many it may have */
	bool is_paused; /* libcurl keeps a piece of it: the time of the call was over */
	/* Set when the request has ended: */
	long status;  /* HTTP status; 0: no answer, or only a part */
	bool is_cut;  /* the connection ended behind a part of the request */
	bool is_late; /* there was no answer in time */
	bool is_long; /* the answer was cut off, because it had too many bytes */
	int64_t retry_ms;  /* time that the server asks to wait; 0: none */
	const char *cause; /* why there was none: libcurl's text of its code */
	char error[CURL_ERROR_SIZE]; /* error with details, which vary */
	char answer[REQUEST_ANSWER_MAX + 1]; /* beginning of the answer, as printable text */
	size_t answer_len;
};

/** @return 0, or as epoll_create1(2) */
int transfer_open(struct transfer *transfer, struct sink_host *host);

/** Call after closing all requests. NULL members are allowed. */
void transfer_close(struct transfer *transfer);

/** Advance all requests, as far as possible until @end_ms; some may have ended. */
void transfer_run(struct transfer *transfer, int64_t end_ms);

/** @return when to be called again, as wake_in() has it */
int transfer_rest(const struct transfer *transfer);

/**
 * @param reader  of answers; read is NULL: they have nothing to be read
 * @return 0 or -ENOMEM; -EINVAL: libcurl lacks something, which was logged
 */
int request_open(struct request *request, const struct http_options *options,
		 const struct answer_reader *reader, const struct log *log);

/** Cancel and free it. */
void request_close(struct request *request, struct transfer *transfer);

/** Send @len bytes of @records, which stay in their place until it has ended. */
int request_start(struct request *request, struct transfer *transfer,
		  const void *bytes, size_t len, uint32_t records);

/** Read on where the time of the last call was over: before transfer_run(). */
void request_resume(struct request *request, struct transfer *transfer,
		    int64_t end_ms);

/**
 * Get the outcome of records from a status of HTTP. A failure of the server, of its configuration
 * or of credentials, and not of the records, may end: they wait.
 */
enum outcome status_outcome(long status);

#endif
