//! The demonstration set that is part of the program: an optimal driver in 100 contexts, and 80 more contexts to score on.
//!
//! Written by `coirl domain demonstrate driving --contexts 100 --test-contexts 80 --transitions 40 --seed 1`; a test
//! writes it again and compares.

pub(super) const DOMAIN: &str = "driving";
pub(super) const CONTEXTS: &str = include_str!("../../data/driving/contexts.csv");
pub(super) const FEATURE_EXPECTATIONS: &str = include_str!("../../data/driving/feature-expectations.csv");
pub(super) const TEST_CONTEXTS: &str = include_str!("../../data/driving/test-contexts.csv");
pub(super) const TRUE_MAPPING: &str = include_str!("../../data/driving/true-mapping.csv");
