"""How many threads work."""

from __future__ import annotations

from . import _coirl
from ._arrays import count
from .errors import SettingError

__all__ = ["set_threads", "threads"]

#: No machine has more processors than this, and threads beyond them only take memory.
_MOST = 4096


def set_threads(n: int | None = None) -> None:
    """Works with ``n`` threads from now on; one per processor by default. Results do not depend on it."""
    wanted = None if n is None else count("n", n, 1)
    if wanted is not None and wanted > _MOST:
        raise SettingError(f"n is {wanted}; expected at most {_MOST} threads", name="n", value=wanted)
    _coirl.set_threads(wanted)


def threads() -> int:
    """How many threads work."""
    return _coirl.threads()
