//! The demonstration sets that are part of the program, each as `coirl domain demonstrate` writes it with `--transitions 40 --seed 1`: an
//! expert in intensive care, simulated (`sepsis --contexts 300 --test-contexts 100`), and a driver (`driving --contexts 100
//! --test-contexts 80`). A test writes them again and compares.

use clap::ValueEnum;

/// A set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Shipped {
    #[default]
    Sepsis,
    Driving,
}

/// The files of a set.
pub(super) struct ShippedFiles {
    pub(super) contexts: &'static str,
    pub(super) demonstrations: ShippedDemonstrations,
    pub(super) test_contexts: &'static str,
    pub(super) true_mapping: &'static str,
}

/// What is seen of the expert.
pub(super) enum ShippedDemonstrations {
    FeatureExpectations(&'static str),
    Trajectories(&'static str),
}

impl Shipped {
    /// The domain that the demonstrations are from.
    pub(super) fn domain(self) -> &'static str {
        match self {
            Shipped::Sepsis => "sepsis",
            Shipped::Driving => "driving",
        }
    }

    pub(super) fn files(self) -> ShippedFiles {
        match self {
            Shipped::Sepsis => ShippedFiles {
                contexts: include_str!("../../data/sepsis/contexts.csv"),
                demonstrations: ShippedDemonstrations::Trajectories(include_str!("../../data/sepsis/trajectories.csv")),
                test_contexts: include_str!("../../data/sepsis/test-contexts.csv"),
                true_mapping: include_str!("../../data/sepsis/true-mapping.csv"),
            },
            Shipped::Driving => ShippedFiles {
                contexts: include_str!("../../data/driving/contexts.csv"),
                demonstrations: ShippedDemonstrations::FeatureExpectations(include_str!(
                    "../../data/driving/feature-expectations.csv"
                )),
                test_contexts: include_str!("../../data/driving/test-contexts.csv"),
                true_mapping: include_str!("../../data/driving/true-mapping.csv"),
            },
        }
    }
}
