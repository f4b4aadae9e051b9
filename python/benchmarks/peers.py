"""Two peers in plain NumPy, written here from their descriptions, to compare the library's learners with.

``MaximumCausalEntropy`` is tabular maximum causal entropy inverse reinforcement learning as it is commonly run (Ziebart's soft value
iteration, matching of discounted visits, Adam with a step of 0.01): rewards are linear in the raw features, their weights linear in the
raw contexts, and nothing is standardised. From trajectories it looks at episodes as long as the demonstrated ones; from feature
expectations at an endless one. In a context of the test it takes the best policy for the learned reward.

``LogisticCloning`` is multinomial logistic regression of the action on the products of the context with the state (one-hot) and with the
features of the state, all standardised, with a small penalty. It takes the likeliest action and plans nothing.

Both keep to known actions. ``fit`` takes a :class:`problems.Problem`; ``predict`` has a policy ``[S]`` per context.
"""

from __future__ import annotations

import numpy as np
from problems import Floats, Integers, Problem, plan


class MaximumCausalEntropy:
    """Maximum causal entropy by gradient steps of Adam on the dual of feature matching.

    Parameters
    ----------
    step_size, max_steps
        Of Adam; its other settings are the usual ones (0.9, 0.999, 1e-8).
    tolerance
        Ends where the gradient is shorter, or where no feature is missed by more than ten times this.
    """

    def __init__(self, step_size: float = 1e-2, max_steps: int = 500, tolerance: float = 1e-4) -> None:
        self.step_size, self.max_steps, self.tolerance = step_size, max_steps, tolerance

    def fit(self, problem: Problem, setting: str = "trajectories") -> MaximumCausalEntropy:
        self.problem = problem
        contexts = problem.train_contexts
        n_states, n_actions, k = problem.phi.shape
        kernels = np.array([problem.kernel(context) for context in contexts[: 1 if len(problem.draft.kernels) == 1 else None]])
        self._forward = kernels.reshape(len(kernels), n_states * n_actions, n_states)
        self._mask = np.where(problem.allowed, 0.0, -np.inf)
        if setting == "trajectories":
            seen, starts = self._seen()
            horizon = problem.draft.steps
        else:
            seen, starts = problem.feature_expectations, np.repeat(problem.start[None], len(contexts), axis=0)
            horizon = None
        self._values = np.zeros((len(contexts), n_states))
        self._visits = starts.copy()
        self.W = np.zeros((contexts.shape[1], k))
        first, second = np.zeros_like(self.W), np.zeros_like(self.W)
        for step in range(1, self.max_steps + 1):
            reward = (contexts @ self.W @ problem.phi.reshape(-1, k).T).reshape(-1, n_states, n_actions)
            taken = self._finite(reward, starts, horizon) if horizon is not None else self._endless(reward, starts)
            missed = seen - taken.reshape(len(contexts), -1) @ problem.phi.reshape(-1, k)
            gradient = contexts.T @ missed / len(contexts)
            if np.linalg.norm(gradient) < self.tolerance or np.abs(missed).max() < 10.0 * self.tolerance:
                break
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            self.W += self.step_size * (first / (1.0 - 0.9**step)) / (np.sqrt(second / (1.0 - 0.999**step)) + 1e-8)
        self.n_steps = step
        return self

    def _seen(self) -> tuple[Floats, Floats]:
        """Discounted features of the paths of every context, and where they began. A path that reached an end stays there."""
        problem = self.problem
        uniform = problem.allowed / problem.allowed.sum(axis=1, keepdims=True)
        at_rest = np.einsum("sa,sak->sk", uniform, problem.phi)
        seen, starts = [], []
        for paths in problem.paths:
            own, begin = np.zeros(problem.phi.shape[2]), np.zeros(len(problem.phi))
            for states, actions in paths:
                factors = problem.draft.discount ** np.arange(problem.draft.steps)
                own += factors[: len(actions)] @ problem.phi[states[:-1], actions]
                own += factors[len(actions) :].sum() * at_rest[states[-1]]
                begin[states[0]] += 1.0
            seen.append(own / len(paths))
            starts.append(begin / len(paths))
        return np.array(seen), np.array(starts)

    def _backup(self, reward: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Soft values and the logarithms of their policy."""
        n, n_states, n_actions = reward.shape
        following = (
            values @ self._forward[0].T
            if len(self._forward) == 1
            else np.einsum("nrs,ns->nr", self._forward, values, optimize=True)
        )
        q = reward + self._mask + self.problem.draft.discount * following.reshape(n, n_states, n_actions)
        top = q.max(axis=2)
        soft = top + np.log(np.exp(q - top[..., None]).sum(axis=2))
        return soft, q - soft[..., None]

    def _push(self, taken: Floats) -> Floats:
        """One step of visits ``[n, S, A]``, discounted."""
        flat = taken.reshape(len(taken), -1)
        moved = flat @ self._forward[0] if len(self._forward) == 1 else np.einsum("nr,nrs->ns", flat, self._forward, optimize=True)
        return np.asarray(self.problem.draft.discount * moved)

    def _finite(self, reward: Floats, starts: Floats, horizon: int) -> Floats:
        values, policies = np.zeros(reward.shape[:2]), []
        for _ in range(horizon):
            values, logs = self._backup(reward, values)
            policies.append(np.exp(logs))
        visits, taken = starts, np.zeros_like(reward)
        for policy in reversed(policies):
            now = visits[..., None] * policy
            taken += now
            visits = self._push(now)
        return taken

    def _endless(self, reward: Floats, starts: Floats, max_sweeps: int = 2_000) -> Floats:
        """Both fixed points, from where the last step left them."""
        for _ in range(max_sweeps):
            values, logs = self._backup(reward, self._values)
            change = values - self._values
            self._values = values
            if (change.max(axis=1) - change.min(axis=1)).max() < 1e-4:
                break
        policy = np.exp(logs)
        for _ in range(max_sweeps):
            visits = starts + self._push(self._visits[..., None] * policy)
            change = np.abs(visits - self._visits).sum(axis=1).max()
            self._visits = visits
            if change < 1e-5:
                break
        return np.asarray(self._visits[..., None] * policy)

    def predict(self, contexts: Floats) -> list[Integers]:
        own, policies, start = self.problem, [], None
        for context, weights in zip(contexts, contexts @ self.W):
            start, _, _ = plan(own.kernel(context), own.phi @ weights, own.draft.discount, own.allowed, start)
            policies.append(start)
        return policies


class LogisticCloning:
    """Multinomial logistic regression by accelerated gradient steps.

    Parameters
    ----------
    penalty
        Weight of half the squared norm, per decision.
    max_steps
        Gradient steps.
    """

    def __init__(self, penalty: float = 1e-3, max_steps: int = 500) -> None:
        self.penalty, self.max_steps = penalty, max_steps

    def fit(self, problem: Problem, setting: str = "trajectories") -> LogisticCloning:
        if setting != "trajectories":
            raise ValueError("cloning needs actions")
        self.problem = problem
        n_states, n_actions, _ = problem.phi.shape
        own = problem.phi.mean(axis=1)
        spread = own.std(axis=0)
        self._state = (own - own.mean(axis=0))[:, spread > 0] / spread[spread > 0]
        self._centre = problem.train_contexts.mean(axis=0)
        scale = problem.train_contexts.std(axis=0)
        self._scale = np.where(scale > 0, scale, 1.0)
        owners = np.concatenate([np.full(len(a), i) for i, paths in enumerate(problem.paths) for _, a in paths])
        states = np.concatenate([s[:-1] for paths in problem.paths for s, _ in paths])
        actions = np.concatenate([a for paths in problem.paths for _, a in paths])
        order = np.argsort(states, kind="stable")  # decisions of a state side by side, to be summed
        owners, states, actions = owners[order], states[order], actions[order]
        visited, begins = np.unique(states, return_index=True)
        size = len(actions)
        people = self._people(problem.train_contexts)[owners]
        inputs = self._products(self._people(problem.train_contexts)[:, 1:])[owners, states]
        mask = np.where(problem.allowed, 0.0, -np.inf)[states]
        # The curvature is at most half of the largest eigenvalue of the inputs' second moments.
        blocks = [own.T @ own / size for own in np.split(people, begins[1:])]
        largest = max(np.linalg.norm(own, 2) for own in blocks) + (
            np.linalg.norm(inputs.T @ inputs / size, 2) if inputs.size else 0.0
        )
        step = 1.0 / (0.5 * float(largest) + self.penalty)
        now = (np.zeros((n_states, people.shape[1], n_actions)), np.zeros((inputs.shape[1], n_actions)))
        ahead = now
        for t in range(self.max_steps):
            logits = np.einsum("nd,nda->na", people, ahead[0][states]) + inputs @ ahead[1] + mask
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            shares[np.arange(size), actions] -= 1.0
            by_state = np.zeros_like(now[0])
            by_state[visited] = np.add.reduceat(people[:, :, None] * shares[:, None, :], begins, axis=0) / size
            new = (
                ahead[0] - step * (by_state + self.penalty * ahead[0]),
                ahead[1] - step * (inputs.T @ shares / size + self.penalty * ahead[1]),
            )
            momentum = t / (t + 3.0)
            ahead = (new[0] + momentum * (new[0] - now[0]), new[1] + momentum * (new[1] - now[1]))
            now = new
        self.by_state, self.by_product = now
        return self

    def _people(self, contexts: Floats) -> Floats:
        """One, and the standardised context."""
        return np.column_stack([np.ones(len(contexts)), (contexts - self._centre) / self._scale])

    def _products(self, contexts: Floats) -> Floats:
        """Of context and features of the state ``[n, S, d * k]``."""
        n, d, (n_states, k) = *contexts.shape, self._state.shape
        return np.asarray((contexts[:, None, :, None] * self._state[None, :, None, :]).reshape(n, n_states, d * k))

    def predict(self, contexts: Floats) -> list[Integers]:
        mask, people = np.where(self.problem.allowed, 0.0, -np.inf), self._people(contexts)
        logits = np.einsum("nd,sda->nsa", people, self.by_state) + self._products(people[:, 1:]) @ self.by_product + mask
        return list(logits.argmax(axis=2))
