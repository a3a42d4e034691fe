/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What the path of a control group says about containers. Docker, containerd, CRI-O and Podman
 * call a container's group by its ID, 64 hexadecimal digits, with a prefix and ".scope"
 * where systemd manages it; the kubelet, that of a pod by the pod's UID.
 *
 * A process that may make groups may call them so, too. Trusted are the names that runtimes make where they
 * make them, from the root on: pods where the kubelet has them, a container of a pod right below
 * it, and the first container of a path. What is below that, or below a user's own manager
 * (user@UID.service), others may have named.
 */
#ifndef NETOBS_WHO_CGROUP_PATH_H
#define NETOBS_WHO_CGROUP_PATH_H

#include <stddef.h>

struct cgroup_names {
	char container_id[72]; /* of the outermost; "": there is none */
	char pod_uid[40]; /* with '-', unless it is a static pod's; "": none */
};

struct cgroup_names cgroup_names_of(const char *path);

#endif
