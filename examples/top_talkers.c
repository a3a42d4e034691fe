/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * top_talkers [INTERFACE]...: each interval, the ten clients and services with most bytes.
 * cc top_talkers.c -o top_talkers $(pkg-config --cflags --libs libnetobs)
 */
#include <errno.h>
#include <netobs/group.h>
#include <netobs/netobs.h>
#include <signal.h>
#include <stdio.h>

static struct netobs *netobs;
static struct netobs_groups *groups;
static struct netobs_names *names;

static void stop(int number)
{
	(void)number;
	netobs_stop(netobs);
}

static void add_flow(const struct netobs_record *record, void *user)
{
	(void)user;
	netobs_groups_add(groups, (const struct netobs_flow *)record);
}

static void print_top(void *user)
{
	char client[NETOBS_GROUP_TEXT_MAX], service[NETOBS_GROUP_TEXT_MAX];
	NETOBS_OPTS(netobs_groups_top, top, .most = 10);
	const int n = netobs_groups_top(groups, &top);

	(void)user;
	for (int i = 0; i < n; i++) {
		const struct netobs_group *row = netobs_groups_row(groups, i);

		netobs_group_text(groups, row, 0, names, client, sizeof(client));
		netobs_group_text(groups, row, 1, names, service,
				  sizeof(service));
		printf("%12llu  %s -> %s\n", (unsigned long long)row->sum.bytes,
		       client, service);
	}
	printf("%12llu  others\n%12llu  in all\n\n",
	       (unsigned long long)top.others.bytes,
	       (unsigned long long)top.total.bytes);
	netobs_groups_clear(groups);
}

int main(int argc, char **argv)
{
	NETOBS_OPTS(netobs_groups_opts, by, .keys = "client,service");
	NETOBS_OPTS(netobs_opts, opts, .on_record = add_flow,
		    .on_interval = print_top);
	int ret;

	opts.interfaces = argc > 1 ? (const char *const *)argv + 1 : NULL;
	if (netobs_names_new(NULL, &names) < 0 ||
	    netobs_groups_new(&by, &groups) < 0 ||
	    netobs_new(&opts, &netobs) < 0 || netobs_start(netobs) < 0)
		return fprintf(stderr, "top_talkers: netobs cannot start\n"), 1;
	signal(SIGINT, stop);
	setlinebuf(stdout);
	do
		ret = netobs_poll(netobs, -1);
	while (ret >= 0 || ret == -EINTR);
	netobs_free(netobs);
	netobs_groups_free(groups);
	netobs_names_free(names);
	return ret == -ECANCELED ? 0 : 1;
}
