/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * TLS 1.2 or newer over a socket that is not waited for. A server must have a certificate
 * for its name; the own one is shown if it asks for it.
 */
#ifndef NETOBS_SINKS_NET_TLS_H
#define NETOBS_SINKS_NET_TLS_H

#include "base/spec.h"

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The part that all connections of a sink share. */
struct tls_context {
	BIO_METHOD *method;    /* how the socket is written to and read from */
	char name[256];	       /* name that a server's certificate must have */
	bool is_address;       /* the name is an address */
	char *ca, *cert, *key; /* paths; NULL: none */
	const char *alpn;
	SSL_CTX *ctx; /* the contents of the files, which are read again when they change */
	uint64_t stamp;	 /* stamp of the files when they were read */
	char error[512]; /* the error of the last reading; "": none */
};

/*
 * Options ca, cert, key_file and server_name. @host: the name unless server_name is given; @alpn: a
 * literal, the protocol inside as RFC 7301, 3.1 has it, "\2h2"; NULL: none is named. What is wrong with
 * options and files is said by spec_refuse(). 0, or -errno.
 */
int tls_context_open(struct tls_context *context, struct spec *spec,
		     const char *host, const char *alpn);

/*
 * Before a connection is made: read the files again if they have changed, since
 * certificates are renewed while programs run. -EINVAL: what is read is of no use, as
 * context->error says; what was read before is used.
 */
int tls_context_refresh(struct tls_context *context);

/* For sinks without TLS: refuse the options above. */
void tls_refuse_options(struct spec *spec);

/* @return whether any of them is given */
bool tls_has_options(struct spec *spec);

void tls_context_close(struct tls_context *context);

/* A connection; zeroed: none. */
struct tls {
	SSL *ssl;
	int fd;	   /* borrowed */
	int error; /* error of the socket, as errno */
	int depth; /* depth of the wrong certificate; 0 is the other side's own */
	bool was_asked;	  /* for a certificate, and had none */
	bool wants_out;	  /* no progress until the socket can be written to */
	bool has_read;	  /* something, once */
	bool is_broken;	  /* send nothing more to the other side */
	char reason[512]; /* reason of the last failure */
};

/* Begin a connection on @fd, which stays the caller's. */
int tls_start(struct tls *tls, const struct tls_context *context, int fd);

/* 0: it is done; -EAGAIN; others: it failed, and tls->reason says why. */
int tls_handshake(struct tls *tls, const struct tls_context *context);

/* Bytes, -EAGAIN, 0 from tls_read() at the end; others: it failed, as above. */
ssize_t tls_read(struct tls *tls, void *to, size_t len);
/* After -EAGAIN, the same bytes must come first. */
ssize_t tls_write(struct tls *tls, const void *from, size_t len);

/* The socket has failed beside TLS: @error, as errno, becomes tls->reason. */
void tls_break(struct tls *tls, int error);

/* Say goodbye, if that is possible now, and forget it. */
void tls_stop(struct tls *tls);

/** @return how OpenSSL uses the socket; the caller frees it with BIO_meth_free(). NULL: no memory */
BIO_METHOD *tls_bio_method(void);

#endif
