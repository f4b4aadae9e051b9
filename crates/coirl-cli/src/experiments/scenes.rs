//! What a reward does, in pictures: the grid with its best actions, the road from above, and two drives for two contexts.

use crate::failure::Failure;
use crate::pictures::{driving_picture, grid_picture, roll_out_picture};
use coirl::demos::Trajectory;
use coirl::domains::Grid;
use coirl::model::Context;
use coirl::plan::{Plan, Planner};
use coirl_experiments::{Place, World};

/// Steps of a drive.
const STEPS: usize = 40;

/// A picture with what it is called and what can be seen in it.
pub(super) struct Scene {
    /// Name of its file, without the extension.
    pub(super) stem: &'static str,
    pub(super) title: &'static str,
    pub(super) says: String,
    pub(super) svg: String,
}

/// All of them, the same every time.
pub(super) fn scenes() -> Result<Vec<Scene>, Failure> {
    let mut scenes = Vec::new();
    let grid = World::new(Place::Grid)?;
    let context = grid.model().context_space().sample(1, 0)?.swap_remove(0);
    let (rewards, plan) = planned(&grid, &context)?;
    scenes.push(Scene {
        stem: "grid",
        title: "The grid in one context",
        says: "The context says how much each cell is worth; cells are shaded by it. Arrows are the best actions, numbers what they are worth from there on.".into(),
        svg: grid_picture(grid.model(), Grid::default().width, &rewards, &plan)?,
    });
    let road = World::new(Place::DrivingInteractive)?;
    let (careful, wild) = (
        road.model().context_space().context([0.0, 1.0, 0.0])?,
        road.model().context_space().context([0.0, 0.0, 1.0])?,
    );
    let (weights, plan) = planned(&road, &careful)?;
    let mdp = road.model().mdp(&careful)?;
    scenes.extend(driving_picture(road.model(), &mdp, &weights, &plan.policy).map(|svg| Scene {
        stem: "driving",
        title: "Driving: what to do where",
        says: format!(
            "A driver who wants {}. Each panel has the other car in one lane; arrows say how to steer.",
            wishes(&weights)
        ),
        svg,
    }));
    for (stem, title, context) in
        [("drive-careful", "A drive", careful), ("drive-wild", "Another drive, in another context", wild)]
    {
        let (weights, plan) = planned(&road, &context)?;
        let drive = Trajectory::sample(&road.model().mdp(&context)?, &plan.policy, STEPS, 0, 0)?;
        let says = format!("A driver who wants {}.", wishes(&weights));
        scenes.extend(roll_out_picture(road.model(), &weights, &drive).map(|svg| Scene { stem, title, says, svg }));
    }
    Ok(scenes)
}

/// The expert's weights and plan in a context.
fn planned(world: &World, context: &Context) -> Result<(Vec<f64>, Plan), Failure> {
    let weights = world.truth().weights(context)?;
    let mdp = world.model().mdp(context)?;
    let plan = Planner::default().plan(&mdp, &mdp.reward(&weights)?)?;
    Ok((weights, plan))
}

/// What a driver wants, by the signs of the weights.
fn wishes(weights: &[f64]) -> String {
    let names = [
        ("to be fast", "to be slow"),
        ("to hit the other car", "not to hit the other car"),
        ("to leave the road", "to stay on the road"),
    ];
    let wish = |(w, (plus, minus)): (&f64, (&'static str, &'static str))| match w.total_cmp(&0.0) {
        std::cmp::Ordering::Greater => Some(plus),
        std::cmp::Ordering::Less => Some(minus),
        std::cmp::Ordering::Equal => None,
    };
    let all: Vec<&str> = weights.iter().zip(names).filter_map(wish).collect();
    match all.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "nothing in particular".into(),
    }
}
