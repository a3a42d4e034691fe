// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * How OpenSSL uses a socket here: its own way is write(2), which raises SIGPIPE where
 * the other side has gone away, and would end the program.
 */
#include "tls.h"

#include "tcp.h"

#include <errno.h>

static int finish_io(BIO *bio, struct tls *tls, ssize_t n, int retry)
{
	BIO_clear_retry_flags(bio);
	if (n >= 0)
		return (int)n;
	if (n == -EAGAIN)
		BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
	else
		tls->error = (int)-n;
	return -1;
}

static int write_bytes(BIO *bio, const char *from, int len)
{
	struct tls *tls = BIO_get_data(bio);

	return finish_io(bio, tls, tcp_write(tls->fd, from, (size_t)len),
			 BIO_FLAGS_WRITE);
}

static int read_bytes(BIO *bio, char *to, int len)
{
	struct tls *tls = BIO_get_data(bio);

	return finish_io(bio, tls, tcp_read(tls->fd, to, (size_t)len),
			 BIO_FLAGS_READ);
}

/* Nothing is kept back, so there is nothing to flush. */
static long control_bio(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *tls_bio_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "netobs socket");

	if (!method)
		return NULL;
	BIO_meth_set_write(method, write_bytes);
	BIO_meth_set_read(method, read_bytes);
	BIO_meth_set_ctrl(method, control_bio);
	return method;
}

BIO *tls_bio_new(const BIO_METHOD *method, struct tls *tls)
{
	BIO *bio = BIO_new(method);

	if (!bio)
		return NULL;
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	return bio;
}
