// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Apart from tcp.c, because libc's <netinet/tcp.h> has a tcp_info without windows. */
#include "tcp.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>

/* What the window scale may be at most, and is taken for where there is none. */
enum { SCALE_MAX = 14 };

/*
 * A host chooses the scale when the connection is made, so that it can announce a window
 * as large as its settings may ever let the receive buffer grow: RFC 7323, 2.3. Linux
 * looks at net.ipv4.tcp_rmem, net.core.rmem_max and SO_RCVBUF then, in
 * tcp_select_initial_window(), and lets a buffer hold up to twice as much as that:
 * SO_RCVBUF is doubled. Without a scale, windows say nothing about the buffer.
 */
static uint64_t largest_buffer(const struct tcp_info *info)
{
	bool has_scale = info->tcpi_options & TCPI_OPT_WSCALE;
	unsigned int scale = has_scale ? info->tcpi_snd_wscale : SCALE_MAX;

	return 2ULL << (16 + scale);
}

int tcp_look(int fd, struct tcp_peer *ret_peer)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return -errno;
	*ret_peer = (struct tcp_peer){
		.window = info.tcpi_snd_wnd, /* Linux 5.4 */
		.largest_buffer = largest_buffer(&info),
		.is_silent = info.tcpi_retransmits || info.tcpi_probes,
		.silent_ms = info.tcpi_last_ack_recv,
	};
	return 0;
}
