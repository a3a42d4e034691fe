// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "grpc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* With options for it, TLS need not be asked for. */
static bool wants_tls(struct spec *spec)
{
	static const char *const choices[] = { "no", "yes", NULL };
	bool has_options = tls_has_options(spec);
	bool wants = spec_choice(spec, "tls", choices, has_options);

	if (!wants)
		tls_refuse_options(spec);
	return wants;
}

static void read_tls(struct grpc_options *options, struct spec *spec,
		     struct tls_context *context)
{
	if (!wants_tls(spec) || spec->is_wrong)
		return;
	if (!tls_context_open(context, spec,
			      options->session.stream.address.host, "h2"))
		options->session.stream.tls = context;
}

int grpc_options_read(struct grpc_options *options,
		      const struct message_kind *kind, struct spec *spec,
		      uint32_t types, struct tls_context *context)
{
	struct session_options *session = &options->session;

	*options = (struct grpc_options){
		.session.path = kind->choose_method(spec, types),
		.kind = kind,
	};
	address_parse(spec, spec->target, kind->port, &session->stream.address);
	kind->read_options(spec, &options->message, types);
	options->batch_bytes =
		spec_size(spec, "batch_bytes", 64 << 10, 4 << 20, 1 << 20);
	options->batch_delay_ms = (uint32_t)spec_duration_ms(spec, "batch_delay",
							     0, 60 * 1000, 1000);
	options->calls = kind->read_answer ? 1 : GRPC_CALLS_MAX;
	options->deadline_ms = (uint32_t)spec_duration_ms(
		spec, "deadline", 100, 10 * 60 * 1000, 5 * 1000);
	read_tls(options, spec, context);
	return spec_finish(spec);
}
