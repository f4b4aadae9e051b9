//! How an agent does on stays that nothing was learned from: whether it does what was done, what it would have reached, and where the table is
//! synthetic what it is worth in truth.

use super::encoder::{Actions, Encoder};
use super::model::Ends;
use super::rare_actions::{Steps, rare_events};
use super::recorded::{RecordedStay, TestStays, ValidationStays};
use super::split::draw;
use super::synthetic::{CarriedBack, Draws, FittedPolicy, Row, Synthetic, Truth};
use crate::agreement::{
    Answers, Decisions, Foreseen, Grouping, Matching, MatchingSettings, foreseen, match_actions, visited_state_accuracy,
};
use crate::off_policy::{
    Assessment, AssessmentSettings, Behaviour, BehaviourSettings, Calibration, Episode, FittedQSettings, Record,
    StepPolicy, assess, recorded_outcome,
};
use crate::rules::{Comparison, Rule, Rules, compare};
use coirl::agent::{Agent, Confidence, Predictions, policies};
use coirl::clustering::Points;
use coirl::domains::sepsis::N_ACTIONS;
use coirl::learn::{Chooser, Fitted};
use coirl::model::{ActionId, Cmdp, Context, StateId};
use coirl::plan::Policy;
use coirl::resampling::{Estimate, Resampling};
use coirl::{Error, Result};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Columns of the doses that a synthetic table knows.
const FLUIDS: &str = "input_4hourly";
const VASOPRESSOR: &str = "max_dose_vaso";
/// Rows that are drawn for a state of the simulator after each of its actions.
const AFTER: Draws = Draws { per_state: 16, seed: 0 };
/// The action of doing nothing.
const NO_TREATMENT: u32 = 0;

/// Settings of an exam.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExamSettings {
    /// How patients are drawn again for intervals.
    pub resampling: Resampling,
    /// How the behaviour of those who were recorded is estimated.
    pub behaviour: BehaviourSettings,
    /// How what a policy would have reached is estimated.
    pub assessment: AssessmentSettings,
    /// Share of the behaviour policy that is mixed into one that takes a single action: without it most stays have no weight at all.
    pub softness: f64,
    /// Patients on whom the true value is computed.
    pub true_patients: usize,
    /// Patients below which nothing is told of a subgroup.
    pub smallest_cell: usize,
}

impl Default for ExamSettings {
    fn default() -> Self {
        Self {
            resampling: Resampling::default(),
            behaviour: BehaviourSettings::default(),
            // Survival to a hundredth of a per cent; at discount one sweeps settle slowly. States are fitted, and over fifty tables fitted Q
            // evaluation never held the truth where weights were refused (docs/off-policy.md).
            assessment: AssessmentSettings {
                fitted_q_alone: false,
                fitted_q: FittedQSettings { tolerance: 1e-5, ..FittedQSettings::default() },
                ..AssessmentSettings::default()
            },
            softness: 0.01,
            true_patients: 300,
            smallest_cell: 10,
        }
    }
}

/// How well an agent's actions match the record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentAgreement {
    /// By step, by patient and by subgroup of the context.
    #[serde(flatten)]
    pub matching: Matching,
    /// The accuracy of the paper: see [`visited_state_accuracy`].
    pub published_accuracy: Estimate,
    /// How sure of itself the agent was taken to be for the log-loss, found on validation stays.
    pub confidence: Option<Confidence>,
    /// How it compares with every rule of the exam, on the same steps.
    pub comparisons: Vec<Comparison>,
    /// How rare actions are foreseen; none where no rules say what is rare.
    pub rare: Vec<Foreseen>,
}

/// Who is examined: an agent, and what it believes where it was fitted as somebody who chooses softly.
#[derive(Debug, Clone, Copy)]
pub struct Examined<'a> {
    agent: &'a Agent,
    /// Whose probabilities count for the log-loss instead of those that a temperature gives the agent.
    chooser: Option<Chooser<'a>>,
}

impl<'a> From<&'a Agent> for Examined<'a> {
    fn from(agent: &'a Agent) -> Self {
        Self { agent, chooser: None }
    }
}

impl<'a, M> From<&'a Fitted<M>> for Examined<'a> {
    fn from(fitted: &'a Fitted<M>) -> Self {
        Self { agent: &fitted.agent, chooser: fitted.chooser() }
    }
}

/// What policies would have reached, by their names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OffPolicy {
    /// Share of the stays that ended well.
    pub recorded: Estimate,
    /// How well the behaviour of those who were recorded is known.
    pub calibration: Calibration,
    /// Each policy.
    pub policies: Vec<(String, Assessment)>,
}

/// Stays to be examined on.
pub struct Exam<'a> {
    model: &'a Cmdp,
    encoder: &'a Encoder,
    ends: Ends,
    validation: &'a ValidationStays,
    test: &'a TestStays,
    rules: Vec<(Rule, Answers)>,
    /// Shares of all actions in training stays; none without rules.
    shares: Vec<f64>,
}

/// Visits of some stays, one after the other.
struct Visits<'a> {
    patients: Vec<u64>,
    contexts: Vec<Context>,
    states: Vec<&'a [StateId]>,
    taken: Vec<u32>,
}

impl<'a> Visits<'a> {
    fn of(stays: &'a [RecordedStay]) -> Self {
        let numbers = patient_numbers(stays);
        let with_steps = || stays.iter().zip(&numbers).filter(|(stay, _)| !stay.trajectory.actions.is_empty());
        let steps = |stay: &RecordedStay| stay.trajectory.actions.len();
        Self {
            patients: with_steps().flat_map(|(stay, &number)| std::iter::repeat_n(number, steps(stay))).collect(),
            contexts: with_steps().map(|(stay, _)| stay.context.clone()).collect(),
            states: with_steps().map(|(stay, _)| &stay.trajectory.states[..steps(stay)]).collect(),
            taken: with_steps().flat_map(|(stay, _)| stay.trajectory.actions.iter().map(|action| action.0)).collect(),
        }
    }
}

/// A number for every patient.
fn patient_numbers(stays: &[RecordedStay]) -> Vec<u64> {
    let mut numbers: HashMap<&str, u64> = HashMap::new();
    let mut of_stays = Vec::with_capacity(stays.len());
    for stay in stays {
        let next = numbers.len() as u64;
        of_stays.push(*numbers.entry(&stay.patient).or_insert(next));
    }
    of_stays
}

impl<'a> Exam<'a> {
    /// On test stays; validation stays choose what has to be chosen.
    pub fn new(
        model: &'a Cmdp,
        encoder: &'a Encoder,
        ends: Ends,
        validation: &'a ValidationStays,
        test: &'a TestStays,
    ) -> Result<Self> {
        if test.stays().iter().all(|stay| stay.trajectory.actions.is_empty()) {
            return Err(Error::shape("test stays with an action", "at least 1", 0));
        }
        Ok(Self { model, encoder, ends, validation, test, rules: Vec::new(), shares: Vec::new() })
    }

    /// The exam with rules that every agent is compared with.
    pub fn against(self, rules: &Rules) -> Result<Self> {
        Ok(Self { rules: rules.answers(self.test.stays())?, shares: rules.shares().to_vec(), ..self })
    }

    /// How well an agent's actions match those of the test stays.
    ///
    /// What it does first is what it would take; what it believes is softer. An agent that plans is given the temperature and the lapses that make validation stays
    /// likeliest. One that was fitted as somebody who chooses softly believes what it was fitted as, and only lapses are found.
    pub fn agreement<'e>(&self, examined: impl Into<Examined<'e>>, settings: &ExamSettings) -> Result<AgentAgreement> {
        let Examined { agent, chooser } = examined.into();
        let predicted = |visits: &Visits<'_>| Predictions::of(self.model, agent, &visits.contexts, &visits.states);
        let believed = |visits: &Visits<'_>| match &chooser {
            Some(chooser) => Predictions::of(self.model, chooser, &visits.contexts, &visits.states),
            None => predicted(visits),
        };
        let confidence = match self.validation.stays() {
            [] => None,
            stays => {
                let visits = Visits::of(stays);
                Some(believed(&visits)?.calibrated_on(&visits.taken))
            }
        };
        let visits = Visits::of(self.test.stays());
        let predictions = predicted(&visits)?;
        let sure = |own: &Predictions| match confidence {
            Some(confidence) => own.with_confidence(confidence),
            None => own.probabilities().to_vec(),
        };
        let belief = chooser.as_ref().map(|_| believed(&visits)).transpose()?;
        let beliefs = sure(belief.as_ref().unwrap_or(&predictions));
        // Lapses are spread over all actions, also those that nobody would take: they say nothing of what is rare.
        let unlapsed = confidence.map(|own| Confidence { lapses: 0.0, ..own });
        let own = belief.as_ref().unwrap_or(&predictions);
        let of_rare = unlapsed.map_or_else(|| own.probabilities().to_vec(), |sure| own.with_confidence(sure));
        let (probabilities, of_recorded) = match &chooser {
            Some(_) => {
                let rows = beliefs.chunks_exact(predictions.n_actions()).zip(&visits.taken);
                let own: Vec<f64> = rows.map(|(row, &action)| row[action as usize]).collect();
                (predictions.probabilities(), Some(own))
            }
            None => (&beliefs[..], None),
        };
        let ranks = predictions.ranks();
        // Numbers in a column have no order.
        let levels = match &self.encoder.actions {
            Actions::Doses(_) => self.encoder.actions.levels(),
            Actions::Numbered { .. } => Vec::new(),
        };
        let decisions = Decisions {
            patients: &visits.patients,
            recorded: &visits.taken,
            n_actions: predictions.n_actions(),
            probabilities,
            scores: ranks.as_deref(),
            of_recorded: of_recorded.as_deref(),
            levels: &levels,
        };
        let own = MatchingSettings { resampling: settings.resampling.clone(), ..MatchingSettings::default() };
        let states: Vec<u32> = visits.states.iter().flat_map(|states| states.iter().map(|state| state.0)).collect();
        let first = |row: &[f64]| (1..row.len()).fold(0, |best, i| if row[i] > row[best] { i } else { best }) as u32;
        let taken: Vec<u32> = predictions.probabilities().chunks_exact(predictions.n_actions()).map(first).collect();
        let matching = match_actions(&decisions, &self.groupings(), &own)?.withholding(settings.smallest_cell);
        let answers = decisions.answers(own.floor);
        Ok(AgentAgreement {
            comparisons: compare(&visits.patients, &answers, &self.rules, &settings.resampling)?,
            rare: self.rare(&visits, &of_rare, settings),
            matching,
            published_accuracy: visited_state_accuracy(
                &visits.patients,
                &states,
                &visits.taken,
                &taken,
                &settings.resampling,
            )?,
            confidence,
        })
    }

    /// How well rare actions are foreseen by these probabilities.
    fn rare(&self, visits: &Visits<'_>, probabilities: &[f64], settings: &ExamSettings) -> Vec<Foreseen> {
        let lengths: Vec<usize> = visits.states.iter().map(|states| states.len()).collect();
        let steps = Steps {
            patients: &visits.patients,
            lengths: &lengths,
            taken: &visits.taken,
            probabilities,
            n_actions: self.model.n_actions(),
        };
        let events =
            if self.shares.is_empty() { Vec::new() } else { rare_events(&self.encoder.actions, &self.shares, &steps) };
        let told = |(event, at_risk): (String, Vec<_>)| {
            foreseen(event, &at_risk, settings.smallest_cell, &settings.resampling)
        };
        events.into_iter().filter_map(told).collect()
    }

    /// Patients by each field of the context: by its values where it has two, else below and above the training median, and whoever has none.
    fn groupings(&self) -> Vec<Grouping> {
        let stays = self.test.stays();
        let numbers = patient_numbers(stays);
        let grouping = |(j, field): (usize, &super::ContextField)| {
            let flag =
                stays.iter().all(|stay| !field.knows(stay.fields[j]) || stay.fields[j] == 0.0 || stay.fields[j] == 1.0);
            let mut labels = BTreeMap::new();
            for (stay, &number) in stays.iter().zip(&numbers) {
                let x = stay.fields[j];
                let label = match () {
                    () if !field.knows(x) => "not recorded".to_owned(),
                    () if flag => format!("{x}"),
                    () if x <= field.fill => format!("at most {}", rounded(field.fill)),
                    () => format!("above {}", rounded(field.fill)),
                };
                labels.entry(number).or_insert(label);
            }
            Grouping { name: field.column.clone(), labels }
        };
        self.encoder.contexts.fields.iter().enumerate().map(grouping).collect()
    }

    /// What these agents, those who were recorded, random actions and no treatment reach by the recorded outcome, a good end being worth one.
    /// Nothing where no outcome is recorded.
    pub fn off_policy(&self, agents: &[(String, &Agent)], settings: &ExamSettings) -> Result<Option<OffPolicy>> {
        let ended: Vec<&RecordedStay> = self
            .test
            .stays()
            .iter()
            .filter(|stay| stay.bad_end.is_some() && !stay.trajectory.actions.is_empty())
            .collect();
        if ended.is_empty() {
            return Ok(None);
        }
        let numbers: HashMap<&str, u64> = self
            .test
            .stays()
            .iter()
            .zip(patient_numbers(self.test.stays()))
            .map(|(stay, n)| (stay.patient.as_str(), n))
            .collect();
        let episode = |stay: &&RecordedStay| {
            let steps = stay.trajectory.actions.len();
            let mut rewards = vec![0.0; steps];
            rewards[steps - 1] = f64::from(u8::from(stay.bad_end == Some(false)));
            Episode {
                patient: numbers[stay.patient.as_str()],
                states: stay.trajectory.states[..steps].iter().map(|state| state.0).collect(),
                actions: stay.trajectory.actions.iter().map(|action| action.0).collect(),
                rewards,
            }
        };
        let mut record =
            Record::new(self.ends.n_states(), self.encoder.actions.len(), 1.0, ended.iter().map(episode).collect())?;
        let width = self.encoder.measurements.len();
        if ended.iter().all(|stay| stay.points.len() == width * stay.trajectory.actions.len()) {
            record = record.with_covariates(width, ended.iter().flat_map(|stay| &stay.points).copied().collect())?;
        }
        let behaviour = Behaviour::estimate(&record, &settings.behaviour)?;
        let contexts: Vec<Context> = ended.iter().map(|stay| stay.context.clone()).collect();
        let visits: Vec<&[StateId]> =
            ended.iter().map(|stay| &stay.trajectory.states[..stay.trajectory.actions.len()]).collect();
        let mut policies = Vec::new();
        for (name, agent) in agents {
            let predictions = Predictions::of(self.model, *agent, &contexts, &visits)?;
            let policy = StepPolicy::new(&record, predictions.probabilities().to_vec())?;
            policies.push((name.clone(), policy));
        }
        policies.push(("clinicians, by their estimated policy".into(), behaviour.policy().clone()));
        policies.push(("random, of actions seen".into(), StepPolicy::uniform_over_seen(&record)));
        policies.push(("no treatment".into(), StepPolicy::always(&record, NO_TREATMENT)?));
        let assessed = |(name, policy): (String, StepPolicy)| {
            let soft = policy.softened(settings.softness, behaviour.policy())?;
            Ok((name, assess(&record, &behaviour, &soft, &settings.assessment)?))
        };
        Ok(Some(OffPolicy {
            recorded: recorded_outcome(&record, &settings.assessment.resampling)?,
            calibration: behaviour.calibration().clone(),
            policies: policies.into_iter().map(assessed).collect::<Result<_>>()?,
        }))
    }

    /// What the agents' policies are worth in the simulator that wrote the table, carried back through the fitted states. Nothing for
    /// action sets that leave a treatment of the simulator open, and for states that the simulator does not write.
    pub fn true_values(
        &self,
        agents: &[&Agent],
        synthetic: &Synthetic,
        settings: &ExamSettings,
    ) -> Result<Option<Vec<CarriedBack>>> {
        let Some(actions) = simulator_actions(&self.encoder.actions) else { return Ok(None) };
        if self.encoder.measurements.numbered_states().is_some() {
            return Ok(None);
        }
        let drawn = draw(self.test.stays().len(), settings.true_patients, settings.resampling.seed);
        let stays: Vec<&RecordedStay> = drawn.into_iter().map(|i| &self.test.stays()[i]).collect();
        let id = |stay: &&RecordedStay| {
            stay.stay.parse::<u64>().map_err(|_| Error::InvalidSetting {
                name: "stay",
                value: stay.stay.clone(),
                reason: "expected the number of a synthetic stay",
            })
        };
        let ids = stays.iter().map(id).collect::<Result<Vec<_>>>()?;
        let truth = Truth::of(synthetic)?;
        let patients = truth.test_patients(synthetic.patients(&ids)?)?;
        let contexts: Vec<Context> = stays.iter().map(|stay| stay.context.clone()).collect();
        let policies = |agent: &Agent| policies(self.model, agent, &contexts);
        if self.encoder.measurements.know_the_action_before() {
            let assignment = patients.assignment_after(AFTER, |rows, given| self.states_of(rows, given))?;
            let carried = |agent: &&Agent| {
                let policies = policies(agent)?;
                patients.carried_back_after(&assignment, |i| self.in_simulator(&policies[i], &actions))
            };
            return agents.iter().map(carried).collect::<Result<_>>().map(Some);
        }
        let assignment = patients.assignment(Draws::default(), |rows| self.states_of(rows, None))?;
        let carried = |agent: &&Agent| {
            let policies = policies(agent)?;
            patients.carried_back(&assignment, |i| self.in_simulator(&policies[i], &actions))
        };
        agents.iter().map(carried).collect::<Result<_>>().map(Some)
    }

    /// The fitted states of emitted rows; `given` has the doses of the step before.
    fn states_of(&self, rows: &[Row], given: Option<&Row>) -> Result<Vec<usize>> {
        let columns = Synthetic::columns();
        let at: HashMap<&str, usize> = columns.iter().enumerate().map(|(i, name)| (*name, i)).collect();
        let value = |row: &Row, name: &str| at.get(name).map_or(f64::NAN, |&i| row[i]);
        let before = given.map(|given| move |name: &str| value(given, name));
        let before = before.as_ref().map(|before| before as &dyn Fn(&str) -> f64);
        let point = |row: &Row| self.encoder.measurements.point(|name| value(row, name), before);
        let points: Vec<f32> = rows.iter().flat_map(point).collect();
        let states = self.encoder.centroids.assign(&Points::new(points, self.encoder.measurements.len())?)?;
        Ok(states.into_iter().map(|state| state as usize).collect())
    }

    /// A policy in the simulator's actions.
    fn in_simulator(&self, policies: &[(f64, Policy)], actions: &[ActionId]) -> Result<FittedPolicy> {
        let n_clusters = self.encoder.centroids.n_clusters();
        if let [(_, policy)] = policies
            && let Some(taken) = policy.actions()
        {
            return Ok(FittedPolicy::Actions(taken[..n_clusters].iter().map(|a| actions[a.index()]).collect()));
        }
        let n = N_ACTIONS;
        let mut rows = vec![0.0; n_clusters * n];
        for (share, policy) in policies {
            let stages = coirl::plan::evaluate::stage_distributions(self.model.pairs(), policy, 1)?;
            for state in 0..n_clusters {
                for pair in self.model.pairs().of_state(state) {
                    let action = actions[self.model.pairs().action(pair).index()];
                    rows[state * n + action.index()] += share * stages[0].share(state, pair);
                }
            }
        }
        Ok(FittedPolicy::Probabilities(rows))
    }
}

/// The action of the simulator that each action of the model is, by its typical doses.
fn simulator_actions(actions: &Actions) -> Option<Vec<ActionId>> {
    let Actions::Doses(doses) = actions else { return None };
    let at = |name: &str| doses.iter().position(|dose| dose.column == name);
    let (fluids, vasopressor) = (at(FLUIDS)?, at(VASOPRESSOR)?);
    let of_action = |action: usize| {
        let levels = actions.levels_of(ActionId(action as u32));
        let dose = |i: usize| doses[i].typical[levels[i]];
        Synthetic::nearest_action(dose(fluids), dose(vasopressor))
    };
    Some((0..actions.len()).map(of_action).collect())
}

/// Four significant digits.
fn rounded(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let scale = 10f64.powi(3 - x.abs().log10().floor() as i32);
    (x * scale).round() / scale
}
