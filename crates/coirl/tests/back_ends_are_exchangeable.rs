//! The seam between learning and planning: a back end from outside is used, must answer for every context, and changes no result.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod demonstrated;

use coirl::Result;
use coirl::contextual::{Backend, ContextualPlanner, Cpu};
use coirl::domains::Driving;
use coirl::learn::{Adaptive, Batch, Problem, Watch};
use coirl::methods::{Settings, fit};
use coirl::model::{Cmdp, Context};
use coirl::plan::{ManyOptions, PlannedReward};
use demonstrated::{exact, train};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Plans one context after the other, counts them, and may lose some answers.
struct OneByOne {
    planned: Arc<AtomicUsize>,
    lost: usize,
}

impl Backend for OneByOne {
    fn plan(
        &self,
        model: &Cmdp,
        contexts: &[&Context],
        weights: &[f64],
        wanted: ManyOptions,
    ) -> Result<Vec<PlannedReward>> {
        self.planned.fetch_add(contexts.len(), Ordering::Relaxed);
        let alone = |(i, (context, w)): (usize, (&&Context, &[f64]))| {
            let plan = Cpu::default().plan(model, &[*context], w, wanted)?.remove(0);
            Ok(PlannedReward { index: i, ..plan })
        };
        let plans = contexts.iter().zip(weights.chunks_exact(model.n_features())).enumerate().map(alone);
        plans.take(contexts.len().saturating_sub(self.lost)).collect()
    }
}

#[test]
fn learning_on_another_back_end_gives_the_same_mapping() {
    let model = Driving::default().build().unwrap();
    let contexts = model.context_space().sample(12, 3).unwrap();
    let shown = train(&exact(&model, &Driving::online_mapping(), &contexts), 12);
    let method = Adaptive { batch: Batch::Full, ..Adaptive::default() };
    let mut settings = Settings::new(method.into());
    settings.stop.max_steps = Some(8);
    let learned = |problem: &Problem<'_>| fit(problem, &settings, Watch::default(), &mut ());
    let usual = learned(&Problem::new(&model, &shown, None).unwrap()).unwrap();

    let planned = Arc::new(AtomicUsize::new(0));
    let backend = |lost: usize| Box::new(OneByOne { planned: planned.clone(), lost });
    let planner = ContextualPlanner::with_backend(&model, backend(0)).without_memory();
    let problem = Problem::new(&model, &shown, None).unwrap().with_planner(planner);
    let other = learned(&problem).unwrap();
    assert_eq!((other.mapping().unwrap(), other.planner_calls), (usual.mapping().unwrap(), usual.planner_calls));
    assert_eq!(planned.load(Ordering::Relaxed) as u64, problem.planner().plans());
    assert!(problem.planner().plans() >= 8 * 12);

    let planner = ContextualPlanner::with_backend(&model, backend(1));
    let refused = learned(&Problem::new(&model, &shown, None).unwrap().with_planner(planner)).unwrap_err().to_string();
    assert!(refused.contains("plans of the back end"), "{refused}");
}
