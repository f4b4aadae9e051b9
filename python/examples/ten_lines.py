"""Learn from twenty demonstrations what drivers want, and drive for eighty new passengers."""

import coirl

model = coirl.domains.driving()
truth = coirl.domains.driving_mapping()  # what the experts want; used to make demonstrations, and to score at the end
contexts = model.sample_contexts(20, seed=1)
seen = model.plan_many(contexts @ truth).feature_expectations
learner = coirl.Choice().fit(model, coirl.Demonstrations.from_arrays(contexts, seen))
unseen = model.sample_contexts(80, seed=2)
policy = learner.predict(unseen[0])  # one action per state
scores = learner.examine(truth, unseen)
print(f"{scores['relative_value']:.4f}")
