// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Containers and pods in paths of control groups. */
#include "lib_test.h"

#include "who/container_facts.h"

#define ID "3f4c9a0b1d2e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8"
#define OTHER "00000000000000000000000000000000000000000000000000000000000000ff"
#define UID "0f3e9c1a-5b7d-4c2e-8a6f-1d2c3b4a5f60"
#define UID_OF_SYSTEMD "0f3e9c1a_5b7d_4c2e_8a6f_1d2c3b4a5f60"
#define STATIC_UID "7cde3aa1f3d24e1f8a9b0c1d2e3f4a5b"

static const struct {
	const char *path, *container, *pod;
} paths[] = {
	/* Docker: v1 and v2, cgroupfs and systemd */
	{ "/docker/" ID, ID, "" },
	{ "/system.slice/docker-" ID ".scope", ID, "" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID
	  ".scope",
	  "", "" }, /* a user may have called it so */
	/* Podman, and its monitor, which is not in the container */
	{ "/machine.slice/libpod-" ID ".scope", ID, "" },
	{ "/machine.slice/libpod-" ID ".scope/container", ID, "" },
	{ "/libpod_parent/libpod-" ID, ID, "" },
	{ "/machine.slice/libpod-conmon-" ID ".scope", "", "" },
	/* Kubernetes: Docker, containerd and CRI-O, of all classes */
	{ "/kubepods/burstable/pod" UID "/" ID, ID, UID },
	{ "/kubepods/besteffort/pod" UID "/" ID, ID, UID },
	{ "/kubepods/pod" UID "/" ID, ID, UID },
	{ "/kubepods/burstable/pod" STATIC_UID "/" ID, ID, STATIC_UID },
	{ "/kubepods/burstable/pod" UID "/crio-" ID, ID, UID },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_OF_SYSTEMD
	  ".slice/cri-containerd-" ID ".scope",
	  ID, UID },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_OF_SYSTEMD
	  ".slice/crio-" ID ".scope",
	  ID, UID },
	{ "/kubepods.slice/kubepods-pod" UID_OF_SYSTEMD ".slice/docker-" ID
	  ".scope",
	  ID, UID },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" STATIC_UID
	  ".slice/cri-containerd-" ID ".scope",
	  ID, STATIC_UID },
	{ "/kubepods.slice/kubepods-pod" UID_OF_SYSTEMD ".slice/crio-conmon-" ID
	  ".scope",
	  "", UID },
	/* containerd that does not know of systemd */
	{ "/system.slice/containerd.service/kubepods-burstable-pod" UID_OF_SYSTEMD
	  ".slice:cri-containerd:" ID,
	  ID, UID },
	/* A node in a container: groups below it may have any name */
	{ "/docker/" OTHER
	  "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
	  "kubelet-kubepods-burstable-pod" UID_OF_SYSTEMD
	  ".slice/cri-containerd-" ID ".scope",
	  OTHER, "" },
	{ "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
	  "kubelet-kubepods-burstable-pod" UID_OF_SYSTEMD
	  ".slice/cri-containerd-" ID ".scope",
	  ID, UID },
	{ "/kubelet/kubepods/burstable/pod" UID "/" ID, ID, UID },
	{ "/machine.slice/libpod-" ID ".scope/container/docker-" OTHER ".scope",
	  ID, "" },
	{ "/kubepods/burstable/pod" UID "/" ID "/pod" UID_OF_SYSTEMD "/" OTHER,
	  ID, UID },
	{ "/kubepods/pod" UID "/x/" ID, "", UID },
	{ "/system.slice/kubepods/pod" UID "/" ID, ID, "" },
	{ "/a.service/kubepods.slice/kubepods-pod" UID ".slice/x", "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/kubepods/pod" UID "/" ID,
	  "", "" },
	{ "/system.slice/mine-" ID ".scope", "", "" },
	{ "/kubepods/xpod" UID, "", "" },
	/* ECS */
	{ "/ecs/0123456789abcdef0123456789abcdef/" ID, ID, "" },
	/* None */
	{ "", "", "" },
	{ "/", "", "" },
	{ "//", "", "" },
	{ "/user.slice/user-0.slice/session-1.scope", "", "" },
	{ "/system.slice/nginx.service", "", "" },
	{ "/docker/x" ID, "", "" },
	{ "/docker/" ID "0", "", "" },
	{ "/docker/3F4C9A0B1D2E5F60718293A4B5C6D7E8F90A1B2C3D4E5F60718293A4B5C6D7E8",
	  "", "" },
	{ "/system.slice/pod" UID ".slice", "", "" },
	{ "/kubepods/pod" UID "0", "", "" },
	{ "/kubepods/pod0f3e9c1a-5b7d-4c2e-8a6f-1d2c3b4a5fg0", "", "" },
};

TEST(containers_and_pods_are_found)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct cgroup_names names = cgroup_names_of(paths[i].path);

		assert_string_equal(names.container_id, paths[i].container);
		assert_string_equal(names.pod_uid, paths[i].pod);
	}
}

/* In a buffer of just that size, so that the sanitizer sees who reads beyond. */
TEST(any_part_of_a_path_is_read_within_its_bounds)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		for (size_t len = strlen(paths[i].path); len--;) {
			char *part = strndup(paths[i].path, len);
			struct cgroup_names names = cgroup_names_of(part);

			assert_true(strlen(names.container_id) == 64 ||
				    !*names.container_id);
			free(part);
		}
	}
}
