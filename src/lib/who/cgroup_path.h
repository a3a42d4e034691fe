/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Finds the container and the pod of a control group by its path. Docker, containerd, CRI-O and
 * Podman name a container's group by its ID, 64 hexadecimal digits, with a prefix and ".scope"
 * where systemd manages it; the kubelet names a pod's group by the pod's UID.
 *
 * Any process that may create groups may use such names. So names are trusted only where runtimes
 * create them, counted from the root: pods below the kubelet's group, a container directly below
 * its pod, and the first container of a path. Groups further below, or below a user's own manager
 * (user@UID.service), may have been named by others.
 */
#ifndef NETOBS_WHO_CGROUP_PATH_H
#define NETOBS_WHO_CGROUP_PATH_H

#include <stddef.h>

struct cgroup_names {
	char container_id[72]; /* of the outermost container; "": none */
	char pod_uid[40]; /* with '-', unless it is a static pod's; "": none */
};

struct cgroup_names cgroup_names_of(const char *path);

#endif
