/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * TLS for a listening socket whose clients must have certificates, in a shared object, so
 * that netobsctl needs OpenSSL only for that. Sockets are not waited for.
 */
#ifndef NETOBS_SERVICE_TLS_TLS_MODULE_H
#define NETOBS_SERVICE_TLS_TLS_MODULE_H

#include "base/shared_object.h"

#include <stdbool.h>
#include <sys/types.h>

#define TLS_MODULE_SYMBOL "netobs_tls"
extern const struct tls_module netobs_tls;

struct tls_context;
struct tls;

struct tls_module {
	struct loaded loaded;

	/**
	 * Read the files: the certificates of authorities, the own certificate and its key.
	 *
	 * @param ret_context  yours: close()
	 * @return 0; -ENOMEM; -EINVAL: @why says what is wrong with a file
	 */
	int (*open)(const char *ca, const char *cert, const char *key,
		    struct tls_context **ret_context, char *why, size_t why_size);
	void (*close)(struct tls_context *context); /* NULL is fine */

	/**
	 * Read the files again if they have changed, as accept() does, or if @is_forced.
	 *
	 * @return 0; -EINVAL: fault() says why they cannot be used
	 */
	int (*refresh)(struct tls_context *context, bool is_forced);

	/**
	 * Why the files cannot be used, so that the previous ones stay in use; "": they can.
	 * Valid until the next refresh() or accept().
	 */
	const char *(*fault)(const struct tls_context *context);

	/**
	 * Begin a connection on @fd, which stays the caller's, with the files as they are
	 * now: certificates are renewed while programs run.
	 *
	 * @param ret_tls  yours: stop(), before @fd is closed
	 * @return 0, or -ENOMEM
	 */
	int (*accept)(struct tls_context *context, int fd, struct tls **ret_tls);

	/** @return 0: the client is the one it claims to be; -EAGAIN; others: refused */
	int (*handshake)(struct tls *tls, const struct tls_context *context);

	/** Why the last call that failed did. */
	const char *(*reason)(const struct tls *tls);

	/** @return whether the last -EAGAIN is over when the socket can be written to */
	bool (*wants_out)(const struct tls *tls);

	/** @return bytes; -EAGAIN; 0 at the end of read(); others: it failed */
	ssize_t (*read)(struct tls *tls, void *to, size_t len);
	ssize_t (*write)(struct tls *tls, const void *from, size_t len);

	void (*stop)(struct tls *tls); /* NULL is fine */
};

#endif
