/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "tls_module.h"

#include "sinks/net/tls.h"

#include <errno.h>
#include <netobs/version.h>
#include <stdio.h>
#include <stdlib.h>

static void close_context(struct tls_context *context)
{
	if (context)
		tls_context_close(context);
	free(context);
}

static int open_context(const char *ca, const char *cert, const char *key,
			struct tls_context **ret_context, char *why,
			size_t why_size)
{
	struct tls_context *context = calloc(1, sizeof(*context));
	int err = context ? tls_context_listen(context, ca, cert, key) : -ENOMEM;

	if (err) {
		if (err == -EINVAL)
			snprintf(why, why_size, "%s", context->files->error);
		close_context(context);
		return err;
	}
	*ret_context = context;
	return 0;
}

static int refresh_context(struct tls_context *context, bool is_forced)
{
	if (is_forced)
		context->files->stamp = 0;
	return tls_context_refresh(context);
}

static const char *context_fault(const struct tls_context *context)
{
	return context->files->error;
}

static int accept_tls(struct tls_context *context, int fd, struct tls **ret_tls)
{
	struct tls *tls = calloc(1, sizeof(*tls));
	int err;

	if (!tls)
		return -ENOMEM;
	tls_context_refresh(context);
	err = tls_start(tls, context, fd);
	if (err) {
		free(tls);
		return err;
	}
	*ret_tls = tls;
	return 0;
}

static const char *tls_reason(const struct tls *tls)
{
	return tls->reason;
}

static bool tls_wants_out(const struct tls *tls)
{
	return tls->wants_out;
}

static void stop_tls(struct tls *tls)
{
	if (tls)
		tls_stop(tls);
	free(tls);
}

__attribute__((visibility("default"))) const struct tls_module netobs_tls = {
	.loaded = { NETOBS_VERSION },
	.open = open_context,
	.close = close_context,
	.refresh = refresh_context,
	.fault = context_fault,
	.accept = accept_tls,
	.handshake = tls_handshake,
	.reason = tls_reason,
	.wants_out = tls_wants_out,
	.read = tls_read,
	.write = tls_write,
	.stop = stop_tls,
};
