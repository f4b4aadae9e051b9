"""The command line from Python: what works on tables, folders and pages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .errors import CommandError

__all__ = ["report", "run", "run_json"]


def run(*arguments: str | os.PathLike[str] | int | float, quiet: bool = True) -> str:
    """Runs ``coirl ARGUMENTS`` in a process of its own and returns what it printed; with ``quiet=False`` its progress is shown.

    Raises :class:`~coirl.errors.CommandError` with the message of the command where it refuses its input.
    """
    words = [os.fspath(word) if isinstance(word, (str, os.PathLike)) else str(word) for word in arguments]
    flags = ["--quiet"] if quiet else []
    done = subprocess.run(
        [sys.executable, "-m", "coirl", *words, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None,
        # Notebooks ask programs for colours even where nobody looks; here messages are read.
        env={**os.environ, "NO_COLOR": "1"} if quiet else None,
        text=True,
        encoding="utf-8",
        check=False,
    )
    # 3: done, but planning met its limit of sweeps; the result says so itself.
    if done.returncode not in (0, 3):
        said = (done.stderr or "").strip().splitlines()
        message = next((line for line in said if line.startswith("error:")), said[-1] if said else "").removeprefix("error: ")
        raise CommandError(message or f"coirl {' '.join(words)} failed", command=words, returncode=done.returncode)
    return done.stdout


def run_json(*arguments: str | os.PathLike[str] | int | float, quiet: bool = True) -> Any:
    """The same with ``--json``, parsed; of several lines the last."""
    lines = run(*arguments, "--json", quiet=quiet).strip().splitlines()
    return json.loads(lines[-1]) if lines else None


def report(folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, *, quiet: bool = True) -> Path:
    """Writes one self-contained HTML page about a folder of ``coirl fit``, ``coirl experiment run`` or ``coirl reproduce``."""
    page = Path(folder) / "report.html" if out is None else Path(out)
    run("report", folder, "--out", page, quiet=quiet)
    return page
