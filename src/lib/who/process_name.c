// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "process_name.h"

#include <bpf/bpf.h>
#include <stdbool.h>
#include <string.h>

enum { KEPT = SESSION_COMM_LEN - 1 };

static bool is_begun(const char *name, size_t len, const char *comm)
{
	return len >= KEPT && !memcmp(name, comm, KEPT);
}

static void copy_longer(const char *name, size_t len, char *ret_name)
{
	if (len <= KEPT || len >= PROCESS_NAME_SIZE)
		return;
	memcpy(ret_name, name, len);
	ret_name[len] = '\0';
}

/* As execve(2) names a process: by the last part of a path. */
static const char *last_part(const char *path, size_t len)
{
	const char *slash = memrchr(path, '/', len);

	return slash ? slash + 1 : path;
}

/* The first argument that begins so names the process, also if it is not longer. */
static void search_arguments(const struct session_name *name, size_t n,
			     const char *comm, char *ret_name)
{
	const char *at = name->arguments, *end = at + n, *nul;

	for (; (nul = memchr(at, '\0', (size_t)(end - at))); at = nul + 1) {
		const char *part = last_part(at, (size_t)(nul - at));

		if (is_begun(part, (size_t)(nul - part), comm)) {
			copy_longer(part, (size_t)(nul - part), ret_name);
			return;
		}
	}
}

void process_name_of(const struct session_name *name,
		     const char comm[SESSION_COMM_LEN],
		     char ret_name[PROCESS_NAME_SIZE])
{
	const size_t len = strnlen(name->file, sizeof(name->file));

	ret_name[0] = '\0';
	if (strnlen(comm, SESSION_COMM_LEN) < KEPT)
		return;
	if (is_begun(name->file, len, comm))
		copy_longer(name->file, len, ret_name);
	else if (name->n <= sizeof(name->arguments))
		search_arguments(name, name->n, comm, ret_name);
}

void process_name_find(int names_fd, const struct session_owner *owner,
		       char ret_name[PROCESS_NAME_SIZE])
{
	struct session_name_key key = {
		.exec = owner->exec,
		.tgid = owner->pid_tgid >> 32,
	};
	struct session_name name;

	ret_name[0] = '\0';
	memcpy(key.comm, owner->comm, sizeof(key.comm));
	if (owner->comm[KEPT - 1] && !bpf_map_lookup_elem(names_fd, &key, &name))
		process_name_of(&name, owner->comm, ret_name);
}
