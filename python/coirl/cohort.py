"""From a table of people to a contextual model. Research software, not for clinical use.

Everything is fitted on training patients only; see the chapter on tables of patients. Cohorts, runs and reports are folders, the
same that the command line reads and writes.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._notebook import table as html_table
from .command import run, run_json
from .demonstrations import Demonstrations
from .errors import DataError, FileError
from .learners import Learner, load
from .model import ContextualMDP

__all__ = ["Cohort", "CohortRun", "build", "lint", "spec", "synthesize"]

Path_ = str | os.PathLike[str]


def synthesize(out: Path_, *, stays: int = 15_000, seed: int = 0, clinician: str = "linear", quiet: bool = True) -> Path:
    """Writes a table of simulated patients with the columns and units of the AI Clinician, whose truth is known."""
    run("cohort", "synthesize", "--stays", stays, "--seed", seed, "--clinician", clinician, "--out", out, quiet=quiet)
    return Path(out)


def spec(preset: str = "long") -> str:
    """A spec to begin with, as TOML text: which column is what."""
    return run("cohort", "spec", preset)


def lint(table: Any, *, preset: str | None = None, settings: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """What somebody should look at in a table before anything is learned from it."""
    with _Input(table, preset, settings) as words:
        found = run_json("cohort", "lint", *words)
    return list(found["findings"] if isinstance(found, dict) else found)


def build(
    table: Any,
    out: Path_,
    *,
    preset: str | None = None,
    states: int | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    quiet: bool = True,
) -> Cohort:
    """Builds a contextual model of a table.

    Parameters
    ----------
    table
        A file (``.csv``, ``.csv.gz``, ``.parquet``), a spec (``.toml``), or a data frame of pandas or Polars.
    out
        The folder to write.
    preset
        Which table it is: ``"ai-clinician"`` and others; ``coirl cohort spec`` lists them.
    states
        Number of states.
    settings
        Keys of the spec: ``{"dynamics.context_clusters": 5}``.
    """
    more: list[str | int] = [] if states is None else ["--states", states]
    with _Input(table, preset, settings) as words:
        run("cohort", "build", *words, *more, "--seed", seed, "--out", out, quiet=quiet)
    return Cohort(out)


class Cohort:
    """A built cohort: the model, and stays to learn from, to choose by and to score on."""

    def __init__(self, path: Path_) -> None:
        self.path = Path(path)
        try:
            self._file: dict[str, Any] = json.loads((self.path / "cohort.json").read_text(encoding="utf-8"))
        except OSError as error:
            raise FileError(f"{self.path} is no cohort: {error}", path=str(self.path)) from None
        except ValueError as error:
            raise FileError(f"{self.path / 'cohort.json'}: {error}", path=str(self.path)) from None
        self._model: ContextualMDP | None = None

    @property
    def model(self) -> ContextualMDP:
        """The model."""
        if self._model is None:
            self._model = ContextualMDP.load(self.path / "model.safetensors")
        return self._model

    @property
    def flow(self) -> list[dict[str, Any]]:
        """How many stays were left out, and why."""
        return list(self._file["flow"])

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What somebody should look at."""
        return list(self._file["findings"])

    @property
    def train(self) -> Demonstrations:
        """Stays to learn from. Steps that the model does not admit are left out: a stay is learned from up to such a step and from
        the next on."""
        return self._part("train")

    @property
    def validation(self) -> Demonstrations:
        """Stays to stop and choose by."""
        return self._part("validation")

    @property
    def test(self) -> Demonstrations:
        """Stays to score on."""
        return self._part("test")

    def _part(self, name: str) -> Demonstrations:
        folder = self.path / name
        contexts = np.loadtxt(folder / "contexts.csv", delimiter=",", skiprows=1, ndmin=2)
        states: list[list[int]] = [[] for _ in contexts]
        actions: list[list[int]] = [[] for _ in contexts]
        with (folder / "trajectories.csv").open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                owner = int(row["demonstration"])
                states[owner].append(int(row["state"]))
                if row["action"] != "":
                    actions[owner].append(int(row["action"]))
        admissible = self.model.admissible
        kept, pieces = [], []
        for i, (visited, taken) in enumerate(zip(states, actions)):
            own = _admitted(visited, taken, admissible)
            if own:
                kept.append(i)
                pieces.append(own)
        return Demonstrations(contexts[kept], trajectories=pieces)

    def fit(
        self,
        out: Path_,
        method: str = "network",
        *,
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        quiet: bool = True,
        **options: Any,
    ) -> CohortRun:
        """Learns with the command line's ``fit`` and writes a run folder: ``settings`` are those of the method by name, as
        ``{"batch": "full"}``, and ``options`` those of the command, ``steps=300`` for ``--steps 300``."""
        words = [*_settings(settings), *_flags(options)]
        run("fit", self.path, "--method", method, "--seed", seed, "--out", out, *words, quiet=quiet)
        return CohortRun(self, out)

    def __repr__(self) -> str:
        return f"Cohort({str(self.path)!r})"

    def _repr_html_(self) -> str:
        rows = [(str(step["rule"]), f"{step['stays']:,} stays left") for step in self.flow]
        return html_table(f"Cohort {self.path.name}", rows)


class CohortRun:
    """What was learned from a cohort, in a folder of its own."""

    def __init__(self, cohort: Cohort, path: Path_) -> None:
        self.cohort = cohort
        self.path = Path(path)

    @property
    def learner(self) -> Learner:
        """What was learned."""
        return load(self.path / "fitted.safetensors", self.cohort.model)

    def score(self, *others: CohortRun, resamples: int = 500, seed: int = 0, quiet: bool = True, **options: Any) -> dict[str, Any]:
        """How this run (and others on the same cohort) does on test patients: action matching with intervals, subgroups, what its
        policy would have reached or why that is refused, and on a synthetic table what it is worth in truth. ``options`` are those
        of ``coirl cohort score``: ``no_off_policy=True``, ``off_policy_resamples=20``."""
        paths = [self.path, *(other.path for other in others)]
        words = ["--resamples", str(resamples), "--seed", str(seed), *_flags(options)]
        found: dict[str, Any] = run_json("cohort", "score", *paths, *words, quiet=quiet)
        return found

    def report(self, out: Path_ | None = None, *, quiet: bool = True, **options: Any) -> Path:
        """Writes one self-contained HTML page about the run, with its scores. ``options`` are those of ``coirl report``, as for
        :meth:`score`."""
        page = self.path / "report.html" if out is None else Path(out)
        run("report", self.path, "--out", page, *_flags(options), quiet=quiet)
        return page

    def __repr__(self) -> str:
        return f"CohortRun({str(self.path)!r})"


class _Input:
    """A table as the command line takes it; a frame goes through a temporary file."""

    def __init__(self, table: Any, preset: str | None, settings: Mapping[str, Any] | None) -> None:
        self._table = table
        self._words: list[str] = [] if preset is None else ["--preset", preset]
        self._words += _settings(settings)
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Sequence[str]:
        if isinstance(self._table, (str, os.PathLike)):
            return [os.fspath(self._table), *self._words]
        self._folder = tempfile.TemporaryDirectory()
        path = os.path.join(self._folder.name, "table.csv")
        if hasattr(self._table, "write_csv"):
            self._table.write_csv(path)
        elif hasattr(self._table, "to_csv"):
            self._table.to_csv(path, index=False)
        else:
            raise DataError(f"the table is a {type(self._table).__name__}; expected a file, or a frame of pandas or Polars")
        return [path, *self._words]

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()


def _settings(settings: Mapping[str, Any] | None) -> list[str]:
    """Settings by name as the command line has them: ``{"batch": "full"}`` for ``--set batch=full``."""
    words: list[str] = []
    for key, value in (settings or {}).items():
        words += ["--set", f"{key}={json.dumps(value) if not isinstance(value, str) else value}"]
    return words


def _flags(options: Mapping[str, Any]) -> list[str]:
    """Options by name as the command line has them: ``steps=300`` for ``--steps 300``, ``True`` for one without a value."""
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
    return words


def _admitted(visited: list[int], taken: list[int], admissible: Any) -> list[tuple[list[int], list[int]]]:
    """The pieces of a trajectory between steps that the model does not admit."""
    pieces: list[tuple[list[int], list[int]]] = []
    begin = 0
    for t, action in enumerate([*taken, -1]):
        if t == len(taken) or not admissible[visited[t], action]:
            if t > begin:
                pieces.append((visited[begin : t + 1], taken[begin:t]))
            begin = t + 1
    return pieces
