// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "pbflow.h"

#include "sink/host_fields.h"

void pbflow_read_options(struct spec *spec, struct pbflow_options *options)
{
	*options = (struct pbflow_options){ 0 };
	agent_read_address(spec, options->agent_ip);
}
