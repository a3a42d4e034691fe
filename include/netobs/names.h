/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file names.h
 * Names of hosts and services, for programs that must not wait for them. A question is
 * answered at once, with the number as long as the name is not known. Up to four threads
 * look names up, which may take long; netobs_names_fd() is readable once some have come.
 * The threads block all signals and end by themselves after netobs_names_free().
 *
 * Names are kept for 10 minutes, up to 4096 of them; older ones give way. Names may be used
 * by several threads at once, except netobs_names_free().
 */
#ifndef NETOBS_NAMES_H
#define NETOBS_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs_names;

/** Enough for any name or number, with its NUL; longer names are cut. */
#define NETOBS_NAME_MAX 64

/** Options for netobs_names_new(). Zero means "default" for every field. */
struct netobs_names_opts {
	size_t sz; /**< sizeof(struct netobs_names_opts) */
	/**
	 * Look up a name; default: getnameinfo(3) and getservbyport(3), which follow
	 * nsswitch.conf(5). It is called by several threads at once, and may wait. One that
	 * runs while netobs_names_free() is called goes on until it returns.
	 *
	 * @param addr      16 bytes in network byte order, IPv4 as ::ffff:a.b.c.d; NULL: the
	 *                  question is the name of a port
	 * @param port      a port
	 * @param proto     its IP protocol
	 * @param ret_name  filled and NUL-terminated; characters that are not printable ASCII
	 *                  are replaced afterwards
	 * @param size      of @p ret_name, NETOBS_NAME_MAX
	 * @return 0; < 0: it has no name
	 */
	int (*look_up)(const uint8_t *addr, uint16_t port, uint8_t proto,
		       char *ret_name, size_t size, void *user);
	void *user; /**< passed back to it */
};

/**
 * Begin to look up names.
 *
 * @param opts       NULL: defaults
 * @param ret_names  the caller frees them by netobs_names_free()
 * @return 0; -EINVAL: @p ret_names is NULL, or @p opts has a size that cannot be, or options
 *         that the library does not know; -ENOMEM, -EMFILE, -EAGAIN: no memory, descriptor or
 *         thread
 */
NETOBS_API int netobs_names_new(const struct netobs_names_opts *opts,
				struct netobs_names **ret_names);

/**
 * Write the name of a host if it is known, else its address, and look up the name.
 *
 * @param names  NULL: addresses only
 * @param addr   16 bytes as in records
 * @param buf    filled and NUL-terminated; longer names are cut
 * @param size   of @p buf
 * @return 1: it is a name; 0: it is the address; -EINVAL: @p addr or @p buf is NULL, or
 *         @p size is 0
 */
NETOBS_API int netobs_names_host(struct netobs_names *names,
				 const uint8_t addr[16], char *buf, size_t size);

/**
 * Get the name of a port: "https", or "443" if it has none.
 *
 * @param proto  its IP protocol, 6 for TCP
 * @return as netobs_names_host()
 */
NETOBS_API int netobs_names_port(struct netobs_names *names, uint16_t port,
				 uint8_t proto, char *buf, size_t size);

/**
 * @return a descriptor for poll(2), which is readable once names have come; -EINVAL: @p names is
 *         NULL
 */
NETOBS_API int netobs_names_fd(const struct netobs_names *names);

/**
 * Take notice of the names that have come: the descriptor is not readable until more do.
 *
 * @param timeout_ms  how long to wait until all questions so far are answered; 0: not at all
 * @return 1: they are; 0: some are not; -EINVAL: @p names is NULL
 */
NETOBS_API int netobs_names_poll(struct netobs_names *names, int timeout_ms);

/** Free the names, without waiting for the threads. NULL is fine. */
NETOBS_API void netobs_names_free(struct netobs_names *names);

#ifdef __cplusplus
}
#endif

#endif
