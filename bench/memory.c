/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The number after "@name:" in a file of such lines; 0 when there is none. */
static uint64_t read_field(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	unsigned long long value = 0;
	char line[256];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		size_t len = strlen(name);

		if (!strncmp(line, name, len) && line[len] == ':') {
			sscanf(line + len + 1, "%llu", &value);
			break;
		}
	}
	fclose(file);
	return value;
}

uint64_t memory_rss(void)
{
	return read_field("/proc/self/status", "VmRSS") << 10;
}

uint64_t memory_rss_peak(void)
{
	return read_field("/proc/self/status", "VmHWM") << 10;
}

void memory_reset_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* 5: proc(5). Without it, the peak is that of the process so far. */
	if (write(fd, "5", 1) < 0)
		fputs("netobsctl bench: cannot reset the peak of memory\n",
		      stderr);
	close(fd);
}

uint64_t memory_maps(void)
{
	DIR *directory = opendir("/proc/self/fdinfo");
	uint64_t sum = 0;
	struct dirent *entry;

	if (!directory)
		return 0;
	while ((entry = readdir(directory))) {
		char path[300];

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s",
			 entry->d_name);
		/* Programs have a memlock line as well. */
		if (read_field(path, "map_type"))
			sum += read_field(path, "memlock");
	}
	closedir(directory);
	return sum;
}
