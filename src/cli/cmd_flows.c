/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/flows/flows_request.h"
#include "service/observe/flows_config.h"
#include "service/text/human.h"

#include "base/text.h"

/* Pairs of name and altname, each with its NUL. */
static void write_altname(const char *name, const char *altname, void *stream)
{
	fprintf(stream, "%s%c%s%c", name, '\0', altname, '\0');
}

/* @return with an empty name at the end; NULL: no memory */
static char *list_altnames(void)
{
	size_t size;
	char *pairs = NULL;
	FILE *stream = open_memstream(&pairs, &size);

	if (!stream)
		return NULL;
	altnames_each(write_altname, stream);
	fclose(stream);
	return pairs;
}

static void print_altnames(const char *pairs, const char *name)
{
	const char *separator = "; also ";

	for (const char *altname; pairs && *pairs;
	     pairs = altname + strlen(altname) + 1) {
		char text[128]; /* ALTIFNAMSIZ */

		altname = pairs + strlen(pairs) + 1;
		if (strcmp(pairs, name))
			continue;
		snprintf(text, sizeof(text), "%s", altname);
		safe_cell(text);
		printf("%s%s", separator, text);
		separator = ", ";
	}
}

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

/* Print the interfaces that -i can name. @return 0 or -errno */
static int print_interfaces(void)
{
	struct if_nameindex *all = if_nameindex();
	char *altnames;
	int fd;

	if (!all)
		return -errno;
	altnames = list_altnames();
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (const struct if_nameindex *i = all; i->if_index; i++) {
		char name[IF_NAMESIZE];

		snprintf(name, sizeof(name), "%s", i->if_name);
		safe_cell(name);
		printf("%-15s  %s", name, describe_state(fd, i->if_name));
		print_altnames(altnames, i->if_name);
		putchar('\n');
	}
	if (fd >= 0)
		close(fd);
	if_freenameindex(all);
	free(altnames);
	print_namespaces();
	return 0;
}

static int list_interfaces(void)
{
	int r = print_interfaces();

	if (r == 0)
		return EXIT_FINE;
	fprintf(stderr, "netobsctl flows: cannot list interfaces: %s\n",
		strerror(-r));
	return EXIT_FAILED;
}

int cmd_flows(int argc, char **argv)
{
	struct flows_request request = { .command = &flows_command };
	enum args_result result =
		args_parse(&flows_command, argc, argv, &request);
	int status;

	if (result == ARGS_RUN) {
		request.has_screen = !request.files.n && !request.live;
		result = flows_request_finish(&request);
	}
	status = result;
	if (result == ARGS_RUN)
		status = request.list ? list_interfaces() :
			 request.live ? flows_live(&request) :
					flows_session(&request);
	flows_request_clear(&request);
	return status;
}
