"""Peer MDP planners behind one JSON-lines protocol, for the planning benchmark.

    python peers.py quantecon|mdpsolver|storm|madupite    answer requests on stdin until "quit"
    python peers.py available                             name the peers that can be imported
    python peers.py icu-sepsis OUT.npz                    write the ICU-Sepsis problem

A problem is an npz file: `indptr`, `indices`, `data` are the CSR rows s * A + a of the transition
matrix (every action is admissible in every state), with scalars `n_states`, `n_actions`,
`discount`, and `rewards` [N, S] of state rewards: Q(s, a) = R(s) + discount * sum P(.|s, a) V,
or [N, S * A] of rewards R(s, a).

Requests, one JSON object per line, each answered by one line:
    {"op": "load", "path": P, "slow": false}   -> {"ok", "variants", "version"}
    {"op": "solve", "rewards": [i, j], "variant": V, "tolerance": T, "values": out.npy or null}
                                -> {"cpu_s", "wall_s", "reload_cpu_s", "residual", "span_residual"}
    {"op": "quit"}
A request that fails is answered by {"error": message}. "slow" says that the model mixes slowly: the
variants are then those that have a chance.

Rewards i..j are solved one after another from a cold start on one thread. `cpu_s` and `wall_s`
cover what depends on the reward: handing it over, solving, and reading the values back.
`reload_cpu_s` is the cost, not in `cpu_s`, of loading transitions and reward again in a library
that cannot replace the reward alone. `residual` is the largest sup norm of TV - V over the rewards
and `span_residual` the largest (max - min) / 2 of it.
"""

import os

THREAD_VARIABLES = ("OMP", "OPENBLAS", "MKL", "NUMBA")
os.environ.update({f"{name}_NUM_THREADS": "1" for name in THREAD_VARIABLES})

import importlib.metadata
import importlib.util
import itertools
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Vector = NDArray[np.float64]

# Above this many states the variants that stop on the sup norm are left out: they need about
# log(tolerance) / log(discount) sweeps, 13 to 20 s a reward at 100,000 states and discount 0.99.
LARGE = 10_000
# Transition entries above which QuantEcon's policy iteration is left out. It factorises
# I - discount * P with SuperLU, which takes 38 s a reward on 5,000 states with 20 random
# successors; on ICU-Sepsis, whose actions often tie, it runs on to its iteration limit after the
# values are exact.
LARGE_FACTORISATION = 100_000


@dataclass(frozen=True)
class Problem:
    """One transition matrix with many state rewards."""

    transitions: sp.csr_matrix
    n_states: int
    n_actions: int
    discount: float
    rewards: Vector
    mixes_slowly: bool = False

    @classmethod
    def read(cls, path: str, slow: bool = False) -> "Problem":
        with np.load(path) as file:
            states, actions = int(file["n_states"]), int(file["n_actions"])
            rows = (file["data"], file["indices"], file["indptr"])
            transitions = sp.csr_matrix(rows, shape=(states * actions, states))
            transitions.sum_duplicates()
            return cls(transitions, states, actions, float(file["discount"]), file["rewards"], slow)

    def of_pairs(self, reward: Vector) -> Vector:
        """R(s, a) in the order of the rows."""
        return np.repeat(reward, self.n_actions) if reward.size == self.n_states else reward

    def residuals(self, reward: Vector, values: Vector) -> tuple[float, float]:
        """Sup norm and half span of the Bellman residual TV - V."""
        expected = (self.transitions @ values).reshape(self.n_states, self.n_actions)
        gains = self.of_pairs(reward).reshape(self.n_states, self.n_actions)
        change = (gains + self.discount * expected).max(axis=1) - values
        return float(np.abs(change).max()), float(np.ptp(change) / 2)


class Peer:
    """A library with one problem loaded in its own structures."""

    package: str
    variants: list[str]

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def reload(self, reward: Vector) -> None:
        """Untimed work before `solve`, where the library cannot replace the reward alone."""

    def solve(self, reward: Vector, variant: str, tolerance: float) -> Vector:
        """Values with a sup-norm Bellman residual of at most `tolerance`."""
        raise NotImplementedError


class QuantEcon(Peer):
    """`DiscreteDP` in its sparse state-action-pair form; a new reward is a new `R`.

    Modified policy iteration stops at span(Tv - v) < epsilon * (1 - b) / b for discount b and
    returns Tv + midrange(Tv - v) * b / (1 - b), whose residual is at most b * span / 2. Value
    iteration stops at max|Tv - v| < epsilon * (1 - b) / (2 * b) and returns Tv, whose residual is
    at most b times that. Both are epsilon * (1 - b) / 2, hence epsilon = 2 * tolerance / (1 - b).
    Policy iteration is exact.
    """

    package = "quantecon"

    def __init__(self, problem: Problem) -> None:
        from quantecon.markov import DiscreteDP

        super().__init__(problem)
        states = np.repeat(np.arange(problem.n_states), problem.n_actions)
        actions = np.tile(np.arange(problem.n_actions), problem.n_states)
        reward = problem.of_pairs(problem.rewards[0])
        self.model = DiscreteDP(reward, problem.transitions, problem.discount, states, actions)
        self.variants = ["mpi-3", "mpi-5", "mpi-20", "mpi-30"]
        if problem.n_states <= LARGE:
            self.variants.append("vi")
        if problem.transitions.nnz <= LARGE_FACTORISATION:
            self.variants.append("pi")
        if problem.mixes_slowly:
            self.variants = ["pi", "mpi-20", "mpi-200"]
        for method in ("mpi", "vi"):  # compiles every kernel, those of "pi" included
            self.model.solve(method, max_iter=1)

    def solve(self, reward: Vector, variant: str, tolerance: float) -> Vector:
        method, _, sweeps = variant.partition("-")
        self.model.R = self.problem.of_pairs(reward)
        epsilon = 2 * tolerance / (1 - self.problem.discount)
        limit = None if method == "pi" else 10**6
        return self.model.solve(method, epsilon=epsilon, max_iter=limit, k=int(sweeps or 0)).v


class MdpSolver(Peer):
    """`mdpsolver.model` fed with nested lists.

    `mdp()` takes rewards and transitions together, and a model starts from the values and policy
    of its previous solve, so each reward gets a new model, built outside the timed region.

    "standard" updates stop at span(Tv - v) < epsilon * (1 - b) / b for discount b and return
    Tv + min(Tv - v) * b / (1 - b), whose residual lies in [0, b * span], so
    epsilon = tolerance / (1 - b). "gs" and "sor" updates stop at a sup norm of
    epsilon * (1 - b) / (2 * b) and in-place sweeps leave a residual of at most b times that, so
    epsilon = 2 * tolerance / (1 - b). "sor" keeps the library's relaxation of 1.
    """

    package = "mdpsolver"

    def __init__(self, problem: Problem) -> None:
        import mdpsolver

        super().__init__(problem)
        self.library = mdpsolver
        self.probabilities = self.nested(problem.transitions.data)
        self.columns = self.nested(problem.transitions.indices)
        limits = ["mpi-standard-1", "mpi-standard-5", "mpi-standard-20", "mpi-standard-100"]
        self.variants = [*limits, "vi-standard", "pi-standard"]
        if problem.n_states <= LARGE:
            self.variants += ["mpi-gs-20", "mpi-sor-20", "vi-gs", "pi-gs"]
        if problem.mixes_slowly:
            self.variants = ["pi-standard", "mpi-standard-100"]

    def nested(self, entries: NDArray[Any]) -> list[list[list[Any]]]:
        """Entries of the transition matrix as [state][action][successor]."""
        flat, bounds = entries.tolist(), self.problem.transitions.indptr.tolist()
        rows = iter([flat[i:j] for i, j in itertools.pairwise(bounds)])
        states, actions = self.problem.n_states, self.problem.n_actions
        return [list(itertools.islice(rows, actions)) for _ in range(states)]

    def reload(self, reward: Vector) -> None:
        self.model = self.library.model()
        self.model.mdp(
            discount=self.problem.discount,
            rewards=self.problem.of_pairs(reward).reshape(self.problem.n_states, -1).tolist(),
            tranMatProbs=self.probabilities,
            tranMatColumns=self.columns,
        )

    def solve(self, reward: Vector, variant: str, tolerance: float) -> Vector:
        algorithm, update, limit = (variant + "-1").split("-")[:3]
        scale = 1 if update == "standard" else 2
        self.model.solve(
            algorithm=algorithm,
            update=update,
            tolerance=scale * tolerance / (1 - self.problem.discount),
            parIterLim=int(limit),
            parallel=False,
        )
        return np.array(self.model.getValueVector())


class Storm(Peer):
    """Discounted total reward of a sparse MDP; a new reward is one more named reward model.

    Storm has one method for this property whatever solver is set: Gauss-Seidel value iteration,
    which stops once no value changes by more than precision * (1 - b) / b for discount b and so
    leaves a residual of at most b times that: precision = tolerance / (1 - b), not relative.
    """

    package = "stormpy"
    variants = ["discounted-vi"]

    def __init__(self, problem: Problem) -> None:
        import stormpy
        from stormpy import models
        from stormpy.datastructures import SparseMatrixBuilder

        super().__init__(problem)
        self.library, self.names = stormpy, itertools.count()
        self.reward_model = models.SparseRewardModel[float]
        matrix, rows = problem.transitions, problem.n_states * problem.n_actions
        builder = SparseMatrixBuilder[float](
            rows=rows,
            columns=problem.n_states,
            entries=matrix.nnz,
            has_custom_row_grouping=True,
            row_groups=problem.n_states,
        )
        builder.add_next_values(
            np.repeat(np.arange(rows), np.diff(matrix.indptr)).tolist(),
            matrix.indices.tolist(),
            matrix.data.tolist(),
            list(range(0, rows, problem.n_actions)),
        )
        labels = models.StateLabeling(problem.n_states)
        labels.add_label("init")
        labels.add_label_to_state("init", 0)
        parts = models.SparseModelComponents[float](builder.build(), labels)
        self.model = models.SparseMdp[float](parts)
        self.environment = stormpy.Environment()
        self.environment.solver().min_max().relative_termination_criterion = False

    def solve(self, reward: Vector, variant: str, tolerance: float) -> Vector:
        name, discount = f"reward{next(self.names)}", self.problem.discount
        precision = self.library.Rational(tolerance / (1 - discount))
        self.environment.solver().min_max().precision = precision
        if reward.size == self.problem.n_states:
            gains = self.reward_model(reward.tolist())
        else:
            gains = self.reward_model(optional_state_action_reward_vector=reward.tolist())
        self.model.add_reward_model(name, gains)
        goal = self.library.parse_property(f'R{{"{name}"}}max=? [Cdiscount={discount!r}]')
        result = self.library.model_checking(self.model, goal, environment=self.environment)
        return np.array(result.get_value_vector())


class Madupite(Peer):
    """Inexact policy iteration with GMRES inside, as the examples of the library set it up, on one process.

    `-atol_pi` is the sup norm of the Bellman residual at which it stops. Its values are read from the file that it
    writes. It has to be built against PETSc, and takes part only where that was done.
    """

    package = "madupite"
    variants = ["ipi-gmres"]

    def __init__(self, problem: Problem) -> None:
        import madupite

        super().__init__(problem)
        self.library, self.folder = madupite, Path(tempfile.mkdtemp())
        self.instance = madupite.initialize_madupite()
        matrix = problem.transitions
        room = madupite.MatrixPreallocation()
        room.d_nz = room.o_nz = int(np.diff(matrix.indptr).max())

        def row(state: int, action: int) -> tuple[list[float], list[int]]:
            begin, end = matrix.indptr[state * problem.n_actions + action :][:2]
            return matrix.data[begin:end].tolist(), matrix.indices[begin:end].tolist()

        self.transitions = madupite.createTransitionProbabilityTensor(
            name="transitions", numStates=problem.n_states, numActions=problem.n_actions, func=row, preallocation=room
        )

    def solve(self, reward: Vector, variant: str, tolerance: float) -> Vector:
        gains = self.problem.of_pairs(reward).reshape(self.problem.n_states, self.problem.n_actions)
        model, values = self.library.MDP(self.instance), self.folder / "values.out"
        model.setTransitionProbabilityTensor(self.transitions)
        model.setStageCostMatrix(
            self.library.createStageCostMatrix(
                name="rewards", numStates=len(gains), numActions=gains.shape[1], func=lambda s, a: float(gains[s, a])
            )
        )
        for name, value in {
            "-mode": "MAXREWARD",
            "-discount_factor": repr(self.problem.discount),
            "-atol_pi": repr(tolerance),
            "-max_iter_pi": "1000",
            "-max_iter_ksp": "10000",
            "-ksp_type": "gmres",
            "-overwrite": "true",
            "-file_cost": str(values),
        }.items():
            model.setOption(name, value)
        model.solve()
        return np.loadtxt(values)


def solve(peer: Peer, request: dict[str, Any]) -> dict[str, float]:
    """Solve a range of rewards in a plain loop and measure it."""
    variant, tolerance = request["variant"], request["tolerance"]
    if variant not in peer.variants:
        raise ValueError(f"no variant {variant!r}")
    rewards = peer.problem.rewards[slice(*request["rewards"])]
    if not len(rewards):
        raise ValueError("no rewards in that range")
    values, reload_cpu, cpu, wall = [], 0.0, 0.0, 0.0
    for reward in rewards:
        before = time.process_time()
        peer.reload(reward)
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        values.append(peer.solve(reward, variant, tolerance))
        wall += time.perf_counter() - wall_start
        cpu += time.process_time() - cpu_start
        reload_cpu += cpu_start - before
    if request.get("values"):
        np.save(request["values"], np.array(values))
    sup, span = np.max([peer.problem.residuals(*pair) for pair in zip(rewards, values)], axis=0)
    times = {"cpu_s": cpu, "wall_s": wall, "reload_cpu_s": reload_cpu}
    return times | {"residual": float(sup), "span_residual": float(span)}


def serve(kind: type[Peer]) -> None:
    """Answer requests; what the libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer: Peer | None = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if request["op"] == "quit":
                return
            if request["op"] == "load":
                peer = kind(Problem.read(request["path"], request.get("slow", False)))
                version = importlib.metadata.version(kind.package)
                answer = {"ok": True, "variants": peer.variants, "version": version}
            elif request["op"] == "solve" and peer is not None:
                answer = solve(peer, request)
            else:
                raise ValueError("expected load, then solve or quit")
        except (Exception, SystemExit) as error:  # mdpsolver reports bad arguments with sys.exit
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def write_icu_sepsis(path: str) -> None:
    """ICU-Sepsis with the package's row for each of its 25 actions, and reward 1 in survival.

    Death and survival lead to a last state that only leads to itself, so no row needs repair.
    The package is located without being imported: importing it needs a gym.
    """
    spec = importlib.util.find_spec("icu_sepsis")
    if spec is None or spec.origin is None:
        raise SystemExit("icu_sepsis is not installed")
    with np.load(Path(spec.origin).parent / "envs" / "assets" / "dynamics.npz") as file:
        transitions, arrival_rewards = file["tx_mat"], file["r_mat"]
    states, actions, _ = transitions.shape
    if not np.allclose(transitions.sum(axis=2), 1, rtol=0, atol=1e-12):
        raise SystemExit("a row of the ICU-Sepsis transitions does not sum to one")
    rows = sp.csr_matrix(transitions.reshape(states * actions, states))
    np.savez(
        path,
        indptr=rows.indptr.astype(np.int64),
        indices=rows.indices.astype(np.int32),
        data=rows.data,
        n_states=states,
        n_actions=actions,
        discount=0.99,
        rewards=arrival_rewards.max(axis=(0, 1))[None, :],
    )


def main(arguments: list[str]) -> None:
    peers: dict[str, type[Peer]] = {"quantecon": QuantEcon, "mdpsolver": MdpSolver, "storm": Storm, "madupite": Madupite}
    match arguments:
        case ["available"]:
            print(*(name for name, kind in peers.items() if importlib.util.find_spec(kind.package)))
        case ["icu-sepsis", path]:
            write_icu_sepsis(path)
        case [name] if name in peers:
            serve(peers[name])
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
