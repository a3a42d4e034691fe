/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Single values of records, in JSON. Each function leaves its result untouched where it fails. */
#ifndef NETOBS_CLI_ANNOTATE_FLOW_FIELDS_H
#define NETOBS_CLI_ANNOTATE_FLOW_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_reader.h"

/**
 * Read a whole number without sign or exponent; "7.0" is 7.
 *
 * @return false: it is another, greater than @most, or no number
 */
bool flow_number_read(struct json_value value, uint64_t most,
		      uint64_t *ret_number);

/** @return false: it is no text of an IPv4 or IPv6 address */
bool flow_address_read(struct json_value value, uint8_t ret_ip[16]);

#endif
