//! From known contexts to new ones without planning anew (Section 3.4 of the paper).
//!
//! | dynamics | what is transferred | where |
//! |---|---|---|
//! | shared, or of one cluster | generalised policy improvement over all known policies | [`PolicyLibrary`] |
//! | mixture Σ cᵢPᵢ | the policy of the nearest known context | [`NearestContexts`] |
//!
//! [`Transfer`] takes whichever fits the model, transfers where the bound is within the wanted one and plans, from the
//! transferred policy, where it is not. [`cover`] says which contexts to know for a wanted radius. All bounds are relative
//! to the learned mapping, not to the expert. Only for the discounted criterion.
//!
//! Mappings are linear or networks. Networks are known by their rewards: coefficients are f(c), and distances are those of rewards
//! ([`Basis`], [`TheoremBound`]). A cover's radius is a distance of contexts and promises nothing about a network's bounds.

mod basis;
mod bounds;
mod cover;
mod known;
mod library;
mod nearest;
mod predict;
mod prune;

pub use basis::{Basis, Coefficients};
pub use bounds::{Constants, RELATIVE_TO, TheoremBound, printed_in_ball, printed_on_simplex};
pub use cover::{Cover, Extent, cover, thin};
pub(crate) use known::CompactPolicy;
pub use known::KnownContexts;
pub use library::{Choice, PolicyLibrary};
pub use nearest::NearestContexts;
pub(crate) use predict::Knowledge;
pub use predict::{BoundBy, Gap, How, Prediction, Transfer};
