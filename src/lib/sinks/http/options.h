/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Options of an HTTP server in a spec: see netobs-sinks(7). */
#ifndef NETOBS_SINKS_HTTP_OPTIONS_H
#define NETOBS_SINKS_HTTP_OPTIONS_H

#include "format.h"
#include "sink/pack/packer.h"

#include <curl/curl.h>

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

#endif
