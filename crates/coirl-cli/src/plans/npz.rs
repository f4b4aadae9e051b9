//! Plans as NumPy arrays in one archive.
//!
//! | key | shape | type |
//! |---|---|---|
//! | `contexts` | `[N, d]`, where contexts were given | float64 |
//! | `value` | `[N]` | float64 |
//! | `feature_expectations` | `[N, k]` | float64 |
//! | `policy` | `[N, S]`, or `[N, T, S]` for a finite horizon | int32 |
//! | `values` | `[N, S]`, where asked for | float64 |
//! | `converged` | `[N]` | bool |
//! | `residual`, `suboptimality_bound`, `value_error_bound` | `[N]` | float64 |
//! | `sweeps` | `[N]` | int64 |
//!
//! Plans come row by row but arrays are stored one after the other, so each array waits in a nameless temporary file.

use super::{Columns, PlanWriter};
use crate::failure::Failure;
use coirl::model::ActionId;
use coirl::plan::{PlannedReward, Policy, Status};
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// An array that is still being filled.
struct Spool {
    key: &'static str,
    descr: &'static str,
    shape: Vec<usize>,
    file: BufWriter<File>,
}

pub(super) struct Arrays<'a> {
    columns: &'a Columns<'a>,
    out: &'a mut BufWriter<File>,
    spools: Vec<Spool>,
}

impl<'a> Arrays<'a> {
    pub(super) fn new(columns: &'a Columns<'a>, path: &Path, out: &'a mut BufWriter<File>) -> Result<Self, Failure> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (n, n_states) = (columns.n_plans(), columns.model.n_states());
        let mut spools = Vec::new();
        let mut add = |key, descr, shape: Vec<usize>| -> io::Result<()> {
            let file = BufWriter::new(tempfile::tempfile_in(folder)?);
            spools.push(Spool { key, descr, shape, file });
            Ok(())
        };
        if columns.n_context() > 0 {
            add("contexts", "<f8", vec![n, columns.n_context()])?;
        }
        add("value", "<f8", vec![n])?;
        if columns.options.feature_expectations {
            add("feature_expectations", "<f8", vec![n, columns.model.n_features()])?;
        }
        match columns.stages() {
            None => add("policy", "<i4", vec![n, n_states])?,
            Some(stages) => add("policy", "<i4", vec![n, stages, n_states])?,
        }
        if columns.options.values {
            add("values", "<f8", vec![n, n_states])?;
        }
        add("converged", "|b1", vec![n])?;
        add("residual", "<f8", vec![n])?;
        add("suboptimality_bound", "<f8", vec![n])?;
        add("value_error_bound", "<f8", vec![n])?;
        add("sweeps", "<i8", vec![n])?;
        Ok(Self { columns, out, spools })
    }
}

impl PlanWriter for Arrays<'_> {
    fn push(&mut self, plan: &PlannedReward) -> Result<(), Failure> {
        let context = self.columns.context(plan.index).unwrap_or_default();
        let certificate = &plan.certificate;
        for spool in &mut self.spools {
            match spool.key {
                "contexts" => spool.floats(context)?,
                "value" => spool.floats(&[plan.value])?,
                "feature_expectations" => spool.floats(plan.feature_expectations.as_deref().unwrap_or_default())?,
                "policy" => match &plan.policy {
                    Policy::Stationary(actions) => spool.actions(actions)?,
                    Policy::Staged(stages) => stages.iter().try_for_each(|actions| spool.actions(actions))?,
                    Policy::Stochastic(_) | Policy::StagedStochastic(_) => {
                        return Err(Failure::refused("a stochastic policy has no array of actions"));
                    }
                },
                "values" => spool.floats(plan.values.as_deref().unwrap_or_default())?,
                "converged" => spool.file.write_all(&[u8::from(certificate.status != Status::SweepLimit)])?,
                "residual" => spool.floats(&[certificate.residual])?,
                "suboptimality_bound" => spool.floats(&[certificate.suboptimality_bound])?,
                "value_error_bound" => spool.floats(&[certificate.value_error_bound])?,
                _ => spool.file.write_all(&(certificate.sweeps as i64).to_le_bytes())?,
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        let mut archive = ZipWriter::new(self.out);
        for spool in self.spools {
            let mut file = spool.file.into_inner().map_err(io::IntoInnerError::into_error)?;
            let size = file.stream_position()?;
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Deflated)
                .large_file(size >= u64::from(u32::MAX) / 2);
            archive.start_file(format!("{}.npy", spool.key), options).map_err(io::Error::from)?;
            archive.write_all(&npy_header(spool.descr, &spool.shape))?;
            file.rewind()?;
            io::copy(&mut file, &mut archive)?;
        }
        archive.finish().map_err(io::Error::from)?;
        Ok(())
    }
}

impl Spool {
    fn floats(&mut self, values: &[f64]) -> io::Result<()> {
        values.iter().try_for_each(|x| self.file.write_all(&x.to_le_bytes()))
    }

    fn actions(&mut self, actions: &[ActionId]) -> io::Result<()> {
        actions.iter().try_for_each(|action| self.file.write_all(&(action.0 as i32).to_le_bytes()))
    }
}

/// The header of a .npy file, version 1.0: padded so that the data begins at a multiple of 64 bytes.
pub(crate) fn npy_header(descr: &str, shape: &[usize]) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if sizes.len() == 1 { "," } else { "" };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", sizes.join(", "));
    let padding = 63 - (10 + text.len()) % 64;
    text.push_str(&" ".repeat(padding));
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}
