// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a sink's connections share: certificates, and how a socket is used. */
#include "tls.h"

#include "address.h"
#include "tls_bio.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const options[] = { "ca", "cert", "key", "server_name", NULL };

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

/* What OpenSSL says of a file that is not there is not for people. */
static bool is_readable(struct spec *spec, const char *option, const char *path)
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
		spec_refuse(spec, "option %s: %s: %s", option, path,
			    strerror(err));
	return !err;
}

static void refuse_file(struct spec *spec, const char *option, const char *path,
			const char *what)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	spec_refuse(spec, "option %s: %s: %s%s%s%s", option, path, what,
		    reason ? " (" : "", reason ?: "", reason ? ")" : "");
	ERR_clear_error();
}

/* Nobody sits at a terminal, to be asked for a passphrase. */
static int no_passphrase(char *to, int size, int is_writing, void *user)
{
	bool *was_asked = user;

	(void)to;
	(void)size;
	(void)is_writing;
	*was_asked = true;
	return -1;
}

static bool load_ca(SSL_CTX *ctx, struct spec *spec)
{
	const char *path = spec_string(spec, "ca", NULL);

	if (!path) {
		if (!SSL_CTX_set_default_verify_paths(ctx))
			spec_refuse(spec,
				    "the system's certificates cannot be read");
	} else if (is_readable(spec, "ca", path) &&
		   !SSL_CTX_load_verify_file(ctx, path)) {
		refuse_file(spec, "ca", path, "there is no certificate in it");
	}
	return !spec->is_wrong;
}

static bool load_key(SSL_CTX *ctx, struct spec *spec, const char *cert,
		     const char *key)
{
	bool was_asked = false;
	int is_loaded;

	SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
	SSL_CTX_set_default_passwd_cb_userdata(ctx, &was_asked);
	is_loaded = SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM);
	SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
	SSL_CTX_set_default_passwd_cb(ctx, NULL);
	if (was_asked)
		spec_refuse(spec,
			    "option key: %s: a key with a passphrase is of no use here",
			    key);
	else if (!is_loaded && ERR_GET_REASON(ERR_peek_last_error()) ==
				       X509_R_KEY_VALUES_MISMATCH)
		spec_refuse(spec,
			    "option key: %s is not for the certificate in %s",
			    key, cert);
	else if (!is_loaded)
		refuse_file(spec, "key", key, "there is no private key in it");
	else if (!SSL_CTX_check_private_key(ctx))
		spec_refuse(spec,
			    "option key: %s is not for the certificate in %s",
			    key, cert);
	return !spec->is_wrong;
}

static bool load_own(SSL_CTX *ctx, struct spec *spec)
{
	const char *cert = spec_string(spec, "cert", NULL);
	const char *key = spec_string(spec, "key", NULL);

	if (!cert && !key)
		return true;
	if (!cert || !key) {
		spec_refuse(spec, "options cert and key need each other");
		return false;
	}
	if (!is_readable(spec, "cert", cert) || !is_readable(spec, "key", key))
		return false;
	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1) {
		refuse_file(spec, "cert", cert, "there is no certificate in it");
		return false;
	}
	return load_key(ctx, spec, cert, key);
}

/* ---- Opening ------------------------------------------------------------------- */

static bool set_name(struct tls_context *context, struct spec *spec,
		     const char *host)
{
	const char *name = spec_string(spec, "server_name", host);

	if (!*name || strlen(name) >= sizeof(context->name)) {
		spec_refuse(spec, "option server_name: '%s' is not a name", name);
		return false;
	}
	strcpy(context->name, name);
	context->is_address = address_is_numeric(name, NULL);
	if (context->is_address) /* certificates have no interfaces */
		context->name[strcspn(name, "%")] = '\0';
	return true;
}

/* In the form of the protocol: RFC 7301, 3.1. */
static bool set_alpn(SSL_CTX *ctx, const char *alpn)
{
	unsigned char list[256];
	size_t len = alpn ? strlen(alpn) : 0;

	if (!len)
		return true;
	list[0] = (unsigned char)len;
	memcpy(list + 1, alpn, len);
	return !SSL_CTX_set_alpn_protos(ctx, list, (unsigned int)len + 1);
}

static int make_context(struct tls_context *context, const char *alpn)
{
	context->method = tls_bio_method();
	context->ctx = SSL_CTX_new(TLS_client_method());
	if (!context->method || !context->ctx || !set_alpn(context->ctx, alpn))
		return -ENOMEM;
	SSL_CTX_set_min_proto_version(context->ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(context->ctx, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(context->ctx,
			 SSL_MODE_ENABLE_PARTIAL_WRITE |
				 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				 SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(context->ctx, SSL_SESS_CACHE_OFF);
	return 0;
}

int tls_context_open(struct tls_context *context, struct spec *spec,
		     const char *host, const char *alpn)
{
	int err;

	*context = (struct tls_context){ 0 };
	ERR_clear_error();
	err = make_context(context, alpn);
	if (err)
		spec_refuse(spec, "TLS is not to be had: %s",
			    ERR_reason_error_string(ERR_peek_error()) ?: "");
	else if (!set_name(context, spec, host) ||
		 !load_ca(context->ctx, spec) || !load_own(context->ctx, spec))
		err = -EINVAL;
	ERR_clear_error();
	if (err)
		tls_context_close(context);
	return err;
}

void tls_context_close(struct tls_context *context)
{
	SSL_CTX_free(context->ctx);
	BIO_meth_free(context->method);
	*context = (struct tls_context){ 0 };
}
