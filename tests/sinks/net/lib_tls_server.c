// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_tls_server.h"

#include "lib_certs.h"
#include "lib_test.h"

#include <limits.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static char *certs;

int tls_certs_make(void **state)
{
	(void)state;
	certs = certs_make();
	return 0;
}

int tls_certs_remove(void **state)
{
	(void)state;
	certs_remove(certs);
	return 0;
}

const char *tls_cert(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned int n;
	char *path = paths[n++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", certs, name);
	return path;
}

static int take_h2(SSL *ssl, const unsigned char **out, unsigned char *out_len,
		   const unsigned char *in, unsigned int in_len, void *arg)
{
	(void)ssl;
	(void)arg;
	if (in_len != 3 || memcmp(in, "\2h2", 3))
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = in + 1;
	*out_len = 2;
	return SSL_TLSEXT_ERR_OK;
}

/* False: it did not come to that. */
static bool say_back(SSL *ssl)
{
	char buf[4096];
	int n;

	if (SSL_accept(ssl) != 1)
		return false;
	while ((n = SSL_read(ssl, buf, sizeof(buf))) > 0)
		if (SSL_write(ssl, buf, n) != n)
			break;
	return true;
}

/* A client that still writes may find that only a reset came. */
static void close_by_reset(int fd)
{
	const struct linger none = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

void tls_server_run(int listener, const char *name, bool wants_cert, int most)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	unsigned int refused = 0;
	char key[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(key, sizeof(key), "%s.key", name);
	SSL_CTX_set_max_proto_version(ctx, most);
	SSL_CTX_set_alpn_select_cb(ctx, take_h2, NULL);
	SSL_CTX_use_PrivateKey_file(ctx, tls_cert(key), SSL_FILETYPE_PEM);
	snprintf(key, sizeof(key), "%s.pem", name);
	SSL_CTX_use_certificate_chain_file(ctx, tls_cert(key));
	SSL_CTX_load_verify_file(ctx, tls_cert("ca.pem"));
	if (wants_cert)
		SSL_CTX_set_verify(
			ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
			NULL);
	for (;;) {
		SSL *ssl = SSL_new(ctx);
		int fd = accept(listener, NULL, NULL);

		SSL_set_fd(ssl, fd);
		if (!say_back(ssl) && refused++ % 2)
			close_by_reset(fd);
		SSL_free(ssl);
		close(fd);
	}
}
