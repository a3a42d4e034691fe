// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "settings.h"

#include "base/io.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { TLS_NO, TLS_YES, TLS_UNVERIFIED };
enum { SASL_NONE, SASL_PLAIN, SASL_SCRAM_256, SASL_SCRAM_512 };

enum {
	PASSWORD_MAX = 1024,
	SCRAM_FIXED = 0x020601ff, /* 2.6.1 sends the nonce that RFC 5802 requires */
};

/* ---- TLS ------------------------------------------------------------------------- */

static void read_file_option(struct spec *spec, rd_kafka_conf_t *conf,
			     const char *name, const char *property, bool tls)
{
	const char *path = spec_string(spec, name, NULL);

	if (!path)
		return;
	if (!tls)
		spec_refuse(spec, "option %s: it needs tls=yes", name);
	else if (access(path, R_OK))
		spec_refuse(spec, "option %s: %s: %s", name, path,
			    strerror(errno));
	else
		settings_set(spec, conf, property, path);
}

static bool read_kafka_tls(struct spec *spec, rd_kafka_conf_t *conf)
{
	static const char *const choices[] = { "no", "yes", "unverified", NULL };
	int tls = spec_choice(spec, "tls", choices, TLS_NO);

	read_file_option(spec, conf, "ca", "ssl.ca.location", tls);
	read_file_option(spec, conf, "cert", "ssl.certificate.location", tls);
	read_file_option(spec, conf, "key_file", "ssl.key.location", tls);
	if (!spec_string(spec, "cert", NULL) !=
	    !spec_string(spec, "key_file", NULL))
		spec_refuse(spec, "options cert and key_file need each other");
	if (tls == TLS_UNVERIFIED)
		settings_set(spec, conf, "enable.ssl.certificate.verification",
			     "false");
	/* Before 2.0, librdkafka did not look at names unless it was asked to. */
	if (tls)
		settings_set(spec, conf, "ssl.endpoint.identification.algorithm",
			     tls == TLS_UNVERIFIED ? "none" : "https");
	return tls;
}

/* ---- SASL ------------------------------------------------------------------------ */

static void set_password(struct spec *spec, rd_kafka_conf_t *conf)
{
	const char *path = spec_string(spec, "password_file", NULL);
	char text[PASSWORD_MAX];
	int err;

	if (!path) {
		spec_refuse(spec, "option sasl: it needs password_file");
		return;
	}
	err = io_read_password(path, text, sizeof(text));
	if (err)
		spec_refuse(spec, "option password_file: %s: %s", path,
			    strerror(-err));
	else
		settings_set(spec, conf, "sasl.password", text);
	explicit_bzero(text, sizeof(text));
}

static void warn_of_scram(const struct spec *spec)
{
	if (rd_kafka_version() < SCRAM_FIXED)
		log_warning(spec->log,
			    "kafka: SCRAM of librdkafka %s fails with Kafka 4.0 and newer, "
			    "which say that the credentials are invalid: it needs 2.6.1, "
			    "or sasl=plain with tls=yes",
			    rd_kafka_version_str());
}

static void refuse_unused(struct spec *spec, const char *name)
{
	if (spec_string(spec, name, NULL))
		spec_refuse(spec, "option %s: it needs sasl", name);
}

static bool read_sasl(struct spec *spec, rd_kafka_conf_t *conf, bool tls)
{
	static const char *const choices[] = { "none", "plain", "scram-sha-256",
					       "scram-sha-512", NULL };
	static const char *const mechanisms[] = { "", "PLAIN", "SCRAM-SHA-256",
						  "SCRAM-SHA-512" };
	int sasl = spec_choice(spec, "sasl", choices, SASL_NONE);
	const char *user = spec_string(spec, "user", NULL);

	if (sasl == SASL_NONE) {
		refuse_unused(spec, "user");
		refuse_unused(spec, "password_file");
		return false;
	}
	settings_set(spec, conf, "sasl.mechanism", mechanisms[sasl]);
	if (user)
		settings_set(spec, conf, "sasl.username", user);
	else
		spec_refuse(spec, "option sasl: it needs user");
	set_password(spec, conf);
	if (sasl >= SASL_SCRAM_256)
		warn_of_scram(spec);
	else if (!tls)
		log_warning(spec->log,
			    "kafka: sasl=plain without tls=yes shows the password "
			    "in plain text on the network");
	return true;
}

void security_read(struct spec *spec, rd_kafka_conf_t *conf)
{
	static const char *const protocols[2][2] = {
		{ "plaintext", "ssl" },
		{ "sasl_plaintext", "sasl_ssl" },
	};
	bool tls = read_kafka_tls(spec, conf);
	bool sasl = read_sasl(spec, conf, tls);

	settings_set(spec, conf, "security.protocol", protocols[sasl][tls]);
}
