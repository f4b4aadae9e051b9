//! How the program ends: exit codes and the one line that says why.

use std::io::{self, Write};
use std::path::Path;

/// A command that ran to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything asked for was reached.
    Done,
    /// The result is there, but planning met its limit of sweeps.
    NotConverged,
    /// Ctrl-C; what is needed to go on is saved.
    Interrupted,
}

impl Outcome {
    pub(crate) fn code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::NotConverged => 3,
            Outcome::Interrupted => 130,
        }
    }
}

/// Why a command could not be carried out.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input or the computation was refused.
    Refused { message: String, help: Option<String> },
    /// Options that do not go together, where the parser cannot see it.
    Usage(String),
    /// The reader of standard output went away, which is its right.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Failure::Refused { message: message.into(), help: None }
    }

    /// Content of a file that cannot be used.
    pub(crate) fn in_file(path: &Path, reason: impl std::fmt::Display) -> Self {
        Failure::refused(format!("{}: {reason}", path.display()))
    }

    /// Writes the line and gives the exit code.
    pub(crate) fn report(self) -> u8 {
        let (message, help, code) = match self {
            Failure::BrokenPipe => return 0,
            Failure::Usage(message) => (message, None, 2),
            Failure::Refused { message, help } => (message, help, 1),
        };
        let mut stderr = anstream::stderr().lock();
        let error = anstyle::AnsiColor::Red.on_default().bold();
        let green = anstyle::AnsiColor::Green.on_default().bold();
        // With standard error gone as well there is nobody to tell.
        let _ = writeln!(stderr, "{error}error:{error:#} {}", one_line(&message));
        if let Some(help) = help {
            let _ = writeln!(stderr, "{green}help:{green:#} {}", one_line(&help));
        }
        code
    }
}

/// Characters of a message.
const LONGEST_MESSAGE: usize = 2000;

/// Messages quote what was typed and what files hold; neither may start a new line, fill the screen or reach the terminal as a command.
fn one_line(message: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let rest = message.chars().nth(LONGEST_MESSAGE).map(|_| '…');
    message.chars().take(LONGEST_MESSAGE).map(plain).chain(rest).collect()
}

impl From<coirl::Error> for Failure {
    fn from(error: coirl::Error) -> Self {
        // What the library asks for, in the words of the command line.
        let help = match &error {
            coirl::Error::NoActions { .. } => Some("trajectories are given with --trajectories"),
            coirl::Error::NoKnownActions { .. } => {
                Some("--unmasked lets bc and bc-network choose among all admissible actions")
            }
            _ => None,
        };
        Failure::Refused { message: error.to_string(), help: help.map(String::from) }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::refused(format!("writing the output: {error}")),
        }
    }
}
