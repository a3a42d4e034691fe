/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "bench.h"

#include "base/util.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PF_KTHREAD = 0x200000 }; /* linux/sched.h */

struct process {
	int pid, parent;
	unsigned int flags;
	unsigned long ticks; /* with children that have ended */
	bool is_own;
};

struct processes {
	struct process *list;
	uint32_t n, room;
};

/* proc(5): fields follow the name, which may have spaces and brackets. */
static bool read_process(const char *pid, struct process *ret_process)
{
	unsigned long user, system, children_user, children_system;
	char path[64], line[1024], *fields = NULL;
	struct process process = { .pid = atoi(pid) };
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", process.pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fgets(line, sizeof(line), file))
		fields = strrchr(line, ')');
	fclose(file);
	if (!fields ||
	    sscanf(fields,
		   ") %*c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %lu %lu %lu %lu",
		   &process.parent, &process.flags, &user, &system,
		   &children_user, &children_system) != 6)
		return false;
	process.ticks = user + system + children_user + children_system;
	*ret_process = process;
	return true;
}

static struct processes read_processes(void)
{
	struct processes all = { 0 };
	DIR *proc = opendir("/proc");
	const struct dirent *entry;

	while (proc && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    array_reserve(&all.list, all.n, &all.room,
				  sizeof(*all.list), 256))
			all.n += read_process(entry->d_name, &all.list[all.n]);
	if (proc)
		closedir(proc);
	return all;
}

/* This process, or a child of one that is known to be its own. */
static bool find_own(const struct processes *all, const struct process *one)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->list[i].is_own && all->list[i].pid == one->parent)
			return true;
	return one->pid == getpid();
}

/* A child may be listed before its parent: so until no more are found. */
static void mark_own(const struct processes *all)
{
	uint32_t found;

	do {
		found = 0;
		for (uint32_t i = 0; i < all->n; i++)
			if (!all->list[i].is_own && find_own(all, &all->list[i])) {
				all->list[i].is_own = true;
				found++;
			}
	} while (found);
}

static unsigned long read_steal(void)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long steal = 0;

	if (!file)
		return 0;
	if (fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %lu", &steal) != 1)
		steal = 0;
	fclose(file);
	return steal;
}

double others_cpu_seconds(void)
{
	struct processes all = read_processes();
	unsigned long ticks = read_steal();

	mark_own(&all);
	for (uint32_t i = 0; i < all.n; i++)
		if (!all.list[i].is_own && !(all.list[i].flags & PF_KTHREAD))
			ticks += all.list[i].ticks;
	free(all.list);
	return (double)ticks / sysconf(_SC_CLK_TCK);
}
