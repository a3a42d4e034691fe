// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "attach.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static const char knob[] = "/sys/kernel/rcu_expedited";

/* "nobs" in ASCII: any number but 0 means yes. */
static const char mark[] = "1852793459";

static int open_knob(void)
{
	return open(knob, O_RDWR | O_CLOEXEC);
}

int expedite_probe(void)
{
	cleanup_fd int fd = open_knob();

	return fd < 0 ? -errno : 0;
}

static void replace_text(const char *from, const char *to)
{
	cleanup_fd int fd = open_knob();
	char now[16] = "";
	ssize_t len;

	if (fd < 0)
		return;
	len = pread(fd, now, sizeof(now) - 1, 0);
	if (len <= 0)
		return;
	now[strcspn(now, "\n")] = '\0';
	if (!strcmp(now, from))
		(void)!pwrite(fd, to, strlen(to), 0);
}

void expedite_begin(void)
{
	replace_text("0", mark);
}

void expedite_end(void)
{
	replace_text(mark, "0");
}
