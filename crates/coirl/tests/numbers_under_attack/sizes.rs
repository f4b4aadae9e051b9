//! Sizes that no memory holds are refused before it is asked for, by an error that names what, how many and the limit.

use crate::attempt::attempt;
use coirl::Error;
use coirl::clustering::{KMeans, Points};
use coirl::demos::{Demonstration, Estimator, SimulatedExpert, Train, Trajectory};
use coirl::domains::{Garnet, Grid};
use coirl::learn::{
    Batch, BatchEllipsoid, EvolutionStrategies, MirrorDescent, Problem, ReplayedDescent, ReplayedEvolution, Watch,
};
use coirl::mapping::LinearMapping;
use coirl::methods::{Method, Settings, fit};
use coirl::model::{Cmdp, ContextSpace, Criterion, Reward};
use coirl::network::{Architecture, Layer};
use coirl::optim::Perturbation;
use coirl::plan::{Planner, Policy, evaluate};
use coirl::resampling::Resampling;
use coirl_cohort::off_policy::{Episode, Record, recorded_outcome};

const HUGE: usize = 1 << 62;

fn small() -> Cmdp {
    let garnet = Garnet { n_states: 5, n_actions: 2, n_successors: 2, n_features: 2, ..Garnet::default() };
    garnet.build().unwrap().with_context_space(ContextSpace::Simplex { dimension: 2 }).unwrap()
}

/// The refusal names what is too large.
fn refused<T>(name: &str, result: coirl::Result<T>) {
    match result {
        Err(Error::TooLarge { what, count, limit }) => {
            assert!(what.contains(name) && count > limit, "{name}: {what} {count} {limit}");
        }
        Err(other) => panic!("{name}: refused as {other}"),
        Ok(_) => panic!("{name}: made room for"),
    }
}

fn fitted(method: Method) -> coirl::Result<()> {
    attempt(&format!("{method:?}"), move || {
        let model = small();
        let context = model.context_space().sample(1, 1)?.remove(0);
        let mdp = model.mdp(&context)?;
        let path = Trajectory::sample(&mdp, &Policy::uniform(mdp.pairs()), 5, 1, 1)?;
        let train = Train::new(vec![Demonstration::from_trajectories(&model, context, vec![path])?]);
        let truth = LinearMapping::new(2, 2, vec![1.0, -1.0, 0.5, 0.2])?;
        let expert = SimulatedExpert::new(&model, truth, 0.0, 1)?;
        let problem = Problem::new(&model, &train, &Estimator::default())?.with_expert(&expert);
        fit(&problem, &Settings::new(method), Watch::default(), &mut ()).map(|_| ())
    })
}

#[test]
fn settings_of_learners() {
    let batch = Batch::WithReplacement { size: HUGE };
    refused("batch size", fitted(Method::MirrorDescent(MirrorDescent { batch, ..MirrorDescent::default() })));
    let rolled = |horizon, episode| {
        Method::BatchEllipsoid(BatchEllipsoid { horizon, episode, batch: Some(1), ..BatchEllipsoid::default() })
    };
    refused("horizon", fitted(rolled(Some(HUGE), Some(1))));
    refused("episode", fitted(rolled(Some(1), Some(HUGE))));
    let perturbation = Perturbation::Antithetic { deviation: 1e-3, pairs: HUGE };
    refused(
        "pairs",
        fitted(Method::EvolutionStrategies(EvolutionStrategies { perturbation, ..EvolutionStrategies::default() })),
    );
    refused(
        "pairs",
        fitted(Method::ReplayedEvolution(ReplayedEvolution { pairs: HUGE, ..ReplayedEvolution::default() })),
    );
    refused("epochs", fitted(Method::ReplayedDescent(ReplayedDescent { epochs: HUGE, ..ReplayedDescent::default() })));
}

#[test]
fn networks() {
    let hidden = vec![Layer::leaky(1 << 16), Layer::leaky(1 << 16)];
    refused("parameters", Architecture { inputs: 2, hidden, outputs: 2, unit_output: false }.check());
    let hidden = vec![Layer::normalised(usize::MAX)];
    refused("parameters", Architecture { inputs: 2, hidden, outputs: 2, unit_output: false }.check());
}

#[test]
fn domains() {
    let garnet = Garnet::default();
    refused("transitions", Garnet { n_states: HUGE, ..garnet }.build());
    refused("transitions", Garnet { n_actions: HUGE, admissible: 0.5, ..garnet }.build());
    refused("transitions", Garnet { n_kernels: HUGE, ..garnet }.build());
    refused("features", Garnet { n_features: HUGE, ..garnet }.build());
    refused("cells", Grid { width: HUGE, height: HUGE, ..Grid::default() }.build());
}

#[test]
fn samples() {
    refused("contexts", ContextSpace::Simplex { dimension: 2 }.sample(HUGE, 1));
    refused("contexts", ContextSpace::Simplex { dimension: 1 << 20 }.sample(1 << 20, 1));
    assert!(ContextSpace::Simplex { dimension: HUGE }.sample(1, 1).is_err());
    let model = small();
    let context = model.context_space().sample(1, 1).unwrap().remove(0);
    let mdp = model.mdp(&context).unwrap();
    let policy = Policy::uniform(mdp.pairs());
    refused("transitions", Trajectory::sample(&mdp, &policy, HUGE, 1, 1));
    let patient = model.with_criterion(Criterion::discounted(1.0_f64.next_down()).unwrap()).unwrap();
    let mdp = patient.mdp(&context).unwrap();
    refused("transitions", Trajectory::sample_geometric(&mdp, &policy, 1, 1));
}

#[test]
fn horizons() {
    refused("horizon", Criterion::finite_horizon(HUGE, 1.0));
    let model = small().with_criterion(Criterion::finite_horizon(1 << 30, 1.0).unwrap()).unwrap();
    let context = model.context_space().sample(1, 1).unwrap().remove(0);
    let mdp = model.mdp(&context).unwrap();
    let reward = Reward::State(vec![1.0; 5]);
    refused("horizon", Planner::default().plan(&mdp, &reward));
    refused("horizon", evaluate::values(&mdp, &reward, &Policy::uniform(mdp.pairs())));
}

#[test]
fn resamples() {
    let episode = Episode { patient: 1, states: vec![0], actions: vec![0], rewards: vec![1.0] };
    let record = Record::new(1, 1, 1.0, vec![episode]).unwrap();
    refused("resamples", recorded_outcome(&record, &Resampling { resamples: HUGE, ..Resampling::default() }));
    refused("states", Record::new(HUGE, 2, 1.0, Vec::new()));
}

#[test]
fn more_clusters_than_rows() {
    let points = Points::new(vec![1.0, 2.0, 3.0], 1).unwrap();
    for clusters in [4, HUGE, usize::MAX] {
        let refused = KMeans { clusters, ..KMeans::default() }.fit(&points).unwrap_err();
        assert!(matches!(refused, Error::TooFewDistinctRows { distinct: 3, .. }), "{refused}");
    }
}
