/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The options @interfaces and @exclude. */
#include "host.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

static const char netns_prefix[] = "netns:";

static bool is_named(const struct place *place, const char *name, size_t len)
{
	if (!place->name)
		return !len;
	return strlen(place->name) == len && !memcmp(place->name, name, len);
}

/* The place called by the first @len bytes of @name; none: the caller's own. */
static int ensure_place(struct watch *watch, const char *name, size_t len,
			struct place **ret_place)
{
	char *copy = NULL;

	for (uint32_t i = 0; i < watch->n_places; i++) {
		if (is_named(&watch->places[i], name, len)) {
			*ret_place = &watch->places[i];
			return 0;
		}
	}
	if (len) {
		copy = strndup(name, len);
		if (!copy)
			return -ENOMEM;
	}
	*ret_place = watch_add_place(watch, copy);
	return *ret_place ? 0 : -ENOMEM;
}

/*
 * Where the interface begins in netns:NAME/INTERFACE. A path has slashes too,
 * and so has a /regex/: "netns:/run/netns/a//^eth/" ends in one.
 */
static const char *split_netns(const char *spec)
{
	size_t len = strlen(spec);
	const char *slash = strrchr(spec, '/');

	if (!slash || slash != spec + len - 1)
		return slash;
	for (const char *p = slash - 1; p > spec; p--)
		if (p[0] == '/' && p[-1] == '/')
			return p - 1;
	return NULL;
}

static int add_include(struct watch *watch, const char *spec)
{
	const char *name = spec, *slash;
	struct place *place;
	size_t len = 0;
	int err;

	if (!strncmp(spec, netns_prefix, strlen(netns_prefix))) {
		name = spec + strlen(netns_prefix);
		slash = split_netns(name);
		if (!slash || slash == name || !slash[1]) {
			log_error(watch->log,
				  "interfaces: '%s': expected netns:NAME/INTERFACE",
				  spec);
			return -EINVAL;
		}
		len = slash - name;
	}
	err = ensure_place(watch, name, len, &place);
	if (err)
		return err;
	return patterns_add(&place->include, len ? name + len + 1 : spec,
			    "interfaces", watch->log);
}

int watch_init(struct watch *watch, const struct log *log,
	       const char *const *interfaces, const char *const *exclude)
{
	struct place *own;
	int err = 0;

	*watch = (struct watch){ .log = log };
	for (; !err && exclude && *exclude; exclude++)
		err = patterns_add(&watch->exclude, *exclude, "exclude", log);
	for (; !err && interfaces && *interfaces; interfaces++)
		err = add_include(watch, *interfaces);
	if (err || watch->n_places)
		return err;
	err = ensure_place(watch, "", 0, &own);
	if (!err)
		own->everything = true;
	return err;
}
