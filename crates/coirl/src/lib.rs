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
//! models it runs on, the methods themselves and files for all of it.
//!
//! | symbol | meaning | here |
//! |---|---|---|
//! | S, A | states, actions | [`model::Pairs`] |
//! | P_c | kernel of a context | [`model::Dynamics`], [`model::Kernel`] |
//! | P̂, n | learned dynamics, what was seen | [`dynamics::estimate`], [`dynamics::TransitionCounts`] |
//! | φ | features, k of them | [`model::Features`] |
//! | c, d | context and its length | [`model::Context`], [`model::ContextSpace`] |
//! | ξ | start distribution | [`model::Cmdp::initial`] |
//! | γ | discount | [`model::Criterion`] |
//! | f_θ | reward mapping, with its pull-back | [`mapping::RewardMapping`], [`mapping::ParametricMapping`] |
//! | – | what a method returns, as a way to act | [`agent::ContextualPolicy`], [`agent::Agent`] |
//! | π | policy | [`plan::Policy`] |
//! | V, Q | values | [`plan::Plan`], [`plan::evaluate::q_values`] |
//! | μ* | what was seen of an expert | [`demos::Demonstrations`], [`demos::Estimator`] |
//! | π_c | plans for rewards in contexts | [`contextual::ContextualPlanner`] |
//! | Loss, g | the loss and its subgradient | [`objective::Loss`], [`learn::Problem`] |
//! | θ_t | learners, step by step | [`learn::Learner`], [`learn::Descent`] |
//! | W | methods by name, and runs of them | [`methods::fit`], [`methods::Fitted`] |
//! | {c_j} | contexts planned for, to transfer from | [`transfer::Transfer`], [`transfer::cover`] |
//! | μ, ψ | feature expectations, from the start and from every state | [`plan::evaluate`] |
//!
//! # Example
//!
//! Watch a driver who minds collisions in three contexts, learn why, and plan for a context that was not shown.
//!
//! ```
//! use coirl::demos::{Demonstration, Train};
//! use coirl::domains::Driving;
//! use coirl::learn::{Problem, Watch};
//! use coirl::mapping::LinearMapping;
//! use coirl::methods::{Settings, fit};
//! use coirl::plan::{Planner, evaluate};
//!
//! let model = Driving::default().build()?;
//! // One row per priority (speed, collisions, staying on the road), one column per feature.
//! let truth = LinearMapping::new(3, 3, vec![1.0, 0.0, 0.0, 0.0, -4.0, 0.0, 0.0, 0.0, -2.0])?;
//! let act = |mapping: &LinearMapping, priorities: [f64; 3]| {
//!     let context = model.context_space().context(priorities)?;
//!     let mdp = model.mdp(&context)?;
//!     let plan = Planner::default().plan(&mdp, &mdp.reward(&mapping.weights(&context)?)?)?;
//!     Ok::<_, coirl::Error>((context, evaluate::feature_expectations(&mdp, &plan.policy)?))
//! };
//! let mut seen = Vec::new();
//! for priorities in [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]] {
//!     let (context, mu) = act(&truth, priorities)?;
//!     seen.push(Demonstration::from_feature_expectations(&model, context, mu)?);
//! }
//! let problem = Problem::new(&model, &Train::new(seen), None)?;
//! let fitted = fit(&problem, &Settings::default(), Watch::default(), &mut ())?;
//! assert!(fitted.certificate.loss.is_some_and(|loss| loss < 0.1));
//! let (_, mu) = act(fitted.mapping()?, [0.4, 0.3, 0.3])?;
//! assert_eq!(mu.len(), 3);
//! # Ok::<(), coirl::Error>(())
//! ```

pub mod agent;
pub mod artifact;
pub mod baselines;
pub mod check;
pub mod clustering;
pub mod contextual;
pub mod demos;
pub mod domains;
pub mod dynamics;
mod error;
pub mod inspect;
mod json;
pub mod learn;
pub mod mapping;
pub mod methods;
pub mod model;
pub mod nearest;
pub mod network;
pub mod objective;
pub mod optim;
mod packed;
pub mod plan;
pub mod random;
pub mod resampling;
pub mod score;
pub mod settings_file;
mod simd;
pub mod transfer;

pub use error::{Error, Result};
pub use methods::{fit, resume};

/// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
