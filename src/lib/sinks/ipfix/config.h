/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The target and options of an ipfix sink. */
#ifndef NETOBS_SINKS_IPFIX_CONFIG_H
#define NETOBS_SINKS_IPFIX_CONFIG_H

#include "layout.h"
#include "sinks/net/address.h"
#include "sinks/net/tls.h"
#include "sink/file/rotate.h"
#include "base/spec.h"

enum config_transport { CONFIG_UDP, CONFIG_TCP, CONFIG_TLS, CONFIG_FILE };

struct config {
	enum config_transport transport;
	struct address address;
	struct sockaddr_storage source;
	struct tls_context tls;
	char *path;
	bool rotates; /* the file */
	struct rotate_options rotation;
	size_t mtu;    /* 0: as suits the transport */
	uint64_t pace; /* messages per second over UDP; 0: any number */
	uint32_t domain;
	uint64_t template_ms, options_ms; /* between repetitions */
	bool has_options;		  /* records beside those of flows */
	struct layout_options layout;
};

/** Read all options; spec_finish() is the caller's. @return 0; -EINVAL, logged; -ENOMEM */
int config_read(struct config *config, struct spec *spec);

void config_free(struct config *config);

#endif
