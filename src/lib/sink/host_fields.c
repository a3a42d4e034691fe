// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "host_fields.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netobs/flow.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/utsname.h>

static void take_address(const struct sockaddr *address, uint8_t ip[16])
{
	if (address->sa_family == AF_INET6) {
		memcpy(ip, &((const struct sockaddr_in6 *)address)->sin6_addr,
		       16);
		return;
	}
	memset(ip, 0, 10);
	ip[10] = ip[11] = 0xff;
	memcpy(ip + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
}

/* ---- The address towards other hosts ----------------------------------------------- */

/* The address that the kernel would send from to @to, of @size bytes: nothing is sent. */
static bool find_source(const void *to, socklen_t size, uint8_t ip[16])
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	const struct sockaddr *address = to;
	cleanup_fd int fd =
		socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, address, size) ||
	    getsockname(fd, (struct sockaddr *)&own, &len))
		return false;
	take_address((struct sockaddr *)&own, ip);
	return true;
}

/* ---- Any address ------------------------------------------------------------------ */

/* @return whether other hosts may know this one by the address */
static bool is_of_host(const struct ifaddrs *entry)
{
	const struct sockaddr *address = entry->ifa_addr;
	const struct in6_addr *v6;

	if (!address || !(entry->ifa_flags & IFF_UP) ||
	    entry->ifa_flags & IFF_LOOPBACK)
		return false;
	if (address->sa_family == AF_INET)
		return true;
	v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
	return address->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(v6);
}

/* The first, of IPv4 if there is one. */
static void find_any(uint8_t ip[16])
{
	struct ifaddrs *all, *found = NULL;

	if (getifaddrs(&all))
		return;
	for (struct ifaddrs *entry = all; entry; entry = entry->ifa_next) {
		if (!is_of_host(entry))
			continue;
		if (!found || (found->ifa_addr->sa_family == AF_INET6 &&
			       entry->ifa_addr->sa_family == AF_INET))
			found = entry;
	}
	if (found)
		take_address(found->ifa_addr, ip);
	freeifaddrs(all);
}

/*
 * Use the address of the interface of the default route, if there is one. NetObserv's agent looks
 * up routes to the same hosts.
 */
static void find_address(uint8_t ip[16])
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(9),
					/* 8.8.8.8 */
					.sin_addr.s_addr = 0x08080808 };
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6,
				    .sin6_port = to.sin_port };

	ip_read("2001:4860:4860::8888", to6.sin6_addr.s6_addr);
	if (!find_source(&to, sizeof(to), ip) &&
	    !find_source(&to6, sizeof(to6), ip))
		find_any(ip);
}

void agent_read_address(struct spec *spec, uint8_t ip[16])
{
	const char *text = spec_string(spec, "agent_ip", NULL);

	memset(ip, 0, 16);
	if (!text)
		find_address(ip);
	else if (!ip_read(text, ip))
		spec_refuse(spec, "option agent_ip: '%s' is not an IP address",
			    text);
}

void agent_find_name(char *name, size_t size)
{
	struct utsname system;

	snprintf(name, size, "%s", uname(&system) ? "" : system.nodename);
}

/* ---- The identifier ----------------------------------------------------------------- */

/* @return whether @text begins with 32 hexadecimal digits, of an id that is not 0 */
static bool parse_id(const char *text, uint8_t ret_id[16])
{
	bool is_set = false;

	if (strspn(text, "0123456789abcdefABCDEF") != 32)
		return false;
	for (size_t i = 0; i < 16; i++) {
		ret_id[i] = (uint8_t)(hex_digit(text[2 * i]) << 4 |
				      hex_digit(text[2 * i + 1]));
		is_set |= ret_id[i];
	}
	return is_set;
}

void agent_make_id(const char *machine_id, char id[AGENT_ID_SIZE])
{
	/* Makes ids of netobs differ from those of other programs. */
	static const uint8_t netobs[16] = { 0x61, 0x2f, 0x6e, 0x4e, 0x06, 0xd6,
					    0x42, 0xc8, 0xbc, 0x14, 0xaf, 0xa3,
					    0x67, 0x1d, 0x64, 0xfb };
	uint8_t machine[16], mac[SHA256_SIZE];

	*id = '\0';
	if (!parse_id(machine_id, machine))
		return;
	hmac_sha256(machine, sizeof(machine), netobs, sizeof(netobs), mac);
	mac[6] = (mac[6] & 0x0f) | 0x40; /* a UUID of version 4 (RFC 9562) */
	mac[8] = (mac[8] & 0x3f) | 0x80;
	for (size_t i = 0; i < 16; i++)
		sprintf(id + 2 * i, "%02x", mac[i]);
	explicit_bzero(machine, sizeof(machine));
}

void agent_find_id(char id[AGENT_ID_SIZE])
{
	char machine_id[64];

	*id = '\0';
	if (io_read_password("/etc/machine-id", machine_id, sizeof(machine_id)) <
	    0)
		return;
	agent_make_id(machine_id, id);
	explicit_bzero(machine_id, sizeof(machine_id));
}

/* ---- Fields ------------------------------------------------------------------------- */

#define FIELD_PREFIX "field."

/* A name that may not be added: it is a field of records of this kind, as in records.def. */
struct own_key {
	const char *key, *owner;
};

#define FIELD(member, type, has, merge, key, ...) { key, "flow" },
#define POINT_FIELD(member, type, key, ...) { key, "flow" },
#define PROCESS_FIELD(member, type, key, ...) \
	{ "Src" key, "flow" }, { "Dst" key, "flow" },

static const struct own_key own_keys[] = {
	{ "@timestamp", "all" }, /* of data streams */
	{ "type", "all" },
	{ "NetnsInodes", "flow" },
#include "catalogue/fields.def"

#define FIELD(kind, member, type, has, key, ...) { key, #kind },
#define OBJECT_FIELD(kind, member, type, has, key, ...) { key, #kind },
#include "catalogue/records.def"
};

/* The names of the host in netobs's vocabulary, and in the others. */
static const char *const host_names[][2] = {
	{ "AgentIP", "host.ip" },
	{ "HostName", "host.name" },
	{ "HostId", "host.id" },
};

static const char *host_name(enum vocabulary vocabulary, int i)
{
	return host_names[i][vocabulary != VOCABULARY_NETOBS];
}

/* @return what records of a type have, and clashes with @name; NULL: nothing */
static const char *find_own(enum vocabulary vocabulary, const char *name,
			    const char **ret_owner)
{
	*ret_owner = "ECS";
	if (vocabulary == VOCABULARY_ECS)
		return ecs_find_clash(name);
	if (vocabulary == VOCABULARY_OTLP)
		return NULL; /* they are not in the resource */
	for (size_t i = 0; i < ARRAY_SIZE(own_keys); i++) {
		*ret_owner = own_keys[i].owner;
		if (names_clash(own_keys[i].key, name))
			return own_keys[i].key;
	}
	return NULL;
}

/* @return what all records have, or an earlier option; NULL: nothing that clashes */
static const char *find_common(enum vocabulary vocabulary, bool has_host,
			       struct spec *spec, size_t before, const char *name)
{
	const struct spec_option *option;
	size_t position = 0;

	for (int i = 0; has_host && i < (int)ARRAY_SIZE(host_names); i++)
		if (names_clash(host_name(vocabulary, i), name))
			return host_name(vocabulary, i);
	while ((option = spec_next(spec, FIELD_PREFIX, &position)) &&
	       position < before)
		if (names_clash(option->name + strlen(FIELD_PREFIX), name))
			return option->name + strlen(FIELD_PREFIX);
	return NULL;
}

/* A name that any database takes as that of a column; between dots are names of objects. */
static bool is_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@";

	return *name && !name[strspn(name, letters)] && *name != '.' &&
	       name[strlen(name) - 1] != '.' && !strstr(name, "..");
}

static void take_own_fields(struct spec *spec, enum vocabulary vocabulary,
			    bool has_host, host_field_fn *take, void *ctx)
{
	const struct spec_option *option;
	size_t position = 0;

	while ((option = spec_next(spec, FIELD_PREFIX, &position))) {
		const char *name = option->name + strlen(FIELD_PREFIX);
		const char *owner = "all";
		const char *found =
			find_common(vocabulary, has_host, spec, position, name) ?:
				find_own(vocabulary, name, &owner);

		if (!is_name(name))
			spec_refuse(spec,
				    "option %s: '%s' is not a name of letters, digits and _ - @, with dots between them",
				    option->name, name);
		else if (found)
			spec_refuse(spec,
				    "option %s: '%s' is a field of %.*s records: choose another name",
				    option->name, found,
				    (int)strcspn(owner, "_"), owner);
		else
			take(ctx, name, option->value);
	}
}

static void take_host(const uint8_t ip[16], enum vocabulary vocabulary,
		      host_field_fn *take, void *ctx)
{
	static const uint8_t nowhere[16];
	char text[NETOBS_ADDR_STR_MAX + TEXT_SPARE], name[AGENT_NAME_SIZE],
		id[AGENT_ID_SIZE];

	if (memcmp(ip, nowhere, sizeof(nowhere)) != 0) {
		*text_ip(text, ip) = '\0';
		take(ctx, host_name(vocabulary, 0), text);
	}
	agent_find_name(name, sizeof(name));
	if (*name)
		take(ctx, host_name(vocabulary, 1), name);
	agent_find_id(id);
	if (*id)
		take(ctx, host_name(vocabulary, 2), id);
}

void host_fields_each(struct spec *spec, bool has_host,
		      enum vocabulary vocabulary, host_field_fn *take, void *ctx)
{
	static const char *const no_yes[] = { "no", "yes", NULL };
	uint8_t ip[16];

	has_host = spec_choice(spec, "host", no_yes, has_host);
	agent_read_address(spec, ip);
	if (has_host)
		take_host(ip, vocabulary, take, ctx);
	take_own_fields(spec, vocabulary, has_host, take, ctx);
}

static void add_host_field(void *ctx, const char *name, const char *text)
{
	json_key_string(ctx, name, text);
}

void host_fields_read(struct host_fields *fields, struct spec *spec, bool has_host)
{
	static const char *const layouts[] = { "netobs", "ecs", NULL };
	struct json json;
	int len;

	fields->is_ecs = spec_choice(spec, "layout", layouts, 0);
	json_begin(&json, fields->text, sizeof(fields->text));
	json.comma = true; /* after the record's own members */
	host_fields_each(spec, has_host,
			 fields->is_ecs ? VOCABULARY_ECS : VOCABULARY_NETOBS,
			 add_host_field, &json);
	json_close(&json, '}');
	len = json_end(&json);
	if (len < 0)
		spec_refuse(spec, "fields take more than %d bytes",
			    HOST_FIELDS_MAX);
	fields->len = len < 0 ? 0 : (size_t)len;
}
