# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Exact network flow observability with eBPF: libnetobs for Python.

    import netobs

    with netobs.Context(interfaces=["eth0"], interval_ms=1000) as context:
        for flow in context:
            print(flow.src, flow.dst, flow.bytes)

Options are keyword arguments with the names of the members of struct netobs_opts and
netobs_sink_opts; constants are netobs.lib.NETOBS_PROCESSES ... A record has the members
of its struct as attributes, None where one is not known, and dict() has it as netobsctl prints it. A context and its sinks
belong to one thread.
"""

import errno
import importlib.resources
import ipaddress
import json
import math
import os
import re
import signal
import time
from typing import Any, Dict, Iterable, Iterator, List, Optional, Union

import cffi

__all__ = ["Context", "Error", "Record", "Sink", "ffi", "lib", "version"]

JSON_MAX = 1 << 16
WAIT_MAX_MS = 500
_Path = Union[str, bytes, os.PathLike]


_VERSION = "NETOBS_VERSION_"
# All that this module names to cffi.
_STRUCTS = ("opts", "sink_opts", "record", "flow", "alert", "mapping", "point", "alert_rule", "stats")
_TYPES = ("char[]", "const char *[]", "struct netobs **", "struct netobs_sink **", "struct netobs_flow **",
          "struct netobs_alert_rule[]",
          *(f"struct netobs_{name}{end}" for name in _STRUCTS for end in ("", " *")))


def _declarations():
    try:
        return (importlib.resources.files(__package__) / "netobs.cdef").read_text()
    except FileNotFoundError:
        raise ImportError(
            "netobs: this is the source of the package, without netobs.cdef, which is made when it is "
            "built: pip install ./python, or PYTHONPATH=build/release/python") from None


def _parse(text):
    """
    cffi forgets what it has parsed in callbacks of weak references, and Python ignores what these raise, such
    as the exception of ^C. So signals wait here, and later no type is parsed.
    """
    declared = cffi.FFI()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        declared.cdef(text)
        for name in _TYPES:
            declared.typeof(name)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return declared


def _load():
    """@return cffi's two sides of the library that the declarations belong to"""
    text = _declarations()
    numbers = dict(re.findall(rf"^#define {_VERSION}(M\w+) (\d+)$", text, re.M))
    major, minor = (int(numbers[name]) for name in ("MAJOR", "MINOR"))
    wanted = f"{major}.{minor}" if major == 0 else f"{major}"
    path = os.environ.get("NETOBS_LIBRARY") or f"libnetobs.so.{wanted}"
    declared = _parse(text)
    try:
        loaded = declared.dlopen(path)
        number = loaded.netobs_version_number()
    except (AttributeError, OSError) as error:
        raise ImportError(
            f"netobs: {path} cannot be loaded: install libnetobs {wanted} (Debian: "
            f"libnetobs{wanted}), or set NETOBS_LIBRARY to the path of it. {error}") from None
    if number >> 16 != major or (number >> 8 & 0xff) < minor or (
            major == 0 and number >> 8 & 0xff != minor):
        raise ImportError(
            f"netobs: {path} has version {number >> 16}.{number >> 8 & 0xff}.{number & 0xff}, this "
            f"package is for {major}.{minor}: install both of one release")
    return declared, loaded


ffi, lib = _load()


class Error(OSError):
    """A call of libnetobs that failed: errno, and why as a text."""

    def __init__(self, code, why=""):
        super().__init__(-code, why or os.strerror(-code))


def _text_of(value):
    return ffi.string(value).decode(errors="replace") if value else ""


def _wait_ms(timeout):
    """Of seconds. A signal that comes just before a wait in C does not end it: waits are short."""
    return WAIT_MAX_MS if timeout is None else min(WAIT_MAX_MS, math.ceil(timeout * 1000))


def version() -> str:
    """That of the library."""
    return _text_of(lib.netobs_version())


# ---- Options -------------------------------------------------------------------------


class _Options:
    """A struct of options, and what it points to. Callbacks run in calls of the library only."""

    def __init__(self, struct, options):
        self.struct = ffi.new(f"struct {struct} *")
        self.struct.sz = ffi.sizeof(f"struct {struct}")
        self.why = ffi.new("char[]", lib.NETOBS_ERROR_MAX)
        self.kept = []
        self.failed = None
        self.on_failure = None
        self.types = {name: field.type for name, field in ffi.typeof(f"struct {struct}").fields}
        self.struct.error = ffi.cast(self.types["error"], self.why)
        for name, value in options.items():
            self.set(name, value)

    def keep(self, value):
        self.kept.append(value)
        return value

    def chars(self, text):
        return self.keep(ffi.new("char[]", os.fsencode(text)))

    def set(self, name, value):
        if name not in self.types or name in ("sz", "user", "error"):
            raise TypeError(f"'{name}' is not an option of libnetobs {version()}")
        if value is None:
            return
        kind = self.types[name]
        if kind.cname == "char * *":
            value = self.list(name, value)
        elif kind.kind == "enum" and isinstance(value, str):
            value = _enumerator(name, value, kind)
        elif kind.cname == "char *":
            value = self.chars(value)
        elif callable(value) and not isinstance(value, ffi.CData):
            value = self.callback(value, kind)
        elif kind.kind in ("pointer", "function") and not isinstance(value, ffi.CData):
            raise TypeError(f"{name}: a {kind.cname} is needed, not {value!r}")
        try:
            setattr(self.struct, name, value)
        except (OverflowError, TypeError) as error:
            raise type(error)(f"{name}: {error}") from None

    def list(self, name, texts):
        """One text is a list of one."""
        if isinstance(texts, (str, bytes, os.PathLike)):
            texts = [texts]
        try:
            texts = [self.chars(text) for text in texts]
        except TypeError:
            raise TypeError(f"{name}: a text or a list of texts is needed") from None
        return self.keep(ffi.new("const char *[]", [*texts, ffi.NULL]))

    def callback(self, function, kind):
        """It gets the arguments as Python has them, without the last one, which is for C."""
        def call(*arguments):
            result = function(*map(_argument, arguments[:-1]))
            return None if kind.result.kind == "void" else result

        return self.keep(ffi.callback(kind, call, onerror=self.catch))

    def catch(self, _, error, _traceback):
        """
        An exception cannot pass through C: check() raises it. Python runs handlers of signals at the
        beginning of any function, so that ^C may be raised in a callback before its first statement.
        """
        if self.failed is None or not isinstance(error, Exception):
            self.failed = error
        if self.on_failure:
            self.on_failure()

    def check(self):
        """After each call of the library that may run callbacks."""
        failed, self.failed = self.failed, None
        if failed is not None:
            raise failed


def _enumerator(option, text, kind):
    """direction="egress" is NETOBS_EGRESS, attach_order="last" NETOBS_ATTACH_LAST."""
    names = [f"{prefix}_{text.upper()}" for prefix in (
        f"NETOBS_{option.upper()}", "NETOBS_ATTACH", "NETOBS_SAMPLE", "NETOBS")]
    found = [kind.relements[name] for name in names if name in kind.relements]
    if not found:
        raise ValueError(f"{option}: '{text}' is none of {', '.join(kind.relements)}")
    return found[0]


def _argument(value):
    """Of a callback."""
    if not isinstance(value, ffi.CData):
        return value
    kind = ffi.typeof(value).item
    if kind.cname == "char":
        return _text_of(value)
    return Record(value) if kind.cname == "struct netobs_record" else value


# ---- Records -------------------------------------------------------------------------


def _python(value, kind):
    """A member of a struct, as Python has it. None: there is none."""
    if kind.kind in ("array", "pointer") and kind.item.cname == "char":
        return _text_of(value) or None
    if kind.kind == "array" and kind.item.cname == "uint8_t" and kind.length == 16:
        address = ipaddress.IPv6Address(bytes(value))
        return address.ipv4_mapped or address
    if kind.kind == "array" and kind.item.cname == "uint8_t" and kind.length == 6:
        return bytes(value).hex(":")
    if kind.kind == "array":
        return [_python(item, kind.item) for item in value]
    if kind.kind == "pointer" and kind.item.kind == "struct":
        return Struct(value, kind.item) if value else None
    if kind.kind == "struct":
        return Struct(ffi.addressof(value) if ffi.typeof(value).kind == "struct" else value,
                      kind)
    return value


def _members(kind):
    """Name -> type, also of structs without a name in it."""
    found = {}
    for name, field in kind.fields or ():
        if name:
            found[name] = field.type
        else:
            found.update(_members(field.type))
    return found


# Members that are known if a bit of record.has is set. Where all of a struct's bits are named
# NETOBS_<prefix>_HAS_..., that is their prefix here.
_ABSENT = {
    "netobs_flow": ("NETOBS_HAS_", {
        "PORTS": "src_port dst_port", "ICMP": "icmp_type icmp_code",
        "TCP": "tcp_flags tcp_combined", "MAC": "src_mac dst_mac l2_bytes", "VLAN": "vlan_id",
        "OUTER_VLAN": "outer_vlan_id", "TUNNEL": "tunnel", "VNI": "vni",
        "OUTER_PORTS": "outer_src_port outer_dst_port", "OUTER": "outer_src outer_dst",
        "FLOW_LABEL": "flow_label", "SAMPLING": "sampling sampling_mode",
        "RTT": "rtt_ns rtt_min_ns rtt_max_ns rtt_samples",
        "HANDSHAKE_RTT": "handshake_rtt_ns path_rtt_ns",
        "TCP_HEALTH": "retransmits retransmitted_bytes out_of_order late_unknown "
                      "duplicate_acks zero_windows",
        "APP_LATENCY": "app_latency_ns app_latency_min_ns app_latency_max_ns",
        "RESPONSE_TIME": "response_time_ns response_time_min_ns response_time_max_ns "
                         "app_responses",
        "XLAT": "xlat_src xlat_dst", "XLAT_PORTS": "xlat_src_port xlat_dst_port",
        "ORIG": "orig_src orig_dst", "ORIG_PORTS": "orig_src_port orig_dst_port",
        "ZONE": "zone_id", "CONVERSATION": "conversation_id",
        "DROPS": "drop_packets drop_bytes", "DROP_REASON": "drop_reason drop_cause"}),
    "netobs_alert": ("NETOBS_ALERT_HAS_", {"BASELINE": "baseline", "PROCESS": "pid process"}),
    "netobs_mapping": ("NETOBS_MAPPING_HAS_", {
        "PORTS": "src_port dst_port post_src_port post_dst_port", "ZONE": "zone",
        "START": "start_ns", "LAST": "last_ns", "END": "end_ns"}),
}
# Of C only.
_UNSEEN = re.compile(r"sz|has|type|record|n_points|point_size|reserved\d*")


def _bits(struct):
    """Member -> bit of record.has."""
    prefix, fields = _ABSENT.get(struct, ("", {}))
    return {member: getattr(lib, prefix + field)
            for field, members in fields.items() for member in members.split()}


class Struct:
    """A struct of the library, with its members as attributes. One that is not known is None."""

    _types = {}

    def __init__(self, pointer, kind):
        self._pointer = pointer
        self._struct = kind.cname.partition(" ")[2]
        if kind not in self._types:
            self._types[kind] = _members(kind), _bits(self._struct)
        self._kinds, self._has = self._types[kind]

    def __getattr__(self, name):
        if name.startswith("_") or name not in self._kinds:
            raise AttributeError(name)
        if name in self._has and not self._has[name] & ffi.cast(
                "struct netobs_record *", self._pointer).has:
            return None
        return _python(getattr(self._pointer, name), self._kinds[name])

    def __dir__(self):
        return [*super().__dir__(), *self._kinds]

    def __repr__(self):
        values = ((name, getattr(self, name)) for name in self._kinds if not _UNSEEN.fullmatch(name))
        return f"<{self._struct} " + " ".join(
            f"{name}={value}" for name, value in values if value is not None) + ">"


class Record(Struct):
    """A record that the program keeps: a flow, an alert or a mapping."""

    def __init__(self, pointer):
        name = _text_of(lib.netobs_record_type_name(pointer.type))
        struct = ffi.typeof(f"struct netobs_{name}")
        if name == "flow":
            copy = ffi.new("struct netobs_flow **")
            code = lib.netobs_flow_dup(ffi.cast("struct netobs_flow *", pointer), copy)
            if code < 0:
                raise Error(code)
            pointer = ffi.gc(copy[0], lib.netobs_flow_free)
        else:
            copy = ffi.new(f"{struct.cname} *")
            ffi.memmove(copy, pointer, min(ffi.sizeof(struct), pointer.sz))
            pointer = copy
        super().__init__(pointer, struct)

    @property
    def kind(self) -> str:
        """The name of its type: "flow", "alert" ..."""
        return _text_of(lib.netobs_record_type_name(
            ffi.cast("struct netobs_record *", self._pointer).type))

    @property
    def points(self) -> List[Struct]:
        """Where a flow was seen, in the order of the record."""
        kind = ffi.typeof("struct netobs_point")
        return [Struct(lib.netobs_flow_point(self._pointer, i), kind)
                for i in range(self._pointer.n_points)]

    def dict(self) -> Dict[str, Any]:
        """As netobsctl prints it, with the names of the catalogue of fields."""
        text = ffi.new("char[]", JSON_MAX)
        code = lib.netobs_record_json(ffi.cast("struct netobs_record *", self._pointer),
                                      text, JSON_MAX)
        if code < 0:
            raise Error(code)
        return json.loads(ffi.string(text))


# ---- Contexts ------------------------------------------------------------------------


class Context:
    """
    Observes interfaces. Iterating over it yields its records, until stop(): flows and, with rules, alerts, or
    those of the option records, 1 << netobs.lib.NETOBS_RECORD_MAPPING ...

    Options may be names: direction="egress", attach_order="last". on_log gets (level, message),
    on_interval nothing: all are optional. rules of alerts are texts: netobs-alert-rules(7).
    What a callback raises is raised by the call that it runs in.
    """

    def __init__(self, alerts: Union[str, Iterable[str]] = (), **options):
        self._context = None  # the first member, which is freed before the callbacks that it calls
        self._queue = []
        self._started = False
        if isinstance(alerts, str):
            alerts = [alerts]
        defaults = {"on_record": self._queue.append}
        if alerts:
            defaults |= {"records": 1 << lib.NETOBS_RECORD_FLOW | 1 << lib.NETOBS_RECORD_ALERT,
                         "rtt": 1}
        self._options = _Options("netobs_opts", defaults | options)
        made = ffi.new("struct netobs **")
        code = lib.netobs_new(self._options.struct, made)
        self._options.check()
        if code < 0:
            raise Error(code, _text_of(self._options.why))
        self._context = ffi.gc(made[0], lib.netobs_free)
        if alerts:
            self._set_alerts(alerts)

    def _set_alerts(self, rules):
        texts = [ffi.new("char[]", rule.encode()) for rule in rules]
        array = ffi.new("struct netobs_alert_rule[]", len(rules))
        for rule, text in zip(array, texts):
            rule.sz = ffi.sizeof("struct netobs_alert_rule")
            rule.rule = text
        self._check(lib.netobs_alerts_set(self._context, array, len(rules)))

    def _taken(self):
        records = self._queue[:]
        self._queue.clear()
        return records

    def _check(self, code):
        self._options.check()
        if code < 0:
            raise Error(code, _text_of(lib.netobs_last_error(self._context)))
        return code

    def start(self) -> None:
        """Begin to count. Needs the privileges of netobs_start(3)."""
        self._check(lib.netobs_start(self._context))
        self._started = True

    def stop(self) -> None:
        """Iterators yield what was counted until now, and end."""
        lib.netobs_stop(self._context)

    def close(self) -> None:
        """Detach everything. What was not yielded is dropped."""
        if self._context:
            ffi.release(self._context)
            self._options.check()
        self._context = None

    def __enter__(self) -> "Context":
        if not self._started:
            self.start()
        return self

    def __exit__(self, *_):
        self.close()

    def fileno(self) -> int:
        """For select, asyncio ...: readable when poll() has something to do."""
        return self._check(lib.netobs_fd(self._context))

    def poll(self, timeout: Optional[float] = None) -> Optional[List[Record]]:
        """
        Wait for @timeout seconds at most, and for half a second at a time: a signal that comes just before
        the wait does not end it. Returns the records that have come, often none; None: it was
        stopped, and these were all.
        """
        code = lib.netobs_poll(self._context, _wait_ms(timeout))
        self._options.check()
        if code not in (-errno.EINTR, -errno.ECANCELED):
            self._check(code)
        if code == -errno.ECANCELED and not self._queue:
            return None
        return self._taken()

    def drain(self) -> int:
        """Have everything that was seen so far delivered: the next poll() returns it."""
        return self._check(lib.netobs_drain(self._context))

    def __iter__(self) -> Iterator[Record]:
        if not self._started:
            self.start()
        records = self.poll()
        while records is not None:
            yield from records
            records = self.poll()

    def replay(self, *paths: _Path) -> List[Record]:
        """The flows of capture files, for a context that was not started."""
        texts = [ffi.new("char[]", os.fsencode(path)) for path in paths]
        self._options.on_failure = self.stop
        code = lib.netobs_replay_files(
            self._context, ffi.new("const char *[]", texts), len(texts))
        self._options.on_failure = None
        self._check(code)
        return self._taken()

    def stats(self) -> Dict[str, Any]:
        """What became of the packets, as of the last drain: netobs_stats_json()."""
        stats = ffi.new("struct netobs_stats *", {"sz": ffi.sizeof("struct netobs_stats")})
        self._check(lib.netobs_stats_get(self._context, stats))
        text = ffi.new("char[]", JSON_MAX)
        self._check(lib.netobs_stats_json(stats, text, JSON_MAX))
        return json.loads(ffi.string(text))


# ---- Sinks ---------------------------------------------------------------------------


class Sink:
    """Sends records where a spec of netobs-sinks(7) says."""

    def __init__(self, spec: _Path, context: Optional[Context] = None, **options):
        if context:
            options["context"] = context._context
        self._sink = None  # before the callbacks, as in Context
        self._options = _Options("netobs_sink_opts", options)
        made = ffi.new("struct netobs_sink **")
        code = lib.netobs_sink_open(os.fsencode(spec), self._options.struct, made)
        self._options.check()
        if code < 0:
            raise Error(code, _text_of(self._options.why))
        self._sink = ffi.gc(made[0], lib.netobs_sink_close)

    def _check(self, code):
        self._options.check()
        if code < 0:
            raise Error(code)
        return code

    def write(self, record: Record) -> None:
        """Does not block; a record that has no room is dropped and counted."""
        code = lib.netobs_sink_write(
            self._sink, ffi.cast("struct netobs_record *", record._pointer))
        if code != -errno.ENOBUFS:
            self._check(code)

    def flush(self) -> None:
        """Send written records, as far as the other side takes them now."""
        self._check(lib.netobs_sink_flush(self._sink))

    def dispatch(self) -> None:
        """When fileno() is readable: go on."""
        self._check(lib.netobs_sink_dispatch(self._sink))

    def fileno(self) -> int:
        return self._check(lib.netobs_sink_fd(self._sink))

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Send what is pending. False: something still is after @timeout seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else max(0, end - time.monotonic())
            code = lib.netobs_sink_wait(self._sink, _wait_ms(left))
            if code not in (-errno.ETIMEDOUT, -errno.EINTR):
                self._check(code)
                return True
            self._options.check()
            if left == 0:
                return False

    def stats(self) -> Dict[str, Any]:
        """What became of the records: netobs_sink_stats_json()."""
        text = ffi.new("char[]", JSON_MAX)
        self._check(lib.netobs_sink_stats_json(self._sink, text, JSON_MAX))
        return json.loads(ffi.string(text))

    def close(self) -> None:
        if self._sink:
            ffi.release(self._sink)
            self._options.check()
        self._sink = None

    def __enter__(self) -> "Sink":
        return self

    def __exit__(self, *_):
        self.close()
