/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "host.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* "model name\t: AMD EPYC\n" */
static bool take_model(const char *line, char *ret_cpu, size_t size)
{
	const char *value = strchr(line, ':');

	if (strncmp(line, "model name", strlen("model name")) || !value)
		return false;
	value += 1 + strspn(value + 1, " ");
	snprintf(ret_cpu, size, "%.*s", (int)strcspn(value, "\n"), value);
	return true;
}

void host_read(struct machine *ret_host)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[1024];

	uname(&ret_host->kernel);
	/* Not all architectures name the model. */
	snprintf(ret_host->cpu, sizeof(ret_host->cpu), "%s",
		 ret_host->kernel.machine);
	if (!file)
		return;
	while (fgets(line, sizeof(line), file) &&
	       !take_model(line, ret_host->cpu, sizeof(ret_host->cpu)))
		;
	fclose(file);
}
