/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Reads the names of a container from the files of its runtime:
 *
 * Docker             config.v2.json of the container
 * containerd, CRI-O  config.json, the specification of the OCI, with annotations of the runtime
 * Podman             containers.json, the list of containers of its storage
 * the kubelet        the name of a log: POD_NAMESPACE_CONTAINER-ID.log
 *
 * A name consists of letters, digits and . _ - only, that of an image also of : / @ +, and fits into
 * its array. Any other text is no name, and is left out as a whole: a part of a longer name would be
 * that of another container.
 */
#ifndef NETOBS_WHO_CONTAINER_FACTS_H
#define NETOBS_WHO_CONTAINER_FACTS_H

#include <netobs/record.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Finds the container and the pod of a control group by its path, and the unit of systemd, its slice
 * and the machine. Docker, containerd, CRI-O and
 * Podman name a container's group by its ID, 64 hexadecimal digits, with a prefix and ".scope"
 * where systemd manages it; the kubelet names a pod's group by the pod's UID.
 *
 * Any process that may create groups may use such names. So names are trusted only where runtimes
 * create them, counted from the root: pods below the kubelet's group, a container directly below
 * its pod, and the first container of a path. Groups further below, or below a user's own manager
 * (user@UID.service), may have been named by others.
 *
 * Slices are the first parts of a path; the unit is the part behind them. What is below a unit, or below a group
 * that is none, is named by its processes, so it is not read: the units of a machine are not found.
 */

#define PROCESS_SIZE(member) sizeof(((struct netobs_process *)NULL)->member)

struct cgroup_names {
	char container_id[72]; /* of the outermost container; "": none */
	char pod_uid[40]; /* with '-', unless it is a static pod's; "": none */
	/* Letters, digits and : . _ - @ (a machine without :, others also with a backslash); "": none, or too long. */
	char unit[PROCESS_SIZE(unit)];
	char slice[PROCESS_SIZE(slice)];     /* the innermost one */
	char machine[PROCESS_SIZE(machine)]; /* of nspawn, libvirt and LXC */
};

struct cgroup_names cgroup_names_of(const char *path);

/* "": not known. */
struct container_facts {
	char name[PROCESS_SIZE(container_name)]; /* the name that the runtime gave it */
	char image[PROCESS_SIZE(container_image)];
	/* For containers of Kubernetes: */
	char pod_container[PROCESS_SIZE(container_name)]; /* its name in the pod */
	char pod_name[PROCESS_SIZE(pod_name)];
	char pod_namespace[PROCESS_SIZE(pod_namespace)];
	char pod_uid[PROCESS_SIZE(pod_uid)];
};

/*
 * Reads a file, whose @text ends with a NUL, and fills @ret_facts.
 *
 * @param id  of the container
 * @return whether the file has a name of the container; else @ret_facts is not touched
 */
typedef bool container_facts_fn(const char *text, const char *id,
				struct container_facts *ret_facts);

container_facts_fn container_facts_of_docker, container_facts_of_oci;

/** Call @take for each container of a list that has a name. */
void container_facts_each(const char *text,
			  void (*take)(const char *id,
				       const struct container_facts *facts,
				       void *ctx),
			  void *ctx);

/** Read the facts that the name of a log file states. */
container_facts_fn container_facts_of_log;

/**
 * @return whether the facts are of a container in the pod that the control group names. The file
 * may also have labels of the container's image: they count only if they name this pod.
 */
bool container_facts_are_of_pod(const struct container_facts *facts,
				const struct cgroup_names *cgroup);

#endif
