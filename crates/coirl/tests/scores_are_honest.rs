//! Scores say no more than they can: a share of a value that is not positive is none.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod engines;

use coirl::agent::Agent;
use coirl::score::{Examination, Score};
use engines::{engines, owner};

#[test]
fn a_share_of_a_loss_is_no_number() {
    // All that engines bring are costs: a share of the owner's value would be above one for whoever does worse.
    let model = engines(0.9);
    let contexts = vec![model.context_space().context([1.0]).unwrap()];
    let examination = Examination::new(&model, &owner(), contexts).unwrap();
    assert!(examination.expert_value() < 0.0);
    for (agent, relative) in [(Agent::Uniform, 0.0), (Agent::Planned(owner()), 1.0)] {
        let score = examination.score(&agent).unwrap();
        assert!(score.value_ratio.is_nan(), "{score:?}");
        assert!((score.relative_value - relative).abs() < 1e-12, "{score:?}");
        let json = serde_json::to_value(score).unwrap();
        assert!(json["value_ratio"].is_null());
        assert!(serde_json::from_value::<Score>(json).unwrap().value_ratio.is_nan());
    }
}
