//! The contexts that policies are transferred from.

use crate::contexts::read_contexts;
use crate::destination::note;
use crate::failure::Failure;
use crate::fitting::Run;
use crate::numbers::{count, short};
use clap::Args;
use coirl::artifact::{is_library, read_library};
use coirl::mapping::LearnedMapping;
use coirl::model::{Cmdp, Context};
use coirl::transfer::{Extent, Transfer, cover, thin};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Contexts of a cover where neither size, radius nor bound is said.
const COVER_SIZE: usize = 100;
/// Most contexts of a cover.
const COVER_LIMIT: usize = 10_000;

#[derive(Debug, Args)]
#[command(next_help_heading = "What to transfer from")]
pub(crate) struct KnownArgs {
    /// Contexts to plan for beforehand: those of the demonstrations (training), a cover of all contexts (cover), a table of
    /// contexts, or a library saved before [default: training, or cover with --model]
    #[arg(long, value_name = "training|cover|FILE", conflicts_with = "plan")]
    library: Option<KnownContexts>,
    /// At most so many contexts, spread as widely as possible
    #[arg(long, value_name = "N", conflicts_with = "radius")]
    library_size: Option<usize>,
    /// As few contexts as leave none farther than this from all of them, in the largest difference of a number
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    radius: Option<f64>,
    /// Leave out policies that none of the contexts asked about needs
    #[arg(long)]
    prune: bool,
    /// Write what is known in the end, with what had to be planned, for --library
    #[arg(long, value_name = "FILE")]
    pub(crate) save_library: Option<PathBuf>,
}

/// Which contexts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum KnownContexts {
    Training,
    Cover,
    File(PathBuf),
}

impl FromStr for KnownContexts {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "training" => KnownContexts::Training,
            "cover" => KnownContexts::Cover,
            path => KnownContexts::File(path.into()),
        })
    }
}

impl KnownArgs {
    /// Everything that is known before the first question; `wanted` is the bound that a cover should guarantee.
    pub(crate) fn open<'a>(
        &self,
        run: &Run,
        model: &'a Cmdp,
        mapping: &LearnedMapping,
        names: &[String],
        wanted: Option<f64>,
        quiet: bool,
    ) -> Result<Transfer<'a>, Failure> {
        let library = match (&self.library, run.has_data()) {
            (Some(library), _) => library.clone(),
            (None, true) => KnownContexts::Training,
            (None, false) => KnownContexts::Cover,
        };
        if let KnownContexts::File(path) = &library
            && (is_library(path) || path.extension().is_some_and(|extension| extension == "safetensors"))
        {
            return self.saved(path, model, mapping);
        }
        let mut transfer = Transfer::new(model, mapping.clone())?;
        let extent = match (self.library_size, self.radius) {
            (Some(n), _) => Some(Extent::Size(n)),
            (None, Some(radius)) => Some(Extent::Radius(radius)),
            (None, None) => None,
        };
        let thinned = |contexts: Vec<Context>| match extent {
            Some(extent) => thin(&contexts, extent).contexts,
            None => contexts,
        };
        let contexts = match &library {
            KnownContexts::Training => {
                let opened = run.data()?;
                thinned(opened.train.demonstrations().iter().map(|seen| seen.context().clone()).collect())
            }
            KnownContexts::File(path) => thinned(read_contexts(path, model, names)?),
            KnownContexts::Cover => {
                let radius = wanted.and_then(|bound| transfer.bound_rate().map(|rate| bound / rate));
                let extent = extent.or(radius.map(Extent::Radius)).unwrap_or(Extent::Size(COVER_SIZE));
                let found = cover(model.context_space(), &[], extent, COVER_LIMIT)?;
                let size = count(found.contexts.len());
                if wanted.is_some() && transfer.bound_rate().is_none() {
                    note(
                        quiet,
                        "no cover promises a bound for a network; where an answer misses --bound, it is planned",
                    );
                }
                note(quiet, &format!("{size} contexts: none is farther than {} from all of them", short(found.radius)));
                found.contexts
            }
        };
        if contexts.is_empty() {
            return Err(Failure::refused("the library is empty: --library-size and --radius leave no context"));
        }
        transfer.learn(&contexts).map_err(|error| match error {
            coirl::Error::TooLarge { .. } => Failure::Refused {
                message: error.to_string(),
                help: Some("know fewer contexts (--library-size), or plan for each (--plan)".into()),
            },
            error => error.into(),
        })?;
        Ok(transfer)
    }

    fn saved<'a>(&self, path: &Path, model: &'a Cmdp, mapping: &LearnedMapping) -> Result<Transfer<'a>, Failure> {
        if self.library_size.is_some() || self.radius.is_some() {
            let reason = "--library-size and --radius choose contexts to plan for; a saved library has its own";
            return Err(Failure::Usage(reason.into()));
        }
        let transfer = read_library(path, model, mapping.clone())?;
        if transfer.n_contexts() == 0 {
            return Err(Failure::in_file(path, "is a library without contexts; there is nothing to transfer from"));
        }
        Ok(transfer)
    }

    /// The first option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--library", self.library.is_some()),
            ("--library-size", self.library_size.is_some()),
            ("--radius", self.radius.is_some()),
            ("--prune", self.prune),
            ("--save-library", self.save_library.is_some()),
        ];
        options.into_iter().find(|option| option.1).map(|option| option.0)
    }

    /// Leaves out what the questions do not need, where that was asked for.
    pub(crate) fn prune(&self, transfer: &mut Transfer<'_>, contexts: &[Context], quiet: bool) -> Result<(), Failure> {
        if self.prune {
            let before = transfer.n_policies();
            let dropped = transfer.prune(contexts)?;
            note(quiet, &format!("left out {} of {} policies", count(dropped), count(before)));
        }
        Ok(())
    }
}
