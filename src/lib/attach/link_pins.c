/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "attach.h"

#include "base/util.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 80, PATH_MAX_BYTES = 128 };

/* ---- Names ----------------------------------------------------------------------- */

static const char *const ways[] = { [INGRESS] = "in", [EGRESS] = "out" };

static void format_name(const struct link_pin *pin, char name[NAME_MAX_BYTES])
{
	const struct clsact_filter *filter = &pin->hook.filter;
	int len = snprintf(name, NAME_MAX_BYTES, "%u-%u-%s", pin->netns,
			   pin->ifindex, ways[pin->direction]);

	if (filter->priority)
		snprintf(name + len, NAME_MAX_BYTES - len, "-%u-%u-%u",
			 filter->priority, filter->handle, filter->program_id);
}

/* @return whether it is a name of a pin */
static bool parse_name(const char *name, struct link_pin *ret_pin)
{
	struct link_pin pin = { .hook = HOOK_NONE };
	struct clsact_filter *filter = &pin.hook.filter;
	char way[4];
	int n = sscanf(name, "%u-%u-%3[a-z]-%u-%u-%u", &pin.netns, &pin.ifindex,
		       way, &filter->priority, &filter->handle,
		       &filter->program_id);

	if (n != 3 && n != 6)
		return false;
	pin.direction = !strcmp(way, ways[EGRESS]) ? EGRESS : INGRESS;
	*ret_pin = pin;
	return true;
}

/* The path goes by the descriptor, so that the thread needs none to the directory. */
static void format_path(const struct shared_fd *pins,
			const struct link_pin *pin, char path[PATH_MAX_BYTES])
{
	char name[NAME_MAX_BYTES];

	format_name(pin, name);
	snprintf(path, PATH_MAX_BYTES, "/proc/self/fd/%d/%s",
		 shared_fd_get(pins), name);
}

/* ---- Pins ------------------------------------------------------------------------ */

static struct link_pin pin_of(uint16_t netns, uint32_t ifindex, int direction,
			      const struct hook *hook)
{
	return (struct link_pin){ netns, ifindex, direction, *hook };
}

static int pin_hook(const struct shared_fd *pins, const struct link_pin *pin)
{
	const struct hook *hook = &pin->hook;
	char path[PATH_MAX_BYTES];
	int err;

	format_path(pins, pin, path);
	err = bpf_obj_pin(
		hook->link_fd >= 0 ? hook->link_fd : hook->filter.jump_fd, path);
	return err == -EEXIST ? 0 : err;
}

void link_pins_remove_one(const struct shared_fd *pins, const struct link_pin *pin)
{
	char name[NAME_MAX_BYTES];

	format_name(pin, name);
	unlinkat(shared_fd_get(pins), name, 0);
}

int link_pins_add(const struct shared_fd *pins, uint16_t netns,
		  uint32_t ifindex, const struct attachment *attachment)
{
	int err = 0;

	for (int d = INGRESS; pins && d <= EGRESS; d++) {
		struct link_pin pin =
			pin_of(netns, ifindex, d, &attachment->hooks[d]);

		if (!err && hook_is_attached(&pin.hook))
			err = pin_hook(pins, &pin);
	}
	return err;
}

void link_pins_remove(const struct shared_fd *pins, uint16_t netns,
		      uint32_t ifindex, const struct attachment *attachment)
{
	const struct attachment none = ATTACHMENT_NONE;

	link_pins_remove_others(pins, netns, ifindex, attachment, &none);
}

void link_pins_remove_others(const struct shared_fd *pins, uint16_t netns,
			     uint32_t ifindex, const struct attachment *before,
			     const struct attachment *now)
{
	for (int d = INGRESS; pins && d <= EGRESS; d++) {
		struct link_pin pin =
			pin_of(netns, ifindex, d, &before->hooks[d]);

		if (hook_is_attached(&pin.hook) &&
		    !hook_is_attached(&now->hooks[d]))
			link_pins_remove_one(pins, &pin);
	}
}

/* @return 0, or -errno */
static int open_pin(const struct shared_fd *pins, const char *name,
		    struct link_pin *ret_pin)
{
	char path[PATH_MAX_BYTES];
	int fd;

	if (!parse_name(name, ret_pin))
		return -EINVAL;
	format_path(pins, ret_pin, path);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return fd;
	if (ret_pin->hook.filter.priority)
		ret_pin->hook.filter.jump_fd = fd;
	else
		ret_pin->hook.link_fd = fd;
	return 0;
}

int link_pins_each(const struct shared_fd *pins,
		   void (*on_pin)(void *ctx, struct link_pin *pin), void *ctx)
{
	int n = 0, fd = openat(shared_fd_get(pins), ".",
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int denied = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		struct link_pin pin = { .hook = HOOK_NONE };
		int err;

		if (entry->d_name[0] == '.')
			continue;
		err = open_pin(pins, entry->d_name, &pin);
		if (err == -EPERM || err == -EACCES)
			denied = err;
		if (err)
			continue;
		n++;
		on_pin(ctx, &pin);
		close_fd(&pin.hook.link_fd);
		close_fd(&pin.hook.filter.jump_fd);
	}
	closedir(dir);
	return denied ?: n;
}
