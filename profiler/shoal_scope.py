"""Annotates a Python program for profreport: what each stretch of its time is spent on.

    import shoal_scope

    shoal_scope.start("runs/x")                  # or set SHOAL_PROFILE=runs/x, and leave this out
    with shoal_scope.scope("env step", "simulation"):
        obs, reward, terminated, truncated, info = env.step(action)

    @shoal_scope.scope("act", "policy")
    def act(obs): ...

and then `profreport runs/x`. Scopes nest, and each thread has its own; the innermost one has the time. While nothing is
recorded a scope does nothing, and the library is not needed. Categories: simulation, policy, learning, communication, host,
io, idle. A generator or coroutine must not be left within a scope.

What a scope takes in this interpreter, some hundred nanoseconds, `profreport --calibrate --python python3` measures once, and
`profreport` takes it off.

This file needs no other: it finds libshoal_inject.so by SHOAL_INJECT (a path), beside itself, or by the system's loader.
"""

import atexit
import ctypes
import functools
import os
import sys
import time
from pathlib import Path

__all__ = ["CATEGORIES", "PHASES", "ProfileError", "is_recording", "phase", "scope", "start", "stop"]

CATEGORIES = ("simulation", "policy", "learning", "communication", "host", "io", "idle")
PHASES = ("setup", "warm-up", "train", "evaluate")

_LIBRARY = "libshoal_inject.so"


class ProfileError(RuntimeError):
    """A profile cannot be recorded, or is not whole."""


def _nothing(*_):
    pass


_library = None
_begin = _end = _phase = _nothing
_names = {}  # of scopes: addresses of copies that last


def _load():
    """The library. PyDLL: calls are far shorter than giving up the interpreter's lock would be."""
    global _library
    if _library is not None:
        return _library
    beside = Path(__file__).resolve().parent / _LIBRARY
    for path in filter(None, [os.environ.get("SHOAL_INJECT"), str(beside) if beside.exists() else None, _LIBRARY]):
        try:
            library = ctypes.PyDLL(path)
            break
        except OSError as error:
            failure = error
    else:
        raise ProfileError(f"cannot load {_LIBRARY}: {failure}; SHOAL_INJECT may name it")
    library.shoal_profile_start.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.shoal_profile_message.restype = ctypes.c_char_p
    library.shoal_scope_name.argtypes = [ctypes.c_char_p]
    library.shoal_scope_name.restype = ctypes.c_void_p
    library.shoal_script_begin.argtypes = [ctypes.c_int, ctypes.c_void_p]
    library.shoal_script_begin.restype = library.shoal_scope_end.restype = library.shoal_phase.restype = None
    library.shoal_phase.argtypes = [ctypes.c_int]
    _library = library
    return library


def _check(code):
    if code != 0:
        raise ProfileError(_library.shoal_profile_message().decode(errors="replace"))


def _attach():
    global _begin, _end, _phase
    _begin, _end, _phase = _library.shoal_script_begin, _library.shoal_scope_end, _library.shoal_phase


def _detach():
    global _begin, _end, _phase
    _begin = _end = _phase = _nothing


def start(folder, tool=None):
    """Records from now on, into FOLDER/profile. tool: the program's name in reports."""
    library = _load()
    _check(library.shoal_profile_start(os.fsencode(folder), None if tool is None else tool.encode()))
    _attach()


def stop():
    """Ends the profile; at the latest the end of the process does."""
    if _library is None or _begin is _nothing:
        return
    _detach()
    _check(_library.shoal_profile_stop())


def is_recording():
    return _begin is not _nothing


def phase(name):
    """The process goes over to a phase: setup, warm-up, train or evaluate."""
    _phase(_index("phase", name, PHASES))


def _index(what, name, names):
    if name not in names:
        raise ValueError(f"{what} {name!r}: one of {', '.join(names)}")
    return names.index(name)


def _name(text):
    address = _names.get(text)
    if address is None:
        address = _names[text] = _load().shoal_scope_name(text.encode(errors="replace"))
    return address


class scope:
    """A context manager, and a decorator: `with scope("env step", "simulation"):`. May be kept and used again, nested in
    itself and by several threads at a time."""

    __slots__ = ("_address", "_category", "name")

    def __init__(self, name, category="host"):
        self.name = name
        self._category = _index("category", category, CATEGORIES)
        self._address = None

    def __enter__(self):
        if _begin is not _nothing:
            if self._address is None:
                self._address = _name(self.name)
            _begin(self._category, self._address)
        return self

    def __exit__(self, *_):
        _end()

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapped


def _work(x):
    for _ in range(20):
        x = (x * 69069 + 1) % 4294967296
    return x


def _loop_ns(loops, around):
    """Processor time of a round of work, with a scope around it or (None) without one."""
    x = 1
    start = time.thread_time_ns()
    if around is None:
        for _ in range(loops):
            x = _work(x)
    else:
        for _ in range(loops):
            with around:
                x = _work(x)
    return (time.thread_time_ns() - start) / loops


def _measure(folder, rounds=41, loops=400):
    """For profreport --calibrate: what a scope costs, in nanoseconds, a line for each round; and a trace of as many rounds,
    "r00" and so on, of empty scopes."""
    work = scope("work")
    with_scope, without = [], []
    start(folder, "calibration")
    with scope("calibration"):
        for i in range(-1, rounds):  # the first is to warm up
            for _ in range(2):  # in turn, each first as often
                around = work if (i + len(with_scope) + len(without)) % 2 == 0 else None
                (without if around is None else with_scope).append(_loop_ns(loops, around))
            empty = scope(f"r{max(i, 0):02d}" if i >= 0 else "warm up")
            for _ in range(loops):
                with empty:
                    pass
    stop()
    for a, b in list(zip(with_scope, without, strict=True))[1:]:
        print(a - b)


os.register_at_fork(after_in_child=_detach)
atexit.register(stop)
if os.environ.get("SHOAL_PROFILE") and _load().shoal_profile_is_recording():  # it begins when it is loaded, or says why not
    _attach()
if __name__ == "__main__":
    _measure(sys.argv[1])
