"""Problems that others made, with the default learner: Markdown tables for ``docs/public-problems.md``.

    python python/benchmarks/public_problems.py bus            # Rust (1987): replacement of bus engines
    python python/benchmarks/public_problems.py gymnasium      # FrozenLake 8×8, CliffWalking, Taxi, with contexts
    python python/benchmarks/public_problems.py supermarket    # Aguirregabiria (1999): promotions and orders
    python python/benchmarks/public_problems.py scale          # the same fits in other units

``--write`` puts a table into the page, between its markers. The two data sets are read from the wheel of econirl 0.1.1 (MIT), which is
downloaded by pip into a cache folder, or from ``--data``: that wheel, or a folder with its files. Needs SciPy, scikit-learn and Gymnasium.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import coirl

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Paths = list[tuple[Integers, Integers]]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "public-problems.md"
WHEEL = "econirl-0.1.1-py3-none-any.whl"
WHEEL_SHA256 = "3ffda3b40b4ac7c1f51210dc7b2dbb1ce933d0ec51e6466edd8dbe8415dde47d"
DATA_SETS = 20


def default_learner(**settings: Any) -> Any:
    """What a user gets who chooses nothing."""
    return getattr(coirl, "Choice", coirl.Adaptive)(**settings)


def shown_name(learner: Any) -> str:
    return f"`{learner!r}`" if isinstance(learner, coirl.Learner) else str(learner)


# Files of others


def published_file(name: str, data: Path | None) -> bytes:
    """A file of econirl's ``datasets``, from the wheel or a folder; without either the wheel is downloaded once."""
    if data is not None and data.is_dir():
        found = next(iter(sorted(data.rglob(name))), None)
        if found is None:
            raise SystemExit(f"{data} has no {name}")
        return found.read_bytes()
    with zipfile.ZipFile(data if data is not None else downloaded_wheel()) as wheel:
        return wheel.read(f"econirl/datasets/{name}")


def downloaded_wheel() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "coirl"
    wheel = folder / WHEEL
    if not wheel.exists():
        folder.mkdir(parents=True, exist_ok=True)
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), "econirl==0.1.1"]
        subprocess.run(download, check=True)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise SystemExit(f"{wheel} has the digest {digest}; expected {WHEEL_SHA256}")
    return wheel


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


# Bus engines

N_BINS = 90
BUS_DISCOUNT = 0.9999
#: Rust (1987), Table IX, linear cost, β = 0.9999: θ₁ and RC, each with its standard error.
PUBLISHED = {
    "1, 2, 3": ((4.8259, 1.792), (11.7270, 2.602)),
    "4": ((2.2930, 0.639), (10.0750, 1.582)),
    "1, 2, 3, 4": ((2.6275, 0.618), (9.7558, 1.227)),
}


@dataclass(frozen=True)
class Buses:
    """Months of some buses: mileage since the last replacement in bins of 5,000 miles, and whether the engine is replaced."""

    paths: Paths  # one state more than actions: what the last month of a bus led to was not recorded

    @classmethod
    def read(cls, content: bytes, groups: Iterable[int]) -> Buses:
        wanted = set(groups)
        by_bus: dict[str, list[tuple[int, int, int]]] = {}
        for row in rows_of(content):
            if int(row["group"]) in wanted:
                by_bus.setdefault(row["bus_id"], []).append((int(row["period"]), int(row["mileage_bin"]), int(row["replaced"])))
        paths = []
        for months in by_bus.values():
            table = np.array(sorted(months), dtype=np.int64)
            paths.append((table[:, 1], table[:-1, 2]))
        return cls(paths)

    @property
    def mileage(self) -> Integers:
        return np.concatenate([states[:-1] for states, _ in self.paths])

    @property
    def replaced(self) -> Integers:
        return np.concatenate([actions for _, actions in self.paths])

    @property
    def bus(self) -> Integers:
        return np.repeat(np.arange(len(self.paths)), [actions.size for _, actions in self.paths])

    def increment_shares(self) -> Floats:
        """How often mileage grows by 0, 1, 2 bins in a month, from zero after a replacement."""
        following = np.concatenate([states[1:] for states, _ in self.paths])
        grown = following - np.where(self.replaced == 1, 0, self.mileage)
        return np.bincount(grown) / grown.size

    def kernel(self) -> Floats:
        """P ``[S, A, S]``: kept, mileage grows; replaced, it grows from zero. The last bin holds what is beyond."""
        kernel = np.zeros((N_BINS, 2, N_BINS))
        for growth, share in enumerate(self.increment_shares()):
            at = np.arange(N_BINS)
            np.add.at(kernel, (at, 0, np.minimum(at + growth, N_BINS - 1)), share)
            kernel[:, 1, growth] += share
        return kernel


def bus_features() -> Floats:
    """φ ``[S, A, 2]``: the utility is θ₁ · (−0.001 x) where an engine is kept, and RC · (−1) where it is replaced."""
    features = np.zeros((N_BINS, 2, 2))
    features[:, 0, 0] = -0.001 * np.arange(N_BINS)
    features[:, 1, 1] = -1.0
    return features


@dataclass(frozen=True)
class Estimate:
    """A maximum of the choice likelihood, with standard errors by the ways they are computed."""

    parameters: Floats
    log_likelihood: float
    errors: dict[str, Floats]


class NestedFixedPoint:
    """Rust's estimator in NumPy: an inner fixed point by Newton's method, an outer search over θ = (θ₁, RC) by BFGS.

    It shares no code with the library. Scores are exact, by the implicit function theorem: ∂V/∂θ = (I − γ P_π)⁻¹ Σ_a π_a φ_a.
    """

    def __init__(self, buses: Buses) -> None:
        self.kernel, self.features = buses.kernel(), bus_features()
        self.mileage, self.replaced, self.bus = buses.mileage, buses.replaced, buses.bus
        self._values = np.zeros(N_BINS)

    def choices(self, parameters: Floats) -> tuple[Floats, Floats]:
        """log π ``[S, A]``, and its derivative ``[S, A, 2]``."""
        utility, values = self.features @ parameters, self._values
        for _ in range(100):
            q = utility + BUS_DISCOUNT * self.kernel @ values
            backed = np.logaddexp(q[:, 0], q[:, 1])
            policy = np.exp(q - backed[:, None])
            system = np.eye(N_BINS) - BUS_DISCOUNT * np.einsum("sa,sat->st", policy, self.kernel)
            step = np.linalg.solve(system, backed - values)
            values = values + step
            if np.abs(step).max() <= 1e-9 * (1.0 + np.abs(values).max()):
                break
        else:
            raise ArithmeticError("the fixed point was not found")
        self._values = values
        slope = np.linalg.solve(system, np.einsum("sa,sak->sk", policy, self.features))
        by_pair = self.features + BUS_DISCOUNT * np.einsum("sat,tk->sak", self.kernel, slope)
        return q - backed[:, None], by_pair - np.einsum("sa,sak->sk", policy, by_pair)[:, None]

    def scores(self, parameters: Floats) -> Floats:
        """The derivative of every observation's log-likelihood ``[n, 2]``."""
        found: Floats = self.choices(parameters)[1][self.mileage, self.replaced]
        return found

    def fit(self) -> Estimate:
        from scipy.optimize import minimize

        def objective(parameters: Floats) -> tuple[float, Floats]:
            log_policy, derivative = self.choices(parameters)
            at = (self.mileage, self.replaced)
            return -float(log_policy[at].mean()), -derivative[at].mean(axis=0)

        found = minimize(objective, np.array([1.0, 5.0]), jac=True, method="BFGS", options={"gtol": 1e-9})
        best, n = found.x, self.mileage.size
        if np.abs(found.jac).max() > 1e-6:
            raise ArithmeticError(f"nested fixed point: {found.message}")
        hessian = np.zeros((2, 2))
        for i in range(2):
            away = np.zeros(2)
            away[i] = 1e-4 * best[i]
            hessian[i] = -(self.scores(best + away) - self.scores(best - away)).sum(axis=0) / (2.0 * away[i])
        own = self.scores(best)
        of_bus = np.stack([np.bincount(self.bus, weights=column) for column in own.T], axis=1)
        information = {
            "inverse Hessian": (hessian + hessian.T) / 2.0,
            "outer products": own.T @ own,
            "outer products of buses": of_bus.T @ of_bus,
        }
        errors = {name: np.sqrt(np.diag(np.linalg.inv(matrix))) for name, matrix in information.items()}
        return Estimate(best, -found.fun * n, errors)


def bus_model(buses: Buses) -> coirl.ContextualMDP:
    first = np.bincount([states[0] for states, _ in buses.paths], minlength=N_BINS)
    return coirl.ContextualMDP(
        buses.kernel(),
        bus_features(),
        first / first.sum(),
        BUS_DISCOUNT,
        context_space=("simplex", 1),
        name="bus engines",
        action_names=["keep", "replace"],
        feature_names=["wear", "replacement"],
    )


def bus_demonstrations(buses: Buses) -> coirl.Demonstrations:
    """A bus each, all in the same context."""
    return coirl.Demonstrations(np.ones((len(buses.paths), 1)), trajectories=[[path] for path in buses.paths])


def bus(options: argparse.Namespace) -> list[str]:
    content = published_file("rust_bus_original.csv", options.data)
    lines = ["| groups | | θ₁ | RC | log-likelihood of the choices |", "|---|---|---:|---:|---:|"]

    def add(groups: str, what: str, parameters: Any, errors: Any, log_likelihood: float | None) -> None:
        numbers = [f"{value:.4f}" + ("" if errors is None else f" ({errors[i]:.3f})") for i, value in enumerate(parameters)]
        shown = "" if log_likelihood is None else f"{log_likelihood:.3f}"
        lines.append(f"| {groups} | {what} | {numbers[0]} | {numbers[1]} | {shown} |")

    for groups, published in PUBLISHED.items():
        buses = Buses.read(content, map(int, groups.split(",")))
        add(groups, "Rust (1987), Table IX", [own[0] for own in published], [own[1] for own in published], None)
        reference = NestedFixedPoint(buses)
        estimate = reference.fit()
        for name in ("outer products", "inverse Hessian"):
            add(groups, f"nested fixed point in NumPy, {name}", estimate.parameters, estimate.errors[name], estimate.log_likelihood)
        model, demonstrations = bus_model(buses), bus_demonstrations(buses)
        settings: list[dict[str, Any]] = [{"standard_errors": kind} for kind in ("outer_products", "information", "sandwich")]
        for own in settings:
            learner = default_learner(**own).fit(model, demonstrations)
            parameters = learner.weights([1.0])
            errors = getattr(learner, "standard_errors_", None)
            log_policy = reference.choices(parameters)[0]
            reached = float(log_policy[buses.mileage, buses.replaced].sum())
            add(groups, shown_name(learner), parameters, None if errors is None else np.ravel(errors), reached)
    shares = Buses.read(content, range(1, 5)).increment_shares()
    lines += [
        "",
        f"Mileage grows by 0, 1 and 2 bins in {', '.join(f'{share:.4f}' for share in shares)} of the months of all groups.",
    ]
    return lines


# Gymnasium


@dataclass(frozen=True)
class Task:
    """A tabular environment with contexts, and a truth to make experts of."""

    name: str
    model: coirl.ContextualMDP
    truth: Floats  # W [d, k]
    draw_contexts: Callable[[np.random.Generator, int], Floats]
    max_steps: int  # of a path
    #: Columns [k, m]: what behaviour tells about the weights, each a combination of them whose sign is to be found.
    contrasts: Floats
    lapses: float = 0.1
    n_paths: int = 36
    feature_names: tuple[str, ...] = field(default=())

    def demonstrations(self, seed: int) -> coirl.Demonstrations:
        """One path each in as many contexts, of experts who take any action instead of the best with probability ε."""
        contexts = self.draw_contexts(np.random.default_rng([seed, 0]), self.n_paths)
        policies = self.model.plan_many(contexts @ self.truth, feature_expectations=False).policies
        assert policies is not None
        anything = self.model.admissible / self.model.admissible.sum(axis=1, keepdims=True)
        ends = absorbing(self.model)
        trajectories = []
        for i, policy in enumerate(policies):
            best = np.eye(self.model.n_actions)[policy]
            noisy = (1.0 - self.lapses) * best + self.lapses * anything
            states, actions = self.model.sample(noisy, steps=self.max_steps, seed=1_000 * seed + i)[0]
            over = np.flatnonzero(ends[states])
            last = int(over[0]) if over.size else len(actions)
            trajectories.append([(states[: last + 1], actions[:last])])
        return coirl.Demonstrations(contexts, trajectories=trajectories)

    def new_contexts(self, seed: int, n: int = 100) -> Floats:
        return self.draw_contexts(np.random.default_rng([seed, 1]), n)

    def values(self, policies: list[Any], contexts: Floats) -> float:
        """The sum of what the policies are worth, one in each context."""
        weights = contexts @ self.truth
        return sum(float(self.model.evaluate(policy).feature_expectations @ w) for policy, w in zip(policies, weights))

    def relative_value(self, policies: list[Any], contexts: Floats) -> float:
        """(V − V_random)/(V* − V_random), of sums over contexts."""
        best = float(self.model.plan_many(contexts @ self.truth, policies=False, feature_expectations=False).value.sum())
        random = self.values([self.model.random_policy()] * len(contexts), contexts)
        return (self.values(policies, contexts) - random) / (best - random)

    def one_for_all(self, contexts: Floats) -> list[Any]:
        """The best policy for the mean of the true rewards, in all contexts: as good as can be without looking at them."""
        return [self.model.plan(contexts.mean(axis=0) @ self.truth, feature_expectations=False).policy] * len(contexts)

    def right_signs(self, found: Floats, contexts: Floats, can_be_left_out: Iterable[int] = ()) -> float:
        """The share of contrasts with the sign of the truth, among those that are no less than a tenth of the largest in their context and
        are not of features alone that can be left out; NaN where there are none."""
        true, own = contexts @ self.truth @ self.contrasts, found @ self.contrasts
        needed = np.ones(len(self.contrasts), dtype=np.bool_)
        needed[list(can_be_left_out)] = False
        counted = (np.abs(true) >= 0.1 * np.abs(true).max(axis=1, keepdims=True)) & (self.contrasts[needed] != 0.0).any(axis=0)
        right = (np.sign(true) == np.sign(own))[counted]
        return float(right.mean()) if right.size else float("nan")


def absorbing(model: coirl.ContextualMDP) -> npt.NDArray[np.bool_]:
    """States that no action leaves."""
    indptr, indices, _ = model.transitions()
    owner = np.repeat(np.arange(indptr.size - 1), np.diff(indptr)) // model.n_actions
    stays = np.ones(model.n_states, dtype=np.bool_)
    stays[owner[indices != owner]] = False
    return stays


Events = Callable[[int, int, int, float, bool], list[float]]


def expected_features(env: Any, events: Events) -> Floats:
    """φ ``[S, A, k]``: what a step is expected to bring, of ``events(state, action, next state, reward, terminated)``.

    States that end an episode have none, for they are never left and would bring theirs for ever.
    """
    table = env.unwrapped.P
    final = {outcome[1] for actions in table.values() for own in actions.values() for outcome in own if outcome[3]}
    found = [
        [
            np.sum([p * np.array(events(s, a, s2, reward, over)) for p, s2, reward, over in outcomes], axis=0) * (s not in final)
            for a, outcomes in actions.items()
        ]
        for s, actions in table.items()
    ]
    return np.array(found, dtype=np.float64)


def on_the_simplex(d: int) -> Callable[[np.random.Generator, int], Floats]:
    return lambda rng, n: rng.dirichlet(np.ones(d), n)


def frozen_lake() -> Task:
    """Walkers who are late, afraid of the water, or eager; counts of steps, of falls into a hole, and of arrivals."""
    import gymnasium

    from coirl.gym import from_gymnasium

    env: Any = gymnasium.make("FrozenLake-v1", map_name="8x8")
    discount = 0.99
    letters = env.unwrapped.desc.ravel().astype("U1")
    features = expected_features(env, lambda s, a, s2, reward, over: [1.0, letters[s2] == "H", letters[s2] == "G"])
    model, _ = from_gymnasium(env, features, discount=discount, context_space=("simplex", 3))
    truth = np.array([[-0.05, -0.5, 1.0], [-0.0005, -5.0, 0.5], [-0.003, -0.5, 2.0]])
    # Every path goes on or ends in a hole or at the goal, so that the three features are dependent: (1 − γ) steps + γ (falls + arrivals)
    # is one, whatever is done. Only how much better an end is than to walk for ever shows in behaviour.
    for_ever = discount / (1.0 - discount)
    contrasts = np.array([[-for_ever, 1.0, 0.0], [-for_ever, 0.0, 1.0]]).T
    return Task("FrozenLake 8×8", model, truth, on_the_simplex(3), 200, contrasts, feature_names=("steps", "falls", "arrivals"))


def cliff_walking(slippery: bool = False) -> Task:
    """Walkers of an age in years, and minutes late: the older fear the edge, the late count their steps."""
    import gymnasium

    from coirl.gym import from_gymnasium

    env = gymnasium.make("CliffWalking", is_slippery=slippery)
    columns = 12

    def events(s: int, a: int, s2: int, reward: float, over: bool) -> list[float]:
        beside = s // columns == 2 and 0 < s % columns < columns - 1
        return [1.0, reward < -1.0, beside]

    lower, upper = np.array([1.0, 18.0, 0.0]), np.array([1.0, 90.0, 30.0])
    model, _ = from_gymnasium(env, expected_features(env, events), discount=0.99, context_space=None)
    truth = np.array([[-0.3, -1.0, 0.05], [0.0, -0.02, -0.005], [-0.05, 0.0, 0.0]])

    def draw(rng: np.random.Generator, n: int) -> Floats:
        found: Floats = lower + (upper - lower) * rng.random((n, 3))
        return found

    name = "CliffWalking" + ", slippery" * slippery
    return Task(name, model, truth, draw, 200, np.eye(3), feature_names=("steps", "falls", "steps along the edge"))


def taxi() -> Task:
    """Drivers who count their hours or their tolls; counts of steps, of steps in the east, of attempts that are refused, of fares."""
    import gymnasium

    from coirl.gym import from_gymnasium

    env: Any = gymnasium.make("Taxi")
    discount = 0.99

    def events(s: int, a: int, s2: int, reward: float, over: bool) -> list[float]:
        _, column, _, _ = env.unwrapped.decode(s)
        return [1.0, column >= 3, reward == -10.0, over]

    model, _ = from_gymnasium(env, expected_features(env, events), discount=discount, context_space=("simplex", 2))
    truth = np.array([[-1.0, -0.5, -10.0, 20.0], [-0.1, -6.0, -10.0, 20.0]])
    # As on the lake: steps and fares tell the same, for every path ends with a fare or goes on.
    for_ever = discount / (1.0 - discount)
    contrasts = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [-for_ever, 0.0, 0.0, 1.0]]).T
    names = ("steps", "steps in the east", "refused", "fares")
    return Task("Taxi", model, truth, on_the_simplex(2), 100, contrasts, feature_names=names)


TASKS: dict[str, Callable[[], Task]] = {
    "lake": frozen_lake,
    "cliff": cliff_walking,
    "slippery-cliff": lambda: cliff_walking(slippery=True),
    "taxi": taxi,
}


def gymnasium_tasks(options: argparse.Namespace) -> list[str]:
    from soft_likelihood import SoftLikelihood

    lines = [
        "| problem | learner | mean | worst | right signs, mean | worst | of needed features, mean | worst | seconds a fit |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]

    def add(task: Task, what: str, values: list[float], signs: list[float], needed: list[float], seconds: float | None) -> None:
        numbers = [np.mean(values), min(values)]
        for shares in (signs, needed):
            numbers += [np.nanmean(shares), np.nanmin(shares)] if shares else [None, None]
        numbers.append(seconds)
        cells = ["" if number is None else f"{number:.3f}" for number in numbers]
        lines.append(f"| {task.name} | {what} | {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)

    seeds = range(1, options.data_sets + 1)
    for name in options.tasks:
        task = TASKS[name]()
        kinds: list[Callable[[], Any]] = [default_learner, *([SoftLikelihood] if options.peers else []), coirl.Cloning]
        for kind in kinds:
            values, signs, needed, seconds = [], [], [], 0.0
            for seed in seeds:
                demonstrations, contexts = task.demonstrations(seed), task.new_contexts(seed)
                begin = time.perf_counter()
                learner = kind().fit(task.model, demonstrations)
                seconds += (time.perf_counter() - begin) / len(seeds)
                values.append(task.relative_value(learner.predict(contexts), contexts))
                if not isinstance(learner, coirl.Cloning):
                    signs.append(task.right_signs(learner.weights(contexts), contexts))
                if isinstance(learner, coirl.Choice):
                    needed.append(task.right_signs(learner.weights(contexts), contexts, learner.can_be_left_out_))
            add(task, shown_name(learner), values, signs, needed, seconds)
        drawn = [task.new_contexts(seed) for seed in seeds]
        add(task, "the best single policy", [task.relative_value(task.one_for_all(own), own) for own in drawn], [], [], None)
    return lines


# Supermarket

N_PRODUCT_STATES, N_PRODUCT_ACTIONS, PRODUCT_DISCOUNT = 10, 4, 0.95
PRODUCT_CONTEXTS = ("constant", "log wholesale price", "markup in percent", "log sales")
PRODUCT_FEATURES = ("stock", "low stock, no order", "promotion", "change of promotion", "order", "order by stock")


@dataclass(frozen=True)
class Products:
    """Months of products: stock and whether it was on promotion; whether it is now, and whether it is ordered."""

    contexts: Floats  # [n, 4]: what is known in the first month, whose decision is left out
    paths: Paths
    transitions: Floats  # [S, A, S]

    @classmethod
    def read(cls, data: Path | None) -> Products:
        by_product: dict[str, list[dict[str, str]]] = {}
        for row in rows_of(published_file("supermarket_data.csv", data)):
            by_product.setdefault(row["product_id"], []).append(row)
        contexts, paths = [], []
        for months in by_product.values():
            months.sort(key=lambda row: int(row["period"]))
            first, later = months[0], months[1:]
            price, markup, sales = (float(first[name]) for name in ("wholesale_price", "markup_pct", "sales"))
            contexts.append([1.0, np.log(price), markup, np.log1p(sales)])
            states = [int(row["state"]) for row in later] + [int(later[-1]["next_state"])]
            paths.append((np.array(states), np.array([int(row["action"]) for row in later])))
        by_action = np.load(io.BytesIO(published_file("supermarket_transitions.npz", data)))["transitions"].astype(np.float64)
        transitions = by_action.transpose(1, 0, 2)
        return cls(np.array(contexts), paths, transitions / transitions.sum(axis=2, keepdims=True))

    def model(self) -> coirl.ContextualMDP:
        return coirl.ContextualMDP(
            self.transitions,
            product_features(),
            None,
            PRODUCT_DISCOUNT,
            name="supermarket",
            feature_names=list(PRODUCT_FEATURES),
            context_names=list(PRODUCT_CONTEXTS),
        )

    def demonstrations(self, which: Integers) -> coirl.Demonstrations:
        return coirl.Demonstrations(self.contexts[which], trajectories=[[self.paths[i]] for i in which])


def product_features() -> Floats:
    """φ ``[S, A, 6]``. A state is 2 · stock + whether there was a promotion, stock being one of five quintiles; an action is
    2 · promotion + order."""
    features = np.zeros((N_PRODUCT_STATES, N_PRODUCT_ACTIONS, len(PRODUCT_FEATURES)))
    for state, action in np.ndindex(N_PRODUCT_STATES, N_PRODUCT_ACTIONS):
        stock, promoted = divmod(state, 2)
        promotion, order = divmod(action, 2)
        features[state, action] = [stock, stock == 0 and not order, promotion, promotion != promoted, order, order * stock]
    return features


def held_out_probabilities(products: Products, train: Integers, test: Integers) -> dict[str, Floats]:
    """What everybody gives to each action ``[steps, A]`` in the months of the test products."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def inputs(which: Integers) -> Floats:
        """State, context, and their products."""
        states = np.eye(N_PRODUCT_STATES)[np.concatenate([products.paths[i][0][:-1] for i in which])]
        contexts = np.repeat(products.contexts[which, 1:], [products.paths[i][1].size for i in which], axis=0)
        return np.concatenate([states, contexts, (states[:, :, None] * contexts[:, None]).reshape(len(states), -1)], axis=1)

    found = {}
    visits = [products.paths[i][0][:-1] for i in test]
    model, demonstrations = products.model(), products.demonstrations(train)
    for kind in (default_learner, coirl.Cloning):
        learner = kind().fit(model, demonstrations)
        found[shown_name(learner)] = learner.predict_proba(products.contexts[test], visits)
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5_000))
    regression.fit(inputs(train), np.concatenate([products.paths[i][1] for i in train]))
    found["logistic regression (scikit-learn)"] = regression.predict_proba(inputs(test))
    counts = np.zeros((N_PRODUCT_STATES, N_PRODUCT_ACTIONS))
    for i in train:
        np.add.at(counts, (products.paths[i][0][:-1], products.paths[i][1]), 1.0)
    states = np.concatenate(visits)
    found["most frequent action of the state"] = (counts / counts.sum(axis=1, keepdims=True))[states]
    found["most frequent action"] = np.tile(counts.sum(axis=0) / counts.sum(), (len(states), 1))
    majority = counts.argmax(axis=1)
    repeated = [np.r_[majority[products.paths[i][0][0]], products.paths[i][1][:-1]] for i in test]
    found["previous action"] = np.eye(N_PRODUCT_ACTIONS)[np.concatenate(repeated)]
    return found


def supermarket(options: argparse.Namespace) -> list[str]:
    products = Products.read(options.data)
    n = len(products.paths)
    shares: dict[str, list[float]] = {}
    losses: dict[str, list[float]] = {}
    for split in range(options.splits):
        order = np.random.default_rng(split).permutation(n)
        train, test = order[: round(0.75 * n)], order[round(0.75 * n) :]
        actions = np.concatenate([products.paths[i][1] for i in test])
        for name, probabilities in held_out_probabilities(products, train, test).items():
            shares.setdefault(name, []).append(float((probabilities.argmax(axis=1) == actions).mean()))
            of_taken = probabilities[np.arange(len(actions)), actions]
            losses.setdefault(name, []).append(float(-np.log(of_taken).mean()) if of_taken.min() > 0.0 else np.inf)
    lines = ["| | actions predicted, % | log-loss |", "|---|---:|---:|"]
    for name, own in shares.items():
        loss = np.mean(losses[name])
        spread = f" ± {100.0 * np.std(own, ddof=1):.1f}" if len(own) > 1 else ""
        lines.append(f"| {name} | {100.0 * np.mean(own):.1f}{spread} | {'' if np.isinf(loss) else f'{loss:.3f}'} |")
    return lines


# Units


@dataclass(frozen=True)
class Sample:
    """A problem with one data set, and contexts to compare policies in."""

    name: str
    model: coirl.ContextualMDP
    demonstrations: coirl.Demonstrations
    contexts: Floats

    def in_other_units(self, features: Floats, contexts: Floats) -> Sample:
        """Every feature and every column of the contexts times a number; contexts may then be any vector."""
        own, seen = self.model, self.demonstrations
        pairs = [[own.feature_row(s, a) * features for a in range(own.n_actions)] for s in range(own.n_states)]
        model = coirl.ContextualMDP(
            own.transitions(), np.array(pairs), own.initial, own.discount, admissible=own.admissible, context_space=None
        )
        trajectories: list[Paths] = [[] for _ in range(len(seen))]
        for owner, states, actions in seen.trajectories():
            trajectories[owner].append((states, actions))
        return Sample(
            self.name, model, coirl.Demonstrations(seen.contexts * contexts, trajectories=trajectories), self.contexts * contexts
        )


def same_policies(sample: Sample, weights: Floats, first: list[Any], second: list[Any]) -> bool:
    """Whether two agents act alike. Where best actions are equally good, either is right: the loss of the second one's actions, by
    the values of the first, is compared with the range of those values."""
    for w, one, other in zip(weights, first, second):
        if one.ndim == 2:
            if np.abs(one - other).max() > 1e-3:
                return False
            continue
        q = sample.model.evaluate(one, w).q_values
        assert q is not None
        taken = q[np.arange(len(other)), other]
        if (np.nanmax(q, axis=1) - taken).max() > 1e-6 * (np.nanmax(q) - np.nanmin(q)):
            return False
    return True


def scale(options: argparse.Namespace) -> list[str]:
    samples: list[Sample] = []
    buses = Buses.read(published_file("rust_bus_original.csv", options.data), range(1, 5))
    samples.append(Sample("bus engines", bus_model(buses), bus_demonstrations(buses), np.ones((1, 1))))
    for make in TASKS.values():
        task = make()
        samples.append(Sample(task.name, task.model, task.demonstrations(1), task.new_contexts(1, 20)))
    products = Products.read(options.data)
    order = np.random.default_rng(0).permutation(len(products.paths))
    samples.append(Sample("supermarket", products.model(), products.demonstrations(order[:400]), products.contexts[order[400:420]]))
    lines = ["| problem | learner | the same policies | largest change of a reward, relative |", "|---|---|---:|---:|"]
    for sample in samples:
        rng = np.random.default_rng(1987)
        k, d = sample.model.n_features, sample.contexts.shape[1]
        # The same space of contexts before and after, so that units are all that differs.
        plain = sample.in_other_units(np.ones(k), np.ones(d))
        learner = default_learner().fit(plain.model, plain.demonstrations)
        weights, policies = learner.weights(plain.contexts), learner.predict(plain.contexts)
        same, changes = 0, []
        for _ in range(options.rescalings):
            by_feature, by_context = 10.0 ** rng.uniform(-3.0, 3.0, k), 10.0 ** rng.uniform(-3.0, 3.0, d)
            other = sample.in_other_units(by_feature, by_context)
            again = default_learner().fit(other.model, other.demonstrations)
            changed = again.weights(other.contexts) * by_feature - weights
            changes.append(np.abs(changed).max() / np.abs(weights).max())
            same += same_policies(plain, weights, policies, again.predict(other.contexts))
        lines.append(f"| {sample.name} | {shown_name(learner)} | {same} of {options.rescalings} | {max(changes):.1e} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


# The page


def write(name: str, lines: list[str]) -> None:
    """Puts a table between the markers of the page."""
    text = PAGE.read_text(encoding="utf-8")
    place = re.compile(rf"(<!-- {name}: [^\n]* -->\n).*?(<!-- end of {name} -->)", flags=re.DOTALL)
    if not place.search(text):
        raise SystemExit(f"{PAGE.name} has no place for {name}")
    PAGE.write_text(place.sub(lambda found: "\n".join([found[1], *lines, "", found[2]]), text), encoding="utf-8")


COMMANDS: dict[str, Callable[[argparse.Namespace], list[str]]] = {
    "bus": bus,
    "gymnasium": gymnasium_tasks,
    "supermarket": supermarket,
    "scale": scale,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", choices=COMMANDS)
    parser.add_argument("--data", type=Path, help="the wheel of econirl 0.1.1, or a folder with its files")
    parser.add_argument("--data-sets", type=int, default=DATA_SETS, help="of every Gymnasium problem (%(default)s)")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="which of them (all)")
    parser.add_argument("--peers", action="store_true", help="the soft likelihood in NumPy as well; minutes")
    parser.add_argument("--splits", type=int, default=5, help="of the products into training and test (%(default)s)")
    parser.add_argument("--rescalings", type=int, default=5, help="of every problem (%(default)s)")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    lines = COMMANDS[options.problem](options)
    print("\n".join(lines))
    if options.write:
        write(options.problem, lines)


if __name__ == "__main__":
    main()
