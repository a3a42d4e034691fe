# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
What a guest starts from: a static busybox, the modules that reach the file
system of the host, and a script that goes there.
"""

import lzma
import os
import subprocess

MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
S_IFDIR, S_IFREG = 0o040755, 0o100755


def newc(entries):
    """A cpio archive as the kernel's initramfs/buffer-format.rst has it."""
    out = bytearray()
    for inode, (name, mode, data) in enumerate(
            [*entries, ("TRAILER!!!", 0, b"")], 1):
        fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0,
                  len(name) + 1, 0)
        out += b"070701" + "".join(f"{n:08x}" for n in fields).encode()
        out += name.encode() + b"\0"
        out += bytes(-len(out) % 4)
        out += data
        out += bytes(-len(out) % 4)
    return bytes(out)


def read(path):
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as file:
        return file.read()


def module_files(kernel):
    """Paths, each after those that it depends on."""
    paths = []
    for module in MODULES:
        shown = subprocess.run(
            ["modprobe", "-d", kernel.directory, "-S", kernel.release,
             "--show-depends", module],
            check=True, text=True, stdout=subprocess.PIPE).stdout
        for line in shown.splitlines():
            kind, path, *_ = line.split()
            if kind == "insmod" and path not in paths:
                paths.append(path)
    return paths


def make(kernel, init, path):
    """Write the archive to @path; @init is the script's text."""
    entries = [(name, S_IFDIR, b"") for name in
               ("bin", "modules", "proc", "dev", "host", "over", "root")]
    entries.append(("bin/busybox", S_IFREG, 
                    read(os.path.join(kernel.root, "bin/busybox"))))
    entries.append(("init", S_IFREG, init.encode()))
    for order, module in enumerate(module_files(kernel)):
        name = os.path.basename(module).removesuffix(".xz")
        entries.append((f"modules/{order:02}-{name}", S_IFREG, read(module)))
    with open(path, "wb") as file:
        file.write(newc(entries))
