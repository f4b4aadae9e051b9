"""First steps: watch drivers, learn what they care about, and drive for somebody whom nobody has seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import coirl


def watch(model: coirl.ContextualMDP, truth: npt.NDArray[np.float64], n_drivers: int, seed: int) -> coirl.Demonstrations:
    """Drivers with priorities of their own, and what each of them does: a drive of 40 steps."""
    contexts = model.sample_contexts(n_drivers, seed=seed)
    drives = [model.sample(model.plan(context @ truth).policy, steps=40, seed=i)[0] for i, context in enumerate(contexts)]
    return coirl.Demonstrations.from_arrays(contexts, states=[drive[0] for drive in drives], actions=[drive[1] for drive in drives])


def main() -> None:
    model = coirl.domains.driving()
    truth = coirl.domains.driving_mapping()
    seen = watch(model, truth, n_drivers=30, seed=1)

    learner = coirl.Choice(seed=0).fit(model, seen)
    stranger = np.array([0.2, 0.5, 0.3])
    policy = learner.predict(stranger)
    print(f"a stranger's first action: {policy[int(model.initial.argmax())]}")

    examined = learner.examine(truth, model.sample_contexts(80, seed=2))
    print(f"share of the gain over acting at random: {examined['relative_value']:.2f}")


if __name__ == "__main__":
    main()
