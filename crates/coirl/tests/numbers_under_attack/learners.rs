//! Every learner and baseline, with settings of which any number may be an extreme one, on demonstrations that may be too.

use crate::attempt::attempt;
use crate::effort::{Tally, effort, seed};
use crate::extremes::{NONSENSE, NUMBERS, Sketch, TINIEST, contexts, discounts, numbers, one_of, simplex};
use coirl::baselines::{
    Cloning, FrankWolfe, Majority, MaxMargin, MaximumEntropy, MaximumEntropyPerContext, Mwal, NearestContext,
    NeuralCloning, Projection, States, Uniform,
};
use coirl::demos::{Demonstration, Estimator, SimulatedExpert, Train, Trajectory};
use coirl::learn::{
    Adaptive, Average, Batch, BatchEllipsoid, Bundle, CuttingPlane, Ellipsoid, EvolutionStrategies, Geometry, Hidden,
    MirrorDescent, Neural, NeuralGradient, Policies, Problem, ReplayedDescent, ReplayedEvolution, StepSize, Watch,
};
use coirl::mapping::LinearMapping;
use coirl::methods::{Fitted, Method, Settings, fit};
use coirl::model::{Cmdp, Criterion};
use coirl::network::Layer;
use coirl::objective::ObjectiveChoice;
use coirl::plan::Policy;
use rand::{Rng, RngExt};

/// One of each, and of those with several forms most.
fn methods() -> Vec<Method> {
    let descent = |geometry, step_size, average, batch| {
        Method::MirrorDescent(MirrorDescent { geometry, step_size, average, batch })
    };
    let schedule = StepSize::Schedule { initial: 0.3, decay: 0.95 };
    let small = Hidden::Layers(vec![Layer::normalised(3), Layer::leaky(2)]);
    let antithetic = NeuralGradient::Antithetic { deviation: 1e-2, pairs: 2, policies: Policies::Resolved };
    let neural = Neural { hidden: small.clone(), ..Neural::default() };
    vec![
        Method::Adaptive(Adaptive::default()),
        Method::Adaptive(Adaptive {
            objective: ObjectiveChoice::likelihood(),
            batch: Batch::WithReplacement { size: 2 },
        }),
        Method::Neural(neural.clone()),
        Method::Neural(Neural {
            objective: ObjectiveChoice::Loss,
            gradient: antithetic,
            largest_gradient: Some(1.0),
            ..neural
        }),
        descent(Geometry::Ball, StepSize::Theory { multiplier: 10.0 }, Average::AfterUpdate, Batch::InOrder),
        descent(Geometry::Simplex, StepSize::Constant { multiplier: 1.0 }, Average::BeforeUpdate, Batch::Full),
        descent(Geometry::Sphere, schedule, Average::Last, Batch::WithoutReplacement { size: 2 }),
        Method::EvolutionStrategies(EvolutionStrategies { accept_if_better: true, ..EvolutionStrategies::default() }),
        Method::Bundle(Bundle::default()),
        Method::Ellipsoid(Ellipsoid { tolerance: Some(0.01) }),
        Method::BatchEllipsoid(BatchEllipsoid { horizon: Some(5), batch: Some(2), ..BatchEllipsoid::default() }),
        Method::BatchEllipsoid(BatchEllipsoid::default()),
        Method::CuttingPlane(CuttingPlane::default()),
        Method::ReplayedDescent(ReplayedDescent::default()),
        Method::ReplayedEvolution(ReplayedEvolution::default()),
        Method::FrankWolfe(FrankWolfe::default()),
        Method::MaxMargin(MaxMargin::default()),
        Method::Mwal(Mwal::default()),
        Method::Projection(Projection::default()),
        Method::Projection(Projection { states: States::Joint }),
        Method::MaximumEntropy(MaximumEntropy::default()),
        Method::MaximumEntropyPerContext(MaximumEntropyPerContext::default()),
        Method::Cloning(Cloning::default()),
        Method::NeuralCloning(NeuralCloning { hidden: small, ..NeuralCloning::default() }),
        Method::Majority(Majority {}),
        Method::NearestContext(NearestContext {}),
        Method::Uniform(Uniform {}),
    ]
}

/// The places of all numbers in a tree.
fn number_places(value: &mut toml::Value) -> Vec<&mut toml::Value> {
    match value {
        toml::Value::Integer(_) | toml::Value::Float(_) => vec![value],
        toml::Value::Array(all) => all.iter_mut().flat_map(number_places).collect(),
        toml::Value::Table(all) => all.iter_mut().flat_map(|(_, own)| number_places(own)).collect(),
        _ => Vec::new(),
    }
}

/// The same settings with one number changed for an extreme or an impossible one; nothing where they cannot be read back.
fn twisted(method: &Method, random: &mut impl Rng) -> Option<Method> {
    let mut tree = toml::Value::try_from(method).unwrap();
    let mut places = number_places(&mut tree);
    if places.is_empty() {
        return None;
    }
    let at = random.random_range(0..places.len());
    *places[at] = match places[at] {
        toml::Value::Integer(_) => toml::Value::Integer(one_of(&[0, 1, 2, 3, i64::MAX, 1 << 62, -1], random)),
        _ => {
            let extreme = one_of(&[0.0, -1.0, 1.0, TINIEST, 1e-310, 1e-12, 1e12, 1e300, f64::MAX], random);
            toml::Value::Float(if random.random_bool(0.2) { one_of(&NONSENSE, random) } else { extreme })
        }
    };
    tree.try_into().ok()
}

/// What a learner is given.
#[derive(Debug, Clone)]
struct Given {
    sketch: Sketch,
    discount: f64,
    features: Vec<f64>,
    truth: Vec<f64>,
    contexts: Vec<Vec<f64>>,
    /// Transitions of the trajectories; feature expectations outright where there are none.
    transitions: Option<usize>,
    expectations: Vec<f64>,
    dimension: usize,
    expert_tolerance: f64,
}

impl Given {
    fn random(random: &mut impl Rng) -> Self {
        let sketch = Sketch::random(random);
        let (dimension, n_features) = (random.random_range(1..=3), random.random_range(1..=3));
        let ordinary = |n: usize, random: &mut _| -> Vec<f64> {
            match Rng::next_u32(random) % 2 {
                0 => numbers(n, random),
                _ => (0..n).map(|_| RngExt::random_range(random, -1.0..1.0)).collect(),
            }
        };
        let mut features = ordinary(sketch.n_states * n_features, random);
        if random.random_bool(0.1) {
            // All columns are the first.
            let first: Vec<f64> = features.chunks(n_features).map(|row| row[0]).collect();
            features = first.iter().flat_map(|&x| vec![x; n_features]).collect();
        }
        let n = one_of(&[1, 2, 5], random);
        Self {
            discount: one_of(&discounts(), random),
            features,
            truth: ordinary(dimension * n_features, random),
            contexts: contexts(dimension, n, random),
            transitions: one_of(&[None, Some(0), Some(1), Some(6)], random),
            expectations: numbers(n * n_features, random),
            dimension,
            expert_tolerance: one_of(&[0.0, 1e-3, 1e300], random),
            sketch,
        }
    }

    fn model(&self) -> coirl::Result<Cmdp> {
        let criterion = Criterion::discounted(self.discount)?;
        self.sketch.model(self.features.clone(), criterion)?.with_context_space(simplex(self.dimension))
    }

    fn demonstrations(&self, model: &Cmdp) -> coirl::Result<Vec<Demonstration>> {
        let k = model.n_features();
        let shown = |(i, values): (usize, &Vec<f64>)| {
            let context = model.context_space().context(values.clone())?;
            let Some(transitions) = self.transitions else {
                let own = self.expectations[i * k..(i + 1) * k].to_vec();
                return Demonstration::from_feature_expectations(model, context, own);
            };
            let mdp = model.mdp(&context)?;
            let path = Trajectory::sample(&mdp, &Policy::uniform(mdp.pairs()), transitions, 3, i as u64)?;
            Demonstration::from_trajectories(model, context, vec![path])
        };
        self.contexts.iter().enumerate().map(shown).collect()
    }

    fn fitted(&self, settings: &Settings) -> coirl::Result<Fitted> {
        let model = self.model()?;
        let truth = LinearMapping::new(self.dimension, model.n_features(), self.truth.clone())?;
        let expert = SimulatedExpert::new(&model, truth, self.expert_tolerance, 1)?;
        let train = Train::new(self.demonstrations(&model)?);
        let problem = Problem::new(&model, &train, &Estimator::default())?.with_expert(&expert);
        fit(&problem, settings, Watch::default(), &mut ())
    }
}

/// What is no number in a run: a loss, a bound, an entry of the mapping.
fn check_fitted(fitted: &Fitted) -> Result<(), String> {
    if let Ok(mapping) = fitted.mapping()
        && let Some(w) = mapping.values().iter().find(|w| !w.is_finite())
    {
        return Err(format!("an entry of {w} in the mapping"));
    }
    let told = [toml::Value::try_from(&fitted.certificate).unwrap()];
    let records = fitted.history.iter().map(|record| toml::Value::try_from(record).unwrap());
    for mut tree in told.into_iter().chain(records) {
        let text = tree.to_string();
        for place in number_places(&mut tree) {
            if let toml::Value::Float(x) = place
                && x.is_nan()
            {
                return Err(format!("not a number in {text}"));
            }
        }
        let loss = tree.get("loss").and_then(toml::Value::as_float);
        if loss.is_some_and(f64::is_infinite) {
            return Err(format!("an infinite loss in {text}"));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fitted.safetensors");
    coirl::artifact::write_fitted(&path, fitted).map_err(|error| format!("cannot be written: {error}"))?;
    coirl::artifact::read_fitted(&path).map(|_| ()).map_err(|error| format!("cannot be read back: {error}"))
}

/// Runs a learner, and adds what is wrong with the result to what was before.
fn fit_once(tally: &mut Tally, i: u64, given: &Given, settings: Settings, wrong: &mut Vec<String>) {
    let name = format!("seed {}, attempt {i}: {settings:?} on {given:?}", seed());
    let given = given.clone();
    let checked = attempt(&name, move || match given.fitted(&settings) {
        Ok(fitted) => check_fitted(&fitted),
        Err(_) => Ok(()),
    });
    tally.tried(1);
    if let Err(reason) = checked {
        wrong.push(format!("{reason}: {name}"));
    }
}

/// What went wrong, together: learners fail in many ways at once.
fn tell(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} runs:\n{}", wrong.len(), wrong.join("\n"));
}

fn few_steps(method: Method, random: &mut impl Rng) -> Settings {
    let mut settings = Settings {
        seed: random.random(),
        record_every: Some(one_of(&[0, 1, 2, u64::MAX], random)),
        ..Settings::new(method)
    };
    settings.stop.max_steps = Some(one_of(&[0, 1, 4], random));
    settings
}

#[test]
fn learners_from_extreme_demonstrations_end_in_numbers() {
    let mut tally = Tally::new("learners on extreme demonstrations", "runs");
    let mut wrong = Vec::new();
    for i in 0..effort(60) {
        let mut random = tally.random(i);
        let given = Given::random(&mut random);
        // The theorem's roll-outs are as long as a discount next to one makes them: hundreds of millions of steps.
        let endless =
            |method: &Method| *method == Method::BatchEllipsoid(BatchEllipsoid::default()) && given.discount > 0.999;
        for method in methods().into_iter().filter(|method| !endless(method)) {
            let settings = few_steps(method, &mut random);
            fit_once(&mut tally, i, &given, settings, &mut wrong);
        }
    }
    tell(&wrong);
}

#[test]
fn learners_with_extreme_settings_end_in_numbers() {
    let mut tally = Tally::new("learners with extreme settings", "runs");
    let mut wrong = Vec::new();
    for i in 0..effort(60) {
        let mut random = tally.random(i);
        let mut given = Given::random(&mut random);
        // Ordinary numbers, so that settings are what is tried.
        let plain = |n: usize, random: &mut _| -> Vec<f64> {
            (0..n).map(|_| RngExt::random_range(random, -1.0..1.0)).collect()
        };
        given.features = plain(given.features.len(), &mut random);
        given.truth = plain(given.truth.len(), &mut random);
        given.discount = one_of(&[0.0, 0.5, 0.9], &mut random);
        given.transitions = Some(4);
        for method in methods() {
            let Some(method) = twisted(&method, &mut random) else { continue };
            let mut settings = few_steps(method, &mut random);
            match random.random_range(0..6) {
                0 => settings.stop.gap = Some(one_of(&NUMBERS, &mut random)),
                1 => settings.stop.loss = Some(one_of(&NONSENSE, &mut random)),
                2 => settings.initial = Some(numbers(given.truth.len(), &mut random)),
                _ => {}
            }
            fit_once(&mut tally, i, &given, settings, &mut wrong);
        }
    }
    tell(&wrong);
}

#[test]
fn mappings_of_ten_thousand_entries_and_of_one_are_learned() {
    let mut tally = Tally::new("large and small mappings", "runs");
    let mut wrong = Vec::new();
    for (dimension, n_features) in [(1, 1), (100, 100)] {
        let mut random = tally.random(0);
        let sketch = Sketch {
            n_states: 2,
            n_actions: 2,
            transitions: vec![1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0],
            initial: vec![0.5; 2],
        };
        let n = 2;
        let given = Given {
            discount: 0.9,
            features: (0..sketch.n_states * n_features).map(|_| random.random_range(-1.0..1.0)).collect(),
            truth: (0..dimension * n_features).map(|_| random.random_range(-1.0..1.0)).collect(),
            contexts: contexts(dimension, n, &mut random),
            transitions: Some(5),
            expectations: Vec::new(),
            dimension,
            expert_tolerance: 0.0,
            sketch,
        };
        // What keeps a matrix of entries × entries is left out of the large one.
        let quadratic = |method: &Method| {
            matches!(method, Method::Ellipsoid(_) | Method::BatchEllipsoid(_) | Method::CuttingPlane(_))
        };
        for method in methods().into_iter().filter(|method| dimension == 1 || !quadratic(method)) {
            let mut settings = Settings::new(method);
            settings.stop.max_steps = Some(2);
            fit_once(&mut tally, 0, &given, settings, &mut wrong);
        }
    }
    tell(&wrong);
}
