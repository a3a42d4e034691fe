/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The environment variables of NetObserv's agent as a configuration. */
#include "config_import.h"
#include "service_config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "service/socket/listen.h"

/* ---- Variables ------------------------------------------------------------------- */

void report_variable(const char *variable, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "netobsctl config: %s: ", variable);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

const char *get_variable(const char *variable, const char *otherwise)
{
	const char *value = getenv(variable);

	if (!value || !*value)
		return otherwise;
	for (const char *at = value; *at; at++) {
		if ((unsigned char)*at >= ' ' && *at != '\x7f')
			continue;
		report_variable(variable,
				"it has a control character and is left out");
		return otherwise;
	}
	return value;
}

static bool is_true(const char *variable)
{
	static const char *const words[] = { "1",    "t",    "T",
					     "true", "TRUE", "True" };
	const char *value = get_variable(variable, "");

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(value, words[i]))
			return true;
	return false;
}

static void print_key(const char *key, const char *variable)
{
	const char *value = get_variable(variable, NULL);

	if (value)
		printf("%s = %s\n", key, value);
}

/* A value that has another name here; pairs end with NULL. */
static void print_choice(const char *key, const char *variable,
			 const char *const *pairs)
{
	const char *value = get_variable(variable, NULL);

	for (; value && *pairs; pairs += 2) {
		if (strcmp(value, pairs[0]))
			continue;
		if (pairs[1])
			printf("%s = %s\n", key, pairs[1]);
		return;
	}
	if (value)
		report_variable(variable, "'%s' has no equal", value);
}

static void print_list(const char *key, const char *variable,
		       const char *otherwise)
{
	cleanup_free char *names = strdup(get_variable(variable, otherwise));
	char *rest = names, *name;

	while (rest && (name = strsep(&rest, ",")))
		if (*name)
			printf("%s = %s\n", key, name);
}

/* As Go writes durations: 1m30s, 300ms. @return whether it is one */
static bool parse_duration(const char *text, double *ret_ms)
{
	static const struct {
		const char *unit;
		double ms;
	} units[] = { { "ms", 1 },    { "us", 1e-3 },	{ "ns", 1e-6 },
		      { "h", 3.6e6 }, { "m", 60000.0 }, { "s", 1000 } };
	double sum = 0;

	while (*text) {
		char *end;
		double number = strtod(text, &end);
		size_t i = 0;

		while (i < ARRAY_SIZE(units) &&
		       strncmp(end, units[i].unit, strlen(units[i].unit)))
			i++;
		if (end == text || i == ARRAY_SIZE(units) || !(number >= 0))
			return false;
		sum += number * units[i].ms;
		text = end + strlen(units[i].unit);
	}
	*ret_ms = sum;
	return sum >= 1 && sum < 1e9;
}

static void print_duration(const char *key, const char *variable)
{
	const char *value = get_variable(variable, NULL);
	double ms;

	if (value && parse_duration(value, &ms))
		printf("%s = %.0fms\n", key, ms);
	else if (value)
		report_variable(variable, "'%s' is not a duration such as 5s",
				value);
}

/* ---- Sections -------------------------------------------------------------------- */

static void print_capture(void)
{
	static const char *const modes[] = { "tcx", "tcx",  "tc", "clsact",
					     "any", "auto", NULL };
	static const char *const anchors[] = { "none", NULL,   "head", "first",
					       "tail", "last", NULL };
	const char *sampling = get_variable("SAMPLING", "0");
	const char *action = import_default_action();

	puts("[capture]");
	print_list("interface", "INTERFACES", "");
	print_list("exclude", "EXCLUDE_INTERFACES", "lo");
	print_key("direction", "DIRECTION");
	print_choice("attach", "TC_ATTACH_MODE", modes);
	print_choice("attach_order", "TCX_ATTACH_ANCHOR_INGRESS", anchors);
	if (strcmp(sampling, "0") && strcmp(sampling, "1"))
		printf("sampling = %s\n", sampling);
	if (is_true("ENABLE_RTT"))
		puts("rtt = yes");
	if (is_true("ENABLE_PKT_TRANSLATION"))
		puts("nat = yes");
	if (is_true("ENABLE_PKT_DROPS"))
		puts("drops = yes");
	if (action)
		printf("default_action = %s\n", action);
	import_filters();
	puts("\n[flows]");
	print_duration("interval", "CACHE_ACTIVE_TIMEOUT");
}

static void print_service(void)
{
	static const char *const levels[] = {
		"trace",   "debug",   "debug", "debug",	  "info",  "info",
		"warning", "warning", "warn",  "warning", "error", "error",
		"fatal",   "error",   "panic", "error",	  NULL
	};
	char spec[320];

	puts("\n[service]");
	if (get_variable("LOG_LEVEL", NULL))
		print_choice("log_level", "LOG_LEVEL", levels);
	else
		puts("log_level = info");
	if (!is_true("METRICS_ENABLE"))
		return;
	snprintf(spec, sizeof(spec), "%s:%s",
		 get_variable("METRICS_SERVER_ADDRESS", "0.0.0.0"),
		 get_variable("METRICS_SERVER_PORT", "9090"));
	printf("\n[metrics]\nlisten = %s\n", spec);
	if (!listen_refuse(spec) && !listen_is_local(spec))
		puts("listen_any = yes");
	print_key("tls_cert", "METRICS_TLS_CERT_PATH");
	print_key("tls_key", "METRICS_TLS_KEY_PATH");
}

static int print_target(const char *kind)
{
	const char *host = get_variable("TARGET_HOST",
					get_variable("FLOWS_TARGET_HOST", NULL));
	const char *port = get_variable("TARGET_PORT",
					get_variable("FLOWS_TARGET_PORT", NULL));
	bool is_bare = host && strchr(host, ':') && *host != '[';

	if (!host || !port) {
		report_variable(host ? "TARGET_PORT" : "TARGET_HOST",
				"it is not set");
		return -EINVAL;
	}
	printf("output = %s://%s%s%s:%s\n", kind, is_bare ? "[" : "", host,
	       is_bare ? "]" : "", port);
	return 0;
}

static int print_grpc(void)
{
	int r = print_target("grpc");

	puts(get_variable("TARGET_TLS_CA_CERT_PATH", NULL) ? "tls = yes" :
							     "tls = no");
	print_key("ca", "TARGET_TLS_CA_CERT_PATH");
	print_key("cert", "TARGET_TLS_USER_CERT_PATH");
	print_key("key_file", "TARGET_TLS_USER_KEY_PATH");
	print_key("agent_ip", "AGENT_IP");
	return r;
}

/* A file with the name of the user, whose first line is that. */
static void print_user(const char *variable)
{
	const char *path = get_variable(variable, NULL);
	FILE *file = path ? fopen(path, "re") : NULL;
	char line[256] = "";

	if (path && !file)
		report_variable(variable, "%s: %s", path, strerror(errno));
	if (!file)
		return;
	if (fgets(line, sizeof(line), file))
		printf("user = %.*s\n", (int)strcspn(line, "\r\n"), line);
	fclose(file);
}

static int print_kafka(void)
{
	static const char *const types[] = { "plain", "plain", "scramSHA512",
					     "scram-sha-512", NULL };
	const char *brokers = get_variable("KAFKA_BROKERS", NULL);

	if (!brokers) {
		report_variable("KAFKA_BROKERS", "it is not set");
		return -EINVAL;
	}
	printf("output = kafka://%s/%s\n", brokers,
	       get_variable("KAFKA_TOPIC", "network-flows"));
	printf("rdkafka.compression.codec = %s\n",
	       get_variable("KAFKA_COMPRESSION", "none"));
	print_key("agent_ip", "AGENT_IP");
	if (is_true("KAFKA_ENABLE_TLS")) {
		puts(is_true("KAFKA_TLS_INSECURE_SKIP_VERIFY") ?
			     "tls = unverified" :
			     "tls = yes");
		print_key("ca", "KAFKA_TLS_CA_CERT_PATH");
		print_key("cert", "KAFKA_TLS_USER_CERT_PATH");
		print_key("key_file", "KAFKA_TLS_USER_KEY_PATH");
	}
	if (!is_true("KAFKA_ENABLE_SASL"))
		return 0;
	if (get_variable("KAFKA_SASL_TYPE", NULL))
		print_choice("sasl", "KAFKA_SASL_TYPE", types);
	else
		puts("sasl = plain");
	print_user("KAFKA_SASL_CLIENT_ID_PATH");
	print_key("password_file", "KAFKA_SASL_CLIENT_SECRET_PATH");
	return 0;
}

static int print_sink(void)
{
	const char *kind = get_variable("EXPORT", "grpc");

	puts("\n[sink \"netobserv\"]");
	if (!strcmp(kind, "grpc"))
		return print_grpc();
	if (!strcmp(kind, "kafka"))
		return print_kafka();
	if (!strcmp(kind, "ipfix+udp"))
		return print_target("ipfix:udp");
	if (!strcmp(kind, "ipfix+tcp"))
		return print_target("ipfix:tcp");
	report_variable(
		"EXPORT",
		"'%s' has no equal: send to flowlogs-pipeline by grpc or kafka",
		kind);
	return -EINVAL;
}

/* ---- The rest -------------------------------------------------------------------- */

static void report_others(void)
{
	static const char *const features[] = {
		"ENABLE_DNS_TRACKING",	    "ENABLE_NETWORK_EVENTS_MONITORING",
		"ENABLE_UDN_MAPPING",	    "ENABLE_IPSEC_TRACKING",
		"ENABLE_TLS_TRACKING",	    "ENABLE_OPENSSL_TRACKING",
		"EBPF_PROGRAM_MANAGER_MODE"
	};
	static const char *const values[] = {
		"AGENT_IP_IFACE",	"AGENT_IP_TYPE",
		"INTERFACE_IPS",	"PREFERRED_INTERFACE_FOR_MAC_PREFIX",
		"GRPC_RECONNECT_TIMER", "QUIC_TRACKING_MODE",
		"METRICS_PREFIX",	"PPROF_ADDR"
	};

	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		if (is_true(features[i]))
			report_variable(features[i],
					"this version does not have it");
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (get_variable(values[i], NULL))
			report_variable(values[i], "it has no equal");
	if (is_true("ENABLE_PCA"))
		report_variable(
			"ENABLE_PCA",
			"the service sends flows: netobsctl-capture(8) captures packets, also for others over the network");
}

int config_import(void)
{
	puts("# Of the environment variables of NetObserv's agent.");
	print_capture();
	print_service();
	report_others();
	return print_sink();
}
