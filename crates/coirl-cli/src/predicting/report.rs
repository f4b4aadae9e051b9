//! Predictions for people and for programs.

use super::{Answers, Warned, named, warned};
use crate::failure::Failure;
use crate::numbers::{count, full, short};
use crate::plans::{MOST_ROWS, action_counts, action_name, rest};
use crate::text;
use coirl::model::{Cmdp, Context};
use coirl::transfer::{BoundBy, Coefficients, Gap, How, Prediction, RELATIVE_TO, TheoremBound};
use coirl_cohort::Unusual;
use serde::Serialize;
use std::io::Write;

/// A prediction with what else was asked for.
pub(crate) struct Answer {
    pub(crate) context: Context,
    pub(crate) prediction: Prediction,
    pub(crate) realised: Option<Gap>,
}

/// All answers of a run.
pub(crate) struct Report<'a> {
    pub(crate) model: &'a Cmdp,
    /// What the numbers of a context are called.
    pub(crate) names: &'a [String],
    /// The states asked about; none for all.
    pub(crate) states: Option<&'a [usize]>,
    /// Whether one context was asked about, rather than a list that may hold one.
    pub(crate) single: bool,
    pub(crate) n_contexts: usize,
    pub(crate) n_policies: usize,
    pub(crate) answers: &'a [Answer],
    /// Fields of the context outside all those that were learned from.
    pub(crate) unusual: &'a [Unusual],
}

#[derive(Serialize)]
struct AnswerObject<'a> {
    context: &'a [f64],
    value: f64,
    obtained: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweeps: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warm: Option<bool>,
    bound: f64,
    bound_by: BoundBy,
    bound_is: &'static str,
    theorem: Option<TheoremBound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    realised: Option<Gap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<Vec<StateObject<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Vec<u32>>,
}

#[derive(Serialize)]
struct StateObject<'a> {
    state: usize,
    action: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    value: f64,
}

#[derive(Serialize)]
struct Library {
    contexts: usize,
    policies: usize,
}

#[derive(Serialize)]
struct One<'a> {
    #[serde(flatten)]
    answer: AnswerObject<'a>,
    library: Library,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warned<'a>>,
}

#[derive(Serialize)]
struct Many<'a> {
    predictions: Vec<AnswerObject<'a>>,
    library: Library,
}

impl Answers for Report<'_> {
    fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let library = Library { contexts: self.n_contexts, policies: self.n_policies };
        let mut predictions: Vec<AnswerObject<'_>> = self.answers.iter().map(|answer| self.object(answer)).collect();
        let text = match predictions.pop() {
            Some(answer) if self.single => {
                serde_json::to_string(&One { answer, library, warnings: warned(self.unusual) })
            }
            last => {
                predictions.extend(last);
                serde_json::to_string(&Many { predictions, library })
            }
        };
        Ok(writeln!(out, "{}", text.map_err(std::io::Error::from)?)?)
    }

    fn write_csv(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let refused = |error: csv::Error| Failure::from(std::io::Error::from(error));
        let mut table = csv::Writer::from_writer(out);
        let header = ["context", "state", "action", "name", "value", "obtained", "bound"];
        table.write_record(header).map_err(refused)?;
        for (i, answer) in self.answers.iter().enumerate() {
            for state in self.asked() {
                let action = self.action(answer, state);
                let name = self.model.names().actions.get(action).cloned().unwrap_or_default();
                let Prediction { values, how, bound, .. } = &answer.prediction;
                let number = |n: usize| n.to_string();
                let row = [number(i), number(state), number(action), name, full(values[state])];
                let row = row.into_iter().chain([word(*how).into(), full(*bound)]);
                table.write_record(row).map_err(refused)?;
            }
        }
        Ok(table.flush()?)
    }

    fn write_text(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.answers {
            [answer] if self.single => self.write_one(out, answer),
            _ => self.write_many(out),
        }
    }
}

impl Report<'_> {
    fn object<'b>(&'b self, answer: &'b Answer) -> AnswerObject<'b> {
        let Answer { context, prediction, realised } = answer;
        let (sweeps, warm) = match prediction.how {
            How::Planned { sweeps, warm } => (Some(sweeps), Some(warm)),
            How::Improved | How::Nearest => (None, None),
        };
        let state = |&state: &usize| StateObject {
            state,
            action: self.action(answer, state),
            name: self.model.names().actions.get(self.action(answer, state)).map(String::as_str),
            value: prediction.values[state],
        };
        let all = || prediction.policy.actions().unwrap_or_default().iter().map(|action| action.0).collect();
        AnswerObject {
            context: context.values(),
            value: prediction.value,
            obtained: word(prediction.how),
            sweeps,
            warm,
            bound: prediction.bound,
            bound_by: prediction.bound_by,
            bound_is: RELATIVE_TO,
            theorem: prediction.theorem,
            realised: *realised,
            states: self.states.map(|states| states.iter().map(state).collect()),
            policy: self.states.is_none().then(all),
        }
    }

    fn action(&self, answer: &Answer, state: usize) -> usize {
        answer.prediction.policy.actions().and_then(|actions| actions.get(state)).map_or(0, |action| action.index())
    }

    fn asked(&self) -> Vec<usize> {
        self.states.map_or_else(|| (0..self.model.n_states()).collect(), <[usize]>::to_vec)
    }

    fn write_one(&self, out: &mut dyn Write, answer: &Answer) -> Result<(), Failure> {
        let Answer { context, prediction, realised } = answer;
        text::title(out, "How to act")?;
        text::pair(out, "context", &named(context, self.names))?;
        text::pair(out, "policy", &action_counts(self.model, &prediction.policy))?;
        text::pair(out, "value", &format!("{} from the start, for the learned mapping", short(prediction.value)))?;
        text::pair(out, "obtained", &self.in_words(prediction))?;
        let by = match prediction.bound_by {
            BoundBy::Theorem => "by the theorem",
            BoundBy::Residual => "by a backup of its values",
            BoundBy::Certificate => "by the plan's certificate",
        };
        let limit = short(prediction.bound);
        text::pair(out, "bound", &format!("no policy is better by more than {limit}, {by}; {RELATIVE_TO}"))?;
        if let Some(theorem) = prediction.theorem {
            let distance = short(theorem.distance);
            let known = match theorem.distance_of {
                Coefficients::Contexts => "context",
                Coefficients::Weights => "reward",
            };
            let says = format!("{} for transfer, at distance {distance} from a known {known}", short(theorem.bound));
            text::pair(out, "theorem", &says)?;
        }
        if let Some(gap) = realised {
            let (start, most) = (short(gap.from_start), short(gap.largest));
            text::pair(out, "realised", &format!("{start} lost from the start, {most} in the worst state"))?;
            text::pair(out, "", &format!("planning from scratch takes {} sweeps", count(gap.sweeps)))?;
        }
        if self.states.is_some() || self.model.n_states() <= MOST_ROWS {
            let row = |state: usize| {
                let action = action_name(self.model, self.action(answer, state));
                vec![state.to_string(), action, short(prediction.values[state])]
            };
            writeln!(out)?;
            text::table(out, &["state", "action", "value"], &[0, 2], self.asked().into_iter().map(row).collect())?;
        }
        Ok(())
    }

    fn write_many(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let states = self.states.unwrap_or_default();
        let names: Vec<String> = states.iter().map(|state| format!("state {state}")).collect();
        let mut header = vec!["context", "value", "obtained", "bound"];
        let gap = self.answers.iter().any(|answer| answer.realised.is_some());
        header.extend(gap.then_some("realised"));
        header.extend(names.iter().map(String::as_str));
        let row = |(i, answer): (usize, &Answer)| {
            let Answer { prediction, realised, .. } = answer;
            let mut row = vec![i.to_string(), short(prediction.value), word(prediction.how).into()];
            row.push(short(prediction.bound));
            row.extend(realised.map(|gap| short(gap.largest)));
            row.extend(states.iter().map(|&state| action_name(self.model, self.action(answer, state))));
            row
        };
        let rows = self.answers.iter().enumerate().take(MOST_ROWS).map(row).collect();
        text::table(out, &header, &[0, 1, 3, 4], rows)?;
        rest(out, self.answers.len(), "contexts")?;
        writeln!(out)?;
        let known = format!("{} policies of {} known contexts", count(self.n_policies), count(self.n_contexts));
        text::pair(out, "library", &known)?;
        Ok(text::pair(out, "bounds", RELATIVE_TO)?)
    }

    fn in_words(&self, prediction: &Prediction) -> String {
        let (policies, contexts) = (count(self.n_policies), count(self.n_contexts));
        match prediction.how {
            How::Improved => {
                format!("generalised policy improvement over {policies} policies of {contexts} known contexts")
            }
            How::Nearest => format!("the policy of the nearest of {contexts} known contexts"),
            How::Planned { sweeps, warm: true } => {
                format!("planned in {} sweeps, from what transfer gave", count(sweeps))
            }
            How::Planned { sweeps, warm: false } => format!("planned in {} sweeps, from scratch", count(sweeps)),
        }
    }
}

fn word(how: How) -> &'static str {
    match how {
        How::Improved => "improved",
        How::Nearest => "nearest",
        How::Planned { .. } => "planned",
    }
}
