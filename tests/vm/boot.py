# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
One guest in QEMU, without hardware virtualisation: its root is the host's file
system, read-only; what it finds goes to a directory that it may write to.
"""

import ctypes
import os
import signal
import subprocess

import clock
import initramfs

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
MEMORY_MIB = 3072
PR_SET_PDEATHSIG = 1
# Without what only costs time in an emulated machine.
FASTER = "mitigations=off nokaslr audit=0 apparmor=0 init_on_alloc=0"


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def amd64(kernel):
    """
    A simple CPU: kernels spend two to three times as long in an emulation of all that
    "max" has. cmpxchg16b crashes Linux 6.12 under QEMU 7.2; without it, newer ones have no
    memory for the storage of sockets (kmalloc_nolock()). One thread takes turns in
    being the guest's CPUs: with a thread for each, a CPU may run code that another is
    patching, and the kernel dies of an int3. All clocks of the guest are the host's,
    though kernels before 5.13 find them apart. Nor may a kernel stop because no timer
    interrupt came in time: a busy host is late.
    """
    cpu = "Nehalem" if kernel.name == "newest" else "Nehalem,-cx16"
    return (["qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", cpu],
            f"console=ttyS0 no_timer_check tsc=reliable tsc_early_khz={clock.tsc_khz()}")


def arm64(_kernel):
    return (["qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a57"],
            "console=ttyAMA0")


# By a kernel's architecture: command and CPU, and what the kernel is to know of them.
MACHINES = {"amd64": amd64, "arm64": arm64}


def share(tag, path, *options):
    return ["-virtfs", ",".join(("local", f"path={path}", f"mount_tag={tag}",
                                 "security_model=none", "multidevs=remap",
                                 *options))]


def command(kernel, initrd, out, cpus, serial):
    machine, options = MACHINES[kernel.architecture](kernel)
    guest = os.path.join(HERE, "guest.sh")
    seen = f"{SOURCE}:{kernel.directory}" if kernel.root != "/" else ""
    return [
        *machine,
        "-smp", str(cpus), "-m", str(MEMORY_MIB), "-nodefaults",
        "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", kernel.image, "-initrd", initrd, "-append",
        f"{options} panic=-1 loglevel=4 {FASTER} netobs_guest={guest} "
        f"netobs_root={kernel.root} netobs_seen={seen}",
        "-serial", serial, "-device", "virtio-rng-pci",
        *share("host", "/", "readonly=on"), *share("out", out)]


running = set()


def stop_all():
    """For a caller that must not wait for the guests of other threads."""
    for process in list(running):
        process.kill()


def boot(kernel, out, cpus, limit_s, shell=False):
    """
    Run a guest until it powers off; False when it had to be stopped. Its
    console goes to @out/console.log, or with @shell to the terminal.
    """
    initrd = os.path.join(out, "initramfs")
    with open(os.path.join(HERE, "init.sh"), encoding="utf-8") as file:
        initramfs.make(kernel, file.read(), initrd)
    serial = "mon:stdio" if shell else f"file:{out}/console.log"
    process = subprocess.Popen(
        command(kernel, initrd, out, cpus, serial), preexec_fn=die_with_parent,
        stdin=None if shell else subprocess.DEVNULL)
    running.add(process)
    try:
        return process.wait(None if shell else limit_s) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        process.kill()
        process.wait()
        running.remove(process)
        os.unlink(initrd)
