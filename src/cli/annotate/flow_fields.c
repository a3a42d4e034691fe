/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flow_face.h"

#include <arpa/inet.h>
#include <string.h>

#include <netobs/flow.h>

bool flow_number_read(struct json_value value, uint64_t most, uint64_t *ret_number)
{
	const size_t len = json_length(value);
	const uint64_t number = json_number(value);
	size_t read = 0;

	while (read < len && value.at[read] >= '0' && value.at[read] <= '9')
		read++;
	if (!read || number > most)
		return false;
	if (read < len && value.at[read] == '.')
		do {
			read++;
		} while (read < len && value.at[read] == '0');
	if (read < len)
		return false;
	*ret_number = number;
	return true;
}

bool flow_address_read(struct json_value value, uint8_t ret_ip[16])
{
	static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };
	char text[NETOBS_ADDR_STR_MAX];
	uint8_t v4[4];

	json_text(value, text, sizeof(text));
	if (inet_pton(AF_INET6, text, ret_ip) == 1)
		return true;
	if (inet_pton(AF_INET, text, v4) != 1)
		return false;
	memcpy(ret_ip, v4_prefix, sizeof(v4_prefix));
	memcpy(ret_ip + sizeof(v4_prefix), v4, sizeof(v4));
	return true;
}
