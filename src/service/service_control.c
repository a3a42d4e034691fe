/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service.h"

#include <stdio.h>
#include <string.h>

#include <netobs/netobs.h>

#include "base/options.h"
#include "service/control/control.h"
#include "service/options/args.h"

static void on_reload(void *user)
{
	service_reload(user);
}

static const char *on_metrics(void *user)
{
	struct service *service = user;

	service_refresh_metrics(service);
	return metrics_text(service->metrics);
}

static int on_reopen(void *user)
{
	struct service *service = user;

	return service_sinks_reopen(&service->sinks);
}

static int on_level(const char *level, void *user)
{
	struct service *service = user;
	int choice = value_choice(ARGS_WORDS(CHOICES_log_levels(OPTION_COMMA)),
				  level);

	if (choice >= 0)
		service_log_set_level(service, choice);
	return choice < 0 ? choice : 0;
}

int service_open_control(struct service *service)
{
	static const struct control_ops ops = {
		.add_status = service_status_add,
		.metrics = on_metrics,
		.request_reload = on_reload,
		.reopen = on_reopen,
		.set_level = on_level,
		.mappings = service_mappings_add,
	};
	const char *path = service->config->control;
	int r = control_open(path, &ops, service, &service->control);
	char text[640];

	if (r == 0)
		return 0;
	snprintf(text, sizeof(text), "there is no control socket %s: %s",
		 path ?: CONTROL_SOCKET, strerror(-r));
	service_log(path ? NETOBS_LOG_ERROR : NETOBS_LOG_WARNING, text, service);
	return path ? r : 0;
}
