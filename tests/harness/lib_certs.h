/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Certificates, made by the openssl command when a test begins: ca.pem; server.pem
 * for localhost, 127.0.0.1 and ::1; other.pem for other.test; expired.pem; client.pem;
 * locked.key with a passphrase. Each NAME.pem has a NAME.key.
 */
#ifndef HARNESS_LIB_CERTS_H
#define HARNESS_LIB_CERTS_H

/* A new directory, for certs_remove(). */
char *certs_make(void);
void certs_remove(char *dir);

#endif
