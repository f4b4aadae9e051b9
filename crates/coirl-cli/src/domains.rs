//! The built-in domains: their options, and what to say about them.

mod expert;

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use coirl::domains::{
    Driving, DrivingActions, Epidemic, Garnet, Grid, Inadmissible, Maze, Pendulum, Polarity, Sepsis, SepsisDynamics,
};
use coirl::mapping::LinearMapping;
use coirl::model::Cmdp;
use expert::ExpertInNumbers;

/// Numbers above which a model is a mistake in typing.
const MOST_NUMBERS: usize = 500_000_000;

/// Name and one line of every domain.
pub(crate) const CATALOGUE: [(&str, &str); 7] = [
    ("grid", "cyclic grid world: a feature per cell, started anywhere"),
    ("driving", "driving simulator: speed, collisions and the edge of the road"),
    ("sepsis", "treatment of sepsis, simulated on published aggregates"),
    ("pendulum", "inverted pendulum on a grid of angles and speeds; mixes slowly"),
    ("maze", "random walls and one exit, with mud and danger; mixes slowly"),
    ("epidemic", "measures against a disease, long rows; mixes slowly"),
    ("garnet", "random sparse model of any size, for tests and benchmarks"),
];

/// A domain with its options.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Domain {
    Grid(GridArgs),
    Driving(DrivingArgs),
    Sepsis(SepsisArgs),
    Pendulum(PendulumArgs),
    Maze(MazeArgs),
    Epidemic(EpidemicArgs),
    Garnet(GarnetArgs),
}

/// Options of the grid world.
#[derive(Debug, Clone, PartialEq, Args)]
pub(crate) struct GridArgs {
    /// Cells from left to right
    #[arg(long, value_name = "N", default_value_t = Grid::default().width)]
    width: usize,
    /// Cells from top to bottom
    #[arg(long, value_name = "N", default_value_t = Grid::default().height)]
    height: usize,
    /// Discount factor
    #[arg(long, value_name = "G", default_value_t = Grid::default().discount, allow_negative_numbers = true)]
    discount: f64,
}

/// Options of the driving simulator.
#[derive(Debug, Clone, PartialEq, Args)]
pub(crate) struct DrivingArgs {
    /// Actions of the driver: 3 with "stay", 2 without
    #[arg(long, value_name = "N", value_enum, default_value_t = ActionsArg::Three)]
    actions: ActionsArg,
    /// Collision and off-road features: 0.5 when it happens, as in the published code, or 0.5 when it does not, as in the paper
    #[arg(long, value_enum, default_value_t = PolarityArg::Code)]
    polarity: PolarityArg,
    /// Discount factor
    #[arg(long, value_name = "G", default_value_t = Driving::default().discount, allow_negative_numbers = true)]
    discount: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ActionsArg {
    #[value(name = "2")]
    Two,
    #[value(name = "3")]
    Three,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PolarityArg {
    Code,
    Paper,
}

/// Options of the sepsis simulator.
#[derive(Debug, Clone, Copy, PartialEq, Args)]
pub(crate) struct SepsisArgs {
    /// Leave out actions that clinicians hardly ever took, instead of letting them lead to the unknown
    #[arg(long)]
    masked: bool,
    /// How transitions depend on the context: not at all, as a mixture of kernels, or by cluster of contexts
    #[arg(long, value_name = "KIND", value_enum, default_value_t = DynamicsArg::Shared)]
    dynamics: DynamicsArg,
    /// Discount factor
    #[arg(long, value_name = "G", default_value_t = Sepsis::default().discount, allow_negative_numbers = true)]
    discount: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DynamicsArg {
    Shared,
    Mixture,
    Clusters,
}

/// Options of the pendulum.
#[derive(Debug, Clone, Copy, PartialEq, Args)]
pub(crate) struct PendulumArgs {
    /// Grid points of the angle, and of the speed: the states are their square
    #[arg(long, value_name = "N", default_value_t = Pendulum::default().grid)]
    grid: usize,
    /// Discount factor; the nearer to 1, the harder to plan for
    #[arg(long, value_name = "G", default_value_t = Pendulum::default().discount, allow_negative_numbers = true)]
    discount: f64,
}

/// Options of the maze.
#[derive(Debug, Clone, Copy, PartialEq, Args)]
pub(crate) struct MazeArgs {
    /// Cells from one side to the other: the states are their square
    #[arg(long, value_name = "N", default_value_t = Maze::default().side)]
    side: usize,
    /// Probability of slipping to the left or the right of where one wants to go
    #[arg(long, value_name = "P", default_value_t = Maze::default().slip, allow_negative_numbers = true)]
    slip: f64,
    /// Share of the cells that are walls
    #[arg(long, value_name = "P", default_value_t = Maze::default().walls, allow_negative_numbers = true)]
    walls: f64,
    /// Share of the other cells with mud
    #[arg(long, value_name = "P", default_value_t = Maze::default().mud, allow_negative_numbers = true)]
    mud: f64,
    /// Share of the other cells with danger
    #[arg(long, value_name = "P", default_value_t = Maze::default().danger, allow_negative_numbers = true)]
    danger: f64,
    /// Discount factor; the nearer to 1, the harder to plan for
    #[arg(long, value_name = "G", default_value_t = Maze::default().discount, allow_negative_numbers = true)]
    discount: f64,
}

/// Options of the epidemic.
#[derive(Debug, Clone, Copy, PartialEq, Args)]
pub(crate) struct EpidemicArgs {
    /// Number of people: the states are how many of them are healthy
    #[arg(long, value_name = "N", default_value_t = Epidemic::default().people)]
    people: usize,
    /// Numbers of infections that a step can have, around their mean: the length of rows
    #[arg(long, value_name = "N", default_value_t = Epidemic::default().window)]
    window: usize,
    /// Discount factor; the nearer to 1, the harder to plan for
    #[arg(long, value_name = "G", default_value_t = Epidemic::default().discount, allow_negative_numbers = true)]
    discount: f64,
}

/// Options of the random models.
#[derive(Debug, Clone, PartialEq, Args)]
pub(crate) struct GarnetArgs {
    /// Number of states
    #[arg(long, value_name = "N", default_value_t = Garnet::default().n_states)]
    states: usize,
    /// Number of actions
    #[arg(long, value_name = "N", default_value_t = Garnet::default().n_actions)]
    actions: usize,
    /// Successors of every state and action
    #[arg(long, value_name = "N", default_value_t = Garnet::default().n_successors)]
    successors: usize,
    /// Features of every state
    #[arg(long, value_name = "N", default_value_t = Garnet::default().n_features)]
    features: usize,
    /// Base kernels: more than one makes the dynamics depend on the context
    #[arg(long, value_name = "N", default_value_t = Garnet::default().n_kernels)]
    kernels: usize,
    /// Share of the actions that is admissible in a state
    #[arg(long, value_name = "P", default_value_t = Garnet::default().admissible, allow_negative_numbers = true)]
    admissible: f64,
    /// Discount factor
    #[arg(long, value_name = "G", default_value_t = Garnet::default().discount, allow_negative_numbers = true)]
    discount: f64,
}

impl Domain {
    /// The domain of this name with its default options.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "grid" => Some(Domain::Grid(Grid::default().into())),
            "driving" => Some(Domain::Driving(Driving::default().into())),
            "sepsis" => Some(Domain::Sepsis(Sepsis::default().into())),
            "pendulum" => Some(Domain::Pendulum(Pendulum::default().into())),
            "maze" => Some(Domain::Maze(Maze::default().into())),
            "epidemic" => Some(Domain::Epidemic(Epidemic::default().into())),
            "garnet" => Some(Domain::Garnet(Garnet::default().into())),
            _ => None,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Domain::Grid(_) => "grid",
            Domain::Driving(_) => "driving",
            Domain::Sepsis(_) => "sepsis",
            Domain::Pendulum(_) => "pendulum",
            Domain::Maze(_) => "maze",
            Domain::Epidemic(_) => "epidemic",
            Domain::Garnet(_) => "garnet",
        }
    }

    /// The model.
    pub(crate) fn build(&self, seed: u64) -> Result<Cmdp, Failure> {
        match self {
            Domain::Grid(args) => args.build(),
            Domain::Driving(args) => args.build(),
            Domain::Sepsis(args) => Ok(args.settings().build()?),
            Domain::Pendulum(args) => args.build(),
            Domain::Maze(args) => args.build(seed),
            Domain::Epidemic(args) => args.build(),
            Domain::Garnet(args) => args.build(seed),
        }
    }

    /// What an expert of the domain makes of contexts, for domains that have one.
    pub(crate) fn expert_in_numbers(&self, model: &Cmdp) -> Result<Option<ExpertInNumbers>, Failure> {
        match self {
            Domain::Sepsis(args) => Ok(Some(ExpertInNumbers::of_sepsis(args.settings(), model)?)),
            _ => Ok(None),
        }
    }

    /// Reward weights that show something.
    pub(crate) fn example_weights(&self) -> Option<&'static str> {
        match self {
            Domain::Driving(_) => Some("0.1,-1,-0.5"),
            Domain::Pendulum(_) => Some("-2,-2,-1"),
            Domain::Maze(_) => Some("-1,0,0"),
            Domain::Epidemic(_) => Some("-0.5,0.2,-0.3"),
            Domain::Grid(_) | Domain::Sepsis(_) | Domain::Garnet(_) => None,
        }
    }

    /// The mapping of the domain's expert, for domains that have one.
    pub(crate) fn expert_mapping(&self) -> Option<LinearMapping> {
        match self {
            Domain::Driving(_) => Some(Driving::online_mapping()),
            Domain::Sepsis(_) => Some(Sepsis::linear_mapping()),
            Domain::Pendulum(_) => Some(Pendulum::standard_mapping()),
            Domain::Maze(_) => Some(Maze::standard_mapping()),
            Domain::Epidemic(_) => Some(Epidemic::standard_mapping()),
            Domain::Grid(_) | Domain::Garnet(_) => None,
        }
    }
}

impl GridArgs {
    /// Cells from left to right.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    fn build(&self) -> Result<Cmdp, Failure> {
        Ok(Grid { width: self.width, height: self.height, discount: self.discount }.build()?)
    }
}

impl DrivingArgs {
    fn build(&self) -> Result<Cmdp, Failure> {
        let actions = match self.actions {
            ActionsArg::Two => DrivingActions::Two,
            ActionsArg::Three => DrivingActions::Three,
        };
        let polarity = match self.polarity {
            PolarityArg::Code => Polarity::Code,
            PolarityArg::Paper => Polarity::Paper,
        };
        Ok(Driving { actions, polarity, discount: self.discount }.build()?)
    }
}

impl SepsisArgs {
    /// The simulator with these options.
    pub(crate) fn settings(self) -> Sepsis {
        Sepsis {
            inadmissible: if self.masked { Inadmissible::Masked } else { Inadmissible::Unknown },
            dynamics: match self.dynamics {
                DynamicsArg::Shared => SepsisDynamics::Shared,
                DynamicsArg::Mixture => SepsisDynamics::Mixture,
                DynamicsArg::Clusters => SepsisDynamics::Clusters,
            },
            discount: self.discount,
        }
    }
}

/// Refuses models larger than anybody means.
fn check_numbers(what: &str, factors: &[usize]) -> Result<(), Failure> {
    let numbers = factors.iter().fold(1, |n: usize, &factor| n.saturating_mul(factor));
    if numbers <= MOST_NUMBERS {
        return Ok(());
    }
    Err(Failure::refused(format!("{what} holds {numbers} numbers; expected at most {MOST_NUMBERS}")))
}

impl PendulumArgs {
    fn build(self) -> Result<Cmdp, Failure> {
        check_numbers(&format!("a pendulum with --grid {}", self.grid), &[self.grid, self.grid, 9 * 4])?;
        Ok(Pendulum { grid: self.grid, discount: self.discount }.build()?)
    }
}

impl MazeArgs {
    fn build(self, seed: u64) -> Result<Cmdp, Failure> {
        check_numbers(&format!("a maze with --side {}", self.side), &[self.side, self.side, 4 * 3])?;
        let Self { side, slip, walls, mud, danger, discount } = self;
        Ok(Maze { side, slip, walls, mud, danger, discount, seed }.build()?)
    }
}

impl EpidemicArgs {
    fn build(self) -> Result<Cmdp, Failure> {
        let what = format!("an epidemic with --people {} and --window {}", self.people, self.window);
        check_numbers(&what, &[self.people, self.window.min(self.people), 20])?;
        Ok(Epidemic { people: self.people, window: self.window, discount: self.discount }.build()?)
    }
}

impl GarnetArgs {
    fn build(&self, seed: u64) -> Result<Cmdp, Failure> {
        let product = |factors: &[usize]| factors.iter().fold(1, |n: usize, &factor| n.saturating_mul(factor));
        let numbers = product(&[self.states, self.actions, self.successors.max(1), self.kernels.max(1)])
            .saturating_add(product(&[self.states, self.features]));
        if numbers > MOST_NUMBERS {
            return Err(Failure::refused(format!(
                "a garnet of {} states, {} actions, {} successors, {} kernels and {} features holds {numbers} numbers; \
                 expected at most {MOST_NUMBERS}",
                self.states, self.actions, self.successors, self.kernels, self.features
            )));
        }
        Ok(Garnet {
            n_states: self.states,
            n_actions: self.actions,
            n_successors: self.successors,
            n_features: self.features,
            n_kernels: self.kernels,
            admissible: self.admissible,
            discount: self.discount,
            seed,
        }
        .build()?)
    }
}

impl From<Grid> for GridArgs {
    fn from(Grid { width, height, discount }: Grid) -> Self {
        Self { width, height, discount }
    }
}

impl From<Driving> for DrivingArgs {
    fn from(driving: Driving) -> Self {
        let actions = match driving.actions {
            DrivingActions::Two => ActionsArg::Two,
            DrivingActions::Three => ActionsArg::Three,
        };
        let polarity = match driving.polarity {
            Polarity::Code => PolarityArg::Code,
            Polarity::Paper => PolarityArg::Paper,
        };
        Self { actions, polarity, discount: driving.discount }
    }
}

impl From<Sepsis> for SepsisArgs {
    fn from(sepsis: Sepsis) -> Self {
        let dynamics = match sepsis.dynamics {
            SepsisDynamics::Shared => DynamicsArg::Shared,
            SepsisDynamics::Mixture => DynamicsArg::Mixture,
            SepsisDynamics::Clusters => DynamicsArg::Clusters,
        };
        Self { masked: sepsis.inadmissible == Inadmissible::Masked, dynamics, discount: sepsis.discount }
    }
}

impl From<Pendulum> for PendulumArgs {
    fn from(Pendulum { grid, discount }: Pendulum) -> Self {
        Self { grid, discount }
    }
}

impl From<Maze> for MazeArgs {
    fn from(Maze { side, slip, walls, mud, danger, discount, seed: _ }: Maze) -> Self {
        Self { side, slip, walls, mud, danger, discount }
    }
}

impl From<Epidemic> for EpidemicArgs {
    fn from(Epidemic { people, window, discount }: Epidemic) -> Self {
        Self { people, window, discount }
    }
}

impl From<Garnet> for GarnetArgs {
    fn from(garnet: Garnet) -> Self {
        Self {
            states: garnet.n_states,
            actions: garnet.n_actions,
            successors: garnet.n_successors,
            features: garnet.n_features,
            kernels: garnet.n_kernels,
            admissible: garnet.admissible,
            discount: garnet.discount,
        }
    }
}
