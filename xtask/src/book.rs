//! The page of the book about the command line: the help of `coirl` and of every command below it, one section each. It is written, not
//! edited, so that it says what the program says.

use crate::{Outcome, cargo, coirl, root};
use std::fmt::Write as _;
use std::fs;

const PAGE: &str = "docs/command-line.md";
/// Headings of the blocks that name sub-commands.
const LISTS: [&str; 2] = ["Commands:", "Domains:"];
/// Words of the longest command: help that lists itself would go on for ever.
const DEEPEST: usize = 4;
/// Deepest heading that markdown has.
const LOWEST_HEADING: usize = 6;

const HEAD: &str = "\
# The command line

Written by `cargo xtask book` from `--help` of every command; `cargo xtask test` fails where it is out of date.
";

/// Writes the page, or fails where it is not what would be written.
pub(crate) fn command_line(check: bool) -> Outcome {
    cargo(&["build", "--release", "--workspace", "--bin", "coirl"])?;
    let mut page = HEAD.to_owned();
    section(&mut page, &mut Vec::new())?;
    let path = root().join(PAGE);
    if !check {
        fs::write(&path, &page).map_err(|error| format!("{}: {error}", path.display()))?;
        eprintln!("wrote {PAGE}");
        return Ok(());
    }
    let there = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    // Checkouts may end lines as their platform does.
    if there.lines().eq(page.lines()) {
        eprintln!("{PAGE} is what the commands say");
        return Ok(());
    }
    let differs = there.lines().zip(page.lines()).take_while(|(old, new)| old == new).count() + 1;
    Err(format!("{PAGE} is not what the commands say, from line {differs} on; write it with `cargo xtask book`"))
}

/// The help of a command, then of those below it.
fn section(page: &mut String, command: &mut Vec<String>) -> Outcome {
    let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    // Help names the program by its file.
    let help = coirl(&root(), &words)?.replace("coirl.exe", "coirl");
    let heading = "#".repeat((command.len() + 2).min(LOWEST_HEADING));
    let name = [&["coirl".to_owned()], &command[..]].concat().join(" ");
    write!(page, "\n{heading} {name}\n\n```text\n{}\n```\n", help.trim_end()).map_err(|error| error.to_string())?;
    for word in below(&help) {
        if command.len() == DEEPEST {
            return Err(format!("`{name} --help` names commands below it; expected at most {DEEPEST} words"));
        }
        command.push(word.to_owned());
        section(page, command)?;
        command.pop();
    }
    Ok(())
}

/// The commands that a help page lists: the first words of its lists. Lines that go on are indented further.
fn below(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| !LISTS.contains(line)).skip(1).take_while(|line| !line.is_empty());
    let entries = listed.filter_map(|line| line.strip_prefix("  ")).filter(|entry| !entry.starts_with(' '));
    entries.filter_map(|entry| entry.split(' ').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_the_first_words_of_their_block() {
        let help = "About\n\nUsage: coirl\n\nCommands:\n  fit     Learn\n          more of it\n  cohort  Build\n\nOptions:\n  -h  Help\n";
        assert_eq!(below(help), ["fit", "cohort"]);
        assert!(below("Options:\n  -h  Help\n").is_empty());
    }
}
