//! The MODEL of a command: a file, or the name of a built-in domain.

use crate::domains::{CATALOGUE, Domain};
use crate::failure::Failure;
use coirl::artifact;
use coirl::model::Cmdp;
use coirl::nearest::edit_distance;
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

/// Whether a MODEL is the name of a domain.
pub(crate) fn is_domain(model: &Path) -> bool {
    model.to_str().and_then(Domain::named).is_some()
}

/// The domain that a missing file was meant to be, when it is at most a typing error or two away.
fn nearest_domain(model: &Path) -> Option<&'static str> {
    let typed = model.to_str()?.to_lowercase();
    let near = |name: &&str| edit_distance(&typed, name) <= 2;
    CATALOGUE.iter().map(|entry| entry.0).find(near)
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
