//! Specs for tables that people have. Each is a TOML file of its own in `presets/`.

use coirl::nearest::nearest;
use coirl::{Error, Result};

const PRESETS: [(&str, &str); 7] = [
    ("ai-clinician", include_str!("presets/ai-clinician.toml")),
    ("ai-clinician-python", include_str!("presets/ai-clinician-python.toml")),
    ("ai-clinician-mimic-iv", include_str!("presets/ai-clinician-mimic-iv.toml")),
    ("mimic-sepsis", include_str!("presets/mimic-sepsis.toml")),
    ("mimic-sepsis-final", include_str!("presets/mimic-sepsis-final.toml")),
    ("coirl-paper", include_str!("presets/coirl-paper.toml")),
    ("long", include_str!("presets/long.toml")),
];

/// Names of the presets.
pub const NAMES: &[&str] =
    &[PRESETS[0].0, PRESETS[1].0, PRESETS[2].0, PRESETS[3].0, PRESETS[4].0, PRESETS[5].0, PRESETS[6].0];

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
