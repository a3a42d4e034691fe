// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The shared part of connections: certificates, and the access to a socket. */
#include "net.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const options[] = { "ca", "cert", "key_file", "server_name",
				       NULL };

#define CA "option ca"
#define CERT "option cert"
#define KEY "option key_file"

void tls_refuse_options(struct spec *spec)
{
	for (int i = 0; options[i]; i++)
		if (spec_string(spec, options[i], NULL))
			spec_refuse(spec, "option %s is for TLS only",
				    options[i]);
}

bool tls_has_options(struct spec *spec)
{
	bool has_any = false;

	for (int i = 0; options[i]; i++)
		has_any |= spec_string(spec, options[i], NULL) != NULL;
	return has_any;
}

/* ---- Files --------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool
refuse_context(struct tls_context *context, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(context->error, sizeof(context->error), format, args);
	va_end(args);
	ERR_clear_error();
	return false;
}

static bool refuse_file(struct tls_context *context, const char *option,
			const char *path, const char *what)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	if (!reason)
		return refuse_context(context, "%s: %s: %s", option, path, what);
	return refuse_context(context, "%s: %s: %s (%s)", option, path, what,
			      reason);
}

/* OpenSSL's messages about missing files are not readable. */
static bool is_readable(struct tls_context *context, const char *option,
			const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat info;
	int err = 0;

	if (fd < 0 || fstat(fd, &info))
		err = errno;
	else if (S_ISDIR(info.st_mode))
		err = EISDIR;
	if (fd >= 0)
		close(fd);
	if (err)
		refuse_context(context, "%s: %s: %s", option, path,
			       strerror(err));
	return !err;
}

/* There is no terminal to ask for a passphrase. */
static int no_passphrase(char *to, int size, int is_writing, void *user)
{
	(void)to;
	(void)size;
	(void)is_writing;
	(void)user;
	return -1;
}

static bool load_ca(struct tls_context *context, SSL_CTX *ctx)
{
	const char *path = context->ca;

	if (!path)
		return SSL_CTX_set_default_verify_paths(ctx) ||
		       refuse_context(context,
				      "the system's certificates cannot be read");
	return is_readable(context, CA, path) &&
	       (SSL_CTX_load_verify_file(ctx, path) ||
		refuse_file(context, CA, path, "there is no certificate in it"));
}

static bool load_key(struct tls_context *context, SSL_CTX *ctx)
{
	const char *key = context->key;
	int is_loaded;

	SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
	is_loaded = SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM);
	if (is_loaded && SSL_CTX_check_private_key(ctx))
		return true;
	if (is_loaded ||
	    ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
		return refuse_context(context,
				      KEY ": %s is not for the certificate in %s",
				      key, context->cert);
	return refuse_file(context, KEY, key,
			   "there is no private key without a passphrase in it");
}

static bool load_own(struct tls_context *context, SSL_CTX *ctx)
{
	if (!context->cert)
		return true;
	if (!is_readable(context, CERT, context->cert) ||
	    !is_readable(context, KEY, context->key))
		return false;
	if (SSL_CTX_use_certificate_chain_file(ctx, context->cert) != 1)
		return refuse_file(context, CERT, context->cert,
				   "there is no certificate in it");
	return load_key(context, ctx);
}

/* ---- What is made of them ---------------------------------------------------------- */

static bool set_up(struct tls_context *context, SSL_CTX *ctx)
{
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	if (context->alpn &&
	    SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)context->alpn,
				    (unsigned int)strlen(context->alpn)))
		return false;
	return load_ca(context, ctx) && load_own(context, ctx);
}

/* Replaces the previous files, unless loading fails. */
static bool load_files(struct tls_context *context)
{
	SSL_CTX *ctx;

	ERR_clear_error();
	refuse_context(context, "TLS is not available");
	ctx = SSL_CTX_new(TLS_client_method());
	if (!ctx || !set_up(context, ctx)) {
		SSL_CTX_free(ctx);
		ERR_clear_error();
		return false;
	}
	SSL_CTX_free(context->ctx);
	context->ctx = ctx;
	context->error[0] = '\0';
	ERR_clear_error();
	return true;
}

/* Changes when one of the files is replaced or modified. */
static uint64_t stamp_files(const struct tls_context *context)
{
	const char *paths[] = { context->ca, context->cert, context->key };
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct stat info = { 0 };

		if (paths[i] && stat(paths[i], &info))
			info.st_size = -1;
		sum = sum * 31 + info.st_ino;
		sum = sum * 31 + (uint64_t)info.st_size;
		sum = sum * 31 + (uint64_t)info.st_mtim.tv_sec;
		sum = sum * 31 + (uint64_t)info.st_mtim.tv_nsec;
	}
	return sum;
}

int tls_context_refresh(struct tls_context *context)
{
	uint64_t now = stamp_files(context);

	if (context->ctx && now == context->stamp)
		return 0;
	context->stamp = now;
	return load_files(context) ? 0 : -EINVAL;
}

/* ---- Opening ------------------------------------------------------------------- */

static bool set_name(struct tls_context *context, const char *name)
{
	if (!*name || strlen(name) >= sizeof(context->name))
		return refuse_context(
			context, "option server_name: '%s' is not a name", name);
	strcpy(context->name, name);
	context->is_address = address_is_numeric(name, NULL);
	if (context->is_address) /* certificates have no interfaces */
		context->name[strcspn(name, "%")] = '\0';
	return true;
}

static char *copy_text(const char *text)
{
	return text ? strdup(text) : NULL;
}

static bool read_options(struct tls_context *context, struct spec *spec,
			 const char *host)
{
	context->ca = copy_text(spec_string(spec, "ca", NULL));
	context->cert = copy_text(spec_string(spec, "cert", NULL));
	context->key = copy_text(spec_string(spec, "key_file", NULL));
	if (!context->cert != !context->key)
		return refuse_context(
			context, "options cert and key_file need each other");
	return set_name(context, spec_string(spec, "server_name", host));
}

int tls_context_open(struct tls_context *context, struct spec *spec,
		     const char *host, const char *alpn)
{
	*context =
		(struct tls_context){ .alpn = alpn, .method = tls_bio_method() };
	if (!context->method)
		return -ENOMEM;
	if (read_options(context, spec, host) && !tls_context_refresh(context))
		return 0;
	spec_refuse(spec, "%s", context->error);
	tls_context_close(context);
	return -EINVAL;
}

void tls_context_close(struct tls_context *context)
{
	SSL_CTX_free(context->ctx);
	BIO_meth_free(context->method);
	free(context->ca);
	free(context->cert);
	free(context->key);
	*context = (struct tls_context){ 0 };
}
