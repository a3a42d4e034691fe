/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "bench.h"

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
};

struct processes {
	struct process *list;
	size_t n, room;
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

static void add_process(struct processes *all, const char *pid)
{
	if (all->n == all->room) {
		size_t room = all->room * 2 + 256;
		void *list = realloc(all->list, room * sizeof(*all->list));

		if (!list)
			return;
		all->list = list;
		all->room = room;
	}
	all->n += read_process(pid, &all->list[all->n]);
}

static struct processes read_processes(void)
{
	struct processes all = { 0 };
	DIR *proc = opendir("/proc");
	const struct dirent *entry;

	while (proc && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			add_process(&all, entry->d_name);
	if (proc)
		closedir(proc);
	return all;
}

static bool is_own(const struct processes *all, size_t n_own,
		   const struct process *one)
{
	for (size_t i = 0; i < n_own; i++)
		if (all->list[i].pid == one->parent)
			return true;
	return one->pid == getpid();
}

/* Puts them first. A child may be listed before its parent: so until no more are found. */
static size_t find_own(struct processes *all)
{
	size_t n_own = 0, before;

	do {
		before = n_own;
		for (size_t i = n_own; i < all->n; i++) {
			struct process one = all->list[i];

			if (!is_own(all, n_own, &one))
				continue;
			all->list[i] = all->list[n_own];
			all->list[n_own++] = one;
		}
	} while (n_own > before);
	return n_own;
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

	for (size_t i = find_own(&all); i < all.n; i++)
		if (!(all.list[i].flags & PF_KTHREAD))
			ticks += all.list[i].ticks;
	free(all.list);
	return (double)ticks / sysconf(_SC_CLK_TCK);
}
