//! Settings by name: `key=value`, as the command line, TOML files and Python say them.
//!
//! A key is the path of a setting as it is saved, `step_size.schedule.initial`; a value is JSON, a list with commas, or a word. What a method has is set
//! before what all methods share (`seed`, `stop.…`, `initial`, `record_every`, `record_loss`). A choice with numbers of its own may be
//! named alone where these have defaults: `objective=likelihood`. `preset=…` takes settings of the paper, to which the others are added.

use super::{Method, Settings, preset};
use crate::error::{Error, Result};
use crate::objective::ObjectiveChoice;
use crate::settings_file::in_words;
use serde_json::{Map, Value};

/// Settings that all methods share.
const SHARED: [&str; 5] = ["seed", "stop", "initial", "record_every", "record_loss"];

/// One setting by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// Its path.
    pub key: String,
    /// Its value.
    pub value: Value,
}

impl Assignment {
    /// From `key=value` as typed.
    pub fn parse(typed: &str) -> Result<Self> {
        let Some((key, text)) = typed.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
            return Err(refused(
                typed,
                "expected key=value, as in batch=full or step_size.schedule.initial=0.3".into(),
            ));
        };
        let text = text.trim();
        Ok(Self { key: key.trim().replace('-', "_"), value: value_of(text) })
    }
}

impl Method {
    /// Whether it learns from feature expectations, and so from an estimator of them where only trajectories are known. Cloning and the
    /// trivial baselines look at single actions or at none, and so does the likelihood.
    pub fn uses_expectations(&self) -> bool {
        let by_actions = |objective: &ObjectiveChoice| matches!(objective, ObjectiveChoice::Likelihood { .. });
        match self {
            Method::Cloning(_) | Method::NeuralCloning(_) => false,
            Method::Majority(_) | Method::NearestContext(_) | Method::Uniform(_) => false,
            Method::Adaptive(own) => !by_actions(&own.objective),
            Method::OptimisticMirrorDescent(own) => !by_actions(&own.objective),
            Method::Neural(own) => !by_actions(&own.objective),
            _ => true,
        }
    }
}

/// JSON, a list of values with commas between them, or a word.
fn value_of(text: &str) -> Value {
    match (serde_json::from_str(text), text.contains(',') && !text.starts_with(['{', '['])) {
        (Ok(value), _) => value,
        (Err(_), true) => text.split(',').map(|part| value_of(part.trim())).collect(),
        (Err(_), false) => Value::String(text.to_owned()),
    }
}

fn refused(place: &str, reason: String) -> Error {
    Error::Spec { place: place.to_owned(), reason }
}

/// The settings with some of them set, in order. Unknown names are refused with the nearest one.
pub fn assigned(settings: &Settings, assignments: &[Assignment]) -> Result<Settings> {
    if let Some(one) = assignments.iter().find(|one| one.key.split('.').next() == Some("name")) {
        return Err(refused(&one.key, "a setting cannot choose the method; name the method itself".into()));
    }
    let mut current = settings.clone();
    let (presets, others): (Vec<_>, Vec<_>) = assignments.iter().partition(|one| one.key == "preset");
    for one in presets {
        let name = one.value.as_str().unwrap_or_default();
        current.method = preset(&current.method, name).ok_or_else(|| {
            let method = current.method.name();
            refused(
                "preset",
                format!(
                    "{method} has no preset {}; network and bc-network have paper and paper_patients, es literal",
                    one.value
                ),
            )
        })?;
    }
    let mut done: Vec<&str> = Vec::new();
    for one in &others {
        let (top, _) = one.key.split_once('.').unwrap_or((&one.key, ""));
        if done.contains(&top) {
            continue;
        }
        done.push(top);
        let group: Vec<&Assignment> =
            others.iter().copied().filter(|other| other.key.split('.').next() == Some(top)).collect();
        current = with_group(&current, &group)?;
    }
    Ok(current)
}

/// The settings with every assignment to one of them.
fn with_group(settings: &Settings, group: &[&Assignment]) -> Result<Settings> {
    let tried = |named: bool| -> Result<Settings, serde_json::Error> {
        let mut whole = serde_json::to_value(settings)?;
        for one in group {
            let (top, below) = one.key.split_once('.').unwrap_or((&one.key, ""));
            let of_method = whole["method"].get(top).is_some() && (below.is_empty() || !SHARED.contains(&top));
            let shared = SHARED.contains(&top) && !of_method;
            let root = if shared { &mut whole } else { &mut whole["method"] };
            let value = match &one.value {
                // A choice by its name, with the numbers that it has by default.
                Value::String(word) if named => Value::Object(Map::from_iter([(word.clone(), Map::new().into())])),
                value => value.clone(),
            };
            put(root, &one.key, value);
        }
        serde_json::from_value(whole)
    };
    let word = matches!(group, [Assignment { value: Value::String(_), .. }]);
    tried(false).or_else(|error| if word { tried(true).map_err(|_| error) } else { Err(error) }).map_err(|error| {
        let place = group.first().map_or("", |one| one.key.as_str());
        refused(place, format!("{}: {}", settings.method.name(), in_words(&error.to_string())))
    })
}

/// Sets the value at a path. A choice that has another name so far gives way to the one that is named.
fn put(at: &mut Value, path: &str, value: Value) {
    let mut keys = path.split('.');
    let Some(first) = keys.next() else { return };
    let mut at = &mut at[first];
    for (depth, key) in keys.enumerate() {
        // What follows the name of a setting is the name of a choice; below it are the numbers of that choice.
        let kept =
            at.as_object().is_some_and(|object| object.contains_key(key) || SHARED.contains(&first) || depth > 0);
        if !kept {
            *at = Value::Object(Map::new());
        }
        at = &mut at[key];
    }
    *at = value;
}

impl Method {
    /// The default settings of this method as they are saved, by name.
    pub fn defaults(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;
    use crate::learn::{Adaptive, Batch, Geometry, MirrorDescent, Neural, StepSize, Watched};
    use crate::methods::methods;
    use crate::objective::ObjectiveChoice;

    fn set(method: impl Into<Method>, typed: &[&str]) -> Result<Settings> {
        let assignments: Vec<_> = typed.iter().map(|typed| Assignment::parse(typed).unwrap()).collect();
        assigned(&Settings::new(method.into()), &assignments)
    }

    #[test]
    fn choices_numbers_and_words_are_set() {
        let typed =
            ["geometry=simplex", "step_size.schedule.initial=0.3", "step_size.schedule.decay=0.9", "batch=full"];
        let Method::MirrorDescent(found) = set(MirrorDescent::default(), &typed).unwrap().method else { panic!() };
        assert_eq!(found.geometry, Geometry::Simplex);
        assert_eq!(found.step_size, StepSize::Schedule { initial: 0.3, decay: 0.9 });
        assert_eq!(found.batch, Batch::Full);
        let found = set(Adaptive::default(), &["objective=likelihood", "stop.watched=accuracy", "seed=7"]).unwrap();
        assert_eq!((found.stop.watched, found.seed), (Some(Watched::Accuracy), 7));
        let Method::Adaptive(own) = found.method else { panic!() };
        assert_eq!(own.objective, ObjectiveChoice::likelihood());
    }

    #[test]
    fn presets_come_first() {
        let Method::Neural(found) = set(Neural::default(), &["step_size=0.5", "preset=paper"]).unwrap().method else {
            panic!()
        };
        assert_eq!(found, Neural { step_size: 0.5, ..Neural::paper() });
        assert!(set(Adaptive::default(), &["preset=paper"]).is_err());
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest() {
        let refused = |typed: &str| set(MirrorDescent::default(), &[typed]).unwrap_err().to_string();
        assert!(refused("geometri=ball").contains("did you mean 'geometry'"), "{}", refused("geometri=ball"));
        assert!(refused("geometry=bal").contains("'ball'"), "{}", refused("geometry=bal"));
        assert!(refused("stop.los=1").contains("'loss'"), "{}", refused("stop.los=1"));
        assert!(refused("name=uniform").contains("cannot choose the method"));
        assert!(Assignment::parse("batch").is_err() && Assignment::parse("=3").is_err());
    }

    #[test]
    fn every_setting_of_every_method_can_be_set_to_what_it_is() {
        for entry in methods() {
            let own = (entry.method)();
            let defaults = own.defaults();
            for (key, value) in defaults.as_object().unwrap().iter().filter(|(key, _)| *key != "name") {
                let one = Assignment { key: key.clone(), value: value.clone() };
                assert_eq!(assigned(&Settings::new(own.clone()), &[one]).unwrap().method, own, "{} {key}", entry.name);
            }
        }
    }
}
