/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The host that made the records: its address, its name, and an identifier. */
#ifndef NETOBS_SINK_AGENT_H
#define NETOBS_SINK_AGENT_H

#include "base/spec.h"

#include <stddef.h>
#include <stdint.h>

enum {
	AGENT_NAME_SIZE = 65, /* size as in struct utsname */
	AGENT_ID_SIZE = 33,   /* 32 hexadecimal digits and a NUL */
};

/* Read the address in @spec (agent_ip=), or else find one. @ip: as in struct netobs_flow; all 0: unknown */
void agent_read_address(struct spec *spec, uint8_t ip[16]);

/* "" if it is unknown. */
void agent_find_name(char *name, size_t size);

/*
 * Make an id of the host that stays the same across restarts and new names, as
 * sd_id128_get_machine_app_specific(3) does. It does not reveal /etc/machine-id, which is secret.
 *
 * @param machine_id  the file's text
 * @param id          "" if the text is no id
 */
void agent_make_id(const char *machine_id, char id[AGENT_ID_SIZE]);

/* Make the id of this host's /etc/machine-id; "" if it has none. */
void agent_find_id(char id[AGENT_ID_SIZE]);

#endif
