//! Settings in TOML files: complaints that name line, column and the nearest name, and one layer of settings over another.

use crate::error::Error;
use crate::nearest::nearest;

/// What the parser said, with the line, and the nearest name for one that does not exist.
pub fn refused(text: &str, error: &toml::de::Error) -> Error {
    let place = match error.span() {
        Some(span) if !text.is_empty() => {
            let before = &text[..span.start.min(text.len())];
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            format!("line {line}, column {column}")
        }
        _ => "settings".into(),
    };
    let message = error.message().trim().replace('\n', " ");
    let reason = match message.starts_with("duplicate key") {
        true => {
            let named = error.span().and_then(|span| text.get(span)).unwrap_or_default().trim();
            format!("duplicate key '{named}': the file already says it above; write it once")
        }
        false => in_words(&message),
    };
    Error::Spec { place, reason }
}

/// What a reader of settings said, with the nearest name for one that does not exist.
pub fn in_words(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match (message.starts_with("unknown field"), message.starts_with("unknown variant"), &quoted[..]) {
        (field @ true, _, [unknown, known @ ..]) | (field, true, [unknown, known @ ..]) if !known.is_empty() => {
            let what = if field { "key" } else { "value" };
            let meant = nearest(unknown, known).unwrap_or_default();
            format!("unknown {what} '{unknown}'; did you mean '{meant}'? (expected one of {})", known.join(", "))
        }
        (true, _, [unknown]) => format!("unknown key '{unknown}'; there is nothing to set"),
        _ => message.to_owned(),
    }
}

/// Tables are merged key by key; everything else is replaced.
pub fn merge(below: &mut toml::Table, above: toml::Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => merge(below, above),
            (_, value) => drop(below.insert(key, value)),
        }
    }
}
