/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The sections [sink "NAME"] and [host] as the spec of a sink: netobs-sinks(7). */
#ifndef NETOBS_SERVICE_SINK_SPEC_H
#define NETOBS_SERVICE_SINK_SPEC_H

#include "conf.h"

#include <stdbool.h>

/** @return whether it is field.NAME of [host]: other keys of that section are the service's */
bool sink_spec_is_host_field(const struct conf_entry *entry);

/**
 * @param output  the key "output" of a sink
 * @return output?NAME=VALUE&..., the caller's; NULL: there is no memory
 */
char *sink_spec_make(const struct conf *conf, const struct conf_entry *output);

/** @return the key that a message of a sink is about, or else where it goes */
struct conf_place sink_spec_place(const struct conf *conf,
				  const struct conf_entry *output,
				  const char *message);

#endif
