// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Apart from tcp.c, because libc's <netinet/tcp.h> has a tcp_info without windows. */
#include "tcp.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>

int tcp_look(int fd, struct tcp_peer *ret_peer)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return -errno;
	*ret_peer = (struct tcp_peer){
		.window = info.tcpi_snd_wnd, /* Linux 5.4 */
		.is_silent = info.tcpi_retransmits || info.tcpi_probes,
		.silent_ms = info.tcpi_last_ack_recv,
	};
	return 0;
}
