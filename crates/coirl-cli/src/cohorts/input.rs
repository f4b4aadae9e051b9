//! Which table, read how.

use crate::destination::note;
use crate::failure::Failure;
use crate::progress;
use crate::tables::long;
use clap::Args;
use coirl::artifact::read_text;
use coirl_cohort::{Spec, Table};
use std::path::{Path, PathBuf};

/// The preset where nothing is said.
const USUAL_PRESET: &str = "ai-clinician";
const TABLE_PATH: &str = "table.path";
/// Parts of a dotted key; no setting lies as deep.
const MOST_PARTS: usize = 32;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// A table (.csv, .csv.gz, .parquet), or a spec (.toml) that names one
    #[arg(value_name = "TABLE|SPEC")]
    input: PathBuf,
    /// Settings for tables that people have; `coirl cohort spec` lists them [default: ai-clinician, or what the spec says]
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Number of states
    #[arg(long, value_name = "K")]
    states: Option<usize>,
    /// Set a key of the spec: --set dynamics.context_clusters=5
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl InputArgs {
    /// A spec or a table, as it was typed elsewhere.
    pub(crate) fn of(input: &Path) -> Self {
        Self { input: input.to_owned(), preset: None, states: None, set: Vec::new() }
    }

    /// The spec, and the table that goes with it.
    pub(crate) fn spec(&self) -> Result<(Spec, PathBuf), Failure> {
        let is_spec = self.input.extension().is_some_and(|extension| extension == "toml");
        let text = if is_spec { read_text(&self.input, "a spec (.toml)")? } else { String::new() };
        let in_spec = |error: coirl::Error| match is_spec {
            true => Failure::in_file(&self.input, error),
            false => error.into(),
        };
        // Alone first: complaints about the file know their line.
        let alone = Spec::from_toml(&text).map_err(in_spec)?;
        let mut typed_path = false;
        let mut typed: toml::Table = text.parse().map_err(|error| Failure::in_file(&self.input, error))?;
        if let Some(name) = self.preset.as_deref().or((!is_spec).then_some(USUAL_PRESET)) {
            typed.insert("preset".into(), name.into());
        }
        if let Some(states) = self.states {
            set(&mut typed, "state.clusters", &states.to_string())?;
        }
        for setting in &self.set {
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                Failure::refused(format!("--set {setting}: expected a key and a value, as in state.clusters=500"))
            })?;
            typed_path |= key.trim() == TABLE_PATH;
            set(&mut typed, key.trim(), value.trim())?;
        }
        if typed_path && !is_spec {
            let named = self.input.display();
            return Err(Failure::refused(format!(
                "--set {TABLE_PATH}: the table is {named}; a spec goes with another one"
            )));
        }
        let spec = Spec::from_toml(&typed.to_string()).map_err(|error| match error {
            coirl::Error::Spec { reason, .. } if !self.set.is_empty() => Failure::refused(format!("--set: {reason}")),
            other => in_spec(other),
        })?;
        spec.check().map_err(in_spec)?;
        let table = match (is_spec, typed_path) {
            (false, _) => self.input.clone(),
            // What is typed is relative to where it is typed, what a file says to where the file is.
            (true, true) => spec.table_path(Path::new("")).unwrap_or_default(),
            (true, false) => alone.table_path(self.input.parent().unwrap_or(Path::new(""))).ok_or_else(|| {
                Failure::in_file(&self.input, "names no table; say path = \"table.csv\" under [table]")
            })?,
        };
        Ok((spec, table))
    }

    /// The table with its spec.
    pub(crate) fn read(&self, quiet: bool) -> Result<(Spec, PathBuf, Table), Failure> {
        let (spec, path) = self.spec()?;
        if self.preset.is_none() && spec.preset.as_deref() == Some(USUAL_PRESET) && path == self.input {
            let how = "`coirl cohort spec` lists others, and `coirl cohort spec long` begins one for any table";
            note(quiet, &format!("no preset was given: read as a table of preset {USUAL_PRESET}; {how}"));
        }
        let bar = progress::counted("reading", "rows", quiet);
        let table = long::read(&path, &spec, |rows| bar.set_position(rows));
        bar.finish_and_clear();
        let (table, spec) = table?;
        Ok((spec, path, table))
    }
}

/// Sets `a.b.c` in a table of tables. What is no TOML value is text.
fn set(table: &mut toml::Table, key: &str, value: &str) -> Result<(), Failure> {
    let parsed = format!("value = {value}").parse::<toml::Table>().ok().and_then(|mut table| table.remove("value"));
    let value = parsed.unwrap_or_else(|| value.into());
    // Tables are dropped and written by functions that call themselves.
    if key.split('.').count() > MOST_PARTS {
        return Err(Failure::refused(format!("--set: a key has more than {MOST_PARTS} parts")));
    }
    let mut at = table;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            at.insert(part.into(), value);
            return Ok(());
        }
        let below = at.entry(part).or_insert_with(|| toml::Table::new().into());
        at = below.as_table_mut().ok_or_else(|| Failure::refused(format!("--set {key}: {part} is no table")))?;
    }
    Ok(())
}
