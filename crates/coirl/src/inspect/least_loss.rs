//! The smallest loss that a mapping can reach on these demonstrations.
//!
//! Loss(0) = 0 says nothing, and the unit sphere is not convex; asked of mappings under which the experts gain one over
//! chance, the question is convex:
//!
//! ```text
//! minimise  Loss(W)  over  ⟨W, Ḡ⟩ = 1,  ‖W‖₂ ≤ R,       Ḡ = mean of c ⊙ (μ* − μ^uniform).
//! ```
//!
//! The answer has no unit: it is the value that the experts miss under W as a share of what they gain over chance under W.
//! Zero means that some mapping explains everything; one, that the best explanation is no better than chance. The bundle
//! method gives what is reached and a certified lower bound. It plans for all demonstrations at every step.
//!
//! The bound holds for the set, not for every mapping. Losses and gains grow with W, so that the set is a cone of directions,
//!
//! ```text
//! ⟨W, Ḡ⟩ ≥ ‖W‖₂‖Ḡ‖₂ / radius:
//! ```
//!
//! the mappings under which the experts gain at least 1/radius of the most that they gain under any mapping of that length. Directions nearly
//! at right angles to Ḡ are outside, and one of them may explain more. Neither holds it for more than the paths show: what lies beyond their
//! ends may change loss and gain, and `unseen` says by how much.

use super::progress::{Listener, tell};
use super::tail::{SHORT, unseen_share};
use crate::error::Result;
use crate::learn::{Advantage, Bundle, Problem, Record, Status, Stop, Watch};
use crate::mapping::LinearMapping;
use crate::methods::{Method, Settings, fit};
use crate::optim::dot;
use std::ops::ControlFlow;

/// The least loss, from both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct LeastLoss {
    /// Loss(W)/⟨W, Ḡ⟩ of the best mapping found. From sampled demonstrations it may be negative.
    pub reached: f64,
    /// No mapping of the set is below this; a mapping outside may be.
    pub lower_bound: f64,
    /// The set: mappings W with ⟨W, Ḡ⟩ of at least ‖W‖₂‖Ḡ‖₂ / radius.
    pub radius: f64,
    /// The most that what lies beyond the ends of the paths can be worth under the best mapping found, as a share of what the experts are seen
    /// to gain over chance; zero where demonstrations are exact, or nothing follows them. See [`Self::paths_are_short`].
    pub unseen: f64,
    /// Loss(W)/‖W‖₂ of the best mapping found, as losses are reported elsewhere.
    pub per_norm: f64,
    /// The best mapping found, ‖W‖₂ = 1.
    pub mapping: LinearMapping,
    /// ⟨W, Ḡ⟩ of that mapping.
    pub gained: f64,
    /// ‖Ḡ‖.
    pub advantage: f64,
    /// Standard error of Ḡ over the demonstrations, as a length.
    pub advantage_noise: f64,
    /// Whether the gap closed, rather than the steps ran out.
    pub converged: bool,
}

impl LeastLoss {
    /// At most `max_steps` steps, each of one plan per demonstration. Refuses demonstrations that are exactly as good as
    /// chance, which every mapping explains.
    pub fn of(problem: &Problem<'_>, max_steps: u64, listener: Listener<'_>) -> Result<Self> {
        let advantage = Advantage::of(problem)?;
        let bundle = Bundle { caution: 0.0, ..Bundle::default() };
        let settings = Settings {
            stop: Stop { max_steps: Some(max_steps), ..Stop::default() },
            ..Settings::new(Method::Bundle(bundle))
        };
        let total = usize::try_from(max_steps).unwrap_or(usize::MAX);
        let mut refused = None;
        let fitted = fit(problem, &settings, Watch::default(), &mut |record: &Record| match tell(
            listener,
            record.step as usize,
            total,
        ) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                refused = Some(error);
                ControlFlow::Break(())
            }
        })?;
        if let Some(error) = refused {
            return Err(error);
        }
        let mapping = fitted.mapping()?.clone();
        let gained = dot(mapping.values(), &advantage.mean);
        let per_norm = fitted.certificate.loss.unwrap_or(0.0);
        let gap = fitted.certificate.gap.unwrap_or(f64::INFINITY);
        let unseen = unseen_share(problem, mapping.values(), gained)?;
        Ok(Self {
            reached: per_norm / gained,
            lower_bound: (per_norm - gap) / gained,
            radius: bundle.radius,
            unseen,
            per_norm,
            mapping,
            gained,
            advantage: advantage.size,
            advantage_noise: advantage.noise,
            converged: fitted.status == Status::Finished,
        })
    }

    /// Whether the experts' advantage over chance is within two standard errors of nothing: what is learned from them is
    /// then not to be trusted.
    pub fn is_noise(&self) -> bool {
        self.advantage < 2.0 * self.advantage_noise
    }

    /// Whether the lower bound is certain for its set: the gap closed, and nothing lies beyond the demonstrations.
    pub fn is_certain(&self) -> bool {
        self.converged && self.unseen == 0.0
    }

    /// Whether the paths are short for the discount: what lies beyond their ends can be worth more than half of what is seen of the experts' gain
    /// over chance, so that nothing is certain.
    pub fn paths_are_short(&self) -> bool {
        self.unseen > SHORT
    }

    /// The lower bound if what lies beyond the ends of the paths is as favourable to the experts as it can be under the best mapping.
    pub fn lower_bound_with_unseen(&self) -> f64 {
        let favourable = (self.lower_bound - self.unseen) / (1.0 + self.unseen);
        // With everything unseen, all that is known is that the experts gain something.
        if favourable.is_finite() { favourable.min(self.lower_bound) } else { -1.0 }
    }
}
