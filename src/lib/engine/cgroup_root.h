/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The root of the hierarchy of control groups (cgroup v2), where programs see all sockets. */
#ifndef NETOBS_ENGINE_CGROUP_ROOT_H
#define NETOBS_ENGINE_CGROUP_ROOT_H

/** @return a descriptor of its directory, which the caller closes; or -errno */
int cgroup_root_open(void);

#endif
