/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The host that made the records: its address and its name. */
#ifndef NETOBS_SINK_AGENT_H
#define NETOBS_SINK_AGENT_H

#include "base/spec.h"

#include <stddef.h>
#include <stdint.h>

enum { AGENT_NAME_SIZE = 65 }; /* as in struct utsname */

/* What @spec says (agent_ip=), and else what is found. @ip: as in struct netobs_flow; all 0: unknown */
void agent_read_address(struct spec *spec, uint8_t ip[16]);

/* "" if it is unknown. */
void agent_find_name(char *name, size_t size);

#endif
