// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_certs.h"

#include "lib_test.h"

#include <limits.h>

static const char script[] =
	"set -e; exec >log 2>&1 </dev/null\n"
	"key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; }\n"
	"sign() { # NAME DAYS ALTERNATIVE-NAMES\n"
	"	key $1\n"
	"	openssl req -new -key $1.key -subj /CN=$1 -out $1.csr\n"
	"	echo subjectAltName=$3 >$1.ext\n"
	"	openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial \\\n"
	"		-days $2 -extfile $1.ext -out $1.pem\n"
	"}\n"
	"key ca\n"
	"openssl req -x509 -new -key ca.key -subj /CN=authority -days 2 -out ca.pem\n"
	"sign server 2 DNS:localhost,IP:127.0.0.1,IP:::1\n"
	"sign other 2 DNS:other.test\n"
	"sign expired 0 DNS:localhost,IP:127.0.0.1\n"
	"sign client 2 DNS:client.test\n"
	"sign localhost 2 email:nobody@example.test\n" /* a name in its subject only */
	"openssl ec -in client.key -aes128 -passout pass:secret -out locked.key\n";

static int run(const char *dir, const char *what)
{
	char command[4096];

	snprintf(command, sizeof(command), "cd '%s' && { %s\n}", dir, what);
	return system(command);
}

char *certs_make(void)
{
	char template[PATH_MAX], *dir;

	snprintf(template, sizeof(template), "%s/netobs-certs.XXXXXX",
		 getenv("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(template));
	dir = strdup(template);
	if (run(dir, script)) {
		run(dir, "cat log >&2");
		fail_msg("openssl could not make certificates");
	}
	return dir;
}

void certs_remove(char *dir)
{
	if (dir)
		assert_int_equal(run(dir, "rm -rf \"$PWD\""), 0);
	free(dir);
}
