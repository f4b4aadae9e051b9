//! Specs for tables that people have. Each is a TOML file of its own in `presets/`.

use coirl::nearest::nearest;
use coirl::{Error, Result};

const PRESETS: [(&str, &str); 10] = [
    ("ai-clinician", include_str!("presets/ai-clinician.toml")),
    ("ai-clinician-python", include_str!("presets/ai-clinician-python.toml")),
    ("ai-clinician-mimic-iv", include_str!("presets/ai-clinician-mimic-iv.toml")),
    ("mimic-sepsis", include_str!("presets/mimic-sepsis.toml")),
    ("mimic-sepsis-final", include_str!("presets/mimic-sepsis-final.toml")),
    ("mimic-iv-derived", include_str!("presets/mimic-iv-derived.toml")),
    ("eicu-derived", include_str!("presets/eicu-derived.toml")),
    ("coirl-paper", include_str!("presets/coirl-paper.toml")),
    ("observations", include_str!("presets/observations.toml")),
    ("long", include_str!("presets/long.toml")),
];

/// Names of the presets.
pub const NAMES: &[&str] = &{
    let mut names = [""; PRESETS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = PRESETS[i].0;
        i += 1;
    }
    names
};

/// Presets without columns: the user of the table names them.
pub const OPEN: &[&str] = &["observations", "long"];

/// The TOML text of a preset.
pub fn text(name: &str) -> Result<&'static str> {
    let found = PRESETS.iter().find(|preset| preset.0 == name).map(|preset| preset.1);
    found.ok_or_else(|| Error::Spec {
        place: "preset".into(),
        reason: format!(
            "'{name}' is not one; did you mean '{}'? (expected one of {})",
            nearest(name, NAMES).unwrap_or_default(),
            NAMES.join(", ")
        ),
    })
}
