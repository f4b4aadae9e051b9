"""What a policy would have reached, from the record of what others decided. Research software, not for clinical use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _coirl
from ._arrays import Floats, count, flag, floats, integers, number, parts, room
from .errors import ArrayError

__all__ = ["Estimate", "OffPolicy", "evaluate"]

_ESTIMATORS = ("importance_sampling", "weighted", "per_decision", "fitted_q", "doubly_robust", "weighted_doubly_robust")


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, or the reason why there is none."""

    #: ``None`` where it was refused.
    value: float | None
    #: Over resampled patients.
    interval: tuple[float, float] | None
    #: Why there is no number.
    refused: str | None

    @classmethod
    def _of(cls, found: dict[str, Any]) -> Estimate:
        own = found.get("interval")
        return cls(found.get("value"), None if own is None else (own["lower"], own["upper"]), found.get("reason"))


@dataclass(frozen=True, eq=False)
class OffPolicy:
    """What policies would have reached, by every estimator that may say so."""

    #: What was reached.
    recorded: Estimate
    #: How well the behaviour of those who were recorded is known.
    calibration: dict[str, Any]
    #: Estimates by policy and estimator: ``estimates["mine"]["fitted_q"]``.
    estimates: dict[str, dict[str, Estimate]]
    #: Effective sample size, mean weight, share on actions never recorded and warnings, by policy.
    diagnostics: dict[str, dict[str, Any]]
    #: Probabilities of the behaviour policy at every step ``[steps, A]``.
    behaviour: Floats

    def _repr_html_(self) -> str:
        import html

        def cell(estimate: Estimate) -> str:
            if estimate.value is None:
                return f"<td title='{html.escape(estimate.refused or '', quote=True)}'>refused</td>"
            interval = "" if estimate.interval is None else f" [{estimate.interval[0]:.3f}, {estimate.interval[1]:.3f}]"
            return f"<td>{estimate.value:.3f}{interval}</td>"

        head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in _ESTIMATORS)
        rows = [f"<tr><th>recorded</th>{cell(self.recorded)}{'<td></td>' * (len(_ESTIMATORS) - 1)}</tr>"]
        for name, own in self.estimates.items():
            rows.append(f"<tr><th>{html.escape(name)}</th>{''.join(cell(own[e]) for e in _ESTIMATORS)}</tr>")
        return f"<table><caption>Off-policy estimates</caption><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def evaluate(
    states: Sequence[Any],
    actions: Sequence[Any],
    rewards: Sequence[Any],
    policies: Mapping[str, Any],
    *,
    n_states: int,
    n_actions: int,
    discount: float = 1.0,
    patients: Any = None,
    behaviour: Any = None,
    covariates: Any = None,
    neighbours: int | None = None,
    softness: float = 0.01,
    fitted_q_alone: bool = False,
    least_effective_sample_size: float = 100.0,
    resamples: int = 200,
    seed: int = 0,
) -> OffPolicy:
    """Estimates what policies would have reached on recorded episodes.

    Parameters
    ----------
    states, actions, rewards
        One array per episode, all of its length: the state before each decision, the decision, the reward that followed.
    policies
        Probabilities at every recorded step by name: ``[steps, A]`` over all episodes end to end
        (:meth:`~coirl.Learner.predict_proba` gives them), or by state ``[S, A]``, or one action per state ``[S]``.
    patients
        Whose each episode is; intervals resample patients. Each its own by default.
    behaviour
        Known probabilities ``[steps, A]`` of those who were recorded; estimated by default, by state, or with ``covariates``
        ``[steps, m]`` and ``neighbours`` among the nearest steps.
    softness
        Share of the behaviour that is mixed into every policy; without it most episodes have no weight.
    fitted_q_alone
        Give fitted Q evaluation even where the weights that could contradict it are refused. Only where states are known to be Markov.
    least_effective_sample_size
        Effective episodes below which importance weights are refused.
    resamples, seed
        Of the bootstrap over patients.
    """
    if not isinstance(policies, Mapping):
        raise TypeError(f"policies is a {type(policies).__name__}; expected a dictionary of policies by name")
    every = [integers(f"states of episode {i}", part, 1) for i, part in enumerate(parts("states", states))]
    taken = [integers(f"actions of episode {i}", part, 1) for i, part in enumerate(parts("actions", actions))]
    gained = [floats(f"rewards of episode {i}", part, 1) for i, part in enumerate(parts("rewards", rewards))]
    if not every or not len(every) == len(taken) == len(gained):
        raise ArrayError(
            f"{len(every)} episodes of states, {len(taken)} of actions, {len(gained)} of rewards; expected as many of each",
            what="episodes",
        )
    for i, (a, b, c) in enumerate(zip(every, taken, gained)):
        if not len(a) == len(b) == len(c):
            raise ArrayError(
                f"episode {i}: {len(a)} states, {len(b)} actions, {len(c)} rewards; expected as many of each",
                what="episodes",
                episode=i,
            )
    lengths = np.array([len(part) for part in every], dtype=np.int64)
    visited, done = np.concatenate(every), np.concatenate(taken)
    n_states, n_actions = count("n_states", n_states, 1), count("n_actions", n_actions, 1)
    room("n_actions", max(n_states, visited.size), n_actions)
    room("resamples", count("resamples", resamples))
    if visited.size and not (0 <= visited.min() and visited.max() < n_states):
        raise ArrayError(f"states go from {visited.min()} to {visited.max()}; expected numbers below {n_states}", what="states")
    if done.size and not (0 <= done.min() and done.max() < n_actions):
        raise ArrayError(f"actions go from {done.min()} to {done.max()}; expected numbers below {n_actions}", what="actions")
    try:
        named = np.arange(len(every)) if patients is None else np.asarray(patients)
    except ValueError as error:
        raise ArrayError(f"patients is no array: {error}", what="patients") from None
    whose = np.unique(named, return_inverse=True)[1]
    if len(whose) != len(every):
        raise ArrayError(f"patients has {len(whose)} entries; expected {len(every)}, one per episode", what="patients")
    given = [(str(name), _at_steps(str(name), policy, visited, n_states, n_actions)) for name, policy in policies.items()]
    comparable: Any = "state" if neighbours is None else {"neighbours": {"k": count("neighbours", neighbours, 1)}}
    resampling = {"resamples": count("resamples", resamples), "seed": count("seed", seed)}
    found = _coirl.assess(
        n_states,
        n_actions,
        number("discount", discount),
        np.ascontiguousarray(whose, dtype=np.int64),
        np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64),
        visited,
        done,
        np.concatenate(gained),
        None if covariates is None else np.ascontiguousarray(floats("covariates", covariates, 2), dtype=np.float32),
        None if behaviour is None else floats("behaviour", behaviour, 2),
        json.dumps({"comparable": comparable, "seed": resampling["seed"]}),
        given,
        number("softness", softness),
        json.dumps(
            {
                "fitted_q_alone": flag("fitted_q_alone", fitted_q_alone),
                "least_effective_sample_size": number("least_effective_sample_size", least_effective_sample_size),
                "resampling": resampling,
            }
        ),
    )
    result = json.loads(found["result"])
    estimates, diagnostics = {}, {}
    for name, own in result["policies"]:
        estimates[name] = {estimator: Estimate._of(own[estimator]) for estimator in _ESTIMATORS}
        diagnostics[name] = {key: value for key, value in own.items() if key not in _ESTIMATORS}
    return OffPolicy(
        Estimate._of(result["recorded"]), result["calibration"], estimates, diagnostics, found["behaviour"].reshape(-1, n_actions)
    )


def _at_steps(name: str, policy: Any, visited: Any, n_states: int, n_actions: int) -> Floats:
    if floats(f"policy {name!r}", policy, 1, 2).ndim == 1:
        actions = integers(f"policy {name!r}", policy, 1)
        if len(actions) != n_states or actions.min(initial=0) < 0 or actions.max(initial=0) >= n_actions:
            raise ArrayError(f"policy {name!r}: expected one of {n_actions} actions for each of {n_states} states", what="policy")
        shares = np.zeros((visited.size, n_actions))
        shares[np.arange(visited.size), actions[visited]] = 1.0
        return shares
    shares = floats(f"policy {name!r}", policy, 2)
    if shares.shape == (n_states, n_actions) and n_states != visited.size:
        return np.ascontiguousarray(shares[visited])
    if shares.shape != (visited.size, n_actions):
        raise ArrayError(
            f"policy {name!r} has shape {list(shares.shape)}; expected [{visited.size}, {n_actions}] by step or [{n_states}, {n_actions}] by state",
            what="policy",
        )
    return shares
