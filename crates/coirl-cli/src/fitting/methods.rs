//! The method and its settings, from what was typed and from the `[learner]` of a spec.

use crate::failure::Failure;
use crate::text;
use clap::Args;
use coirl::demos::SimulatedExpert;
use coirl::learn::Problem;
use coirl::mapping::LinearMapping;
use coirl::methods::{Assignment, Entry, Kind, Method, Settings, assigned, method, methods};
use coirl::nearest::nearest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;

/// How much of the largest value an agent may miss before a simulated expert objects, by default.
const RELATIVE_TOLERANCE: f64 = 1e-3;

/// Names that were methods of their own, with what they are now.
const FORMER: &[(&str, &str)] = &[
    ("network-paper", "--method network --set preset=paper"),
    ("network-patients", "--method network --set preset=paper_patients"),
    (
        "network-es",
        "--method network --set gradient.antithetic.deviation=1e-3 --set gradient.antithetic.pairs=50 \
         --set gradient.antithetic.policies=fixed",
    ),
    ("psgd-sphere", "--method psgd --set geometry=sphere"),
    ("es-resolved", "--method es --set policies=resolved"),
    ("es-literal", "--method es --set preset=literal"),
    ("bc-patients", "--method bc-network --set preset=paper_patients"),
];

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Method")]
pub(crate) struct MethodArgs {
    /// Which method; see the table below [default: choice]
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// A setting by its name, as batch=full or step_size.schedule.initial=0.3; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// List the settings of the method with their defaults, and do nothing else
    #[arg(long)]
    settings: bool,
    /// How much value an agent may miss before an expert objects [default: 1e-3 of the largest value]
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    tolerance: Option<f64>,
    /// Settings of the method from the spec of a cohort, which come before those that were typed.
    #[arg(skip)]
    of_spec: Vec<Assignment>,
}

impl MethodArgs {
    /// The method that was chosen.
    pub(crate) fn entry(&self) -> Result<&'static Entry, Failure> {
        let name = self.method.as_deref().unwrap_or(Method::default().name());
        if let Some((_, now)) = FORMER.iter().find(|(former, _)| *former == name) {
            return Err(Failure::refused(format!("--method {name} is now {now}")));
        }
        method(name).ok_or_else(|| {
            let names: Vec<&str> = methods().map(|entry| entry.name).collect();
            let meant = nearest(name, &names).unwrap_or_default();
            let all = names.join(", ");
            Failure::refused(format!("--method {name}: there is no such method; did you mean {meant}? (all: {all})"))
        })
    }

    /// Whether its settings are to be listed.
    pub(crate) fn lists_settings(&self) -> bool {
        self.settings
    }

    /// With the method and settings that a spec asks for, but for what was typed.
    pub(crate) fn with_spec(
        &self,
        chosen: Option<&str>,
        tolerance: Option<f64>,
        settings: BTreeMap<String, toml::Value>,
    ) -> Result<Self, Failure> {
        let mut args = self.clone();
        // Settings of one method say nothing about another.
        let default = Method::default().name();
        if args.method.as_deref().is_none_or(|typed| typed == chosen.unwrap_or(default)) {
            args.tolerance = args.tolerance.or(tolerance);
            let json = |value: toml::Value| serde_json::to_value(value).map_err(std::io::Error::from);
            let one = |(key, value)| Ok(Assignment { key, value: json(value)? });
            args.of_spec = settings.into_iter().map(one).collect::<Result<_, Failure>>()?;
        }
        args.method = args.method.or(chosen.map(str::to_owned));
        Ok(args)
    }

    /// The settings of a run with this method, before what was left open is decided by the data.
    pub(crate) fn settings(&self, seed: u64) -> Result<Settings, Failure> {
        let entry = self.entry()?;
        let mut settings = Settings { seed, ..Settings::new((entry.method)()) };
        if let Some(wanted) = self.tolerance {
            match &mut settings.method {
                Method::Ellipsoid(own) => own.tolerance = Some(wanted),
                Method::BatchEllipsoid(own) => own.tolerance = Some(wanted),
                _ if entry.is_interactive() => {}
                _ => {
                    let with = methods().filter(|entry| entry.is_interactive()).map(|entry| entry.name);
                    let with = with.collect::<Vec<_>>().join(", ");
                    return Err(Failure::refused(format!(
                        "--method {} has no --tolerance; these have: {with}",
                        entry.name
                    )));
                }
            }
        }
        let settings = assigned(&settings, &self.of_spec)
            .map_err(|error| Failure::refused(format!("[learner] of the spec: {error}")))?;
        if self.of_spec.iter().any(|one| one.key == "seed") || self.set.iter().any(|typed| typed.starts_with("seed=")) {
            return Err(Failure::refused("seed: give --seed, which also decides what is held out"));
        }
        let typed: Vec<Assignment> = self.set.iter().map(|typed| Assignment::parse(typed)).collect::<Result<_, _>>()?;
        assigned(&settings, &typed).map_err(|error| Failure::refused(format!("--set {error}")))
    }

    /// An expert who acts by a true mapping and objects where an agent misses more than it tolerates.
    pub(crate) fn expert(
        &self,
        problem: &Problem<'_>,
        settings: &Settings,
        truth: LinearMapping,
    ) -> Result<SimulatedExpert, Failure> {
        let of_method = match settings.method.resolved_for(problem)? {
            Method::Ellipsoid(own) => own.tolerance,
            Method::BatchEllipsoid(own) => own.tolerance,
            _ => self.tolerance,
        };
        let tolerance = of_method.map_or_else(|| Ok(RELATIVE_TOLERANCE * problem.sum_bound()?), Ok::<_, Failure>)?;
        Ok(SimulatedExpert::new(problem.model(), truth, tolerance, settings.seed)?)
    }

    /// The settings of the method, a line each: what to give `--set`, and the default.
    pub(crate) fn write_settings(&self, out: &mut dyn Write, json: bool) -> Result<(), Failure> {
        let entry = self.entry()?;
        if json {
            return Ok(writeln!(out, "{}", (entry.method)().defaults())?);
        }
        text::title(out, &format!("Settings of {}: {}", entry.name, entry.about))?;
        let own = (entry.method)().defaults();
        let rows = own.as_object().into_iter().flatten().filter(|(key, _)| *key != "name");
        let rows: Vec<Vec<String>> = rows.map(|(key, value)| vec![key.clone(), value_in_words(value)]).collect();
        if rows.is_empty() {
            writeln!(out, "none")?;
        }
        text::table(out, &["--set", "default"], &[], rows)?;
        Ok(())
    }
}

/// A default as it is typed.
fn value_in_words(value: &Value) -> String {
    match value {
        Value::Null => "none, or decided by the data".into(),
        Value::String(word) => word.clone(),
        other => other.to_string(),
    }
}

/// The table of methods below the options.
pub(crate) fn table_of_methods() -> String {
    let mut page = String::from("Which method:\n");
    for (kind, title) in [
        (Kind::Demonstrations, "from demonstrations"),
        (Kind::Interactive, "asking an expert"),
        (Kind::Baseline, "to compare with"),
        (Kind::Reproduction, "to reproduce the paper"),
    ] {
        page.push_str(&format!(" {title}\n"));
        for entry in methods().filter(|entry| entry.kind == kind) {
            let (name, about) = (entry.name, entry.about);
            let line = format!("  {name:<16} {about}\n");
            page.push_str(&if name.len() > 16 { format!("  {name}\n{:19}{about}\n", "") } else { line });
        }
    }
    page
}
