/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Messages of a service: to standard error, and to clients that wait for a reload. */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <netobs/netobs.h>

#include "base/text.h"
#include "service/control/control.h"

bool service_log_is_journal(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat found;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       fstat(fd, &found) == 0 && found.st_dev == device &&
	       found.st_ino == inode;
}

/* Indexed by choices of log_level. */
static const int log_levels[] = { NETOBS_LOG_ERROR, NETOBS_LOG_WARNING,
				  NETOBS_LOG_INFO, NETOBS_LOG_DEBUG };

void service_log_set_level(struct service *service, int choice)
{
	service->log_level = choice < 0 ? NETOBS_LOG_WARNING : log_levels[choice];
}

void service_log(int level, const char *message, void *user)
{
	struct service *service = user;
	const struct service_config *config = service->next ?: service->config;
	char text[4096], prefix[16] = "";

	service->metrics_source.errors += level <= NETOBS_LOG_ERROR;
	service->metrics_source.warnings += level == NETOBS_LOG_WARNING;
	if (level > service->log_level && level > NETOBS_LOG_WARNING)
		return;
	if (!config || !service_config_place(config, message, text, sizeof(text)))
		snprintf(text, sizeof(text), "%s", message);
	safe_cell(text);
	control_note(service->control, level, text);
	if (level > service->log_level)
		return;
	if (service->has_levels)
		snprintf(prefix, sizeof(prefix), "<%d>", level);
	fprintf(stderr, "%snetobsctl run: %s%s\n", prefix,
		level == NETOBS_LOG_WARNING ? "warning: " : "", text);
}

void service_log_error(const char *message, void *service)
{
	service_log(NETOBS_LOG_ERROR, message, service);
}

void service_log_warning(const char *message, void *service)
{
	service_log(NETOBS_LOG_WARNING, message, service);
}
