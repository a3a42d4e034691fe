/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "interfaces.h"

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service/text/human.h"

static const char *describe_state(int fd, const char *name)
{
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		return "gone";
	if (!(request.ifr_flags & IFF_UP))
		return "down";
	return request.ifr_flags & IFF_RUNNING ? "up" : "up, no carrier";
}

static void print_namespaces(void)
{
	DIR *directory = opendir("/run/netns");
	const struct dirent *entry;

	if (!directory)
		return;
	while ((entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			printf("netns:%s/...\n", entry->d_name);
	closedir(directory);
}

int interfaces_print(void)
{
	struct if_nameindex *all = if_nameindex();
	int fd;

	if (!all)
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (const struct if_nameindex *i = all; i->if_index; i++) {
		char name[IF_NAMESIZE];

		snprintf(name, sizeof(name), "%s", i->if_name);
		human_clean(name);
		printf("%-15s  %s\n", name, describe_state(fd, i->if_name));
	}
	if (fd >= 0)
		close(fd);
	if_freenameindex(all);
	print_namespaces();
	return 0;
}
