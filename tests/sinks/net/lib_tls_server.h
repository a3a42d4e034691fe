/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* An echo server over TLS, with certificates made for the tests. */
#ifndef TESTS_SINKS_NET_LIB_TLS_SERVER_H
#define TESTS_SINKS_NET_LIB_TLS_SERVER_H

#include <stdbool.h>

/* For a group of tests: before and after it. */
int tls_certs_make(void **state);
int tls_certs_remove(void **state);

/* The path of one; valid until three more were asked for. */
const char *tls_cert(const char *name);

/*
 * Until it is killed, with NAME.pem and NAME.key. @most: version of TLS. Every second
 * handshake that fails ends by a reset instead of an alert.
 */
__attribute__((noreturn)) void tls_server_run(int listener, const char *name,
					      bool wants_cert, int most);

#endif
