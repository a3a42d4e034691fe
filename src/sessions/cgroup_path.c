// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "cgroup_path.h"

#include <ctype.h>
#include <stdbool.h>
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

static bool has_word(struct part part, const char *word)
{
	return memmem(part.at, part.len, word, strlen(word));
}

/* "<id>", "docker-<id>.scope", "cri-containerd:<id>"; not the monitor beside it. */
static void find_container(struct part part, struct cgroup_names *names)
{
	const char *id;

	cut_suffix(&part, ".scope");
	if (part.len < CONTAINER_ID_LEN || has_word(part, "conmon"))
		return;
	id = part.at + part.len - CONTAINER_ID_LEN;
	if (id > part.at && id[-1] != '-' && id[-1] != ':')
		return;
	if (!is_hex(id, CONTAINER_ID_LEN))
		return;
	memcpy(names->container_id, id, CONTAINER_ID_LEN);
	names->container_id[CONTAINER_ID_LEN] = '\0';
}

static void take_uid(const char *uid, size_t len, struct cgroup_names *names)
{
	for (size_t i = 0; i < len; i++)
		names->pod_uid[i] = uid[i] == '_' ? '-' : uid[i];
	names->pod_uid[len] = '\0';
}

/* "pod<uid>", "kubepods-burstable-pod<uid>.slice", with ":..." behind it. */
static void find_pod(struct part part, struct cgroup_names *names)
{
	const char *colon = memchr(part.at, ':', part.len), *uid;

	if (colon)
		part.len = (size_t)(colon - part.at);
	cut_suffix(&part, ".slice");
	if (part.len >= 3 + UID_LEN) {
		uid = part.at + part.len - UID_LEN;
		if (!memcmp(uid - 3, "pod", 3) && is_uid(uid))
			take_uid(uid, UID_LEN, names);
	}
	if (part.len >= 3 + STATIC_UID_LEN) {
		uid = part.at + part.len - STATIC_UID_LEN;
		if (!memcmp(uid - 3, "pod", 3) && is_hex(uid, STATIC_UID_LEN))
			take_uid(uid, STATIC_UID_LEN, names);
	}
}

struct cgroup_names cgroup_names_of(const char *path)
{
	const bool is_kubernetes = strstr(path, "kubepods");
	struct cgroup_names names = { 0 };
	struct part part = { .at = path };

	for (; *part.at; part.at += part.len) {
		part.at += strspn(part.at, "/");
		part.len = strcspn(part.at, "/");
		find_container(part, &names);
		if (is_kubernetes)
			find_pod(part, &names);
	}
	return names;
}
