//! The layers of CONTRIBUTING.md are those of the code: every module imports from lines above its own only, so that there is no cycle.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of the diagram: a module of each may import from the lines above.
fn layers(contributing: &str) -> Vec<Vec<String>> {
    let block = contributing.split("```layers\n").nth(1).unwrap().split("```").next().unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    block.lines().map(words).filter(|line| !line.is_empty()).collect()
}

/// The text of every file of every module of the library, without comments and tests.
fn modules() -> BTreeMap<String, String> {
    fn code(path: &Path) -> String {
        let text = fs::read_to_string(path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    }
    fn collect(path: &Path, into: &mut String) {
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| collect(&entry.unwrap().path(), into));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&code(path));
        }
    }
    let mut modules = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates/coirl/src")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text: &mut String = modules.entry(name).or_default();
        collect(&path, text);
    }
    modules.remove("lib");
    modules.retain(|_, text| !text.is_empty());
    modules
}

/// The modules that a text names by their path.
fn imported(text: &str) -> BTreeSet<String> {
    let after = |at: usize| text[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found: BTreeSet<String> = text.match_indices("crate::").map(|(at, word)| after(at + word.len())).collect();
    found.remove("");
    found
}

/// Every import that does not go to a line above.
fn upward(layers: &[Vec<String>], modules: &BTreeMap<String, String>) -> Vec<String> {
    let line_of = |name: &str| layers.iter().position(|line| line.iter().any(|module| module == name));
    let mut wrong = Vec::new();
    for (module, text) in modules {
        let Some(own) = line_of(module) else {
            wrong.push(format!("{module} is in no line"));
            continue;
        };
        for other in imported(text).iter().filter(|other| *other != module && modules.contains_key(*other)) {
            if line_of(other).is_none_or(|line| line >= own) {
                wrong.push(format!("{module} imports {other}"));
            }
        }
    }
    wrong
}

#[test]
fn every_import_goes_to_a_line_above() {
    let contributing = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (layers, modules) = (layers(&contributing), modules());
    assert!(layers.len() > 5 && modules.len() > 20, "{} lines, {} modules", layers.len(), modules.len());
    assert_eq!(upward(&layers, &modules), Vec::<String>::new());
    for module in layers.iter().flatten() {
        assert!(modules.contains_key(module), "{module} is in the diagram and not in the code");
    }
}

#[test]
fn plans_see_no_context_mappings_no_state_and_optimisers_neither() {
    let modules = modules();
    let names = |module: &str, word: &str| {
        let bounded = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let text = &modules[module];
        text.match_indices(word)
            .any(|(at, _)| bounded(text[..at].chars().next_back()) && bounded(text[at + word.len()..].chars().next()))
    };
    for (module, unseen) in
        [("plan", vec!["Context"]), ("mapping", vec!["StateId", "Mdp", "Cmdp"]), ("optim", vec!["Context", "Mdp"])]
    {
        for word in unseen {
            assert!(!names(module, word), "{module} names {word}");
        }
    }
    assert!(names("contextual", "Context") && names("demos", "StateId"));
}

/// The check above can fail: an import that goes up, or sideways, is found.
#[test]
fn an_import_upwards_is_found() {
    let layers = layers("```layers\nmodel optim\nplan\nlearn\n```");
    let text = |text: &str| text.to_owned();
    let mut modules = BTreeMap::from([
        (text("model"), text("use crate::error::Result;")),
        (text("optim"), String::from(" ")),
        (text("plan"), text("use crate::model::{Mdp, Reward};")),
        (text("learn"), text("use crate::plan::Planner; fn f() -> crate::model::Mdp {}")),
    ]);
    assert!(upward(&layers, &modules).is_empty());
    modules.insert(text("plan"), text("fn f() -> crate::learn::Problem {}"));
    modules.insert(text("optim"), text("use crate::model::Mdp;"));
    assert_eq!(upward(&layers, &modules), ["optim imports model", "plan imports learn"]);
}
