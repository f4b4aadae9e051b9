//! Inverse reinforcement learning in contextual Markov decision processes: from demonstrations to the reward behind them.
//!
//! # The problem
//!
//! A *context* c (a patient's age and weight, a driver's priorities) fixes a Markov decision process with transition kernel
//! P_c, start distribution ξ and discount γ. Its reward is linear in known features with weights that depend on the context,
//!
//! ```text
//! R_c(s) = f(c) · φ(s),            f_W(c) = cᵀW  in the linear setting,
//! ```
//!
//! and the mapping f is unknown; experts are seen to act well. A policy π has feature expectations
//! μ^π_c = E[Σ γᵗ φ(s_t)] and the value f(c) · μ^π_c, so an expert's demonstration says
//!
//! ```text
//! Loss(W) = E_c max_π f_W(c) · (μ^π_c − μ*_c) = 0   for the mapping that explains it.
//! ```
//!
//! Every method that learns f needs the same inner loop: plan for a reward, get μ. This crate provides that loop, the
//! models it runs on and their files.
//!
//! | symbol | meaning | here |
//! |---|---|---|
//! | S, A | states, actions | [`model::Pairs`] |
//! | P_c | kernel of a context | [`model::Dynamics`], [`model::Kernel`] |
//! | φ | features, k of them | [`model::Features`] |
//! | c, d | context and its length | [`model::Context`], [`model::ContextSpace`] |
//! | ξ | start distribution | [`model::Cmdp::initial`] |
//! | γ | discount | [`model::Criterion`] |
//! | f_W | reward mapping | [`mapping::LinearMapping`] |
//! | π | policy | [`plan::Policy`] |
//! | V, Q | values | [`plan::Plan`], [`plan::evaluate::q_values`] |
//! | μ, ψ | feature expectations, from the start and from every state | [`plan::evaluate`] |
//!
//! # Example
//!
//! Plan for two drivers: one in a hurry, one who minds collisions.
//!
//! ```
//! use coirl::domains::Driving;
//! use coirl::mapping::LinearMapping;
//! use coirl::plan::{Planner, evaluate};
//!
//! let model = Driving::default().build()?;
//! // One row per priority (speed, collisions, staying on the road), one column per feature.
//! let mapping = LinearMapping::new(3, 3, vec![1.0, 0.0, 0.0, 0.0, -4.0, 0.0, 0.0, 0.0, -2.0])?;
//! for priorities in [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]] {
//!     let context = model.context_space().context(priorities)?;
//!     let mdp = model.mdp(&context)?;
//!     let plan = Planner::default().plan(&mdp, &mdp.reward(&mapping.weights(&context)?)?)?;
//!     let mu = evaluate::feature_expectations(&mdp, &plan.policy)?;
//!     assert!(plan.certificate.suboptimality_bound < 1e-9);
//!     assert_eq!(mu.len(), 3);
//! }
//! # Ok::<(), coirl::Error>(())
//! ```

pub mod artifact;
pub mod demos;
pub mod domains;
mod error;
pub mod evaluate;
mod json;
pub mod learn;
pub mod mapping;
pub mod model;
pub mod nearest;
pub mod plan;
mod random;

pub use error::{Error, Result};
