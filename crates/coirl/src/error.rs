//! The one error type of the library. Every variant carries the place and the value that were refused, so that a
//! caller can act on them and a reader of the message can find the cell of the table that is wrong.

use std::path::PathBuf;

/// What the library returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an input was refused or a computation could not be carried out.
///
/// Running out of iterations is not an error: it is a status in the result that was reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model needs at least one state and one action.
    #[error("the model has {n_states} states and {n_actions} actions; it needs at least one of each")]
    EmptyModel {
        /// Number of states given.
        n_states: usize,
        /// Number of actions given.
        n_actions: usize,
    },
    /// More states, pairs or cells than indices can name or memory can hold.
    #[error("{what}: {count} is more than the {limit} that can be held")]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// How many there were.
        count: usize,
        /// The largest number allowed.
        limit: usize,
    },
    /// A probability that is negative, above one, infinite or NaN.
    #[error("state {state}, action {action}: the probability of state {next} is {value}; expected a number in [0, 1]")]
    InvalidProbability {
        /// State of the row.
        state: usize,
        /// Action of the row.
        action: usize,
        /// Successor state.
        next: usize,
        /// The refused value.
        value: f64,
    },
    /// A transition row whose probabilities do not sum to one.
    #[error("state {state}, action {action}: the transition probabilities sum to {sum}; expected 1")]
    RowNotStochastic {
        /// State of the row.
        state: usize,
        /// Action of the row.
        action: usize,
        /// The sum found.
        sum: f64,
    },
    /// A successor state that does not exist.
    #[error("state {state}, action {action}: successor state {next} does not exist; the model has {n_states} states")]
    SuccessorOutOfRange {
        /// State of the row.
        state: usize,
        /// Action of the row.
        action: usize,
        /// The refused successor.
        next: i64,
        /// Number of states of the model.
        n_states: usize,
    },
    /// A function that was to give the transitions or features of a pair, and failed.
    #[error("state {state}, action {action}: {source}")]
    PairFunction {
        /// The state.
        state: usize,
        /// The action.
        action: usize,
        /// What the function said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A feature of a pair that is not finite.
    #[error("state {state}, action {action}: feature {feature} is {value}; expected a finite number")]
    FeatureNotFinite {
        /// The state.
        state: usize,
        /// The action.
        action: usize,
        /// Index of the feature.
        feature: usize,
        /// The refused value.
        value: f64,
    },
    /// A feature vector of another length than that of the first pair.
    #[error("state {state}, action {action}: {found} features; expected {expected}, as the first pair has")]
    FeatureCount {
        /// The state.
        state: usize,
        /// The action.
        action: usize,
        /// Features of the first pair.
        expected: usize,
        /// Features given.
        found: usize,
    },
    /// A transition from a state that does not exist.
    #[error("transition {number}: state {state} does not exist; the model has {n_states} states")]
    StateOutOfRange {
        /// Number of the transition, counted from 0.
        number: u64,
        /// The refused state.
        state: usize,
        /// Number of states of the model.
        n_states: usize,
    },
    /// A pair without a single transition to learn its row from.
    #[error(
        "state {state}, action {action} was never seen and the prior has no strength; give the prior a strength above 0, \
         or let pairs never seen follow its mean"
    )]
    PairNeverSeen {
        /// The state.
        state: usize,
        /// The action.
        action: usize,
    },
    /// A state meant to stand for what is unknown, although it was seen to be left.
    #[error(
        "state {state} is to stand for what is unknown, which nothing leaves, but action {action} was seen to lead from \
         it to state {next}; name a state that was never left"
    )]
    UnknownStateLeft {
        /// The state.
        state: usize,
        /// The action seen there.
        action: usize,
        /// Where it led.
        next: usize,
    },
    /// A state in which no action may be taken.
    #[error("state {state} has no admissible action; every state needs at least one")]
    NoAdmissibleAction {
        /// The state.
        state: usize,
    },
    /// A state in which no action is known.
    #[error("state {state} has no known action; every state needs at least one")]
    NoKnownAction {
        /// The state.
        state: usize,
    },
    /// An action that may not be taken in a state, or does not exist.
    #[error("state {state}: action {action} is not admissible there")]
    ActionNotAdmissible {
        /// The state.
        state: usize,
        /// The refused action.
        action: i64,
    },
    /// A discount outside [0, 1].
    #[error("the discount is {value}; expected a number in [0, 1]")]
    InvalidDiscount {
        /// The refused value.
        value: f64,
    },
    /// Discount one although some policy never reaches an absorbing state.
    #[error(
        "the discount is 1, but a policy can avoid the absorbing states for ever (for example from state {state}); \
         use a discount below 1, a finite horizon or the average-reward criterion"
    )]
    ImproperPolicy {
        /// A state from which a policy can stay away from every absorbing state.
        state: usize,
    },
    /// Discount one although an absorbing state collects reward for ever.
    #[error(
        "the discount is 1, but absorbing state {state} has feature {feature} = {value}, which would be collected \
         for ever; absorbing states need all-zero features at discount 1"
    )]
    AbsorbingFeature {
        /// The absorbing state.
        state: usize,
        /// Index of the non-zero feature.
        feature: usize,
        /// Its value.
        value: f64,
    },
    /// A finite horizon of no steps.
    #[error("the horizon is {steps} steps; expected at least 1")]
    InvalidHorizon {
        /// The refused number of steps.
        steps: usize,
    },
    /// A vector or matrix of the wrong shape.
    #[error("{what} has shape {found}; expected {expected}")]
    Shape {
        /// What the array holds.
        what: &'static str,
        /// The shape wanted.
        expected: String,
        /// The shape given.
        found: String,
    },
    /// A number that is not finite where a finite one is needed.
    #[error("{what}[{index}] is {value}; expected a finite number")]
    NotFinite {
        /// What the array holds.
        what: &'static str,
        /// Flat index of the entry.
        index: usize,
        /// The refused value.
        value: f64,
    },
    /// A start distribution that is not a distribution.
    #[error("the start distribution sums to {sum}; expected 1")]
    InitialNotStochastic {
        /// The sum found.
        sum: f64,
    },
    /// A negative or non-finite entry of the start distribution.
    #[error("the start probability of state {state} is {value}; expected a number in [0, 1]")]
    InvalidInitial {
        /// The state.
        state: usize,
        /// The refused value.
        value: f64,
    },
    /// A context outside the declared space.
    #[error("context {values:?}: {reason}")]
    InvalidContext {
        /// The refused vector.
        values: Vec<f64>,
        /// Which rule it breaks.
        reason: String,
    },
    /// Something that needs one kernel was asked of a model whose dynamics depend on the context.
    #[error("the dynamics of this model depend on the context; give the context to plan for")]
    ContextNeeded,
    /// Generalised policy improvement across contexts whose dynamics differ.
    #[error(
        "generalised policy improvement needs dynamics that no context changes, but the model has {dynamics}: {hint}"
    )]
    DynamicsDependOnContext {
        /// What the dynamics are.
        dynamics: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// Transfer without anything to transfer from.
    #[error("no known context{place} to transfer from; plan, or add contexts to the library")]
    EmptyLibrary {
        /// Where nothing is known, with a space before it; empty where nothing is known at all.
        place: String,
    },
    /// A cover that would take more contexts than allowed.
    #[error(
        "covering the contexts to a radius of {radius} takes {needed} contexts, more than the {limit} allowed; \
         {limit} reach a radius of {reachable}"
    )]
    CoverTooLarge {
        /// The radius wanted.
        radius: f64,
        /// Contexts of a cover with this radius.
        needed: u64,
        /// Contexts allowed.
        limit: usize,
        /// The radius that so many contexts guarantee.
        reachable: f64,
    },
    /// Base kernels that cannot be combined.
    #[error("base kernel {kernel}: {reason}")]
    IncompatibleKernels {
        /// Index of the offending kernel.
        kernel: usize,
        /// What differs.
        reason: String,
    },
    /// A setting outside its range.
    #[error("{name} = {value}: {reason}")]
    InvalidSetting {
        /// Name of the setting.
        name: &'static str,
        /// The refused value, as text.
        value: String,
        /// What is allowed.
        reason: &'static str,
    },
    /// A policy whose action probabilities are not a distribution in some state.
    #[error("state {state}: the policy's action probabilities sum to {sum}; expected 1")]
    PolicyNotStochastic {
        /// The state.
        state: usize,
        /// The sum found.
        sum: f64,
    },
    /// Action probabilities at a step of a record that are not a distribution.
    #[error("step {step}: the action probabilities sum to {sum}; expected numbers from 0 to 1 that sum to 1")]
    StepNotStochastic {
        /// Number of the step in the record, counted from 0.
        step: usize,
        /// The sum found.
        sum: f64,
    },
    /// An action of a record that does not exist.
    #[error("step {step}: action {action} does not exist; there are {n_actions} actions, counted from 0")]
    ActionOutOfRange {
        /// Number of the step in the record, counted from 0.
        step: usize,
        /// The refused action.
        action: usize,
        /// Number of actions.
        n_actions: usize,
    },
    /// A behaviour policy that says what happened could not happen.
    #[error(
        "step {step}: the behaviour policy gives the recorded action {action} probability 0; estimate the behaviour policy \
         from the record, or correct the probabilities"
    )]
    RecordedActionImpossible {
        /// Number of the step in the record, counted from 0.
        step: usize,
        /// The recorded action.
        action: usize,
    },
    /// Rewards whose sums no double holds.
    #[error(
        "step {step}: the reward is {value}, and the {n_steps} steps of the record may add up to more than a number can hold; scale the rewards down"
    )]
    RewardsTooLarge {
        /// Number of the step with the largest reward, counted from 0.
        step: usize,
        /// Its reward.
        value: f64,
        /// Steps of the record.
        n_steps: usize,
    },
    /// Fewer patients than cross-fitting deals them into folds.
    #[error(
        "the record has {patients} patients, too few to fit on some and value the others in {folds} folds; record at least \
         {folds} patients, or set folds to at most {patients}"
    )]
    TooFewPatients {
        /// Patients of the record.
        patients: usize,
        /// Folds that they were to be dealt into.
        folds: usize,
    },
    /// Neighbours were asked for in a record without covariates.
    #[error("the record has no covariates to find neighbours by; add them, or estimate the behaviour policy by states")]
    NoCovariates,
    /// An operation that is not defined for the model's optimality criterion.
    #[error("{operation} is not defined for the {criterion} criterion: {hint}")]
    CriterionMismatch {
        /// What was asked.
        operation: &'static str,
        /// The criterion of the model.
        criterion: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// The average-reward criterion met a policy with several recurrent classes.
    #[error(
        "the average-reward criterion needs unichain policies, but a policy met while planning has separate recurrent \
         classes (states {first} and {second} never meet)"
    )]
    NotUnichain {
        /// A state of one recurrent class.
        first: usize,
        /// A state of another.
        second: usize,
    },
    /// A linear system of policy evaluation that no solver brought below its tolerance.
    #[error("evaluating a policy stalled at residual {residual:e}; the discount is too close to 1 for this model")]
    EvaluationStalled {
        /// Sup-norm residual reached.
        residual: f64,
    },
    /// A cell of a table that is infinite or NaN.
    #[error(
        "{what}: row {row}, column {column} is {value}; expected a finite number: fill the gap or leave the row out"
    )]
    CellNotFinite {
        /// Which table.
        what: &'static str,
        /// Row of the cell, counted from 0.
        row: usize,
        /// Column of the cell, counted from 0.
        column: usize,
        /// The refused value.
        value: f64,
    },
    /// More clusters than there are different rows.
    #[error("{clusters} clusters of {distinct} different rows; ask for no more clusters than there are different rows")]
    TooFewDistinctRows {
        /// Different rows found.
        distinct: usize,
        /// Clusters asked for.
        clusters: usize,
    },
    /// The caller's progress callback asked to stop.
    #[error("stopped by the caller after {done} of {total}")]
    Interrupted {
        /// Problems finished.
        done: usize,
        /// Problems asked for.
        total: usize,
    },
    /// A reward was asked of an agent that acts without one.
    #[error("a {agent} agent has no mapping from context to reward; fit one of the methods that learn a reward")]
    NoMapping {
        /// What the agent is.
        agent: &'static str,
    },
    /// A matrix was asked of an agent whose mapping is a network.
    #[error("the mapping from context to reward is a network, not a matrix; this is for linear mappings only")]
    NotLinear,
    /// Actions were needed, and only feature expectations are there.
    #[error(
        "{method} learns from single actions, and the demonstrations have none; give trajectories instead of feature \
         expectations"
    )]
    NoActions {
        /// The method that needs them.
        method: &'static str,
    },
    /// Actions were demonstrated, and none of them is known to the model.
    #[error(
        "none of the {demonstrated} demonstrated actions is known in its state; correct the model's known pairs, or let the \
         method choose among all admissible actions"
    )]
    NoKnownActions {
        /// Actions demonstrated.
        demonstrated: u64,
    },
    /// Nobody was seen where there is something to choose.
    #[error(
        "none of the {demonstrated} demonstrated actions is a decision: their states have one action each, or cannot be left; \
         demonstrate where there is a choice"
    )]
    NoDecisions {
        /// Actions demonstrated.
        demonstrated: u64,
    },
    /// A run whose numbers got lost.
    #[error(
        "after step {step} the {what} is {value}: the numbers of this problem are too large or too small for the method's arithmetic; \
         scale the features, or take smaller steps"
    )]
    Diverged {
        /// The step, 0 for the start.
        step: u64,
        /// What is no number.
        what: &'static str,
        /// What it is instead.
        value: f64,
    },
    /// A programme that the convex solver gave up.
    #[error("{problem} could not be solved: {reason}")]
    Solver {
        /// What was to be solved.
        problem: &'static str,
        /// What the solver said.
        reason: String,
    },
    /// A spec of a cohort that cannot be used.
    #[error("{place}: {reason}")]
    Spec {
        /// Which key or line.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A cell of a cohort's table that cannot be used.
    #[error("row {row}, column {column}: {reason}")]
    Cell {
        /// Row of the table, counted from 1 below the header.
        row: u64,
        /// Name of the column.
        column: String,
        /// The value and what was expected.
        reason: String,
    },
    /// Every stay was left out.
    #[error("none of the {stays} stays is left; most were left out for: {reason}")]
    EmptyCohort {
        /// Stays in the table.
        stays: usize,
        /// The rule that left out the most.
        reason: String,
    },
    /// A checkpoint that this run cannot go on from.
    #[error("the checkpoint cannot be used: {reason}")]
    Checkpoint {
        /// What is wrong.
        reason: String,
    },
    /// A file that could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that is not what it claims to be.
    #[error("{path}: {reason}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// A file whose content was refused by the model.
    #[error("{path}: {source}", path = path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// Why its content was refused.
        source: Box<Error>,
    },
}

impl Error {
    /// Names the file that the refused content came from.
    pub fn in_file(self, path: impl Into<PathBuf>) -> Self {
        match self {
            Error::Io { .. } | Error::Format { .. } | Error::InFile { .. } => self,
            source => Error::InFile { path: path.into(), source: Box::new(source) },
        }
    }

    /// What should have had another shape, size or range.
    pub fn shape(what: &'static str, expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Self {
        Error::Shape { what, expected: expected.to_string(), found: found.to_string() }
    }
}

/// Refuses arrays that hold anything but finite numbers.
pub fn check_finite(what: &'static str, values: &[f64]) -> Result<()> {
    match values.iter().position(|x| !x.is_finite()) {
        Some(index) => Err(Error::NotFinite { what, index, value: values[index] }),
        None => Ok(()),
    }
}

/// Numbers beyond this many are not made room for: where the system promises memory it does not have, asking for more would end the
/// process instead of returning an error. 8 GiB of doubles.
pub const MOST_NUMBERS: usize = 1 << 30;

/// Refuses to make room for more numbers than can be held: the product of these sizes.
pub fn check_room(what: &'static str, sizes: &[usize]) -> Result<()> {
    let count = sizes.iter().fold(1_usize, |product, &size| product.saturating_mul(size));
    if count > MOST_NUMBERS { Err(Error::TooLarge { what, count, limit: MOST_NUMBERS }) } else { Ok(()) }
}

/// Refuses vectors of the wrong length.
pub fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::shape(what, format!("[{expected}]"), format!("[{found}]"))) }
}

/// Refuses numbers that are negative or not finite.
pub fn check_not_negative(name: &'static str, value: f64) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(Error::InvalidSetting {
        name,
        value: value.to_string(),
        reason: "expected a finite number that is not negative",
    })
}

/// Prior observations below which shares of them would vanish between zero and the smallest double.
pub const LEAST_STRENGTH: f64 = 1e-200;

/// Refuses numbers that are not above zero.
pub fn check_positive(name: &'static str, value: f64) -> Result<()> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(Error::InvalidSetting { name, value: value.to_string(), reason: "expected a number above 0" })
}
