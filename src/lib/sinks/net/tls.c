// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "net.h"

#include "base/util.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* ---- Reasons ------------------------------------------------------------------- */

/* Say what is wrong with the certificate of @name, or with one that it depends on. */
static void say_certificate(struct tls *tls, const char *name, long result)
{
	snprintf(tls->reason, sizeof(tls->reason),
		 "the certificate of %s%s cannot be verified: %s",
		 tls->depth ? "an authority of " : "", name,
		 X509_verify_cert_error_string(result));
}

/*
 * A server that misses our certificate sends an alert and closes. Which of the two
 * is seen, and by a read or a write, is chance; it is one fault all the same.
 */
static bool misses_certificate(const struct tls *tls, unsigned long error)
{
	int reason = ERR_GET_REASON(error);

	if (!tls->was_asked || tls->has_read)
		return false;
	if (!error)
		return !tls->error || tls->error == EPIPE ||
		       tls->error == ECONNRESET;
	return reason >= SSL_AD_REASON_OFFSET ||
	       reason == SSL_R_UNEXPECTED_EOF_WHILE_READING;
}

static void say_error(struct tls *tls, unsigned long error)
{
	int reason = ERR_GET_REASON(error);
	const char *text = ERR_reason_error_string(error) ?: "TLS failed";

	if (misses_certificate(tls, error)) {
		text = "it closed the connection; it requires a client certificate";
	} else if (!error && tls->error && tls->error != EPIPE) {
		text = strerror(tls->error);
	} else if (!error || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
		text = "it closed the connection";
	} else if (reason == SSL_R_WRONG_VERSION_NUMBER) {
		text = "it does not speak TLS";
	}
	snprintf(tls->reason, sizeof(tls->reason), "%s", text);
}

/* ---- Results -------------------------------------------------------------------- */

static int error_code(const struct tls *tls)
{
	return tls->error ? -tls->error : -EPROTO;
}

/* -EAGAIN, 0: the other side has closed it, or what failed. */
static int take_tls_error(struct tls *tls, int result)
{
	int error = SSL_get_error(tls->ssl, result);
	unsigned long queued = ERR_peek_error();

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
		tls->wants_out = error == SSL_ERROR_WANT_WRITE;
		return -EAGAIN;
	}
	if (error == SSL_ERROR_ZERO_RETURN) {
		say_error(tls, 0);
		return 0;
	}
	tls->is_broken = true;
	/* Since OpenSSL 3.2, this may be the error of a system call, which tls->error has. */
	say_error(tls, ERR_GET_LIB(queued) == ERR_LIB_SYS ? 0 : queued);
	ERR_clear_error();
	return error_code(tls);
}

static void prepare_call(struct tls *tls)
{
	ERR_clear_error(); /* SSL_get_error() looks at what others left there */
	tls->wants_out = false;
	tls->error = 0;
}

/* ---- The socket ------------------------------------------------------------------ */

/*
 * OpenSSL's own way to use a socket is write(2), which raises SIGPIPE where the other side has gone
 * away, and would end the program.
 */
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

	return finish_io(bio, tls, socket_write(tls->fd, from, (size_t)len),
			 BIO_FLAGS_WRITE);
}

static int read_bytes(BIO *bio, char *to, int len)
{
	struct tls *tls = BIO_get_data(bio);

	return finish_io(bio, tls, socket_read(tls->fd, to, (size_t)len),
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

/* Over @tls->fd, which stays open; a failure is left in @tls->error. */
static BIO *tls_bio_new(const BIO_METHOD *method, struct tls *tls)
{
	BIO *bio = BIO_new(method);

	if (!bio)
		return NULL;
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	return bio;
}

/* ---- A connection ---------------------------------------------------------------- */

/* Notes the depth of an invalid certificate. */
static int verify_peer(int is_fine, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(
		store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct tls *tls = SSL_get_app_data(ssl);

	if (!is_fine)
		tls->depth = X509_STORE_CTX_get_error_depth(store);
	return is_fine;
}

/* The server requests a client certificate, and none is configured. */
static int note_asked(SSL *ssl, X509 **ret_cert, EVP_PKEY **ret_key)
{
	struct tls *tls = SSL_get_app_data(ssl);

	(void)ret_cert;
	(void)ret_key;
	tls->was_asked = true;
	return 0;
}

static bool set_name(SSL *ssl, const struct tls_context *context)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

	if (context->is_address)
		return X509_VERIFY_PARAM_set1_ip_asc(param, context->name);
	/* RFC 9525, 2 and 6.3: not the subject's common name, and no part of a label. */
	X509_VERIFY_PARAM_set_hostflags(
		param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
			       X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, context->name) &&
	       SSL_set_tlsext_host_name(ssl, context->name);
}

static bool become_client(SSL *ssl, const struct tls_context *context)
{
	SSL_set_verify(ssl, SSL_VERIFY_PEER, verify_peer);
	SSL_set_connect_state(ssl);
	return set_name(ssl, context);
}

int tls_start(struct tls *tls, const struct tls_context *context, int fd)
{
	BIO *bio;

	*tls = (struct tls){ .fd = fd };
	ERR_clear_error();
	SSL_CTX_set_client_cert_cb(context->ctx, note_asked);
	tls->ssl = SSL_new(context->ctx);
	bio = tls->ssl ? tls_bio_new(context->method, tls) : NULL;
	if (!bio || !become_client(tls->ssl, context)) {
		BIO_free(bio);
		SSL_free(tls->ssl);
		tls->ssl = NULL;
		ERR_clear_error();
		return -ENOMEM;
	}
	SSL_set_bio(tls->ssl, bio, bio);
	SSL_set_app_data(tls->ssl, tls);
	return 0;
}

int tls_handshake(struct tls *tls, const struct tls_context *context)
{
	int result, err;

	prepare_call(tls);
	result = SSL_do_handshake(tls->ssl);
	if (result == 1)
		return 0;
	err = take_tls_error(tls, result);
	if (err == -EAGAIN)
		return err;
	if (SSL_get_verify_result(tls->ssl) != X509_V_OK)
		say_certificate(tls, context->name,
				SSL_get_verify_result(tls->ssl));
	return err ?: -EPROTO;
}

ssize_t tls_read(struct tls *tls, void *to, size_t len)
{
	int result;

	prepare_call(tls);
	result = SSL_read(tls->ssl, to, (int)min_u64(len, INT_MAX));
	if (result <= 0)
		return take_tls_error(tls, result);
	tls->has_read = true;
	return result;
}

ssize_t tls_write(struct tls *tls, const void *from, size_t len)
{
	int result, err;

	if (!len)
		return 0;
	prepare_call(tls);
	result = SSL_write(tls->ssl, from, (int)min_u64(len, INT_MAX));
	if (result > 0)
		return result;
	err = take_tls_error(tls, result);
	return err ?: -EPIPE;
}

void tls_break(struct tls *tls, int error)
{
	tls->is_broken = true;
	tls->error = error;
	say_error(tls, 0);
}

void tls_stop(struct tls *tls)
{
	if (tls->ssl && !tls->is_broken && SSL_is_init_finished(tls->ssl))
		SSL_shutdown(tls->ssl);
	SSL_free(tls->ssl);
	ERR_clear_error();
	*tls = (struct tls){ .fd = -1 };
}
