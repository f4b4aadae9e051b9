"""Maximum likelihood of soft-optimal experts in plain NumPy and SciPy: a peer for ``public_problems.py``.

An expert in a context c has the reward r = f(c)·φ with f(c) = c W, plans softly (V = log Σ exp Q over admissible actions) and draws
actions from π = exp(Q − V), or, with lapses, from (1 − ε) π + ε / |A(s)|, where ε is estimated as well. W maximises the mean log-likelihood of the demonstrated actions, less a small multiple of its squared length
in units of its own: a feature counts in multiples of how far it spreads, a column of the contexts in multiples of its size.

Fixed points are found by Newton's method with one sparse factorisation per step, gradients by the adjoint, with the factorisation of
the last step; the search is SciPy's L-BFGS. The cost of an evaluation is that of a few sparse factorisations per context.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.sparse.linalg import splu

import coirl

Floats = npt.NDArray[np.float64]


class SoftLikelihood:
    """The fit of one mapping; ``mapping_`` is W ``[d, k]``, ``lapses_`` is ε."""

    def __init__(self, penalty: float = 1e-4, lapses: bool = True) -> None:
        self.penalty, self.lapses = penalty, lapses

    def __str__(self) -> str:
        return f"soft likelihood{' with lapses' * self.lapses} in NumPy"

    def fit(self, model: coirl.ContextualMDP, demonstrations: coirl.Demonstrations) -> SoftLikelihood:
        """From trajectories in a model whose dynamics are the same in all contexts."""
        n_states, n_actions = model.n_states, model.n_actions
        indptr, indices, data = model.transitions()
        self._rows = sp.csr_matrix((data, indices, indptr), shape=(n_states * n_actions, n_states))
        self._admissible, self._discount = model.admissible, model.discount
        features = np.array([[model.feature_row(s, a) for a in range(n_actions)] for s in range(n_states)])
        contexts, which = np.unique(demonstrations.contexts, axis=0, return_inverse=True)
        counts = np.zeros((len(contexts), n_states, n_actions))
        for owner, states, actions in demonstrations.trajectories():
            np.add.at(counts[which.ravel()[owner]], (states[:-1], actions), 1.0)
        spread = features[self._admissible].std(axis=0)
        feature_scale = np.where(spread > 0.0, spread, 1.0)
        context_scale = np.sqrt((contexts**2).mean(axis=0))
        context_scale[context_scale == 0.0] = 1.0
        scaled, rows = features / feature_scale, contexts / context_scale
        shape = (contexts.shape[1], model.n_features)
        values = np.zeros((len(contexts), n_states))

        total, size = counts.sum(), shape[0] * shape[1]
        anything = self._admissible / self._admissible.sum(axis=1, keepdims=True)

        def objective(flat: Floats) -> tuple[float, Floats]:
            mapping, lapses = flat[:size].reshape(shape), _lapses(flat[size]) if self.lapses else 0.0
            value, gradient, by_lapses = 0.0, np.zeros(shape), 0.0
            for i, context in enumerate(rows):
                reward = np.where(self._admissible, scaled @ (context @ mapping), -np.inf)
                values[i], log_policy, factors = self._soft_plan(reward, values[i])
                seen, policy = counts[i] > 0.0, np.exp(log_policy)
                drawn = (1.0 - lapses) * policy + lapses * anything
                log_drawn = np.log(drawn[seen]) if self.lapses else log_policy[seen]
                value -= float(counts[i][seen] @ log_drawn)
                by_lapses -= float(counts[i][seen] @ ((anything - policy)[seen] / drawn[seen])) if self.lapses else 0.0
                meant = counts[i].copy()
                if self.lapses:
                    meant[seen] *= (1.0 - lapses) * policy[seen] / drawn[seen]
                start = meant - policy * meant.sum(axis=1, keepdims=True)
                visits = factors.solve(self._discount * (self._rows.T @ start.ravel()), trans="T")
                gradient -= np.outer(context, np.einsum("sa,sak->k", start + policy * visits[:, None], scaled))
            own = flat[:size]
            slope = by_lapses / total * lapses * (1.0 - 2.0 * lapses)
            both = np.append(gradient.ravel() / total + 2.0 * self.penalty * own, slope)
            return value / total + self.penalty * float(own @ own), both

        start = np.append(np.zeros(size), -2.0)
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-7})
        self.mapping_: Floats = found.x[:size].reshape(shape) / np.outer(context_scale, feature_scale)
        self.lapses_ = _lapses(found.x[size]) if self.lapses else 0.0
        self.model_ = model
        return self

    def weights(self, contexts: Any) -> Floats:
        """f(c)."""
        found: Floats = np.asarray(contexts) @ self.mapping_
        return found

    def predict(self, contexts: Any) -> list[Any]:
        """The best policies for the learned rewards."""
        policies = self.model_.plan_many(self.weights(contexts), feature_expectations=False).policies
        assert policies is not None
        return list(policies)

    def _soft_plan(self, reward: Floats, values: Floats) -> tuple[Floats, Floats, Any]:
        """V, log π, and the factors of I − γ P_π at the end."""
        n_states, n_actions = reward.shape
        identity = sp.identity(n_states, format="csr")
        for _ in range(100):
            q = reward + self._discount * (self._rows @ values).reshape(n_states, n_actions)
            backed = np.logaddexp.reduce(q, axis=1)
            log_policy = q - backed[:, None]
            choose = sp.csr_matrix(
                (np.exp(log_policy).ravel(), np.arange(n_states * n_actions), np.arange(n_states + 1) * n_actions),
                shape=(n_states, n_states * n_actions),
            )
            factors = splu((identity - self._discount * (choose @ self._rows)).tocsc())
            step = factors.solve(backed - values)
            values = values + step
            if np.abs(step).max() <= 1e-10 * (1.0 + np.abs(values).max()):
                return values, log_policy, factors
        return values, log_policy, factors


def _lapses(position: float) -> float:
    """ε in (0, ½), by a number of any size."""
    return float(0.5 / (1.0 + np.exp(-position)))
