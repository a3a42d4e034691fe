/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * How OpenSSL uses a socket here: its own way is write(2), which raises SIGPIPE where
 * the other side has gone away, and would end the program.
 */
#ifndef NETOBS_SINKS_NET_TLS_BIO_H
#define NETOBS_SINKS_NET_TLS_BIO_H

#include <openssl/bio.h>

struct tls;

/* To be freed by BIO_meth_free(). NULL: no memory. */
BIO_METHOD *tls_bio_method(void);

/* Over @tls->fd, which stays open; a failure is left in @tls->error. */
BIO *tls_bio_new(const BIO_METHOD *method, struct tls *tls);

#endif
