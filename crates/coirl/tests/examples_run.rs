//! The examples run to their end and find what they say.
#![allow(clippy::unwrap_used, missing_docs)] // a failed unwrap is a failed test

#[path = "../examples/own_learner.rs"]
mod own_learner;
#[path = "../examples/own_mapping.rs"]
mod own_mapping;

#[test]
fn a_learner_from_outside_is_interrupted_and_resumed_to_the_same_mapping() {
    own_learner::main().unwrap();
}

#[test]
fn a_mapping_from_outside_is_learned() {
    own_mapping::main().unwrap();
}
