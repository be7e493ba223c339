"""Finds backends by the entry-point group ``causerie.backends``, probes them, and explains why not.

The two that ship are known without their entry points too, so that a checkout that was never installed, and
a frozen program, have them.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from engine.backends.interface import Backend, Probe
from engine.errors import BackendError, SettingsError

GROUP = "causerie.backends"
BUILT_IN = {
    "cpu": "engine.backends.cpu.backend:CpuBackend",
    "fake": "engine.backends.fake:FakeBackend",
}


def backend_names() -> tuple[str, ...]:
    """Every name that can be asked for, whether or not it works here."""
    return tuple(sorted({*BUILT_IN, *(point.name for point in entry_points(group=GROUP))}))


def backend_class(name: str) -> type[Backend]:
    """The class of a backend.

    Raises `SettingsError` for an unknown name, `BackendError` where the plugin fails to import.
    """
    targets = dict(BUILT_IN)
    if name not in targets:  # looking for plugins takes longer than opening a model file
        targets |= {point.name: point.value for point in entry_points(group=GROUP)}
    if name not in targets:
        raise SettingsError(
            f"There is no backend called {name!r}.", f"Choose one of: {', '.join(backend_names())}."
        )
    module, _, attribute = targets[name].partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BackendError(f"The backend {name!r} could not be started: {error}.") from error
    if not (isinstance(found, type) and issubclass(found, Backend)):
        raise BackendError(f"The plugin {targets[name]} is no backend.")
    return found


def probe_all() -> dict[str, Probe]:
    """What each backend says of this machine; a plugin that cannot even be imported says so here."""
    probes = {}
    for name in backend_names():
        try:
            probes[name] = backend_class(name).probe()
        except BackendError as error:
            probes[name] = Probe(False, error.title, "", 0)
    return probes


def open_backend(name: str, threads: int | None, repack: bool = True) -> Backend:
    """A working backend. Raises `BackendError` with its own reason where it is not available here."""
    chosen = backend_class(name)
    probe = chosen.probe()
    if not probe.available:
        raise BackendError(f"The backend {name!r} does not work here: {probe.reason}")
    return chosen(threads, repack)
