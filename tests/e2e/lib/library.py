# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""libnetobs.so in this process, for what netobsctl does not show meanwhile."""

import ctypes
import os

LOG_ERROR = 3
REASONS_MAX = 16 # NETOBS_REASONS_MAX
DRAIN_TIMES = 22 # NETOBS_DRAIN_TIMES
CANCELED = -125 # ECANCELED, of every Linux
IN_PROGRESS = -115 # EINPROGRESS
ACCEPT = 1 # NETOBS_ACCEPT
PROCESSES = 1 << 2 # NETOBS_PROCESSES
LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class Count(ctypes.Structure):
    """struct netobs_count"""

    _fields_ = [("packets", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]

    def pair(self):
        return self.packets, self.bytes


class Rule(ctypes.Structure):
    """struct netobs_rule"""

    _fields_ = [("sz", ctypes.c_size_t),
                ("filter", ctypes.c_char_p),
                ("action", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


def rules(expressions, default_action=ACCEPT):
    """The rules of the options, which accept matching packets."""
    size = ctypes.sizeof(Rule)
    return {"rules": (Rule * len(expressions))(*(
                Rule(sz=size, filter=one.encode(), action=ACCEPT) for one in expressions)),
            "n_rules": len(expressions), "default_action": default_action}


class Options(ctypes.Structure):
    """struct netobs_opts"""

    _fields_ = [("sz", ctypes.c_size_t),
                ("interfaces", ctypes.POINTER(ctypes.c_char_p)),
                ("exclude", ctypes.POINTER(ctypes.c_char_p)),
                ("direction", ctypes.c_uint32),
                ("attach_order", ctypes.c_uint32),
                ("filter", ctypes.c_char_p),
                ("rules", ctypes.POINTER(Rule)),
                ("n_rules", ctypes.c_uint32),
                ("default_action", ctypes.c_uint32),
                ("sampling", ctypes.c_uint32),
                ("sampling_mode", ctypes.c_uint32),
                ("flags", ctypes.c_uint64),
                ("interval_ms", ctypes.c_uint32),
                ("active_timeout_ms", ctypes.c_uint32),
                ("idle_timeout_ms", ctypes.c_uint32),
                ("rtt", ctypes.c_uint32),
                ("min_bytes", ctypes.c_uint64),
                ("max_memory", ctypes.c_uint64),
                ("max_flows", ctypes.c_uint32),
                ("max_connections", ctypes.c_uint32),
                ("persist", ctypes.c_char_p),
                ("on_record", ctypes.c_void_p),
                ("records", ctypes.c_uint64),
                ("on_interval", ctypes.c_void_p),
                ("on_log", LOG),
                ("user", ctypes.c_void_p),
                ("error", ctypes.c_void_p),
                ("disable_features", ctypes.c_uint64)]


class Stats(ctypes.Structure):
    """struct netobs_stats"""

    _fields_ = [("sz", ctypes.c_size_t),
                *((name, Count) for name in (
                    "seen", "observed", "exported", "pending", "filtered",
                    "sampled_out")),
                ("unparsed", Count * REASONS_MAX),
                ("lost", Count * REASONS_MAX),
                *((name, ctypes.c_uint64) for name in (
                    "flows", "drains", "early_drains", "table_entries")),
                ("interfaces", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32),
                ("spilled", Count),
                ("kernel_memory", ctypes.c_uint64),
                ("inferred", Count),
                ("small", Count),
                ("flow_memory", ctypes.c_uint64)]


class EngineStats(ctypes.Structure):
    """struct netobs_engine_stats"""

    _fields_ = [("sz", ctypes.c_size_t),
                *((name, ctypes.c_uint64) for name in (
                    "drains", "drain_ns", "drain_cpu_ns")),
                ("drains_by_time", ctypes.c_uint64 * DRAIN_TIMES),
                ("max_flows", ctypes.c_uint64),
                ("programs", ctypes.c_uint32),
                ("kept", ctypes.c_uint32),
                ("program_runs", ctypes.c_uint64),
                ("program_ns", ctypes.c_uint64),
                ("translations", ctypes.c_uint64),
                ("translations_refused", ctypes.c_uint64),
                ("translations_lost", ctypes.c_uint64),
                ("translations_ambiguous", ctypes.c_uint64)]


def load():
    """Without sanitizers, which a program must have been started with."""
    library = ctypes.CDLL(
        os.path.join(os.environ["NETOBS_RELEASE"], "libnetobs.so"))
    context = ctypes.c_void_p
    library.netobs_new.argtypes = [ctypes.POINTER(Options),
                                   ctypes.POINTER(context)]
    library.netobs_stats_get.argtypes = [context, ctypes.POINTER(Stats)]
    library.netobs_engine_stats_get.argtypes = [context, ctypes.POINTER(EngineStats)]
    library.netobs_poll.argtypes = [context, ctypes.c_int]
    library.netobs_change_begin.argtypes = [context, ctypes.POINTER(Options)]
    for name in ("start", "fd", "dispatch", "drain", "stop", "free", "change_result"):
        getattr(library, f"netobs_{name}").argtypes = [context]
    for name in ("stop", "free"):
        getattr(library, f"netobs_{name}").restype = None
    return library


class Context:
    """
    Observes one interface of @ns, or of this thread's namespace, from construction on; freed by the lab,
    or before.
    """

    def __init__(self, where, ns, interface, **options):
        name = (f"netns:{ns.name}/{interface}" if ns else interface).encode()
        self.lib = load()
        self.context = ctypes.c_void_p()
        self.messages = []
        self.errors = []
        self.on_log = LOG(self._log)
        self.interfaces = (ctypes.c_char_p * 2)(name, None)
        self._check(self.lib.netobs_new(self._options(**options),
                                        ctypes.byref(self.context)))
        where.defer(self.lib.netobs_free, self.context)
        self._check(self.lib.netobs_start(self.context))

    def _options(self, **options):
        return Options(sz=ctypes.sizeof(Options), interfaces=self.interfaces,
                       on_log=self.on_log, **options)

    def begin_change(self, **options):
        self._check(self.lib.netobs_change_begin(self.context, self._options(**options)))

    def is_changing(self):
        """False once the change is in use."""
        result = self.lib.netobs_change_result(self.context)
        return result == IN_PROGRESS or self._check(result) != 0

    def _log(self, level, message, _user):
        text = message.decode()
        self.messages.append(text)
        if level <= LOG_ERROR:
            self.errors.append(text)

    def _check(self, result):
        if result < 0:
            raise OSError(-result, f"{os.strerror(-result)}: {self.messages}")
        return result

    def stats(self):
        stats = Stats(sz=ctypes.sizeof(Stats))
        self._check(self.lib.netobs_stats_get(self.context, stats))
        if stats.sz != ctypes.sizeof(Stats):
            raise RuntimeError("struct netobs_stats is not what it was")
        return stats

    def engine_stats(self):
        stats = EngineStats(sz=ctypes.sizeof(EngineStats))
        self._check(self.lib.netobs_engine_stats_get(self.context, stats))
        return stats

    def poll(self, timeout_ms):
        return self._check(self.lib.netobs_poll(self.context, timeout_ms))

    def fd(self):
        return self._check(self.lib.netobs_fd(self.context))

    def dispatch(self):
        """False once the context has stopped."""
        result = self.lib.netobs_dispatch(self.context)
        return result != CANCELED and self._check(result) >= 0

    def drain(self):
        return self._check(self.lib.netobs_drain(self.context))

    def stop(self):
        """Deliver all packets seen; returns the statistics."""
        self.lib.netobs_stop(self.context)
        while self.go_on():
            pass
        return self.stats()

    def free(self):
        self.lib.netobs_free(self.context)
        self.context.value = None

    def go_on(self, timeout_ms=100):
        """As poll(), but False once the context has stopped."""
        result = self.lib.netobs_poll(self.context, timeout_ms)
        return result != CANCELED and self._check(result) >= 0
