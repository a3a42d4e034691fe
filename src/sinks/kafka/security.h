/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* TLS and SASL, by the names that our options have. */
#ifndef NETOBS_SINKS_KAFKA_SECURITY_H
#define NETOBS_SINKS_KAFKA_SECURITY_H

#include "base/spec.h"

#include <librdkafka/rdkafka.h>

/* What is wrong is refused. */
void security_read(struct spec *spec, rd_kafka_conf_t *conf);

/* Set a property of librdkafka; it says what is wrong with it. */
void settings_set(struct spec *spec, rd_kafka_conf_t *conf, const char *name,
		  const char *value);

#endif
