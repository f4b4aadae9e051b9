//! `coirl completions`: what a shell needs to complete the command line.

use crate::arguments::{Cli, PAGE};
use crate::destination::to_stdout;
use crate::failure::{Failure, Outcome};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  coirl completions bash > ~/.local/share/bash-completion/completions/coirl
  coirl completions zsh > ~/.zfunc/_coirl
  coirl completions fish > ~/.config/fish/completions/coirl.fish";

const EXPLANATION: &str = "\
Prints a script that lets a shell complete the commands and options of coirl. Where to put it depends on the shell.";

/// Write the completions of a shell
#[derive(Debug, Args)]
#[command(before_help = EXPLANATION, after_help = EXAMPLES, help_template = PAGE)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<Outcome, Failure> {
    // The generator panics where it cannot write; memory always takes it.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "coirl", &mut script);
    to_stdout(|out| Ok(out.write_all(&script)?))?;
    Ok(Outcome::Done)
}
