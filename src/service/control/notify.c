/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "control.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock_ms.h"
#include "base/options.h"

/* @return the length of the address; 0: no address */
static socklen_t read_address(struct sockaddr_un *ret_address)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	if (len < 2 || len >= sizeof(ret_address->sun_path) ||
	    (*path != '/' && *path != '@'))
		return 0;
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret_address->sun_path, path, len);
	if (*path == '@') /* in the abstract namespace */
		ret_address->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static void send_lines(const char *format, va_list args, int flags)
{
	const struct timeval patience = { .tv_sec = 1 };
	struct sockaddr_un address;
	const socklen_t address_len = read_address(&address);
	cleanup_fd int fd = -1;
	char text[512];

	if (!address_len)
		return;
	vsnprintf(text, sizeof(text), format, args);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	sendto(fd, text, strlen(text), MSG_NOSIGNAL | flags,
	       (const struct sockaddr *)&address, address_len);
}

void notify_send(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	send_lines(format, args, 0);
	va_end(args);
}

void notify_now(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	send_lines(format, args, MSG_DONTWAIT);
	va_end(args);
}

void notify_reloading(void)
{
	notify_send("RELOADING=1\nMONOTONIC_USEC=%lld",
		    (long long)(clock_ns(CLOCK_MONOTONIC) / 1000));
}

uint32_t notify_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t period_us, own;

	if (!usec || value_parse(VALUE_NUMBER, usec, 1, INT64_MAX, &period_us))
		return 0;
	if (pid && (value_parse(VALUE_NUMBER, pid, 1, INT32_MAX, &own) ||
		    own != (uint64_t)getpid()))
		return 0;
	/* Half of it, as sd_watchdog_enabled(3) recommends. */
	return (uint32_t)min_u64(max_u64(period_us / 2000, 1), INT_MAX);
}
