//! How an agent did on contexts whose truth is known.

use crate::json::not_a_number;

/// How an agent does on the test contexts. Ratios are of means over contexts, and not numbers where there is nothing to divide by.
///
/// Accuracies compare single actions, which policies that change with time do not have: there they are not numbers either. Files
/// from before an accuracy was there are read as if it were not a number.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Score {
    /// Mean of f*(c)·μ of the agent.
    pub value: f64,
    /// `value` as a share of the expert's; not a number where that is not positive, for a worse agent would then have the larger share.
    #[serde(deserialize_with = "not_a_number")]
    pub value_ratio: f64,
    /// (V − V_random) / (V* − V_random): what is left when acting at random, by known actions, counts as nothing.
    #[serde(deserialize_with = "not_a_number")]
    pub relative_value: f64,
    /// Share of all states in which agent and expert take the same action.
    #[serde(deserialize_with = "not_a_number")]
    pub accuracy: f64,
    /// Share of the states with a choice ([`crate::model::Cmdp::states_with_a_choice`]) in which agent and expert take the same action.
    #[serde(default = "missing", deserialize_with = "not_a_number")]
    pub choice_accuracy: f64,
    /// Probability that the agent does what the expert does along the expert's way: states with a choice, weighted by how often
    /// the expert is in them (discounted).
    #[serde(default = "missing", deserialize_with = "not_a_number")]
    pub visited_accuracy: f64,
    /// Share of all states in which the agent's action is optimal, ties included.
    #[serde(deserialize_with = "not_a_number")]
    pub optimal_accuracy: f64,
    /// Mean of f(c)·(μ − μ*) / ‖W‖: the loss of the mapping itself; nothing for W = 0.
    pub held_out_loss: Option<f64>,
}

fn missing() -> f64 {
    f64::NAN
}
