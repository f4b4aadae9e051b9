//! The MODEL of a command: a file, or the name of a built-in domain.

use crate::domains::{CATALOGUE, Domain};
use crate::failure::Failure;
use coirl::artifact;
use coirl::model::Cmdp;
use std::path::Path;

/// Opens the model. A domain's name is the domain; a file of that name is `./name`.
pub(crate) fn open(model: &Path, seed: u64) -> Result<Cmdp, Failure> {
    if let Some(domain) = model.to_str().and_then(Domain::named) {
        return domain.build(seed);
    }
    artifact::read_model(model).map_err(|error| match Failure::from(error) {
        Failure::Refused { message, .. } if !model.exists() => Failure::Refused {
            message,
            help: nearest_domain(model).map(|name| format!("the domain is called '{name}'")),
        },
        failure => failure,
    })
}

/// The domain that a missing file was meant to be, when it is at most a typing error or two away.
fn nearest_domain(model: &Path) -> Option<&'static str> {
    let typed = model.to_str()?.to_lowercase();
    let typed: Vec<char> = typed.chars().take(32).collect();
    let near = |name: &&str| edit_distance(&typed, name) <= 2;
    CATALOGUE.iter().map(|entry| entry.0).find(near)
}

fn edit_distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_domain() {
        let nearest = |name: &str| nearest_domain(Path::new(name));
        assert_eq!(nearest("drivng"), Some("driving"));
        assert_eq!(nearest("Grid"), Some("grid"));
        assert_eq!(nearest("model.npz"), None);
    }
}
