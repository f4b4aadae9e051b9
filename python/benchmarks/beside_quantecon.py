"""``plan`` beside QuantEcon's ``DiscreteDP`` on the same random problems, as a Markdown table.

    python python/benchmarks/beside_quantecon.py [STATES ...]

Every state has four actions, and every action five successors drawn at random; discount 0.95; a reward for every state and action.
QuantEcon gets the problem in its sparse form of state-action pairs, its functions are compiled before anything is timed, and of its
methods the fastest counts. Building the two models is not timed. Times are CPU seconds of one thread, medians of interleaved runs, so
that a busy machine slows both down alike; ratios are what to read.

*Residual 1e-6*: stopped where half the span of what a Bellman backup changes is at most 1e-6 (QuantEcon's value iteration looks at the
largest change instead). *Exact*: this package's default, where the policy is greedy for its own exactly evaluated values, against
QuantEcon's modified policy iteration to a residual of 1e-10, or up to 1,000 states its policy iteration, whose direct solves are out of
reach beyond.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from quantecon.markov import DiscreteDP

import coirl

Floats = npt.NDArray[np.float64]

N_ACTIONS, N_SUCCESSORS, DISCOUNT = 4, 5, 0.95
RUNS = {100: 51, 1_000: 31, 10_000: 11, 100_000: 5}


def random_problem(n_states: int, seed: int) -> tuple[Any, Floats]:
    """Compressed rows ``s * A + a``, and rewards ``[S, A]``."""
    rng = np.random.default_rng(seed)
    n_rows = n_states * N_ACTIONS
    following = np.sort(rng.integers(0, n_states, (n_rows, N_SUCCESSORS)), axis=1)
    chances = rng.dirichlet(np.ones(N_SUCCESSORS), n_rows)
    indptr = np.arange(n_rows + 1) * N_SUCCESSORS
    rows = sp.csr_matrix((chances.ravel(), following.ravel(), indptr), shape=(n_rows, n_states))
    rows.sum_duplicates()
    return rows, rng.normal(size=(n_states, N_ACTIONS))


def half_span(rows: Any, reward: Floats, values: Floats) -> float:
    """Half the span of what a Bellman backup changes."""
    backed = (reward.ravel() + DISCOUNT * (rows @ values)).reshape(reward.shape).max(axis=1)
    change = backed - values
    return float(change.max() - change.min()) / 2.0


def peer(rows: Any, reward: Floats) -> DiscreteDP:
    """The problem as QuantEcon takes it."""
    n_states, n_actions = reward.shape
    owner, action = np.repeat(np.arange(n_states), n_actions), np.tile(np.arange(n_actions), n_states)
    return DiscreteDP(reward.ravel(), rows, DISCOUNT, owner, action)


def stopping_at(residual: float) -> dict[str, Any]:
    """QuantEcon's settings for a residual; its own rules are in terms of how far the values may be off."""
    return {"epsilon": 2.0 * residual * DISCOUNT / (1.0 - DISCOUNT), "max_iter": 100_000}


def medians(methods: dict[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """CPU seconds of each, one after the other and over again."""
    times: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(runs):
        for name, method in methods.items():
            begin = time.process_time()
            method()
            times[name].append(time.process_time() - begin)
    return {name: statistics.median(own) for name, own in times.items()}


def compare(n_states: int, seed: int = 1) -> list[str]:
    """The rows of the table for one size."""
    rows, reward = random_problem(n_states, seed)
    model = coirl.ContextualMDP(rows, np.ones((n_states, 1)), None, DISCOUNT)
    ddp = peer(rows, reward)
    loose, close = stopping_at(1e-6), stopping_at(1e-10)
    ours = {
        "residual 1e-6": lambda: model.plan(reward=reward, tolerance=1e-6, feature_expectations=False),
        "exact": lambda: model.plan(reward=reward, feature_expectations=False),
    }
    theirs: dict[str, dict[str, Callable[[], Any]]] = {
        "residual 1e-6": {
            "modified policy iteration": lambda: ddp.modified_policy_iteration(**loose),
            "value iteration": lambda: ddp.value_iteration(**loose),
        },
        "exact": {"modified policy iteration": lambda: ddp.modified_policy_iteration(**close)},
    }
    if n_states <= 1_000:
        for own in theirs.values():
            own["policy iteration"] = ddp.policy_iteration
    found = []
    runs = RUNS.get(n_states, 5)
    for accuracy, plan in ours.items():
        values = plan().values
        for name, method in theirs[accuracy].items():
            other = method().v
            within = 1e-6 if accuracy == "residual 1e-6" else 1e-10
            assert max(half_span(rows, reward, values), half_span(rows, reward, other)) <= within * (1.0 + 1e-6), name
            assert np.abs(values - other).max() <= 2.0 * within / (1.0 - DISCOUNT), name
        times = medians({"ours": plan, **theirs[accuracy]}, runs)
        mine = times.pop("ours")
        best = min(times, key=lambda name: times[name])
        found.append(f"| {n_states:,} | {accuracy} | {shown(mine)} | {shown(times[best])} ({best}) | {times[best] / mine:.1f} |")
    return found


def shown(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms" if seconds < 1.0 else f"{seconds:.2f} s"


def overhead(calls: int = 5_000, blocks: int = 21) -> tuple[float, float]:
    """Seconds of a plan for a model with one state, where there is nothing to do: in all, and inside the extension module."""
    model = coirl.ContextualMDP(np.ones((1, 1, 1)), [[1.0]], None, 0.5)
    weights = np.ones(1)
    inside = model._model.plan

    def whole() -> None:
        for _ in range(calls):
            model.plan(weights)

    def extension() -> None:
        for _ in range(calls):
            inside(weights, None, None, None, '"automatic"', None, None, None, True)

    times = medians({"whole": whole, "extension": extension}, blocks)
    return times["whole"] / calls, times["extension"] / calls


def main() -> None:
    coirl.set_threads(1)
    rows, reward = random_problem(10, seed=0)
    small = peer(rows, reward)
    for compiled in (small.policy_iteration, small.modified_policy_iteration, small.value_iteration):
        compiled()
    print("| states | accuracy | coirl | QuantEcon, its fastest method | times faster |")
    print("|---:|---|---:|---:|---:|")
    for n_states in [int(word) for word in sys.argv[1:]] or list(RUNS):
        for line in compare(n_states):
            print(line, flush=True)
    whole, extension = overhead()
    print(f"\nA call for a model with one state takes {whole * 1e6:.1f} µs, of which {(whole - extension) * 1e6:.1f} µs in Python.")


if __name__ == "__main__":
    main()
