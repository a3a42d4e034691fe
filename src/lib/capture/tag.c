// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "tag.h"

#include "base/util.h"

#include <string.h>

enum { TAG_AT = 12 }; /* behind the addresses */

uint32_t tag_insert(uint8_t *frame, const struct capture_packet *packet,
		    uint32_t snap_length)
{
	const uint8_t *bytes = (const uint8_t *)(packet + 1);
	uint8_t *tag = frame + TAG_AT;

	if (packet->captured < TAG_AT) {
		memcpy(frame, bytes, packet->captured);
		return packet->captured;
	}
	memcpy(frame, bytes, TAG_AT);
	memcpy(tag, &packet->vlan_type, sizeof(packet->vlan_type));
	tag[2] = packet->vlan_tci >> 8;
	tag[3] = packet->vlan_tci;
	memcpy(tag + TAG_LEN, bytes + TAG_AT, packet->captured - TAG_AT);
	return min_u64(packet->captured + TAG_LEN, snap_length);
}
