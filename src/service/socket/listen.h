/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A socket that clients connect to: ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH. */
#ifndef NETOBS_SERVICE_SOCKET_LISTEN_H
#define NETOBS_SERVICE_SOCKET_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct listen {
	int fd;
	char *unix_path; /* path to remove at the end; NULL: TCP */
	dev_t device;	 /* device of the socket's file, and */
	ino_t inode;	 /* its inode there */
};

/** @return why @spec is no address; NULL: it is one */
const char *listen_refuse(const char *spec);

bool listen_is_unix(const char *spec);

/** @return whether only processes of this host can connect */
bool listen_is_local(const char *spec);

/**
 * Listen, in a non-blocking way. A socket in the file system that a killed process left
 * behind is replaced.
 *
 * @param spec  which listen_refuse() has accepted
 * @return 0 or -errno
 */
int listen_open(struct listen *listener, const char *spec);

/* Format the listening address, with the port that the kernel chose for 0. */
void listen_where(const struct listen *listener, char *text, size_t size);

/**
 * Accept a client.
 *
 * @param address  its own, as a text; unchanged for unix sockets
 * @return its socket, non-blocking and the caller's; or -errno: -EAGAIN
 */
int listen_accept(const struct listen *listener, char *address, size_t size);

/* Also removes the socket from the file system, unless it is another's now. */
void listen_close(struct listen *listener);

#endif
