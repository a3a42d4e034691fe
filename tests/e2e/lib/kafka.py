# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: default-jre-headless kcat openssl
"""A Kafka broker of one node, and what it has. Its jars come from Maven Central."""

import base64
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import uuid

from lib import certs
from lib import lab
from lib import maven

V3, V4 = "3.9.1", "4.1.0"
LOGGING = {
    V3: ("org.slf4j", "slf4j-reload4j", "1.7.36"),
    V4: ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
}
JAVA = ["java", "-Xms128m", "-Xmx256m", "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1", "-Dlog4j.rootLogger=WARN"]
LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def jars(version):
    return maven.jars("kafka", version, *(("org.apache.kafka", name, version)
                                          for name in ("kafka_2.13", "kafka-tools")),
                      LOGGING[version])


def free_ports(count):
    """Free ports, reserved while further ones are chosen."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def make_certificates(directory):
    """The certificates of a server and of a client; the server's in a file of its own."""
    made = certs.Certificates(directory)
    for name in ("server", "client"):
        made.sign(name, "IP:127.0.0.1", "DNS:localhost")
    with open(made.path("keystore.pem"), "wb") as out:
        for name in ("server.key", "server.pem"):
            with open(made.path(name), "rb") as file:
                out.write(file.read())


class Message:
    """One that a topic has."""

    def __init__(self, partition, key, value):
        self.partition = partition
        self.key = key
        self.value = value


def parse_messages(data):
    """What kcat printed as '%p %K %S ' and key and value."""
    at = 0
    while at < len(data):
        partition, key_len, value_len = data[at:at + 64].split(b" ", 3)[:3]
        at += len(partition) + len(key_len) + len(value_len) + 3
        has_key = int(key_len) > 0
        key = data[at:at + int(key_len)] if has_key else None
        at += len(key or b"")
        yield Message(int(partition), key, data[at:at + int(value_len)])
        at += int(value_len)


class Broker:
    """A broker with a listener of each kind, all on loopback.

    `users` may log in: {name: password}. Set another and restart() to change them.
    """

    def __init__(self, where, version=V3, ns=None, settings=(), users=None):
        maven.need("java", "kcat", "openssl")
        self.where, self.version, self.ns = where, version, ns
        self.settings = dict(settings)
        self.users = dict(users or {})
        self.jars = jars(version)
        self.dir = tempfile.mkdtemp(prefix="kafka-", dir=where.dir)
        self.ports = dict(zip(LISTENERS + ("CONTROLLER",),
                              free_ports(len(LISTENERS) + 1)))
        self.process = None
        make_certificates(self.dir)
        self.format()

    def path(self, name):
        return os.path.join(self.dir, name)

    def address(self, listener="PLAINTEXT"):
        return f"127.0.0.1:{self.ports[listener]}"

    # ---- Its configuration

    def properties(self):
        listeners = {name: self.address(name) for name in LISTENERS}
        urls = [f"{name}://{address}" for name, address in listeners.items()]
        controller = self.address("CONTROLLER")
        lines = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": ",".join(urls + [f"CONTROLLER://{controller}"]),
            "advertised.listeners": ",".join(urls),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT," +
                ",".join(f"{name}:{name}" for name in LISTENERS),
            "log.dirs": self.path("data"),
            "num.partitions": 3,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # A broker that was killed may not come back before it is missed.
            "broker.session.timeout.ms": 1500,
            "broker.heartbeat.interval.ms": 300,
            "num.network.threads": 2,
            "num.io.threads": 2,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.path("keystore.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.path("ca.pem"),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        }
        if self.version == V3:
            lines["controller.quorum.voters"] = f"1@{controller}"
        else:
            lines["controller.quorum.bootstrap.servers"] = controller
        lines.update(self.login_properties())
        lines.update(self.settings)
        return lines

    def login_properties(self):
        module = "org.apache.kafka.common.security"
        users = " ".join(f'user_{name}="{password}"'
                         for name, password in self.users.items())
        for listener in ("sasl_plaintext", "sasl_ssl"):
            prefix = f"listener.name.{listener}"
            yield (f"{prefix}.plain.sasl.jaas.config",
                   f"{module}.plain.PlainLoginModule required {users};")
            for scram in ("scram-sha-256", "scram-sha-512"):
                yield (f"{prefix}.{scram}.sasl.jaas.config",
                       f"{module}.scram.ScramLoginModule required;")

    def write_properties(self):
        with open(self.path("properties"), "w", encoding="ascii") as file:
            for name, value in self.properties().items():
                file.write(f"{name}={value}\n")

    def format(self):
        """Its storage, with the users that SCRAM knows."""
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()
        # It may begin with a dash, which an option's value of its own may not.
        options = [f"--cluster-id={cluster.rstrip('=')}", "-c",
                   self.path("properties")]
        if self.version != V3:
            options.append("--standalone")
        for name, password in self.users.items():
            for scram in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                options += ["--add-scram",
                            f"{scram}=[name={name},password={password}]"]
        self.write_properties()
        self.java("kafka.tools.StorageTool", "format", *options)

    def java(self, *command):
        return lab.run(*self.command(*JAVA, "-cp", self.jars, *command),
                       cwd=self.dir)

    # ---- Its life

    def start(self, wait=True):
        self.write_properties()
        with open(self.path("log"), "ab") as log:
            self.process = self.where.spawn(
                *JAVA, "-cp", self.jars, "kafka.Kafka",
                self.path("properties"), ns=self.ns, cwd=self.dir, stdout=log,
                stderr=log)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, seconds=60):
        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"the broker ended: {self.log()}")
            return self.is_ready()
        lab.wait_for(ready, "the broker", seconds)

    def is_ready(self):
        done = subprocess.run(
            self.command("kcat", "-L", "-b", self.address(), "-m", "1"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def log(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def end(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)

    def kill(self):
        self.end(signal.SIGKILL)

    def stop(self):
        self.end(signal.SIGTERM)

    # ---- What it has

    def command(self, *command):
        return self.ns.command(*command) if self.ns else list(command)

    def make_topic(self, topic, **settings):
        options = [part for name, value in settings.items() for part in
                   ("--config", f"{name.replace('_', '.')}={value}")]
        self.java("org.apache.kafka.tools.TopicCommand", "--bootstrap-server",
                  self.address(), "--create", "--topic", topic, *options)

    def messages(self, topic):
        """All that a topic has, now."""
        done = subprocess.run(
            self.command("kcat", "-C", "-b", self.address(), "-t", topic, "-o",
                         "beginning", "-e", "-q", "-D", "", "-f",
                         "%p %K %S %k%s"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise RuntimeError(f"kcat: {done.stderr.decode()}")
        return list(parse_messages(done.stdout))
