//! Contexts as they are typed, by field or in order, and as files hold them.

use crate::cohorts::CohortFolder;
use crate::failure::Failure;
use crate::fitting::{Run, contexts_of};
use crate::tables::{Table, named_positions, same_name};
use coirl::methods::Fitted;
use coirl::model::{Cmdp, Context};
use coirl_cohort::{Role, Unusual};
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

/// `0.2,0.3,0.5`, or `weight=0.8,age=0.2` in any order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContextText {
    /// Empty where numbers were typed alone.
    names: Vec<String>,
    values: Vec<f64>,
}

impl FromStr for ContextText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut typed = Self { names: Vec::new(), values: Vec::new() };
        for (i, piece) in text.split(',').enumerate() {
            let (name, number) = match piece.split_once('=') {
                Some((name, number)) => (Some(name.trim()), number.trim()),
                None => (None, piece.trim()),
            };
            if i > 0 && name.is_some() == typed.names.is_empty() {
                return Err("some numbers are named and some are not; expected all or none".into());
            }
            typed.names.extend(name.map(str::to_owned));
            typed.values.push(number.parse().map_err(|_| format!("entry {i} is '{number}'; expected a number"))?);
        }
        Ok(typed)
    }
}

impl ContextText {
    /// The numbers by name; the reason why not, where they were typed alone or one of them twice.
    pub(crate) fn by_name(&self) -> Result<BTreeMap<String, f64>, String> {
        if self.names.is_empty() {
            return Err("expected names, as in HR=110,MeanBP=60".into());
        }
        let mut named = BTreeMap::new();
        for (name, value) in self.names.iter().zip(&self.values) {
            if named.insert(name.clone(), *value).is_some() {
                return Err(format!("'{name}' is given twice"));
            }
        }
        Ok(named)
    }

    /// Fields that are outside all those that a run has learned from, in words: nothing where they are no fields of a cohort's table.
    pub(crate) fn unusual_for(&self, run: &Run) -> Result<Vec<Unusual>, Failure> {
        let (Some(cohort), false) = (run.cohort(), self.names.is_empty()) else { return Ok(Vec::new()) };
        let file = CohortFolder::open(cohort)?.file;
        // Names may be typed in another way than the table writes them.
        let fields = file.encoder.contexts.fields.iter();
        let given = fields.filter_map(|field| {
            let at = self.names.iter().position(|name| same_name(name, &field.column))?;
            Some((field.column.as_str(), self.values[at]))
        });
        Ok(file.reference.unusual(&file.spec, Role::Field, given))
    }

    /// The context for what a run has learned. Fields of a cohort that are typed by name are in the units of its table.
    pub(crate) fn resolve_for(&self, run: &Run, model: &Cmdp) -> Result<Context, Failure> {
        match run.cohort() {
            Some(cohort) if !self.names.is_empty() => {
                let refuse = |reason: String| Failure::refused(format!("--context: {reason}"));
                let scaling = CohortFolder::open(cohort)?.file.encoder.contexts;
                let fields: Vec<String> = scaling.fields.iter().map(|field| field.column.clone()).collect();
                let order = named_positions(&self.names, &fields)
                    .map_err(|reason| refuse(format!("{reason}, in the units of the table")))?;
                let values: Vec<f64> = order.into_iter().map(|at| self.values[at]).collect();
                scaling.context(&values).map_err(|error| refuse(error.to_string()))
            }
            _ => self.resolve(model, context_names(model, &run.fitted)),
        }
    }

    /// The context, with fields in the order of `names`.
    pub(crate) fn resolve(&self, model: &Cmdp, names: &[String]) -> Result<Context, Failure> {
        let refuse = |reason: String| Failure::refused(format!("--context: {reason}"));
        let values = match (self.names.is_empty(), names.is_empty()) {
            (true, _) => self.values.clone(),
            (false, true) => {
                return Err(refuse("the model does not name the numbers of a context; give them alone".into()));
            }
            (false, false) => {
                let order = named_positions(&self.names, names).map_err(refuse)?;
                order.into_iter().map(|at| self.values[at]).collect()
            }
        };
        model.context_space().context(values).map_err(|error| refuse(error.to_string()))
    }
}

/// What the numbers of a context are called: by the model, or by what was learned in it.
pub(crate) fn context_names<'a>(model: &'a Cmdp, fitted: &'a Fitted) -> &'a [String] {
    if model.names().contexts.is_empty() { &fitted.names.contexts } else { &model.names().contexts }
}

/// The contexts of a file, its columns by name where it names them.
pub(crate) fn read_contexts(path: &Path, model: &Cmdp, names: &[String]) -> Result<Vec<Context>, Failure> {
    contexts_of(model, &Table::read(path, "contexts")?.ordered_by(names)?)
}

/// The mean of some contexts.
pub(crate) fn mean_context<'a>(
    model: &Cmdp,
    contexts: impl ExactSizeIterator<Item = &'a Context>,
) -> Result<Context, Failure> {
    let n = contexts.len() as f64;
    let mut mean: Vec<f64> = Vec::new();
    for context in contexts {
        mean.resize(context.values().len(), 0.0);
        mean.iter_mut().zip(context.values()).for_each(|(sum, x)| *sum += x / n);
    }
    Ok(model.context_space().context(mean)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_in_any_order() {
        let parsed = |text: &str| text.parse::<ContextText>();
        let named = parsed("weight=0.8, age = 0.2").unwrap_or_else(|reason| panic!("{reason}"));
        assert_eq!((named.names, named.values), (vec!["weight".into(), "age".into()], vec![0.8, 0.2]));
        assert_eq!(parsed("0.5,-1").map(|typed| typed.values), Ok(vec![0.5, -1.0]));
        assert!(parsed("age=0.2,0.8").is_err() && parsed("0.2,age=0.8").is_err());
        assert_eq!(parsed("age=x"), Err("entry 0 is 'x'; expected a number".into()));
    }
}
