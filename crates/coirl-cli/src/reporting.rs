//! A run as one page of HTML that needs nothing else: no script, no network, no other file.

mod cohort;
mod convergence;
mod demonstrated;
mod hazards;
mod heat_map;
mod learned;
mod markup;
mod page;
mod reward;
mod run;
mod shade;
mod truth;

pub(crate) use cohort::{CohortSections, features_in_words, states_known};
pub(crate) use convergence::convergence;
pub(crate) use demonstrated::{agreement, coverage, fields_of_contexts};
pub(crate) use learned::{change, mapping};
pub(crate) use markup::{Markup, details, element, paragraph, table, table_of_words, text};
pub(crate) use page::{Page, Section};
pub(crate) use reward::reward;
pub(crate) use run::Overview;
pub(crate) use truth::against_the_truth;
