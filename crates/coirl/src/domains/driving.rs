//! The driving simulator: car A holds its speed and changes its place on the road, car B comes towards it in one of three
//! lanes.
//!
//! State 0 is the start, where the action chooses the speed; state `1 + ((speed·17 + i_x)·3 + lane)·10 + i_y` has car A
//! at x = 120 + 5·i_x and car B in its lane at y = 10 + 20·i_y. Features: speed, collision, off-road. The geometry is
//! that of the code published with the paper; the paper's text differs in the number of actions and in the polarity of
//! two features, and both readings are offered.

use crate::error::Result;
use crate::mapping::LinearMapping;
use crate::model::{Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel, KernelBuilder, Names, Pairs};
use std::sync::Arc;

const N_X: usize = 17;
const N_LANES: usize = 3;
const N_Y: usize = 10;
const N_SPEEDS: usize = 3;
const LANE_X: [i64; N_LANES] = [140, 160, 180];
/// How far car B comes nearer in one step at each speed.
const ADVANCE: [i64; N_SPEEDS] = [20, 80, 120];
const SPEED_FEATURE: [f64; N_SPEEDS] = [0.5, 0.75, 1.0];
const FIRST_X: i64 = 120;
const LAST_X: i64 = 200;
const X_STEP: i64 = 5;
const FIRST_Y: i64 = 10;
const LAST_Y: i64 = 190;
const Y_STEP: i64 = 20;
/// Where car A starts.
const START_X: i64 = 160;

/// How many actions the driver has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DrivingActions {
    /// Stay, left, right; in the start state medium, slow, fast.
    #[default]
    Three,
    /// Left, right; in the start state slow, fast. As the paper's text says.
    Two,
}

/// What the collision and off-road features show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Polarity {
    /// 0.5 when it happens, as in the published code.
    #[default]
    Code,
    /// 0.5 when it does not happen, as in the paper's text.
    Paper,
}

/// Settings of the driving simulator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Driving {
    /// Number of actions.
    pub actions: DrivingActions,
    /// Meaning of two features.
    pub polarity: Polarity,
    /// γ.
    pub discount: f64,
}

impl Default for Driving {
    fn default() -> Self {
        Self { actions: DrivingActions::Three, polarity: Polarity::Code, discount: 0.9 }
    }
}

/// Where the cars are: what a state other than the start means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrivingScene {
    /// 0 slow, 1 medium, 2 fast.
    pub speed: usize,
    /// Where car A is across the road, from 120 to 200 by 5.
    pub x: i64,
    /// The lane of car B, 0 to 2 from left to right.
    pub lane: usize,
    /// How far car B has come, from 10 to 190 by 20; from 150 on it is beside car A.
    pub y: i64,
}

/// Short for what the formulas below are about.
type Scene = DrivingScene;

impl DrivingScene {
    /// The middles of the lanes across the road, which ends at the outer ones.
    pub const LANES: [i64; N_LANES] = LANE_X;
    /// The least and the greatest x of car A.
    pub const X: (i64, i64) = (FIRST_X, LAST_X);
    /// The least and the greatest y of car B.
    pub const Y: (i64, i64) = (FIRST_Y, LAST_Y);

    /// The scene of a state; nothing for the start, and for what is no state.
    pub fn of(state: usize) -> Option<Self> {
        let i = state.checked_sub(1)?;
        let speed = i / (N_X * N_LANES * N_Y);
        (speed < N_SPEEDS).then(|| Scene {
            speed,
            x: FIRST_X + X_STEP * ((i / (N_LANES * N_Y)) % N_X) as i64,
            lane: (i / N_Y) % N_LANES,
            y: FIRST_Y + Y_STEP * (i % N_Y) as i64,
        })
    }

    fn state(self) -> usize {
        let i_x = ((self.x - FIRST_X) / X_STEP) as usize;
        let i_y = ((self.y - FIRST_Y) / Y_STEP) as usize;
        1 + ((self.speed * N_X + i_x) * N_LANES + self.lane) * N_Y + i_y
    }

    /// All scenes, in the order of their states.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..).map_while(Self::of)
    }

    /// Whether car B has come as far as car A is.
    pub fn beside(self) -> bool {
        (150..=190).contains(&self.y)
    }

    /// Whether the cars touch.
    pub fn collides(self) -> bool {
        self.beside() && (self.x - LANE_X[self.lane]).abs() < 15
    }

    /// Whether car A has left the road.
    pub fn off_road(self) -> bool {
        self.x < LANE_X[0] || self.x > LANE_X[N_LANES - 1]
    }

    /// How far car B comes nearer in a step.
    pub fn advance(self) -> i64 {
        ADVANCE[self.speed]
    }

    /// The next scenes after moving car A by `dx`: car B comes nearer, or a new one appears in a random lane.
    fn after(self, dx: i64) -> Vec<Scene> {
        let moved = Scene { x: (self.x + dx).clamp(FIRST_X, LAST_X), y: self.y + self.advance(), ..self };
        if moved.y > LAST_Y { moved.with_new_car() } else { vec![moved] }
    }

    fn with_new_car(self) -> Vec<Scene> {
        (0..N_LANES).map(|lane| Scene { lane, y: FIRST_Y, ..self }).collect()
    }
}

/// Reward mappings of the paper's experiments: a row per priority, a column per feature.
impl Driving {
    /// W* of the online experiments, no entry negative.
    pub fn online_mapping() -> LinearMapping {
        LinearMapping::from_checked(3, [1, 0, 1, 0, 10, 0, 1, 10, 0].map(|x| f64::from(x) / 23.0).into())
    }

    /// W* of the interactive experiments, with signs; of Frobenius norm one.
    pub fn interactive_mapping() -> LinearMapping {
        let printed = [-1.0, 0.75, 0.75, 0.5, -1.0, 1.0, 0.75, 1.0, -0.75_f64];
        let size = printed.iter().map(|x| x * x).sum::<f64>().sqrt();
        LinearMapping::from_checked(3, printed.map(|x| x / size).into())
    }
}

impl Driving {
    /// The model: 1,531 states, of which 766 can be reached.
    pub fn build(self) -> Result<Cmdp> {
        // The feature of what happens and of what does not.
        let (yes, no) = match self.polarity {
            Polarity::Code => (0.5, 0.0),
            Polarity::Paper => (0.0, 0.5),
        };
        let mut features = vec![0.75, 0.5, 0.5];
        for scene in Scene::all() {
            let flag = |happens: bool| if happens { yes } else { no };
            features.extend([SPEED_FEATURE[scene.speed], flag(scene.collides()), flag(scene.off_road())]);
        }
        let n_states = features.len() / 3;
        let mut initial = vec![0.0; n_states];
        initial[0] = 1.0;
        let features = Features::per_state(n_states, 3, features)?;
        let names: &[&str] = match self.actions {
            DrivingActions::Three => &["stay (start: medium)", "left (start: slow)", "right (start: fast)"],
            DrivingActions::Two => &["left (start: slow)", "right (start: fast)"],
        };
        let strings = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        Cmdp::new(Dynamics::Shared(self.kernel(n_states)?), features, initial, Criterion::discounted(self.discount)?)?
            .with_context_space(ContextSpace::Simplex { dimension: 3 })?
            .with_names(Names {
                model: "driving".into(),
                actions: strings(names),
                features: strings(&["speed", "collision", "off-road"]),
                contexts: strings(&["speed priority", "collision priority", "off-road priority"]),
            })
    }

    fn kernel(self, n_states: usize) -> Result<Kernel> {
        // Per action: the speed it chooses at the start, and how it moves car A afterwards.
        let actions: &[(usize, i64)] = match self.actions {
            DrivingActions::Three => &[(1, 0), (0, -X_STEP), (2, X_STEP)],
            DrivingActions::Two => &[(0, -X_STEP), (2, X_STEP)],
        };
        let mut builder = KernelBuilder::new(Arc::new(Pairs::all(n_states, actions.len())?));
        let mut push = |scenes: Vec<Scene>| {
            let share = 1.0 / scenes.len() as f64;
            builder.push_row(scenes.iter().map(|scene| (scene.state() as i64, share)))
        };
        for &(speed, _) in actions {
            push(Scene { speed, x: START_X, lane: 0, y: FIRST_Y }.with_new_car())?;
        }
        for scene in Scene::all() {
            for &(_, dx) in actions {
                push(scene.after(dx))?;
            }
        }
        builder.finish()
    }
}
