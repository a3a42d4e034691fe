// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "kafka.h"

#include "base/io.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TOPIC_MAX = 249 }; /* bytes, and these characters: Kafka's limits */

static const char topic_characters[] = "abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

static void set_property(struct spec *spec, rd_kafka_conf_t *conf,
			 const char *name, const char *value)
{
	char text[512];

	if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) !=
	    RD_KAFKA_CONF_OK)
		spec_refuse(spec, "%s", text);
}

/* ---- The target ------------------------------------------------------------------ */

static bool is_port(const char *text)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && port && port < 65536;
}

/* HOST, HOST:PORT, [IPV6] or [IPV6]:PORT. */
static bool is_broker(const char *text)
{
	const char *host_end = *text == '[' ? strchr(text, ']') : NULL;
	const char *colon = strchr(host_end ?: text, ':');

	if (*text == '[' && (!host_end || host_end == text + 1 ||
			     (host_end[1] && host_end[1] != ':')))
		return false;
	if (!*text || colon == text || strpbrk(text, " \t\r\n"))
		return false;
	return !colon || is_port(colon + 1);
}

static void check_brokers(struct spec *spec, const char *brokers)
{
	cleanup_free char *copy = strdup(brokers);
	char *rest = copy, *broker;

	while (rest && (broker = strsep(&rest, ",")))
		if (!is_broker(broker))
			spec_refuse(spec, "'%s' is not HOST or HOST:PORT",
				    broker);
}

static void check_topic(struct spec *spec, const char *topic)
{
	size_t len = strlen(topic);

	if (!len)
		spec_refuse(spec,
			    "no topic is given: kafka://BROKER[,BROKER]/TOPIC");
	else if (len > TOPIC_MAX || topic[strspn(topic, topic_characters)] ||
		 !strcmp(topic, ".") || !strcmp(topic, ".."))
		spec_refuse(spec,
			    "'%s' cannot be a topic: up to %d letters, digits, '.', '_' and '-'",
			    topic, TOPIC_MAX);
}

/* //BROKERS/TOPIC. Brokers go to the configuration. */
static void read_target(struct settings *settings, struct spec *spec)
{
	const char *target = spec->target ?: "";
	const char *slash;
	cleanup_free char *brokers = NULL;

	if (strncmp(target, "//", 2) || !target[2] || target[2] == '/') {
		spec_refuse(spec,
			    "no broker is given: kafka://BROKER[,BROKER]/TOPIC");
		return;
	}
	target += 2;
	slash = strchr(target, '/');
	check_topic(spec, slash ? slash + 1 : "");
	if (!slash)
		return;
	settings->name = strdup(target);
	settings->topic = strdup(slash + 1);
	brokers = strndup(target, (size_t)(slash - target));
	if (brokers)
		check_brokers(spec, brokers);
	set_property(spec, settings->conf, "bootstrap.servers", brokers ?: "");
}

/* ---- Messages -------------------------------------------------------------------- */

/* Consumers of protobuf read messages of one type from a topic. */
static void read_protobuf(struct message_format *format, struct spec *spec,
			  uint32_t types)
{
	const uint32_t others = types & ~(SINK_TYPE(FLOW) | PBNETOBS_TYPES);

	agent_read_address(spec, format->pbflow.agent_ip);
	if (others)
		spec_refuse(spec,
			    "option records: protobuf cannot represent %s; encoding=json does",
			    netobs_record_type_name(
				    (unsigned int)__builtin_ctz(others)));
	if (types & SINK_TYPE(FLOW) && types & PBNETOBS_TYPES)
		spec_refuse(
			spec,
			"option records: in protobuf, flow needs a topic and a sink of its own; encoding=json has all types in one");
}

static void read_format(struct message_format *format, struct spec *spec,
			const struct sink_host *host)
{
	static const char *const encodings[] = { "protobuf", "json", NULL };
	static const char *const keys[] = { "addresses", "flow", "host", "none",
					    NULL };

	format->encoding = (enum message_encoding)spec_choice(
		spec, "encoding", encodings, MESSAGE_PROTOBUF);
	format->key = (enum message_key)spec_choice(spec, "key", keys,
						    MESSAGE_KEY_ADDRESSES);
	if (format->encoding == MESSAGE_PROTOBUF)
		read_protobuf(format, spec, host->types);
	else
		host_fields_read(&format->host_fields, spec, true);
	agent_find_name(format->host, sizeof(format->host));
}

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
		set_property(spec, conf, property, path);
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
		set_property(spec, conf, "enable.ssl.certificate.verification",
			     "false");
	/* Before 2.0, librdkafka did not look at names unless it was asked to. */
	if (tls)
		set_property(spec, conf, "ssl.endpoint.identification.algorithm",
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
		set_property(spec, conf, "sasl.password", text);
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
	set_property(spec, conf, "sasl.mechanism", mechanisms[sasl]);
	if (user)
		set_property(spec, conf, "sasl.username", user);
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

static void read_security(struct spec *spec, rd_kafka_conf_t *conf)
{
	static const char *const protocols[2][2] = {
		{ "plaintext", "ssl" },
		{ "sasl_plaintext", "sasl_ssl" },
	};
	bool tls = read_kafka_tls(spec, conf);
	bool sasl = read_sasl(spec, conf, tls);

	set_property(spec, conf, "security.protocol", protocols[sasl][tls]);
}

/* ---- librdkafka ------------------------------------------------------------------ */

struct property {
	const char *name;
	const char *value;
};

/*
 * A record is sent until it is there, for as long as the spool keeps it. The limits
 * are on what librdkafka holds beside the spool: its own are 1 GiB. Batches are an
 * eighth of librdkafka's, so that their messages are still in the caches when they are sent.
 */
static const struct property defaults[] = {
	{ "enable.idempotence", "true" },
	{ "message.timeout.ms", "0" },
	{ "queue.buffering.max.messages", "100000" },
	{ "queue.buffering.max.kbytes", "65536" },
	{ "linger.ms", "50" },
	{ "batch.size", "128000" },
	{ "batch.num.messages", "10000" },
	{ "compression.codec", "lz4" },
	{ "topic.metadata.propagation.max.ms", "10000" },
	{ "socket.keepalive.enable", "true" },
	{ "socket.connection.setup.timeout.ms", "5000" },
	{ "reconnect.backoff.max.ms", "2000" },
};

/* Properties that cannot be changed, since this module relies on them, with the reason. */
static const struct property fixed[] = {
	{ "bootstrap.servers", "the target has the brokers" },
	{ "metadata.broker.list", "the target has the brokers" },
	{ "delivery.report.only.error", "deliveries have to be reported" },
	{ "sasl.password",
	  "all who read the configuration would know it; write it to a file, and use password_file" },
	{ "transactional.id", "there are no transactions" },
	{ "enabled_events", "it is needed as it is" },
	{ "log.queue", "it is needed as it is" },
};

static void set_defaults(struct settings *settings, struct spec *spec)
{
	/* NetObserv's producer and Java's choose partitions in this way. */
	bool is_netobserv = settings->format.key == MESSAGE_KEY_ADDRESSES;
	char client[sizeof(settings->format.host) + 8];

	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
		set_property(spec, settings->conf, defaults[i].name,
			     defaults[i].value);
	set_property(spec, settings->conf, "partitioner",
		     is_netobserv ? "fnv1a_random" : "murmur2_random");
	snprintf(client, sizeof(client), "netobs-%s", settings->format.host);
	set_property(spec, settings->conf, "client.id", client);
}

static const char *why_fixed(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (!strcmp(fixed[i].name, name))
			return fixed[i].value;
	return NULL;
}

static void set_passed(struct settings *settings, struct spec *spec)
{
	static const char prefix[] = "rdkafka.";
	const struct spec_option *option;
	size_t position = 0;

	while ((option = spec_next(spec, prefix, &position))) {
		const char *name = option->name + strlen(prefix);
		const char *why = why_fixed(name);
		char text[512];

		if (why)
			spec_refuse(spec, "option %s: %s", option->name, why);
		else if (rd_kafka_conf_set(settings->conf, name, option->value,
					   text, sizeof(text)) != RD_KAFKA_CONF_OK)
			spec_refuse(spec, "option %s: %s", option->name, text);
	}
}

int settings_read(struct settings *settings, struct spec *spec,
		  const struct sink_host *host)
{
	*settings = (struct settings){ .conf = rd_kafka_conf_new() };
	read_target(settings, spec);
	read_format(&settings->format, spec, host);
	set_defaults(settings, spec);
	read_security(spec, settings->conf);
	set_passed(settings, spec);
	set_property(spec, settings->conf, "log.queue", "true");
	rd_kafka_conf_set_events(settings->conf, RD_KAFKA_EVENT_DR |
							 RD_KAFKA_EVENT_ERROR |
							 RD_KAFKA_EVENT_LOG);
	return spec_finish(spec);
}

void settings_free(struct settings *settings)
{
	if (settings->conf)
		rd_kafka_conf_destroy(settings->conf);
	free(settings->topic);
	free(settings->name);
	*settings = (struct settings){ 0 };
}
