"""All learners, two peers and the trivial rules on the problems of ``problems.py``, from trajectories and from feature expectations.

    python python/benchmarks/learners.py [--only KINDS] [--learners NAMES] [--draws N] [--seed S] [--jobs N] [--quick]
                                         [--out FITS.jsonl] [--read FITS.jsonl] [--write docs/learner-benchmark.md]

A score is the share of the way from acting at random (0) to the best policies (100), by the true reward, over 60 contexts that nobody
demonstrated. Learners run with their defaults, in one thread, and times are CPU seconds of a fit. A fit that fails, or takes longer than ``--limit`` of them, scores 0.
``--write`` puts the tables between the markers of the page and draws the figure beside it.

The trivial rules are: acting at random, the action taken most often in the state, and the action taken most often anywhere (of those
that can be taken). Repeating the previous action is no Markov policy, has no value here, and is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from peers import LogisticCloning, MaximumCausalEntropy
from problems import KINDS, Integers, Problem, make, with_constant

import coirl

SETTINGS = ("trajectories", "expectations")
BEGIN, END = "<!-- figures: cargo xtask bench-learners -->", "<!-- end of figures -->"


@dataclass(frozen=True)
class Method:
    """How a learner is made and what it can learn from."""

    #: From a problem and the name of a setting to something with ``predict``.
    fit: Callable[[Problem, str], Any]
    #: ``"library"``, ``"cloning"``, ``"peer"`` or ``"trivial"``.
    family: str = "library"
    #: Whether single actions must have been seen.
    needs_actions: bool = False
    #: The same without a constant column in the context; what it found counts here too where contexts have no need of one.
    without_constant: str | None = None


def library(make_learner: Callable[[], coirl.Learner], constant: bool = False) -> Callable[[Problem, str], Any]:
    """A learner of the library; with a constant column in the context where that is asked for."""

    def fit(problem: Problem, setting: str) -> Any:
        own = with_constant(problem) if constant else problem
        demonstrations = own.trajectories if setting == "trajectories" else own.expectations
        learner = make_learner().fit(own.model, demonstrations)
        return Fitted(learner, own)

    return fit


@dataclass(frozen=True)
class Fitted:
    """A learner with the contexts as it knows them."""

    learner: coirl.Learner
    problem: Problem

    def predict(self, contexts: Any) -> Any:
        return self.learner.predict(self.problem.test_contexts)

    @property
    def status(self) -> str:
        return str(self.learner.status_)


@dataclass(frozen=True)
class Everywhere:
    """One policy in all contexts."""

    policy: Integers

    def predict(self, contexts: Any) -> list[Integers]:
        return [self.policy] * len(contexts)


def commonest_action(problem: Problem, setting: str) -> Everywhere:
    """The action that was taken most often anywhere; where it cannot be taken, the commonest of those that can."""
    taken = np.concatenate([actions for paths in problem.paths for _, actions in paths])
    counts = np.bincount(taken, minlength=problem.phi.shape[1])
    return Everywhere(np.where(problem.allowed, counts, -1).argmax(axis=1))


def peer(make_peer: Callable[[], Any], constant: bool = False) -> Callable[[Problem, str], Any]:
    def fit(problem: Problem, setting: str) -> Any:
        own = with_constant(problem) if constant else problem
        return PeerFitted(make_peer().fit(own, setting), own)

    return fit


@dataclass(frozen=True)
class PeerFitted:
    """A peer with the contexts as it knows them."""

    peer: Any
    problem: Problem

    def predict(self, contexts: Any) -> Any:
        return self.peer.predict(self.problem.test_contexts)


def methods() -> dict[str, Method]:
    """Everything that is compared, by name."""
    found: dict[str, Method] = {}
    if hasattr(coirl, "Choice"):
        found["choice"] = Method(library(vars(coirl)["Choice"]))
    found |= {
        "adaptive": Method(library(coirl.Adaptive)),
        "adaptive, constant added": Method(library(coirl.Adaptive, constant=True), without_constant="adaptive"),
        "max-entropy greedy": Method(library(partial(coirl.MaximumEntropy, greedy=True))),
        "max-entropy greedy, constant added": Method(
            library(partial(coirl.MaximumEntropy, greedy=True), constant=True), without_constant="max-entropy greedy"
        ),
        "max-entropy soft": Method(library(coirl.MaximumEntropy)),
        "max-entropy-per-context": Method(library(partial(coirl.MaximumEntropyPerContext, greedy=True))),
        "bundle": Method(library(coirl.Bundle)),
        "mirror-descent": Method(library(coirl.MirrorDescent)),
        "network": Method(library(coirl.Neural)),
        "projection": Method(library(coirl.Projection)),
        "frank-wolfe": Method(library(coirl.FrankWolfe)),
        "cloning": Method(library(partial(coirl.Cloning, most_probable=True)), "cloning", needs_actions=True),
        "nearest-context": Method(library(coirl.NearestContext), "cloning", needs_actions=True),
        "MCE-IRL (NumPy)": Method(peer(MaximumCausalEntropy), "peer"),
        "MCE-IRL (NumPy), constant added": Method(
            peer(MaximumCausalEntropy, constant=True), "peer", without_constant="MCE-IRL (NumPy)"
        ),
        "logistic cloning (NumPy)": Method(peer(LogisticCloning), "peer", needs_actions=True),
        "state majority": Method(library(coirl.Majority), "trivial", needs_actions=True),
        "commonest action": Method(commonest_action, "trivial", needs_actions=True),
        "uniform": Method(library(coirl.Uniform), "trivial"),
    }
    return found


QUICK = (
    "choice",
    "adaptive, constant added",
    "max-entropy greedy, constant added",
    "logistic cloning (NumPy)",
    "state majority",
    "uniform",
)


@dataclass(frozen=True)
class Fit:
    """What became of one fit."""

    kind: str
    seed: int
    setting: str
    learner: str
    family: str
    score: float
    seconds: float
    status: str | None = None
    error: str | None = None


class TooLong(Exception):
    """A fit took longer than it may."""


def _too_long(*_: Any) -> None:
    raise TooLong("too long")


def fits_of(kind: str, seed: int, names: tuple[str, ...], limit: float) -> list[Fit]:
    """All fits of one problem."""
    coirl.set_threads(1)
    problem, known = make(kind, seed), methods()
    found: list[Fit] = []
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, _too_long)
    for setting in SETTINGS:
        for name in names:
            method = known[name]
            if method.needs_actions and setting != "trajectories":
                continue
            before = [own for own in found if (own.setting, own.learner) == (setting, method.without_constant)]
            if before and with_constant(problem) is problem:
                found.append(replace(before[0], learner=name))
                continue
            begin, score, status, error = time.process_time(), 0.0, None, None
            seconds = None
            try:
                if hasattr(signal, "setitimer"):
                    signal.setitimer(signal.ITIMER_PROF, limit)
                fitted = method.fit(problem, setting)
                seconds = time.process_time() - begin
                status = getattr(fitted, "status", None)
                score = problem.score(fitted)
            except TooLong:
                error = f"longer than {limit:g} s"
            except (coirl.CoirlError, ArithmeticError, ValueError) as failed:
                error = f"{type(failed).__name__}: {failed}"
            finally:
                if hasattr(signal, "setitimer"):
                    signal.setitimer(signal.ITIMER_PROF, 0.0)
            seconds = time.process_time() - begin if seconds is None else seconds
            found.append(Fit(kind, seed, setting, name, method.family, score, seconds, status, error))
    return found


def run(tasks: list[tuple[str, int]], names: tuple[str, ...], limit: float, jobs: int) -> Iterator[list[Fit]]:
    """Problem after problem, on ``jobs`` processes."""
    if jobs == 1:
        for kind, seed in tasks:
            yield fits_of(kind, seed, names, limit)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(fits_of, kind, seed, names, limit) for kind, seed in tasks]
        for done in waiting:
            yield done.result()


# What is shown.


@dataclass(frozen=True)
class Line:
    """A learner over all problems of a setting."""

    learner: str
    family: str
    scores: list[float]
    worst: Fit
    below_90: int
    below_trivial: int
    failed: int
    seconds: float

    @property
    def mean(self) -> float:
        return statistics.fmean(self.scores)


def best_trivial(fits: Iterable[Fit]) -> dict[tuple[str, int, str], float]:
    """The best trivial rule of every problem; at least acting at random, which is 0."""
    found: dict[tuple[str, int, str], float] = {}
    for own in fits:
        if own.family == "trivial":
            key = (own.kind, own.seed, own.setting)
            found[key] = max(found.get(key, 0.0), own.score)
    return found


def lines_of(fits: list[Fit], setting: str) -> list[Line]:
    """One line a learner, the best first."""
    trivial, found = best_trivial(fits), []
    for name in dict.fromkeys(own.learner for own in fits):
        own = [fit for fit in fits if fit.learner == name and fit.setting == setting]
        if own:
            below = sum(fit.score < trivial.get((fit.kind, fit.seed, fit.setting), 0.0) - 1.0 for fit in own)
            found.append(
                Line(
                    name,
                    own[0].family,
                    [fit.score for fit in own],
                    min(own, key=lambda fit: fit.score),
                    sum(fit.score < 90.0 for fit in own),
                    below,
                    sum(fit.error is not None for fit in own),
                    statistics.median(fit.seconds for fit in own),
                )
            )
    return sorted(found, key=lambda line: -line.mean)


def table(lines: list[Line]) -> str:
    rows = [
        "| learner | mean | worst problem | below 90 | below a trivial rule | failed | median CPU seconds |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for own in lines:
        name = f"**{own.learner}**" if own.learner == default_name([line.learner for line in lines]) else own.learner
        worst = f"{own.worst.score:.1f} ({own.worst.kind.replace('_', ' ')}, {own.worst.seed})"
        rows.append(
            f"| {name} | {own.mean:.1f} | {worst} | {own.below_90} | {own.below_trivial} | {own.failed or ''} | {shown_seconds(own.seconds)} |"
        )
    return "\n".join(rows)


def default_name(names: Iterable[str]) -> str:
    return "choice" if "choice" in names else "adaptive"


def shown_seconds(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds >= 0.95 else f"{seconds:.2f}" if seconds >= 0.0095 else f"{seconds:.3f}"


def table_of_kinds(fits: list[Fit]) -> str:
    """The means of every kind, of the default and what it must be compared with."""
    names = {own.learner for own in fits}
    wanted = [
        name
        for name in (
            default_name(names),
            "adaptive, constant added",
            "max-entropy greedy, constant added",
            "MCE-IRL (NumPy), constant added",
            "logistic cloning (NumPy)",
        )
        if name in names
    ]
    trivial, default = best_trivial(fits), [name for name in wanted if name == default_name(names)]
    heads = [*wanted, "best trivial rule", *[f"{name}, from expectations" for name in default]]
    rows = [f"| kind | about | {' | '.join(heads)} |", f"|---|---|{'---:|' * len(heads)}"]

    def mean(kind: str, setting: str, name: str) -> str:
        own = [fit.score for fit in fits if (fit.kind, fit.setting, fit.learner) == (kind, setting, name)]
        return f"{statistics.fmean(own):.1f}" if own else ""

    for kind in dict.fromkeys(own.kind for own in fits):
        rules = [score for (other, _, setting), score in trivial.items() if (other, setting) == (kind, "trajectories")]
        cells = [mean(kind, "trajectories", name) for name in wanted]
        cells += [f"{statistics.fmean(rules):.1f}" if rules else "", *[mean(kind, "expectations", name) for name in default]]
        about = (KINDS[kind].__doc__ or "").strip().rstrip(".") if kind in KINDS else ""
        rows.append(f"| {kind.replace('_', ' ')} | {about} | {' | '.join(cells)} |")
    return "\n".join(rows)


COLOURS = {"library": "#4477aa", "cloning": "#228833", "peer": "#ee6677", "trivial": "#999999"}
TICKS = (0.0, 50.0, 90.0, 95.0, 98.0, 99.0, 99.9)
#: Loss beyond which dots are drawn at the edge.
LARGEST_LOSS, SMALLEST_LOSS = 160.0, 0.07


def figure(of_settings: dict[str, list[Line]]) -> str:
    """A row a learner, a dot a problem; the logarithm of what is lost, so that 99 and 99.9 can be told apart."""
    first = next(iter(of_settings.values()))
    names = [own.learner for own in first]
    left, width, gap, row, top = 232, 330, 30, 24, 66
    height, total = top + row * len(names) + 34, left + 2 * width + gap + 16

    def at(score: float) -> float:
        loss = min(max(100.0 - score, SMALLEST_LOSS), LARGEST_LOSS)
        return width * math.log(LARGEST_LOSS / loss) / math.log(LARGEST_LOSS / SMALLEST_LOSS)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" font-family="sans-serif" font-size="11" role="img">',
        "<title>Scores of learners on contextual problems of many kinds</title>",
        f'<rect width="{total}" height="{height}" fill="#ffffff"/>',
        '<text x="8" y="18" font-size="13">Share of the way from acting at random (0) to the best (100), in contexts without demonstrations</text>',
    ]
    x = 8.0
    for label, colour in (
        ("learner of the library", "library"),
        ("cloning", "cloning"),
        ("peer", "peer"),
        ("trivial rule", "trivial"),
    ):
        parts.append(
            f'<circle cx="{x + 4:.0f}" cy="33" r="3.5" fill="{COLOURS[colour]}"/><text x="{x + 12:.0f}" y="37">{label}</text>'
        )
        x += 22 + 6.2 * len(label)
    parts.append(
        f'<path d="M{x + 4:.0f} 27v12" stroke="#000000" stroke-width="2"/><text x="{x + 12:.0f}" y="37">mean; a dot is a problem</text>'
    )
    for panel, (setting, lines) in enumerate(of_settings.items()):
        begin = left + panel * (width + gap)
        title = "from trajectories" if setting == "trajectories" else "from feature expectations"
        parts.append(f'<text x="{begin + width / 2:.0f}" y="{top - 14}" text-anchor="middle" font-weight="bold">{title}</text>')
        for tick in TICKS:
            across = begin + at(tick)
            parts.append(f'<path d="M{across:.1f} {top - 4}V{height - 30}" stroke="#dddddd"/>')
            parts.append(f'<text x="{across:.1f}" y="{height - 16}" text-anchor="middle">{tick:g}</text>')
        of_name = {own.learner: own for own in lines}
        for i, name in enumerate(names):
            middle = top + row * (i + 0.5)
            if panel == 0:
                weight = ' font-weight="bold"' if name == default_name(names) else ""
                parts.append(f'<text x="{left - 8}" y="{middle + 4:.1f}" text-anchor="end"{weight}>{name}</text>')
            own = of_name.get(name)
            if own is None:
                parts.append(f'<text x="{begin + 6}" y="{middle + 4:.1f}" fill="#777777">needs actions</text>')
                continue
            for j, score in enumerate(own.scores):
                down = middle + (((j * 7) % 11) - 5) * 1.3
                parts.append(
                    f'<circle cx="{begin + at(score):.1f}" cy="{down:.1f}" r="2.3" fill="{COLOURS[own.family]}" fill-opacity="0.5"/>'
                )
            parts.append(f'<path d="M{begin + at(own.mean):.1f} {middle - 9:.1f}v18" stroke="#000000" stroke-width="2"/>')
    return "\n".join([*parts, "</svg>", ""])


def page_of(fits: list[Fit], command: str) -> str:
    """What goes between the markers."""
    problems = {(own.kind, own.seed) for own in fits}
    kinds, seeds = {kind for kind, _ in problems}, sorted({seed for _, seed in problems})
    drawn = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    parts = [f"Written by `{command}`: {len(problems)} problems of {len(kinds)} kinds, {drawn}; coirl {coirl.__version__}."]
    for setting in SETTINGS:
        lines = lines_of(fits, setting)
        if lines:
            parts += ["", f"### From {'trajectories' if setting == 'trajectories' else 'feature expectations'}", "", table(lines)]
    parts += ["", "### Kind by kind, from trajectories", "", table_of_kinds(fits)]
    return "\n".join(parts)


def write(page: Path, fits: list[Fit], command: str) -> None:
    """Replaces what is between the markers, and draws the figure beside the page."""
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise SystemExit(f"{page} has no place for figures: {BEGIN} … {END}")
    before, rest = text.split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{page_of(fits, command)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    drawn = {setting: lines for setting in SETTINGS if (lines := lines_of(fits, setting))}
    page.with_suffix(".svg").write_text(figure(drawn), encoding="utf-8")


def chosen(what: str, given: str | None, known: Iterable[str]) -> tuple[str, ...]:
    """Names of a list with commas, checked. Commas are in names too, so that a name may also stand between semicolons."""
    names = tuple(known)
    if given is None:
        return names
    wanted = tuple(part.strip() for part in given.split(";" if ";" in given else ",") if part.strip())
    unknown = [name for name in wanted if name not in names]
    if given.strip() in names:
        return (given.strip(),)
    if unknown:
        raise SystemExit(f"{what}: there is no {unknown[0]!r}; there are {'; '.join(names)}")
    return wanted


def arguments(words: list[str] | None) -> argparse.Namespace:
    own = argparse.ArgumentParser(description="All learners on contextual problems of many kinds.")
    own.add_argument("--only", help="kinds of problems, such as inventory,maze")
    own.add_argument("--learners", help="names of learners, such as 'adaptive;bundle'")
    own.add_argument("--draws", type=int, default=1, help="problems of every kind")
    own.add_argument("--seed", type=int, default=1, help="of the first draw")
    own.add_argument("--jobs", type=int, default=1, help="processes")
    own.add_argument("--limit", type=float, default=300.0, help="CPU seconds that a fit may take")
    own.add_argument("--quick", action="store_true", help="the default, the best of the others, and what they must beat")
    own.add_argument("--out", type=Path, help="append every fit to this file, a line of JSON each")
    own.add_argument("--read", type=Path, help="show fits of such a file instead of running any")
    own.add_argument("--write", type=Path, metavar="PAGE", help="write tables and figure into this page")
    own.add_argument("--command", default="python python/benchmarks/learners.py", help=argparse.SUPPRESS)
    return own.parse_args(words)


def main(words: list[str] | None = None) -> list[Fit]:
    given = arguments(words)
    known = methods()
    offered = [name for name in known if name in QUICK] if given.quick else list(known)
    if given.quick and "choice" not in known:
        offered.insert(0, "adaptive")
    names = chosen("--learners", given.learners, known if given.learners else offered)
    kinds = chosen("--only", given.only, KINDS)
    fits: list[Fit] = []
    if given.read is not None:
        every = [Fit(**json.loads(line)) for line in given.read.read_text(encoding="utf-8").splitlines() if line]
        # Of fits that were made again the last counts.
        fits = list({(own.kind, own.seed, own.setting, own.learner): own for own in every}.values())
        fits = [own for own in fits if own.kind in kinds and (given.learners is None or own.learner in names)]
    else:
        tasks = [(kind, given.seed + draw) for draw in range(given.draws) for kind in kinds]
        for number, found in enumerate(run(tasks, names, given.limit, given.jobs), 1):
            fits += found
            default = [own for own in found if own.learner == default_name(names)]
            brief = ", ".join(f"{own.score:.1f} from {own.setting} in {own.seconds:.1f} s" for own in default)
            print(f"{number} of {len(tasks)}: {found[0].kind} {found[0].seed}: {brief}", file=sys.stderr, flush=True)
            for own in found:
                if own.error is not None:
                    print(f"  {own.learner} from {own.setting}: {own.error}", file=sys.stderr)
            if given.out is not None:
                with given.out.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(asdict(own)) + "\n" for own in found)
    if not fits:
        raise SystemExit("there are no fits to show")
    print(page_of(fits, given.command))
    if given.write is not None:
        write(given.write, fits, given.command)
    return fits


if __name__ == "__main__":
    main()
