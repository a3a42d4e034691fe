/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The host that made the records: its address, its name, and an identifier. */
#ifndef NETOBS_SINK_AGENT_H
#define NETOBS_SINK_AGENT_H

#include "base/spec.h"

#include <stddef.h>
#include <stdint.h>

enum {
	AGENT_NAME_SIZE = 65, /* as in struct utsname */
	AGENT_ID_SIZE = 33,   /* 32 hexadecimal digits and a NUL */
};

/* What @spec says (agent_ip=), and else what is found. @ip: as in struct netobs_flow; all 0: unknown */
void agent_read_address(struct spec *spec, uint8_t ip[16]);

/* "" if it is unknown. */
void agent_find_name(char *name, size_t size);

/*
 * What identifies the host across restarts and new names: as sd_id128_get_machine_app_specific(3)
 * makes it of /etc/machine-id, which must not be given away and cannot be found from it.
 *
 * @param machine_id  the file's text
 * @param id          "" if the text is no id
 */
void agent_make_id(const char *machine_id, char id[AGENT_ID_SIZE]);

/* The same of this host; "" if it has none. */
void agent_find_id(char id[AGENT_ID_SIZE]);

#endif
