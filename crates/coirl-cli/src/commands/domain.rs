//! `coirl domain`: the models that are built in.

use crate::arguments::{Global, PAGE};
use crate::commands::demonstrate::{ExpertArgs, demonstrate};
use crate::commands::draw::{DrawDrivingArgs, DrawGridArgs, draw_driving, draw_grid};
use crate::destination::{note, to_stdout, to_terminal};
use crate::domains::{
    CATALOGUE, Domain, DrivingArgs, EpidemicArgs, GarnetArgs, GridArgs, MazeArgs, PendulumArgs, SepsisArgs,
};
use crate::failure::{Failure, Outcome};
use crate::numbers::bytes;
use crate::summary::Summary;
use crate::text;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  coirl domain list
  coirl domain show driving
  coirl domain export driving --actions 3 --polarity code --out model.npz
  coirl domain demonstrate driving --contexts 100 --out demos
  coirl domain draw driving --weights 0.1,-1,-0.5 --roll-out --out drive.svg";

const DEMONSTRATE_EXAMPLES: &str = "\
Examples:
  coirl domain demonstrate driving --contexts 100 --seed 1 --out demos
  coirl fit --model driving --contexts demos/contexts.csv \\
      --trajectories demos/trajectories.csv
  coirl domain demonstrate garnet --mapping mapping.csv --out demos";

const DEMONSTRATE_EXPLANATION: &str = "\
Draws contexts, plans in each for the reward of a mapping, and writes what this optimal expert does: contexts.csv, \
feature-expectations.csv, trajectories.csv, true-mapping.csv, test-contexts.csv and model.npz. `coirl fit` reads them all.";

const DRAW_EXAMPLES: &str = "\
Examples:
  coirl domain draw driving --weights 0.1,-1,-0.5 --out policy.svg
  coirl domain draw driving --weights 0.1,-1,-0.5 --roll-out --out drive.svg
  coirl domain draw driving --run coirl-fit --context 0.2,0.3,0.5 --out a.png
  coirl domain draw grid --weights 1,0,0,0,0,-1,0,0,0,0,0,0 --out grid.svg";

const DRAW_GRID_USAGE: &str = "\
coirl domain draw grid [OPTIONS] --weights <W,…> --out <FILE>
       coirl domain draw grid --mapping <FILE> --context <C,…> --out <FILE>
       coirl domain draw grid --run <RUN> --context <C,…> --out <FILE>";

const DRAW_DRIVING_USAGE: &str = "\
coirl domain draw driving [OPTIONS] --weights <W,…> --out <FILE>
       coirl domain draw driving --mapping <FILE> --context <C,…> --out <FILE>
       coirl domain draw driving --run <RUN> --context <C,…> --out <FILE>";

const DRAW_EXPLANATION: &str = "\
Plans for a reward and draws what comes of it: typed weights, or those that a mapping or a finished run has for a context. The grid \
shows its cells with rewards, values and best actions; the driving simulator where car A steers, or a drive (--roll-out), which \
as .svg is an animation.";

const SHOW_EXAMPLES: &str = "\
Examples:
  coirl domain show driving
  coirl domain show grid --width 5 --height 5
  coirl domain show garnet --states 1000 --kernels 3 --seed 7 --json";

const EXPORT_EXAMPLES: &str = "\
Examples:
  coirl domain export driving --actions 3 --polarity code --out model.npz
  coirl domain export grid --discount 0.95 --out grid.safetensors
  coirl domain export garnet --states 1000 --seed 7 --out random.npz";

const EXPLANATION: &str = "\
The built-in domains are complete models: `list` names them, `show` explains one in numbers, `export` writes it to a file \
that NumPy (.npz) or this program (.npz, .safetensors) can read, `demonstrate` lets an expert act in it, `draw` shows what a reward makes of it. `coirl plan` and `coirl fit` also takes their names in place of a file.";

const LIST_EXPLANATION: &str = "Names every built-in domain with one line about it.";

const SHOW_EXPLANATION: &str = "\
Builds the domain with the given options and says how many states, actions and features it has, which states can be \
reached, how sparse its transitions are, where it starts and what it optimises. Every domain has its own options: see \
`coirl domain show driving --help`.";

const EXPORT_EXPLANATION: &str = "\
Builds the domain with the given options and writes it as .npz (arrays that NumPy reads) or .safetensors. The file \
appears whole or not at all. Every domain has its own options: see `coirl domain export driving --help`.";

const GRID: &str = "\
Cells on a torus: left, up, right and down, and whoever leaves on one side enters on the other. Every cell has its own \
feature, so the weights are the rewards of the cells.";

const DRIVING: &str = "\
Car A holds the speed it chose at the start and changes its place on the road; other cars come towards it in one of \
three lanes. Features: speed, collision, off-road. As published, the expert of the online experiments likes collisions: its \
weight of them is positive, and their feature is 0.5 when they happen.";

const SEPSIS: &str = "\
Patients in intensive care, simulated on the transition probabilities that ICU-Sepsis 2.0.1 publishes. 713 clusters of \
conditions, death, survival, and the unknown: where actions lead that clinicians hardly ever took. 25 actions: five \
levels of fluids and five of vasopressors. A context is a patient: gender, age, Elixhauser score, re-admission, weight, \
coma scale, ventilation. Research software, not for clinical use.";

const PENDULUM: &str = "\
A pendulum that is to stand upright, on a grid of angles and speeds; nine torques, steps of 0.01 s. Features: squared \
angle from upright, squared speed, squared torque; a context says how much each counts. Weights -2,-2,-1 are \
the usual ones, and the expert's in the context 0.4,0.4,0.2. A single step changes \
little, so planning needs very many sweeps, or a planner that does not count on them: try --discount 0.9999.";

const MAZE: &str = "\
A square of cells with walls drawn from --seed, and one exit, in the last corner. Steps go up, right, down or left, and slip to \
the side with probability --slip. Features: a step, mud, danger; contexts are how much one hurries, minds mud and fears \
danger. Weights -1,0,0 are a cost of one per step, and the expert's in the context 1,0,0. \
News of the exit travel cell by cell, so that a planner which only sweeps needs at least as many sweeps as the way \
is long.";

const EPIDEMIC: &str = "\
How many people are healthy, under five levels of hygiene and four of distance that cost money and quality of life. Infections are \
binomial, so every row has up to --window successors. Features: cost of the measures, quality of life, number of ill to \
the power 1.1. Weights -0.5,0.2,-0.3 are the expert's in the context \
0.5,0.2,0.3. Nobody ill is a state that \
nothing leaves; to get there is dear, and to wait is dearer the longer one looks ahead.";

const GARNET: &str = "\
Random successors with random probabilities and random features, drawn from --seed. With several kernels the dynamics \
are mixtures, weighted by the context.";

/// List, explain or export the built-in models
#[derive(Debug, Args)]
#[command(
    before_help = EXPLANATION,
    after_help = EXAMPLES,
    help_template = PAGE,
    disable_help_subcommand = true
)]
pub(crate) struct DomainArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the domains
    #[command(
        before_help = LIST_EXPLANATION,
        after_help = "Examples:\n  coirl domain list\n  coirl domain list --json",
        help_template = PAGE
    )]
    List,
    /// Explain a domain in numbers
    #[command(
        before_help = SHOW_EXPLANATION,
        after_help = SHOW_EXAMPLES,
        help_template = PAGE,
        disable_help_subcommand = true,
        subcommand_value_name = "NAME",
        subcommand_help_heading = "Domains"
    )]
    Show {
        #[command(subcommand)]
        domain: Show,
    },
    /// Write a domain to a model file
    #[command(
        before_help = EXPORT_EXPLANATION,
        after_help = EXPORT_EXAMPLES,
        help_template = PAGE,
        disable_help_subcommand = true,
        subcommand_value_name = "NAME",
        subcommand_help_heading = "Domains"
    )]
    Export {
        #[command(subcommand)]
        domain: Export,
    },
    /// Let an optimal expert act in a domain, and write what it does
    #[command(
        before_help = DEMONSTRATE_EXPLANATION,
        after_help = DEMONSTRATE_EXAMPLES,
        help_template = PAGE,
        disable_help_subcommand = true,
        subcommand_value_name = "NAME",
        subcommand_help_heading = "Domains"
    )]
    Demonstrate {
        #[command(subcommand)]
        domain: Demonstrate,
    },
    /// Draw what a reward makes of a domain
    #[command(
        before_help = DRAW_EXPLANATION,
        after_help = DRAW_EXAMPLES,
        help_template = PAGE,
        disable_help_subcommand = true,
        subcommand_value_name = "NAME",
        subcommand_help_heading = "Domains"
    )]
    Draw {
        #[command(subcommand)]
        domain: Draw,
    },
}

#[derive(Debug, Subcommand)]
enum Draw {
    /// Cyclic grid world
    #[command(
        before_help = GRID,
        after_help = DRAW_EXAMPLES,
        help_template = PAGE,
        override_usage = DRAW_GRID_USAGE
    )]
    Grid(DrawGridArgs),
    /// Driving simulator
    #[command(
        before_help = DRIVING,
        after_help = DRAW_EXAMPLES,
        help_template = PAGE,
        override_usage = DRAW_DRIVING_USAGE
    )]
    Driving(DrawDrivingArgs),
}

#[derive(Debug, Subcommand)]
enum Demonstrate {
    /// Cyclic grid world
    #[command(before_help = GRID, after_help = DEMONSTRATE_EXAMPLES, help_template = PAGE)]
    Grid(WithExpert<GridArgs>),
    /// Driving simulator
    #[command(before_help = DRIVING, after_help = DEMONSTRATE_EXAMPLES, help_template = PAGE)]
    Driving(WithExpert<DrivingArgs>),
    /// Sepsis simulator
    #[command(before_help = SEPSIS, after_help = DEMONSTRATE_EXAMPLES, help_template = PAGE)]
    Sepsis(WithExpert<SepsisArgs>),
    /// Inverted pendulum
    #[command(before_help = PENDULUM, after_help = DEMONSTRATE_EXAMPLES, help_template = PAGE)]
    Pendulum(WithExpert<PendulumArgs>),
    /// Maze with mud and danger
    #[command(before_help = MAZE, after_help = DEMONSTRATE_EXAMPLES, help_template = PAGE)]
    Maze(WithExpert<MazeArgs>),
    /// Measures against a disease
    #[command(before_help = EPIDEMIC, after_help = DEMONSTRATE_EXAMPLES, help_template = PAGE)]
    Epidemic(WithExpert<EpidemicArgs>),
    /// Random sparse model
    #[command(before_help = GARNET, after_help = DEMONSTRATE_EXAMPLES, help_template = PAGE)]
    Garnet(WithExpert<GarnetArgs>),
}

/// A domain's options and those of its expert.
#[derive(Debug, Args)]
struct WithExpert<A: Args> {
    #[command(flatten)]
    domain: A,
    #[command(flatten)]
    expert: ExpertArgs,
}

#[derive(Debug, Subcommand)]
enum Show {
    /// Cyclic grid world
    #[command(
        before_help = GRID,
        after_help = "Examples:\n  coirl domain show grid\n  coirl domain show grid --width 5 --height 5",
        help_template = PAGE
    )]
    Grid(GridArgs),
    /// Driving simulator
    #[command(
        before_help = DRIVING,
        after_help = "Examples:\n  coirl domain show driving\n  coirl domain show driving --actions 2 --polarity paper",
        help_template = PAGE
    )]
    Driving(DrivingArgs),
    /// Sepsis simulator
    #[command(
        before_help = SEPSIS,
        after_help = "Examples:\n  coirl domain show sepsis\n  coirl domain show sepsis --dynamics mixture",
        help_template = PAGE
    )]
    Sepsis(SepsisArgs),
    /// Inverted pendulum
    #[command(
        before_help = PENDULUM,
        after_help = "Examples:\n  coirl domain show pendulum\n  coirl domain show pendulum --grid 201 --discount 0.9999",
        help_template = PAGE
    )]
    Pendulum(PendulumArgs),
    /// Maze with mud and danger
    #[command(
        before_help = MAZE,
        after_help = "Examples:\n  coirl domain show maze\n  coirl domain show maze --side 300 --walls 0.2 --seed 7",
        help_template = PAGE
    )]
    Maze(MazeArgs),
    /// Measures against a disease
    #[command(
        before_help = EPIDEMIC,
        after_help = "Examples:\n  coirl domain show epidemic\n  coirl domain show epidemic --people 5000 --discount 0.999",
        help_template = PAGE
    )]
    Epidemic(EpidemicArgs),
    /// Random sparse model
    #[command(
        before_help = GARNET,
        after_help = "Examples:\n  coirl domain show garnet\n  coirl domain show garnet --states 1000 --kernels 3 --seed 7",
        help_template = PAGE
    )]
    Garnet(GarnetArgs),
}

#[derive(Debug, Subcommand)]
enum Export {
    /// Cyclic grid world
    #[command(
        before_help = GRID,
        after_help = "Examples:\n  coirl domain export grid --out grid.npz\n  coirl domain export grid --width 5 --height 5 --out grid.npz",
        help_template = PAGE
    )]
    Grid(WithOut<GridArgs>),
    /// Driving simulator
    #[command(
        before_help = DRIVING,
        after_help = "Examples:\n  coirl domain export driving --out driving.npz\n  coirl domain export driving --actions 2 --polarity paper --out driving.npz",
        help_template = PAGE
    )]
    Driving(WithOut<DrivingArgs>),
    /// Sepsis simulator
    #[command(
        before_help = SEPSIS,
        after_help = "Examples:\n  coirl domain export sepsis --out sepsis.npz\n  coirl domain export sepsis --masked --dynamics clusters --out sepsis.safetensors",
        help_template = PAGE
    )]
    Sepsis(WithOut<SepsisArgs>),
    /// Inverted pendulum
    #[command(
        before_help = PENDULUM,
        after_help = "Examples:\n  coirl domain export pendulum --out pendulum.npz\n  coirl domain export pendulum --grid 201 --discount 0.9999 --out pendulum.npz",
        help_template = PAGE
    )]
    Pendulum(WithOut<PendulumArgs>),
    /// Maze with mud and danger
    #[command(
        before_help = MAZE,
        after_help = "Examples:\n  coirl domain export maze --out maze.npz\n  coirl domain export maze --side 300 --walls 0.2 --seed 7 --out maze.npz",
        help_template = PAGE
    )]
    Maze(WithOut<MazeArgs>),
    /// Measures against a disease
    #[command(
        before_help = EPIDEMIC,
        after_help = "Examples:\n  coirl domain export epidemic --out epidemic.npz\n  coirl domain export epidemic --people 5000 --discount 0.999 --out epidemic.npz",
        help_template = PAGE
    )]
    Epidemic(WithOut<EpidemicArgs>),
    /// Random sparse model
    #[command(
        before_help = GARNET,
        after_help = "Examples:\n  coirl domain export garnet --out garnet.npz\n  coirl domain export garnet --states 1000 --kernels 3 --seed 7 --out garnet.npz",
        help_template = PAGE
    )]
    Garnet(WithOut<GarnetArgs>),
}

/// A domain's options and where to write it.
#[derive(Debug, Args)]
struct WithOut<A: Args> {
    #[command(flatten)]
    domain: A,
    /// File to write: .npz or .safetensors
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn run(args: DomainArgs, global: &Global) -> Result<Outcome, Failure> {
    match args.action {
        Action::List => list(global)?,
        Action::Show { domain } => {
            let domain = match domain {
                Show::Grid(args) => Domain::Grid(args),
                Show::Driving(args) => Domain::Driving(args),
                Show::Sepsis(args) => Domain::Sepsis(args),
                Show::Pendulum(args) => Domain::Pendulum(args),
                Show::Maze(args) => Domain::Maze(args),
                Show::Epidemic(args) => Domain::Epidemic(args),
                Show::Garnet(args) => Domain::Garnet(args),
            };
            show(&domain, global)?;
        }
        Action::Export { domain } => {
            let (domain, out) = match domain {
                Export::Grid(args) => (Domain::Grid(args.domain), args.out),
                Export::Driving(args) => (Domain::Driving(args.domain), args.out),
                Export::Sepsis(args) => (Domain::Sepsis(args.domain), args.out),
                Export::Pendulum(args) => (Domain::Pendulum(args.domain), args.out),
                Export::Maze(args) => (Domain::Maze(args.domain), args.out),
                Export::Epidemic(args) => (Domain::Epidemic(args.domain), args.out),
                Export::Garnet(args) => (Domain::Garnet(args.domain), args.out),
            };
            export(&domain, out, global)?;
        }
        Action::Demonstrate { domain } => {
            let (domain, expert) = match domain {
                Demonstrate::Grid(args) => (Domain::Grid(args.domain), args.expert),
                Demonstrate::Driving(args) => (Domain::Driving(args.domain), args.expert),
                Demonstrate::Sepsis(args) => (Domain::Sepsis(args.domain), args.expert),
                Demonstrate::Pendulum(args) => (Domain::Pendulum(args.domain), args.expert),
                Demonstrate::Maze(args) => (Domain::Maze(args.domain), args.expert),
                Demonstrate::Epidemic(args) => (Domain::Epidemic(args.domain), args.expert),
                Demonstrate::Garnet(args) => (Domain::Garnet(args.domain), args.expert),
            };
            demonstrate(&domain, &expert, global)?;
        }
        Action::Draw { domain: Draw::Grid(args) } => draw_grid(args, global)?,
        Action::Draw { domain: Draw::Driving(args) } => draw_driving(args, global)?,
    }
    Ok(Outcome::Done)
}

fn list(global: &Global) -> Result<(), Failure> {
    if global.json {
        let entries: Vec<_> = CATALOGUE.iter().map(|(name, about)| json!({"name": name, "about": about})).collect();
        return to_stdout(|out| Ok(writeln!(out, "{}", json!({ "domains": entries }))?));
    }
    let rows = CATALOGUE.iter().map(|(name, about)| vec![name.to_string(), about.to_string()]).collect();
    to_terminal(|out| Ok(text::table(out, &["domain", "about"], &[], rows)?))
}

fn show(domain: &Domain, global: &Global) -> Result<(), Failure> {
    let model = domain.build(global.seed)?;
    let summary = Summary::of(&model)?;
    let expert = domain.expert_in_numbers(&model)?;
    if global.json {
        let mut object = serde_json::to_value(&summary).map_err(std::io::Error::from)?;
        if let (Some(fields), Some(expert)) = (object.as_object_mut(), &expert) {
            fields.insert("expert".into(), serde_json::to_value(expert).map_err(std::io::Error::from)?);
        }
        return to_stdout(|out| Ok(writeln!(out, "{object}")?));
    }
    let name = domain.name();
    to_terminal(|out| {
        text::title(out, &model.names().model)?;
        summary.write(out)?;
        if let Some(expert) = &expert {
            expert.write(out)?;
        }
        writeln!(out)?;
        text::title(out, "Try")?;
        if Domain::named(name).as_ref() == Some(domain) {
            return Ok(writeln!(out, "  {}", summary.example(name, domain.example_weights()))?);
        }
        let file = format!("{name}.npz");
        writeln!(out, "  {} --out {file}", typed_export_command(&global.typed))?;
        Ok(writeln!(out, "  {}", summary.example(&file, domain.example_weights()))?)
    })
}

/// The command that was typed, with `export` in place of `show`.
fn typed_export_command(typed: &[String]) -> String {
    let words = typed.iter().map(|word| if word == "show" { "export" } else { word.as_str() });
    format!("coirl {}", words.collect::<Vec<_>>().join(" "))
}

fn export(domain: &Domain, out: PathBuf, global: &Global) -> Result<(), Failure> {
    let model = domain.build(global.seed)?;
    coirl::artifact::write_model(&out, &model)?;
    let size = std::fs::metadata(&out).map_err(|error| Failure::in_file(&out, error))?.len();
    if global.json {
        let written = json!({"file": out.display().to_string(), "bytes": size, "domain": domain.name()});
        return to_stdout(|stdout| Ok(writeln!(stdout, "{written}")?));
    }
    note(global.quiet, &format!("wrote {} ({})", out.display(), bytes(size)));
    Ok(())
}
