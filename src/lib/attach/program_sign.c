// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "shadow.h"

#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Make an abstract address. @return its length, which ends the name: unix(7) */
static socklen_t name_of(uint32_t program_id, struct sockaddr_un *ret_address)
{
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
	       (socklen_t)snprintf(ret_address->sun_path + 1,
				   sizeof(ret_address->sun_path) - 1,
				   "netobs/program/%u", program_id);
}

static int open_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

int program_sign_open(int program_fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	cleanup_fd int fd = -1;
	struct sockaddr_un address;
	socklen_t size;
	int err = bpf_obj_get_info_by_fd(program_fd, &info, &len);

	if (err)
		return err;
	fd = open_socket();
	size = name_of(info.id, &address);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, size) ||
	    listen(fd, SOMAXCONN))
		return -errno;
	return TAKE_FD(fd);
}

void program_sign_answer(int sign)
{
	int fd;

	while (sign >= 0 && (fd = accept4(sign, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(fd);
}

bool program_sign_is_there(uint32_t program_id)
{
	cleanup_fd int fd = open_socket();
	struct ucred owner;
	socklen_t len = sizeof(owner), size;
	struct sockaddr_un address;

	if (fd < 0)
		return false;
	size = name_of(program_id, &address);
	return !connect(fd, (const struct sockaddr *)&address, size) &&
	       !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &len) &&
	       (!owner.uid || owner.uid == geteuid());
}
