/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The VLAN tag that the kernel keeps beside a frame. */
#ifndef NETOBS_CAPTURE_TAG_H
#define NETOBS_CAPTURE_TAG_H

#include "bpf/capture.h"

#include <stdint.h>

enum { TAG_LEN = 4 };

/**
 * Write the frame of @packet with its tag where that was before the kernel took it out.
 *
 * @param frame  room for it: TAG_LEN bytes more than were captured
 * @return how many bytes of it were captured, up to @snap_length
 */
uint32_t tag_insert(uint8_t *frame, const struct capture_packet *packet,
		    uint32_t snap_length);

#endif
