# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""What container runtimes of a host would have written about their containers."""

import json
import os

UID = "0f3e9c1a-5b7d-4c2e-8a6f-1d2c3b4a5f60"
POD = f"kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice"
TASKS = "run/containerd/io.containerd.runtime.v2.task"
STORAGE = "containers/storage/overlay-containers"
KUBELET = ("io.kubernetes.container.name", "io.kubernetes.pod.name",
           "io.kubernetes.pod.namespace", "io.kubernetes.pod.uid")


class Host:
    """A directory with the files of runtimes, below which there is nothing else."""

    def __init__(self, root):
        self.root = root
        os.mkdir(root)

    def write(self, path, content):
        """As runtimes do, at once: readers see all of it, or nothing."""
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="ascii") as file:
            json.dump(content, file)
        os.rename(path + ".new", path)

    def remove(self, path):
        os.unlink(os.path.join(self.root, path))

    # Each: the path of its control group, the files that name it, and its names.

    def docker(self, number, name):
        path = f"var/lib/docker/containers/{number}/config.v2.json"
        self.write(path, {"ID": number, "Name": f"/{name}",
                          "Config": {"Image": "nginx:1.25", "Labels": {}}})
        return f"docker/{number}", [path], {"ContainerName": name, "ContainerImage": "nginx:1.25"}

    def docker_with_labels(self, number, name):
        """Of an image that claims to be of a pod."""
        path = f"var/lib/docker/containers/{number}/config.v2.json"
        self.write(path, {"ID": number, "Name": f"/{name}", "Config": {
            "Image": "a", "Labels": dict(zip(KUBELET, ("a", "b", "c", UID)))}})
        return (f"system.slice/docker-{number}.scope", [path],
                {"ContainerName": name, "ContainerImage": "a"})

    def podman(self, number, name):
        path = f"var/lib/{STORAGE}/containers.json"
        whole = os.path.join(self.root, path)
        listed = []
        if os.path.exists(whole):
            with open(whole, encoding="ascii") as file:
                listed = json.load(file)
        os.makedirs(os.path.join(self.root, f"var/lib/{STORAGE}/{number}/userdata"))
        self.write(path, [*listed, {"id": number, "names": [name], "metadata": json.dumps(
            {"image-name": "docker.io/library/busybox:latest", "name": name})}])
        return (f"machine.slice/libpod-{number}.scope", [path],
                {"ContainerName": name, "ContainerImage": "docker.io/library/busybox:latest"})

    def crio(self, number, name):
        path = f"run/{STORAGE}/{number}/userdata/config.json"
        self.write(path, {"annotations": dict(zip(KUBELET, (name, f"{name}-0", "shop", UID))) | {
            "io.container.manager": "cri-o", "io.kubernetes.cri-o.ImageName": "redis:7"}})
        return f"{POD}/crio-{number}.scope", [path], {
            "ContainerName": name, "ContainerImage": "redis:7", "PodName": f"{name}-0",
            "PodNamespace": "shop"}

    def containerd(self, number, name):
        path = f"{TASKS}/k8s.io/{number}/config.json"
        words = {"container-type": "container", "container-name": name, "image-name": "redis:7",
                 "sandbox-name": f"{name}-0", "sandbox-namespace": "shop", "sandbox-uid": UID}
        self.write(path, {"annotations": {f"io.kubernetes.cri.{key}": value
                                          for key, value in words.items()}})
        return f"{POD}/cri-containerd-{number}.scope", [path], {
            "ContainerName": name, "ContainerImage": "redis:7", "PodName": f"{name}-0",
            "PodNamespace": "shop"}

    def kubelet(self, number, name):
        """Its link to a log only: the runtime has its files elsewhere."""
        path = f"var/log/containers/{name}-0_shop_{name}-{number}.log"
        os.makedirs(os.path.join(self.root, os.path.dirname(path)), exist_ok=True)
        os.symlink("/nonexistent", os.path.join(self.root, path))
        return f"{POD}/cri-containerd-{number}.scope", [path], {
            "ContainerName": name, "PodName": f"{name}-0", "PodNamespace": "shop"}

    def docker_elsewhere(self, number, name):
        """With data-root and userns-remap, of a task of Swarm."""
        self.write("etc/docker/daemon.json", {"data-root": "/mnt/docker"})
        name = f"monitoring-production_prometheus-alertmanager-{name}.1.k3x9q2v7m1r5t8y0w4e6u2i9o"
        path = f"mnt/docker/231072.231072/containers/{number}/config.v2.json"
        self.write(path, {"ID": number, "Name": f"/{name}", "Config": {"Image": "a", "Labels": {}}})
        return f"docker/{number}", [path], {"ContainerName": name, "ContainerImage": "a"}

    def unknown(self, number, _name):
        """Of a runtime without any file."""
        return f"docker/{number}", [], {}

    KINDS = (docker, docker_with_labels, podman, crio, containerd, kubelet, docker_elsewhere, unknown)
