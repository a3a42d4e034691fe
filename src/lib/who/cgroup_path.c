// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "container_facts.h"

#include "base/text.h"
#include "base/util.h"

#include <ctype.h>
#include <string.h>

enum {
	CONTAINER_ID_LEN = 64,
	UID_LEN = 36,	     /* RFC 9562, with '-', which systemd has as '_' */
	STATIC_UID_LEN = 32, /* of a pod of a file: a hash */
};

/* A part of the path. */
struct part {
	const char *at;
	size_t len;
};

static bool is_hex(const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isdigit((unsigned char)at[i]) && (at[i] < 'a' || at[i] > 'f'))
			return false;
	return true;
}

static bool is_uid(const char *at)
{
	for (size_t i = 0; i < UID_LEN; i++) {
		bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (is_dash ? at[i] != '-' && at[i] != '_' : !is_hex(at + i, 1))
			return false;
	}
	return true;
}

static void cut_suffix(struct part *part, const char *suffix)
{
	const size_t len = strlen(suffix);

	if (part->len > len && !memcmp(part->at + part->len - len, suffix, len))
		part->len -= len;
}

static bool has_prefix(struct part part, const char *prefix)
{
	const size_t len = strlen(prefix);

	return part.len >= len && !memcmp(part.at, prefix, len);
}

static bool is_any_of(struct part part, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (part.len == strlen(words[i]) && has_prefix(part, words[i]))
			return true;
	return false;
}

static bool has_suffix(struct part part, const char *suffix)
{
	const struct part all = part;

	cut_suffix(&part, suffix);
	return part.len < all.len;
}

static bool next_part(struct part *part)
{
	part->at += part->len;
	part->at += strspn(part->at, "/");
	part->len = strcspn(part->at, "/");
	return part->len;
}

/* ---- Containers -------------------------------------------------------------------------- */

/* "<id>", "docker-<id>.scope", but not the monitor's scope. @return whether it is a container */
static bool take_container(struct part part, struct cgroup_names *names)
{
	static const char *const prefixes[] = { "",	   "docker-",
						"libpod-", "cri-containerd-",
						"crio-",   "nerdctl-" };
	struct part prefix = part;
	const char *id;

	cut_suffix(&part, ".scope");
	if (part.len < CONTAINER_ID_LEN)
		return false;
	id = part.at + part.len - CONTAINER_ID_LEN;
	prefix.len = (size_t)(id - part.at);
	if (!is_hex(id, CONTAINER_ID_LEN) ||
	    !is_any_of(prefix, prefixes, ARRAY_SIZE(prefixes)))
		return false;
	memcpy(names->container_id, id, CONTAINER_ID_LEN);
	names->container_id[CONTAINER_ID_LEN] = '\0';
	return true;
}

/* ---- Pods --------------------------------------------------------------------------------- */

static void take_uid(const char *uid, size_t len, struct cgroup_names *names)
{
	for (size_t i = 0; i < len; i++)
		names->pod_uid[i] = uid[i] == '_' ? '-' : uid[i];
	names->pod_uid[len] = '\0';
}

/* @uid follows "pod", at the beginning of the part, or "-pod". */
static bool is_behind_pod(struct part part, const char *uid)
{
	return uid - part.at >= 3 && !memcmp(uid - 3, "pod", 3) &&
	       (uid - part.at == 3 || uid[-4] == '-');
}

/* "pod<uid>", "kubepods-burstable-pod<uid>.slice". @return whether it is a pod */
static bool take_pod(struct part part, struct cgroup_names *names)
{
	const size_t lens[] = { UID_LEN, STATIC_UID_LEN };

	cut_suffix(&part, ".slice");
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		const char *uid = part.at;

		if (part.len < lens[i])
			continue;
		uid += part.len - lens[i];
		if (!is_behind_pod(part, uid) ||
		    !(lens[i] == UID_LEN ? is_uid(uid) : is_hex(uid, lens[i])))
			continue;
		take_uid(uid, lens[i], names);
		return true;
	}
	return false;
}

/* "kubepods-burstable-pod<uid>.slice:cri-containerd:<id>", of containerd without systemd. */
static void take_both(struct part part, struct cgroup_names *names)
{
	const char *first = memchr(part.at, ':', part.len);
	const char *last = memrchr(part.at, ':', part.len);
	const struct part pod = { part.at, (size_t)(first - part.at) };
	const struct part container = { last + 1,
					part.len - (size_t)(last + 1 - part.at) };

	if (take_pod(pod, names))
		take_container(container, names);
}

/* ---- Paths -------------------------------------------------------------------------------- */

static bool is_of_kubelet(struct part part)
{
	static const char *const words[] = { "kubelet", "kubelet.slice" };

	return is_any_of(part, words, ARRAY_SIZE(words));
}

static bool is_of_pods(struct part part)
{
	static const char *const words[] = { "kubepods", "kubepods.slice",
					     "kubelet-kubepods.slice" };

	return is_any_of(part, words, ARRAY_SIZE(words));
}

/* systemd delegates this group to the user, who may choose all names below it. */
static bool is_of_user(struct part part)
{
	return has_prefix(part, "user@") && has_suffix(part, ".service");
}

static void take_containers(const char *path, struct cgroup_names *names)
{
	bool is_top = true, is_pods = false, is_pod = false;
	struct part part = { .at = path };

	while (next_part(&part)) {
		if (is_of_user(part) || take_container(part, names) || is_pod)
			break;
		if (has_prefix(part, "kubepods-") &&
		    memchr(part.at, ':', part.len)) {
			take_both(part, names);
			break;
		}
		is_pod = is_pods && take_pod(part, names);
		is_pods |= is_top && is_of_pods(part);
		is_top &= is_of_kubelet(part);
	}
}

/* ---- Units, slices and machines ----------------------------------------------------------- */

static bool is_name(struct part part, const char *more)
{
	for (size_t i = 0; i < part.len; i++)
		if (!isalnum((unsigned char)part.at[i]) &&
		    !memchr(more, part.at[i], strlen(more)))
			return false;
	return part.len;
}

/* A name that does not fit is left out as a whole. */
static void take_name(struct part part, const char *more, char *to, size_t size)
{
	if (part.len >= size || !is_name(part, more))
		part.len = 0;
	memcpy(to, part.at, part.len);
	to[part.len] = '\0';
}

/* systemd writes "_" in front of a name that could be that of a file of the kernel, or begins with "_". */
static void cut_escape(struct part *part)
{
	const size_t len = has_prefix(*part, "_");

	part->at += len;
	part->len -= len;
}

static bool is_unit(struct part part)
{
	return has_suffix(part, ".service") || has_suffix(part, ".scope") ||
	       has_suffix(part, ".socket") || has_suffix(part, ".mount") ||
	       has_suffix(part, ".swap");
}

/* Take a name in which systemd has written some characters as "\\x2d". */
static void take_escaped(struct part part, char *to, size_t size)
{
	char text[sizeof(((struct cgroup_names *)NULL)->unit)];
	struct part name = { .at = text };

	for (size_t i = 0; i < part.len; i++) {
		char byte = part.at[i];

		if (name.len == sizeof(text))
			return;
		if (byte == '\\') {
			if (part.len - i < 4 || part.at[i + 1] != 'x' ||
			    !is_hex(part.at + i + 2, 2))
				return;
			byte = (char)(hex_digit(part.at[i + 2]) << 4 |
				      hex_digit(part.at[i + 3]));
			i += 3;
		}
		text[name.len++] = byte;
	}
	take_name(name, "._-@", to, size);
}

/* "machine-NAME.scope" in machine.slice, or one below it, or "systemd-nspawn@NAME.service" */
static void take_machine(struct part unit, struct cgroup_names *names)
{
	static const char nspawn[] = "systemd-nspawn@", scope[] = "machine-";
	const char *slice = names->slice;
	size_t len = 0;

	if (has_prefix(unit, nspawn) && has_suffix(unit, ".service")) {
		len = strlen(nspawn);
		cut_suffix(&unit, ".service");
	} else if (has_prefix(unit, scope) && has_suffix(unit, ".scope") &&
		   (!strcmp(slice, "machine.slice") ||
		    !strncmp(slice, scope, strlen(scope)))) {
		len = strlen(scope);
		cut_suffix(&unit, ".scope");
	}
	if (len)
		take_escaped((struct part){ unit.at + len, unit.len - len },
			     names->machine, sizeof(names->machine));
}

/* "lxc.payload.NAME", "lxc.payload/NAME", "lxc/NAME". @return whether the group is of LXC */
static bool take_lxc(struct part part, struct cgroup_names *names)
{
	static const char *const above[] = { "lxc", "lxc.payload" };
	static const char payload[] = "lxc.payload.", monitor[] = "lxc.monitor";

	if (is_any_of(part, above, ARRAY_SIZE(above)))
		next_part(&part);
	else if (has_prefix(part, payload))
		part = (struct part){ part.at + strlen(payload),
				      part.len - strlen(payload) };
	else
		return has_prefix(part, monitor);
	take_name(part, "._-@", names->machine, sizeof(names->machine));
	return true;
}

static void take_unit(const char *path, struct cgroup_names *names)
{
	static const char more[] = ":._-@\\";
	struct part part = { .at = path };

	if (!next_part(&part) || take_lxc(part, names))
		return;
	do {
		struct part name = part;

		cut_escape(&name);
		if (has_suffix(name, ".slice")) {
			take_name(name, more, names->slice, sizeof(names->slice));
			continue;
		}
		if (is_unit(name)) {
			take_name(name, more, names->unit, sizeof(names->unit));
			take_machine(name, names);
		}
		return;
	} while (next_part(&part));
}

struct cgroup_names cgroup_names_of(const char *path)
{
	struct cgroup_names names = { 0 };

	take_containers(path, &names);
	take_unit(path, &names);
	return names;
}
