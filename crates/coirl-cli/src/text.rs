//! Text for people: aligned pairs and tables.

use anstyle::Style;
use comfy_table::{CellAlignment, Table, presets};
use std::io::{self, Write};

const HEADING: Style = Style::new().bold();
const LABEL_WIDTH: usize = 12;
const PAGE_WIDTH: usize = 80;

/// A title on its own line.
pub(crate) fn title(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "{HEADING}{}{HEADING:#}", printable(text))
}

/// A label with its text, which continues below itself when long.
pub(crate) fn pair(out: &mut dyn Write, label: &str, text: &str) -> io::Result<()> {
    for (i, line) in wrap(&printable(text), PAGE_WIDTH - LABEL_WIDTH - 4).iter().enumerate() {
        let label = if i == 0 { label } else { "" };
        writeln!(out, "  {HEADING}{label:<LABEL_WIDTH$}{HEADING:#}  {line}")?;
    }
    Ok(())
}

/// A table without borders; the columns named in `right` are aligned to the right.
pub(crate) fn table(out: &mut dyn Write, header: &[&str], right: &[usize], rows: Vec<Vec<String>>) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.to_vec());
    table.add_rows(rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect::<Vec<_>>()));
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((2, 0));
        if right.contains(&i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for (i, line) in table.lines().enumerate() {
        let line = line.trim_end();
        if i == 0 { writeln!(out, "{HEADING}{line}{HEADING:#}")? } else { writeln!(out, "{line}")? }
    }
    Ok(())
}

/// A table with its title, whatever it is shown on: the terminal or a page.
pub(crate) struct Tabular {
    pub(crate) title: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Tabular {
    pub(crate) fn new(title: impl Into<String>, header: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self { title: title.into(), header: header.iter().map(|name| (*name).to_owned()).collect(), rows }
    }

    /// Below its title; every column but the first is aligned to the right.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        title(out, &self.title)?;
        let header: Vec<&str> = self.header.iter().map(String::as_str).collect();
        let right: Vec<usize> = (1..header.len()).collect();
        table(out, &header, &right, self.rows.clone())
    }
}

/// Names come from files; they may not move the cursor or start a line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Text that stays text in HTML and SVG.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// What something is called; its number where it has no name.
pub(crate) fn name_of(names: &[String], i: usize) -> String {
    names.get(i).cloned().unwrap_or_else(|| i.to_string())
}

/// A word as it must be typed in a shell.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
