"""From known contexts to new ones without planning anew (zero-shot transfer)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _coirl
from ._arrays import Floats, Integers, flag, floats, number
from ._arrays import contexts as as_contexts
from .learners import Learner
from .model import ContextualMDP

__all__ = ["Prediction", "Transfer"]


@dataclass(frozen=True, eq=False)
class Prediction:
    """A policy for a context, and what it can lose."""

    #: One action per state ``[S]``.
    policy: Integers
    #: V(s) of the policy.
    values: Floats
    #: Value from the start.
    value: float
    #: ``"improved"`` (generalised policy improvement), ``"nearest"`` or ``{"planned": …}``.
    how: Any
    #: No policy is better by more than this for the mapping's reward, in any state.
    bound: float
    #: ``"theorem"``, ``"residual"`` or ``"certificate"``.
    bound_by: str
    #: Number of the nearest known context.
    nearest: int | None


class Transfer:
    """Policies of known contexts, and how to act in others: by generalised policy improvement, or as in the nearest context where the dynamics are a
    mixture. All bounds are relative to the mapping, not to an expert.

    Parameters
    ----------
    model
        The contextual process; for the discounted criterion.
    mapping
        W ``[d, k]``, or a fitted learner that plans for a mapping.
    contexts
        Contexts to plan for at once ``[n, d]``.
    """

    def __init__(self, model: ContextualMDP, mapping: Learner | Any, contexts: Any = None) -> None:
        if not isinstance(model, ContextualMDP):
            raise TypeError(f"model is a {type(model).__name__}; expected a ContextualMDP")
        self.model = model
        if isinstance(mapping, Learner):
            self._transfer = _coirl.Transfer.of_fitted(model._model, mapping._ready(model)[0])
        else:
            self._transfer = _coirl.Transfer.of_mapping(model._model, floats("mapping", mapping, 2))
        if contexts is not None:
            self.learn(contexts)

    def learn(self, contexts: Any) -> Transfer:
        """Plans for contexts and remembers their policies."""
        self._transfer.learn(as_contexts(contexts))
        return self

    def prune(self, contexts: Any) -> int:
        """Leaves out policies that are not needed on these contexts; returns how many."""
        return self._transfer.prune(as_contexts(contexts))

    def predict(self, context: Any, *, bound: float | None = None, plan: bool = True, remember: bool = False) -> Prediction:
        """The policy for a new context.

        Parameters
        ----------
        context
            ``[d]``.
        bound
            What the policy may lose; where its bound is larger, it is planned for instead, from what was transferred.
        plan
            ``False`` never plans, whatever the bound and the cost.
        remember
            Keep what had to be planned.
        """
        wanted = None if bound is None else number("bound", bound)
        own = floats("context", context, 1)
        found = self._transfer.predict(self.model._model, own, wanted, not flag("plan", plan), flag("remember", remember))
        return Prediction(**found)

    @property
    def n_contexts(self) -> int:
        """Known contexts."""
        return self._transfer.n_contexts()

    @property
    def n_policies(self) -> int:
        """Different policies among them."""
        return self._transfer.n_policies()

    def __len__(self) -> int:
        return self.n_contexts

    def __repr__(self) -> str:
        return f"Transfer({self.n_contexts} contexts, {self.n_policies} policies)"
