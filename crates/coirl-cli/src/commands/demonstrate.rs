//! `coirl domain demonstrate`: an optimal expert in a built-in domain, as tables that `coirl fit` reads.

use crate::arguments::Global;
use crate::commands::fit::write_matrix;
use crate::destination::{note, to_file, to_stdout};
use crate::domains::Domain;
use crate::failure::Failure;
use crate::output::OutputFolder;
use crate::tables::Table;
use clap::Args;
use coirl::contextual::plan_mapping;
use coirl::demos::Trajectory;
use coirl::domains::Sepsis;
use coirl::mapping::LinearMapping;
use coirl::model::{Cmdp, Context, ContextSpace, StateId};
use coirl::plan::{ManyOptions, PlannedReward, evaluate};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Options of the expert and of what it shows.
#[derive(Debug, Args)]
pub(crate) struct ExpertArgs {
    /// Contexts with a demonstration
    #[arg(long, value_name = "N", default_value_t = 100)]
    contexts: usize,
    /// Further contexts, to score on
    #[arg(long, value_name = "N", default_value_t = 80)]
    test_contexts: usize,
    /// Transitions of every trajectory
    #[arg(long, value_name = "N", default_value_t = 40)]
    transitions: usize,
    /// The expert's mapping (.csv, .npy) [default: that of the domain; grid and garnet have none]
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
    /// Folder to write to
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn demonstrate(domain: &Domain, args: &ExpertArgs, global: &Global) -> Result<(), Failure> {
    if args.contexts == 0 {
        return Err(Failure::refused("--contexts 0: expected at least 1"));
    }
    let model = domain.build(global.seed)?;
    let mapping = args.expert(domain, &model)?;
    let Drawn { mut contexts, starts } =
        draw(domain, &model, &mapping, args.contexts + args.test_contexts, global.seed)?;
    let test = contexts.split_off(args.contexts);
    let shown = plan_mapping(&model, &mapping, &contexts, ManyOptions::default())?;
    // Where a demonstration starts in a state of its own, so do its trajectory and its feature expectations.
    let own_start = |i: usize| match &starts {
        Some(starts) => model.mdp(&contexts[i])?.starting_in(starts[i]),
        None => model.mdp(&contexts[i]),
    };
    let folder = OutputFolder::open(&args.out, global)?;
    let names = model.names();
    let numbers = |contexts: &[Context]| contexts.iter().flat_map(|c| c.values().to_vec()).collect::<Vec<f64>>();
    let (d, k) = (mapping.dimension(), mapping.n_features());
    let expectations = |(i, plan): (usize, &PlannedReward)| match &starts {
        Some(_) => evaluate::feature_expectations(&own_start(i)?, &plan.policy),
        None => Ok(plan.feature_expectations.clone().unwrap_or_default()),
    };
    let expectations = shown.iter().enumerate().map(expectations).collect::<coirl::Result<Vec<_>>>()?.concat();
    let tables = [
        ("contexts.csv", &names.contexts, "context", numbers(&contexts), d),
        ("feature-expectations.csv", &names.features, "feature", expectations, k),
        ("test-contexts.csv", &names.contexts, "context", numbers(&test), d),
        ("true-mapping.csv", &names.features, "feature", mapping.values().to_vec(), k),
    ];
    for (name, columns, of_one, values, n_columns) in &tables {
        to_file(&folder.file(name), |out| write_matrix(out, columns, of_one, values, *n_columns))?;
    }
    if let Some(starts) = &starts {
        to_file(&folder.file("starts.csv"), |out| {
            writeln!(out, "start")?;
            Ok(starts[..args.contexts].iter().try_for_each(|state| writeln!(out, "{}", state.0))?)
        })?;
    }
    to_file(&folder.file("trajectories.csv"), |out| {
        writeln!(out, "demonstration,step,state,action")?;
        for (i, plan) in shown.iter().enumerate() {
            let path = Trajectory::sample(&own_start(i)?, &plan.policy, args.transitions, global.seed, i as u64)?;
            for (t, state) in path.states.iter().enumerate() {
                let action = path.actions.get(t).map(|action| action.0.to_string()).unwrap_or_default();
                writeln!(out, "{i},{t},{},{action}", state.0)?;
            }
        }
        Ok(())
    })?;
    coirl::artifact::write_model(&folder.file("model.npz"), &model)?;
    if global.json {
        let mut files: Vec<&str> = tables.iter().map(|table| table.0).collect();
        files.extend(starts.is_some().then_some("starts.csv"));
        files.extend(["trajectories.csv", "model.npz"]);
        let written = json!({
            "folder": folder.path().display().to_string(), "domain": domain.name(), "contexts": contexts.len(),
            "test_contexts": test.len(), "files": files,
        });
        return to_stdout(|out| Ok(writeln!(out, "{written}")?));
    }
    let what = format!("{} demonstrations and {} test contexts", contexts.len(), test.len());
    note(global.quiet, &format!("wrote {what} to {}", folder.path().display()));
    Ok(())
}

/// Contexts, and where their demonstrations start if that is drawn with them.
struct Drawn {
    contexts: Vec<Context>,
    starts: Option<Vec<StateId>>,
}

fn draw(domain: &Domain, model: &Cmdp, mapping: &LinearMapping, n: usize, seed: u64) -> Result<Drawn, Failure> {
    if let Domain::Sepsis(_) = domain {
        let (contexts, starts) =
            Sepsis::patients(n, seed)?.into_iter().map(|patient| (patient.context, patient.start)).unzip();
        return Ok(Drawn { contexts, starts: Some(starts) });
    }
    let space = match model.context_space() {
        // Where nothing is declared, priorities that sum to one are the usual choice.
        ContextSpace::Any => ContextSpace::Simplex { dimension: mapping.dimension() },
        space => space.clone(),
    };
    Ok(Drawn { contexts: space.sample(n, seed)?, starts: None })
}

impl ExpertArgs {
    fn expert(&self, domain: &Domain, model: &Cmdp) -> Result<LinearMapping, Failure> {
        let Some(path) = &self.mapping else {
            let none =
                || Failure::refused(format!("--mapping FILE is missing: {} has no expert of its own", domain.name()));
            return domain.expert_mapping().ok_or_else(none);
        };
        let table = Table::read(path, "mapping")?;
        let dimension = model.context_space().dimension().unwrap_or(table.n_rows());
        crate::fitting::mapping_of(model, dimension, table)
    }
}
