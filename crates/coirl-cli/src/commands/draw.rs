//! `coirl domain draw`: what a reward makes of a domain, as a picture.

use crate::arguments::Global;
use crate::commands::plan::{checked_weights, mapped_weights};
use crate::contexts::{ContextText, context_names};
use crate::destination::{check_can_be_written, note, to_file, to_stdout};
use crate::domains::{Domain, DrivingArgs, GridArgs};
use crate::failure::Failure;
use crate::fitting::{DataArgs, Run};
use crate::numbers::NumberList;
use crate::pictures::{driving_picture, grid_picture, png_of, roll_out_picture};
use crate::plans::Contexts;
use clap::{ArgGroup, Args};
use coirl::demos::Trajectory;
use coirl::model::Cmdp;
use coirl::plan::Planner;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Longer drives are no picture any more.
const MOST_STEPS: u16 = 400;

/// Whose reward is drawn, and where to.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("reward").args(["weights", "run", "mapping"]).required(true))]
pub(crate) struct DrawArgs {
    /// Reward weights, one per feature
    #[arg(long, value_name = "W,…", allow_hyphen_values = true)]
    weights: Option<NumberList>,
    /// The folder that `coirl fit` has written: the reward it has learned
    #[arg(long, value_name = "RUN", requires = "context")]
    run: Option<PathBuf>,
    /// File of a linear mapping: a row per context number, a column per feature
    #[arg(long, value_name = "FILE", requires = "context")]
    mapping: Option<PathBuf>,
    /// The context, its numbers alone or by name
    #[arg(long, value_name = "C,…", allow_hyphen_values = true, conflicts_with = "weights")]
    context: Option<ContextText>,
    /// File to write: .svg or .png
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
}

/// The grid world's options and those of its picture.
#[derive(Debug, Args)]
pub(crate) struct DrawGridArgs {
    #[command(flatten)]
    domain: GridArgs,
    #[command(flatten)]
    draw: DrawArgs,
}

/// The driving simulator's options and those of its picture.
#[derive(Debug, Args)]
pub(crate) struct DrawDrivingArgs {
    #[command(flatten)]
    domain: DrivingArgs,
    #[command(flatten)]
    draw: DrawArgs,
    /// Draw a drive of N steps [40] from --seed in place of the policy; an .svg moves
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "40",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_STEPS)))]
    roll_out: Option<u16>,
}

pub(crate) fn draw_grid(args: DrawGridArgs, global: &Global) -> Result<(), Failure> {
    let format = Format::of(&args.draw.out)?;
    let width = args.domain.width();
    let model = Domain::Grid(args.domain).build(global.seed)?;
    let rewards = args.draw.weights(&model)?;
    let mdp = model.shared_mdp()?;
    let plan = Planner::default().plan(&mdp, &mdp.reward(&rewards)?)?;
    format.write(&args.draw.out, &grid_picture(&model, width, &rewards, &plan)?, global)
}

pub(crate) fn draw_driving(args: DrawDrivingArgs, global: &Global) -> Result<(), Failure> {
    let format = Format::of(&args.draw.out)?;
    let model = Domain::Driving(args.domain).build(global.seed)?;
    let weights = args.draw.weights(&model)?;
    let mdp = model.shared_mdp()?;
    let plan = Planner::default().plan(&mdp, &mdp.reward(&weights)?)?;
    let svg = match args.roll_out {
        None => driving_picture(&model, &mdp, &weights, &plan.policy),
        Some(steps) => {
            let drive = Trajectory::sample(&mdp, &plan.policy, usize::from(steps), global.seed, 0)?;
            roll_out_picture(&model, &weights, &drive)
        }
    };
    let svg = svg.ok_or_else(|| Failure::refused("there is nothing to draw: the plan has no policy of the road"))?;
    format.write(&args.draw.out, &svg, global)
}

impl DrawArgs {
    /// The weights of the reward, typed or mapped from the context.
    fn weights(&self, model: &Cmdp) -> Result<Vec<f64>, Failure> {
        if let Some(NumberList(weights)) = &self.weights {
            return Ok(checked_weights(model, weights)?.to_vec());
        }
        let Some(context) = &self.context else {
            return Err(Failure::Usage("--run and --mapping need --context".into()));
        };
        match (&self.run, &self.mapping) {
            (Some(run), _) => {
                let fitted = Run::open(run, &DataArgs::of_model(None))?.fitted;
                let context = context.resolve(model, context_names(model, &fitted))?;
                let weights = fitted.agent.reward_mapping()?.weights(&context)?;
                if weights.len() != model.n_features() {
                    let reason =
                        format!("has {} weights; the domain has {} features", weights.len(), model.n_features());
                    return Err(Failure::in_file(run, reason));
                }
                Ok(weights)
            }
            (None, Some(mapping)) => {
                let context = context.resolve(model, &model.names().contexts)?;
                mapped_weights(model, mapping, &Contexts::One(context), None)
            }
            (None, None) => Err(Failure::Usage("give --weights, --run or --mapping".into())),
        }
    }
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Svg,
    Png,
}

impl Format {
    /// By the extension, once it is clear that the file can be written.
    fn of(path: &Path) -> Result<Self, Failure> {
        let format = match path.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => Format::Svg,
            Some("png") => Format::Png,
            _ => return Err(Failure::in_file(path, "the extension names no format; expected .svg or .png")),
        };
        check_can_be_written(path)?;
        Ok(format)
    }

    fn write(self, path: &Path, svg: &str, global: &Global) -> Result<(), Failure> {
        let bytes = match self {
            Format::Svg => svg.as_bytes().to_vec(),
            Format::Png => png_of(svg)?,
        };
        to_file(path, |out| Ok(out.write_all(&bytes)?))?;
        if global.json {
            let written = json!({"file": path.display().to_string(), "bytes": bytes.len()});
            return to_stdout(|out| Ok(writeln!(out, "{written}")?));
        }
        note(global.quiet, &format!("wrote {} ({})", path.display(), crate::numbers::bytes(bytes.len() as u64)));
        Ok(())
    }
}
