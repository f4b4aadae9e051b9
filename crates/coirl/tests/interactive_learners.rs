//! Learners that ask an expert: how many demonstrations they need, what they do with contradictions, and that a run can be
//! interrupted.
#![allow(clippy::unwrap_used)]

use coirl::Result;
use coirl::demos::{Answer, Expert, RecordedExpert, SimulatedExpert};
use coirl::domains::Driving;
use coirl::learn::{
    CuttingPlane, Problem, Record, Recorder, ReplayedDescent, ReplayedEvolution, Snapshot, Status, Watch,
};
use coirl::methods::{Checkpoint, Fitted, Method, Settings, fit, resume};
use coirl::model::{Cmdp, Context, ContextSpace, Mdp};
use coirl::optim::Centre;
use coirl::score::Examination;
use std::ops::ControlFlow;

/// 1e-3 of the value scaled by (1 − γ)/k.
const TOLERANCE: f64 = 0.03;

const SIMPLEX: ContextSpace = ContextSpace::Simplex { dimension: 3 };

fn expert(model: &Cmdp) -> SimulatedExpert {
    SimulatedExpert::new(model, Driving::interactive_mapping(), TOLERANCE, 0).unwrap()
}

/// One run per seed, with contexts of its own.
fn runs(method: &Method, seeds: std::ops::RangeInclusive<u64>, contexts: usize) -> Vec<Fitted> {
    let model = Driving::default().build().unwrap();
    let expert = expert(&model);
    let run = |seed: u64| {
        let problem = Problem::interactive(&model, SIMPLEX.sample(contexts, seed).unwrap(), &expert).unwrap();
        let settings = Settings { seed, ..Settings::new(method.clone()) };
        let fitted = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
        assert_eq!(fitted.steps, contexts as u64);
        fitted
    };
    seeds.map(run).collect()
}

/// Mean number of demonstrations and mean share of the expert's value.
fn summary(runs: &[Fitted]) -> (f64, f64) {
    let model = Driving::default().build().unwrap();
    let tests = SIMPLEX.sample(80, 999).unwrap();
    let examination = Examination::new(&model, &Driving::interactive_mapping(), tests).unwrap();
    let n = runs.len() as f64;
    let demonstrations = runs.iter().map(|run| run.demonstrations as f64).sum::<f64>() / n;
    let value = runs.iter().map(|run| examination.score(&run.agent).unwrap().value_ratio).sum::<f64>() / n;
    (demonstrations, value)
}

#[test]
fn cutting_planes_need_a_dozen_demonstrations() {
    let runs = runs(&Method::CuttingPlane(CuttingPlane::default()), 1..=5, 500);
    let (demonstrations, value) = summary(&runs);
    assert!(demonstrations <= 13.0, "{demonstrations} demonstrations");
    assert!(value >= 0.9995, "{value} of the expert's value");
    for run in &runs {
        assert!(
            run.certificate.guarantee.to_string().contains("all satisfied"),
            "{}",
            run.certificate.guarantee.to_string()
        );
        assert_eq!(run.history.last().unwrap().violation, Some(0.0));
    }
}

#[test]
fn the_chebyshev_centre_needs_a_few_more() {
    let method = Method::CuttingPlane(CuttingPlane { centre: Centre::Chebyshev, ..CuttingPlane::default() });
    let (demonstrations, value) = summary(&runs(&method, 1..=5, 150));
    assert!((8.0..=22.0).contains(&demonstrations), "{demonstrations} demonstrations");
    assert!(value >= 0.99, "{value} of the expert's value");
}

#[test]
fn replayed_descent_needs_about_fifteen() {
    let (demonstrations, value) = summary(&runs(&Method::ReplayedDescent(ReplayedDescent::default()), 1..=5, 150));
    assert!((10.0..=22.0).contains(&demonstrations), "{demonstrations} demonstrations");
    assert!(value >= 0.99, "{value} of the expert's value");
}

#[test]
fn replayed_evolution_needs_about_fifteen() {
    let (demonstrations, value) = summary(&runs(&Method::ReplayedEvolution(ReplayedEvolution::default()), 1..=5, 150));
    assert!((10.0..=22.0).contains(&demonstrations), "{demonstrations} demonstrations");
    assert!(value >= 0.99, "{value} of the expert's value");
}

#[test]
fn without_replay_every_demonstration_gives_one_cut() {
    let method = Method::CuttingPlane(CuttingPlane { replay: false, ..CuttingPlane::default() });
    let runs = runs(&method, 1..=1, 60);
    let expected = format!("{0} cuts from {0} demonstrations", runs[0].demonstrations);
    assert!(
        runs[0].certificate.guarantee.to_string().contains(&expected),
        "{}",
        runs[0].certificate.guarantee.to_string()
    );
}

#[test]
fn a_cut_and_its_negation_leave_a_stated_residual() {
    let model = Driving::default().build().unwrap();
    let context = SIMPLEX.context([0.2, 0.3, 0.5]).unwrap();
    let contexts = vec![context; 2];
    // Two demonstrations in one context: what is best for W* and what is best for −W*.
    let truth = Driving::interactive_mapping();
    let opposite: Vec<f64> = truth.values().iter().map(|w| -w).collect();
    let nobody = RecordedExpert::new(vec![vec![0.0; 3]; 2], 1e-9);
    let planning = Problem::interactive(&model, contexts.clone(), &nobody).unwrap();
    let best = planning.best_response(truth.values(), 0).unwrap().feature_expectations.to_vec();
    let worst = planning.best_response(&opposite, 1).unwrap().feature_expectations.to_vec();
    let quarrel = RecordedExpert::new(vec![best, worst], 1e-9);
    for centre in [Centre::Analytic, Centre::Chebyshev] {
        let problem = Problem::interactive(&model, contexts.clone(), &quarrel).unwrap();
        let method = Method::CuttingPlane(CuttingPlane { centre, ..CuttingPlane::default() });
        let mut settings = Settings::new(method);
        settings.stop.max_steps = Some(6);
        let fitted = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
        assert_eq!(fitted.demonstrations, 2);
        assert!(
            fitted.certificate.guarantee.to_string().contains("contradict"),
            "{}",
            fitted.certificate.guarantee.to_string()
        );
        let violation = fitted.history.last().unwrap().violation.unwrap();
        assert!(violation > 1e-3 && violation <= 1.0, "{violation}");
        assert!(fitted.mapping().unwrap().values().iter().all(|w| w.is_finite()));
        assert!(fitted.mapping().unwrap().values().iter().any(|&w| w != 0.0));
    }
}

/// Two experts who want different things; every third question goes to the second.
struct Turns(SimulatedExpert, SimulatedExpert);

impl Expert for Turns {
    fn answer(&self, query: u64, context: &Context, mdp: &Mdp<'_>, agent: &[f64]) -> Result<Answer> {
        if query % 3 == 2 {
            self.1.answer(query, context, mdp, agent)
        } else {
            self.0.answer(query, context, mdp, agent)
        }
    }
}

#[test]
fn experts_who_disagree_are_survived_by_every_method() {
    let model = Driving::default().build().unwrap();
    let other = SimulatedExpert::new(&model, Driving::online_mapping(), TOLERANCE, 0).unwrap();
    let turns = Turns(expert(&model), other);
    let methods = [
        Method::CuttingPlane(CuttingPlane::default()),
        // Few cuts and rounds: the limits are met too.
        Method::CuttingPlane(CuttingPlane { max_cuts: 6, max_rounds: 3, ..CuttingPlane::default() }),
        Method::CuttingPlane(CuttingPlane { centre: Centre::Chebyshev, ..CuttingPlane::default() }),
        Method::ReplayedDescent(ReplayedDescent { epochs: 5, ..ReplayedDescent::default() }),
        Method::ReplayedEvolution(ReplayedEvolution { iterations: 5, pairs: 20, ..ReplayedEvolution::default() }),
    ];
    for method in methods {
        let problem = Problem::interactive(&model, SIMPLEX.sample(18, 4).unwrap(), &turns).unwrap();
        let fitted = fit(&problem, &Settings::new(method.clone()), Watch::default(), &mut ()).unwrap();
        assert!(fitted.mapping().unwrap().values().iter().all(|w| w.is_finite()));
        assert!(fitted.demonstrations > 4);
        if let Method::CuttingPlane(own) = method {
            let says = fitted.certificate.guarantee.to_string();
            let stated = if own.max_cuts == 6 { "forgotten" } else { "contradict" };
            assert!(says.contains(stated), "{says}");
        }
    }
}

#[test]
fn sampled_demonstrations_contradict_each_other_and_still_teach() {
    let model = Driving::default().build().unwrap();
    let mut sampling = expert(&model);
    sampling.trajectories = Some((5, 40));
    let problem = Problem::interactive(&model, SIMPLEX.sample(60, 1).unwrap(), &sampling).unwrap();
    let fitted =
        fit(&problem, &Settings::new(Method::CuttingPlane(CuttingPlane::default())), Watch::default(), &mut ())
            .unwrap();
    assert!(
        fitted.certificate.guarantee.to_string().contains("contradict"),
        "{}",
        fitted.certificate.guarantee.to_string()
    );
    assert!(summary(&[fitted]).1 > 0.9);
}

/// Stops after so many steps, with what is needed to go on.
struct Interrupt {
    after: u64,
    checkpoint: Option<Checkpoint>,
}

impl Recorder for Interrupt {
    fn step(&mut self, record: &Record, snapshot: &Snapshot<'_>) -> Result<ControlFlow<()>> {
        if record.step < self.after {
            return Ok(ControlFlow::Continue(()));
        }
        self.checkpoint = Some(snapshot.checkpoint::<Method>()?);
        Ok(ControlFlow::Break(()))
    }
}

#[test]
fn an_interrupted_run_goes_on_as_if_nothing_had_happened_on_any_number_of_threads() {
    let model = Driving::default().build().unwrap();
    let expert = expert(&model);
    let methods = [
        Method::CuttingPlane(CuttingPlane::default()),
        Method::ReplayedDescent(ReplayedDescent { epochs: 4, ..ReplayedDescent::default() }),
        Method::ReplayedEvolution(ReplayedEvolution { iterations: 4, ..ReplayedEvolution::default() }),
    ];
    let threads = |n: usize| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    for method in methods {
        let problem = Problem::interactive(&model, SIMPLEX.sample(24, 3).unwrap(), &expert).unwrap();
        let settings = Settings { seed: 3, record_every: Some(4), ..Settings::new(method) };
        let whole = threads(1).install(|| fit(&problem, &settings, Watch::default(), &mut ()).unwrap());
        assert!(whole.demonstrations > 3);
        threads(3).install(|| {
            let mut interrupt = Interrupt { after: 7, checkpoint: None };
            let part = fit(&problem, &settings, Watch::default(), &mut interrupt).unwrap();
            assert_eq!((part.status, part.steps), (Status::Interrupted, 7));
            let text = serde_json::to_string(&interrupt.checkpoint.unwrap()).unwrap();
            let checkpoint = serde_json::from_str(&text).unwrap();
            assert_eq!(resume(&problem, checkpoint, Watch::default(), &mut ()).unwrap(), whole);
        });
    }
}

#[test]
fn limits_of_nothing_are_refused() {
    let model = Driving::default().build().unwrap();
    let expert = expert(&model);
    let problem = Problem::interactive(&model, SIMPLEX.sample(2, 1).unwrap(), &expert).unwrap();
    for method in [
        Method::CuttingPlane(CuttingPlane { max_cuts: 0, ..CuttingPlane::default() }),
        Method::CuttingPlane(CuttingPlane { max_rounds: 0, ..CuttingPlane::default() }),
        Method::ReplayedDescent(ReplayedDescent { epochs: 0, ..ReplayedDescent::default() }),
        Method::ReplayedDescent(ReplayedDescent { decay: 0.0, ..ReplayedDescent::default() }),
        Method::ReplayedEvolution(ReplayedEvolution { pairs: 0, ..ReplayedEvolution::default() }),
        Method::ReplayedEvolution(ReplayedEvolution { deviation: f64::NAN, ..ReplayedEvolution::default() }),
    ] {
        assert!(fit(&problem, &Settings::new(method), Watch::default(), &mut ()).is_err());
    }
}
