//! What was run, and what is known about its result.

use super::markup::{Markup, details, facts, json, pairs};
use super::page::Section;
use crate::failure::Failure;
use crate::fitting::Report;
use crate::networks::NetworkReport;
use coirl::methods::Fitted;
use std::collections::BTreeMap;

/// A run in a few lines.
pub(crate) struct Overview<'a> {
    pub(crate) fitted: &'a Fitted,
    /// What was learned from, in words.
    pub(crate) source: &'a str,
    /// What the method is called.
    pub(crate) method: &'a str,
}

impl Overview<'_> {
    pub(crate) fn section(&self) -> Result<Section, Failure> {
        let report = Report::new(self.method, self.source, self.fitted, None, None, BTreeMap::new());
        let mut rows = report.learner();
        rows.extend(report.loss());
        rows.extend(report.effort());
        if let Some(network) = NetworkReport::of(self.fitted) {
            rows.push(vec!["network".into(), String::new(), network.shape()]);
        }
        rows.push(vec!["seed".into(), self.fitted.settings.seed.to_string(), "of everything random".into()]);
        let certificate = &self.fitted.certificate;
        let bound = certificate.bound.map(|_| ("bound", certificate.guarantee.to_string()));
        let game = certificate.game_value.as_ref().map(|game| ("game", game.to_string()));
        let digest = ("data", format!("SHA-256 {}", self.fitted.digest));
        let content = Markup::all([
            facts("What was run and reached", rows),
            pairs(bound.into_iter().chain(game).chain([digest])),
            details("Settings, complete", json(&self.fitted.settings)?),
        ]);
        Ok(Section::new("run", "The run", content))
    }
}
