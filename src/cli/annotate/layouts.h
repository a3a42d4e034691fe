/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* How records of netobs and of other programs name the ends and times of a flow, in JSON. */
#ifndef NETOBS_CLI_ANNOTATE_LAYOUTS_H
#define NETOBS_CLI_ANNOTATE_LAYOUTS_H

#include <stdbool.h>

#include "flow_face.h"

/**
 * Read a record of any layout.
 *
 * @param ret_span  untouched if it has no time
 * @return false: it has no addresses or no protocol in a known layout, several addresses, protocols
 *         or ports, or what is none; *ret_face has no meaning
 */
bool layout_read(struct json_value record, struct flow_face *ret_face,
		 struct flow_span *ret_span);

/** Read a record of netobs. The rest is as above. */
bool layout_read_netobs(struct json_value record, struct flow_face *ret_face,
			struct flow_span *ret_span);

#endif
