# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""
Exact network flow observability with eBPF: libnetobs for Python.

    import netobs

    with netobs.Context(interfaces=["eth0"], interval_ms=1000) as context:
        for flow in context:
            print(flow.src, flow.dst, flow.bytes)

Options are keyword arguments with the names of the members of struct netobs_opts,
netobs_sink_opts ...; constants are netobs.lib.NETOBS_PROCESSES ... A record has the members
of its struct as attributes, and dict() has it as netobsctl prints it. A context and its sinks
belong to one thread.
"""

import collections
import errno
import importlib.resources
import ipaddress
import json
import os
import re

import cffi

__all__ = ["Context", "Error", "Record", "Sink", "ffi", "lib", "version"]

JSON_MAX = 1 << 16


_VERSION = "NETOBS_VERSION_"


def _declarations():
    try:
        return (importlib.resources.files(__package__) / "netobs.cdef").read_text()
    except FileNotFoundError:
        raise ImportError(
            "netobs: this is the source of the package, without netobs.cdef, which is made when it is "
            "built: pip install ./python, or PYTHONPATH=build/release/python") from None


def _load():
    """@return cffi's two sides of the library that the declarations belong to"""
    text = _declarations()
    numbers = dict(re.findall(rf"^#define {_VERSION}(M\w+) (\d+)$", text, re.M))
    major, minor = (int(numbers[name]) for name in ("MAJOR", "MINOR"))
    wanted = f"{major}.{minor}" if major == 0 else f"{major}"
    path = os.environ.get("NETOBS_LIBRARY") or f"libnetobs.so.{wanted}"
    declared = cffi.FFI()
    declared.cdef(text)
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


def version():
    """That of the library."""
    return _text_of(lib.netobs_version())


# ---- Options -------------------------------------------------------------------------


class _Options:
    """A struct of options, and what it points to."""

    def __init__(self, struct, callbacks, options):
        self.struct = ffi.new(f"struct {struct} *")
        self.struct.sz = ffi.sizeof(f"struct {struct}")
        self.why = ffi.new("char[]", lib.NETOBS_ERROR_MAX)
        self.struct.error = ffi.cast(f"char (*)[{lib.NETOBS_ERROR_MAX}]", self.why)
        self.kept = []
        self.types = dict(ffi.typeof(f"struct {struct}").fields)
        for name, value in {**callbacks, **options}.items():
            self.set(name, value)

    def keep(self, value):
        self.kept.append(value)
        return value

    def chars(self, text):
        return self.keep(ffi.new("char[]", os.fsencode(text)))

    def set(self, name, value):
        if name not in self.types:
            raise TypeError(f"'{name}' is not an option of libnetobs {version()}")
        kind = self.types[name].type
        if isinstance(value, (str, bytes, os.PathLike)):
            value = self.chars(value)
        elif isinstance(value, (list, tuple)):
            value = self.keep(ffi.new("const char *[]", [*map(self.chars, value), ffi.NULL]))
        elif callable(value):
            value = self.keep(ffi.callback(kind, value))
        setattr(self.struct, name, value)


# ---- Records -------------------------------------------------------------------------


def _python(value, kind):
    """A member of a struct, as Python has it."""
    if kind.kind == "array" and kind.item.cname == "char":
        return _text_of(value)
    if kind.kind == "array" and kind.item.cname == "uint8_t" and kind.length == 16:
        address = ipaddress.IPv6Address(bytes(value))
        return address.ipv4_mapped or address
    if kind.kind == "array":
        return [_python(item, kind.item) for item in value]
    if kind.kind == "pointer" and kind.item.cname == "char":
        return _text_of(value)
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


class Struct:
    """A struct of the library, with its members as attributes."""

    _types = {}

    def __init__(self, pointer, kind):
        self._pointer = pointer
        if kind not in self._types:
            self._types[kind] = _members(kind)
        self._kinds = self._types[kind]

    def __getattr__(self, name):
        if name.startswith("_") or name not in self._kinds:
            raise AttributeError(name)
        return _python(getattr(self._pointer, name), self._kinds[name])

    def __dir__(self):
        return [*super().__dir__(), *self._kinds]


class Record(Struct):
    """A record that the program keeps: struct netobs_flow, netobs_alert ..."""

    STRUCTS = ("netobs_flow", "netobs_stats_record", "netobs_session", "netobs_alert",
               "netobs_mapping", "netobs_drop")

    def __init__(self, pointer):
        kind = ffi.cast("struct netobs_record *", pointer).type
        struct = ffi.typeof(f"struct {self.STRUCTS[kind]}")
        if kind == lib.NETOBS_RECORD_FLOW:
            copy = ffi.new("struct netobs_flow **")
            code = lib.netobs_flow_dup(pointer, copy)
            if code < 0:
                raise Error(code)
            pointer = ffi.gc(copy[0], lib.netobs_flow_free)
        else:
            copy = ffi.new(f"{struct.cname} *")
            ffi.memmove(copy, pointer, min(ffi.sizeof(struct), ffi.cast(
                "struct netobs_record *", pointer).sz))
            pointer = copy
        super().__init__(pointer, struct)
        self._type = kind

    @property
    def kind(self):
        """The name of its type: "flow", "alert" ..."""
        return _text_of(lib.netobs_record_type_name(self._type))

    @property
    def points(self):
        """Where a flow was seen, in the order of the record."""
        kind = ffi.typeof("struct netobs_point")
        return [Struct(lib.netobs_flow_point(self._pointer, i), kind)
                for i in range(self._pointer.n_points)]

    def dict(self):
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
    Observes interfaces. Iterating over it yields its flows and alerts, until stop().

    on_log gets (level, message); on_interval nothing: both are optional. rules of alerts
    are texts: netobs-alert-rules(7).
    """

    def __init__(self, alerts=(), on_log=None, on_interval=None, **options):
        self._queue = collections.deque()
        self._failed = None
        self._started = False
        callbacks = {"on_flow": lambda flow, _: self._take(flow),
                     "on_interval": lambda _: self._call(on_interval),
                     "on_log": lambda level, text, _: self._call(
                         on_log, level, _text_of(text))}
        if alerts:
            callbacks["on_alert"] = lambda alert, _: self._take(alert)
            options.setdefault("rtt", lib.NETOBS_RTT_TIMERS)
        self._options = _Options("netobs_opts", callbacks, options)
        made = ffi.new("struct netobs **")
        code = lib.netobs_new(self._options.struct, made)
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

    def _call(self, function, *arguments):
        """For the library: what it raises is raised by the call that is under way."""
        try:
            if function:
                function(*arguments)
        except BaseException as error:  # pylint: disable=broad-exception-caught
            self._failed = self._failed or error

    def _take(self, record):
        self._call(lambda: self._queue.append(Record(record)))

    def _check(self, code):
        failed, self._failed = self._failed, None
        if failed:
            raise failed
        if code < 0:
            raise Error(code, _text_of(lib.netobs_last_error(self._context)))
        return code

    def start(self):
        """Begin to count. Needs the privileges of netobs_start(3)."""
        self._check(lib.netobs_start(self._context))
        self._started = True

    def stop(self):
        """Iterators yield what was counted until now, and end."""
        lib.netobs_stop(self._context)

    def close(self):
        """Detach everything. What was not yielded is dropped."""
        if self._context:
            ffi.release(self._context)
        self._context = None

    def __enter__(self):
        if not self._started:
            self.start()
        return self

    def __exit__(self, *_):
        self.close()

    def fileno(self):
        """For select, asyncio ...: readable when poll() has something to do."""
        return self._check(lib.netobs_fd(self._context))

    def poll(self, timeout=None):
        """
        Wait for @timeout seconds at most. Returns the records that have come; None: it was
        stopped, and these were all.
        """
        wait = -1 if timeout is None else int(timeout * 1000)
        code = lib.netobs_poll(self._context, wait)
        if code not in (-errno.EINTR, -errno.ECANCELED):
            self._check(code)
        self._check(0)
        if code == -errno.ECANCELED and not self._queue:
            return None
        records, self._queue = list(self._queue), collections.deque()
        return records

    def drain(self):
        """Have everything that was seen so far delivered: the next poll() returns it."""
        return self._check(lib.netobs_drain(self._context))

    def __iter__(self):
        if not self._started:
            self.start()
        records = self.poll()
        while records is not None:
            yield from records
            records = self.poll()

    def replay(self, *paths):
        """The flows of capture files, for a context that was not started."""
        texts = [ffi.new("char[]", os.fsencode(path)) for path in paths]
        self._check(lib.netobs_replay_files(
            self._context, ffi.new("const char *[]", texts), len(texts)))
        records, self._queue = list(self._queue), collections.deque()
        return records

    def stats(self):
        """What became of the packets, as of the last drain: netobs_stats_json()."""
        stats = ffi.new("struct netobs_stats *", {"sz": ffi.sizeof("struct netobs_stats")})
        self._check(lib.netobs_stats_get(self._context, stats))
        text = ffi.new("char[]", JSON_MAX)
        self._check(lib.netobs_stats_json(stats, text, JSON_MAX))
        return json.loads(ffi.string(text))


# ---- Sinks ---------------------------------------------------------------------------


class Sink:
    """Sends records where a spec of netobs-sinks(7) says."""

    def __init__(self, spec, context=None, on_log=None, **options):
        callbacks = {}
        if on_log:
            callbacks["on_log"] = lambda level, text, _: on_log(level, _text_of(text))
        self._options = _Options("netobs_sink_opts", callbacks, options)
        if context:
            self._options.struct.context = context._context
        made = ffi.new("struct netobs_sink **")
        code = lib.netobs_sink_open(os.fsencode(spec), self._options.struct, made)
        if code < 0:
            raise Error(code, _text_of(self._options.why))
        self._sink = ffi.gc(made[0], lib.netobs_sink_close)

    @staticmethod
    def _check(code):
        if code < 0:
            raise Error(code)
        return code

    def write(self, record):
        """Does not block; a record that has no room is dropped and counted."""
        code = lib.netobs_sink_write(
            self._sink, ffi.cast("struct netobs_record *", record._pointer))
        if code != -errno.ENOBUFS:
            self._check(code)

    def flush(self):
        """Send written records, as far as the other side takes them now."""
        self._check(lib.netobs_sink_flush(self._sink))

    def dispatch(self):
        """When fileno() is readable: go on."""
        self._check(lib.netobs_sink_dispatch(self._sink))

    def fileno(self):
        return self._check(lib.netobs_sink_fd(self._sink))

    def wait(self, timeout=None):
        """Send what is pending. False: something still is after @timeout seconds."""
        code = lib.netobs_sink_wait(self._sink, -1 if timeout is None else int(timeout * 1000))
        if code == -errno.ETIMEDOUT:
            return False
        self._check(code)
        return True

    def stats(self):
        """What became of the records: netobs_sink_stats_json()."""
        text = ffi.new("char[]", JSON_MAX)
        self._check(lib.netobs_sink_stats_json(self._sink, text, JSON_MAX))
        return json.loads(ffi.string(text))

    def close(self):
        if self._sink:
            ffi.release(self._sink)
        self._sink = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
