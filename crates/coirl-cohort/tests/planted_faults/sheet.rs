//! A table that can be spoiled: rows of named cells, with who and when.

use coirl::Result;
use coirl::random::stream;
use coirl_cohort::synthetic::Synthetic;
use coirl_cohort::{Finding, Spec, Table, lint};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::ops::{ControlFlow, Range};

/// Rows of a table, those of a stay together.
#[derive(Clone)]
pub(crate) struct Sheet {
    names: Vec<String>,
    stays: Vec<String>,
    patients: Option<Vec<String>>,
    times: Vec<f64>,
    rows: Vec<Vec<f64>>,
    seed: u64,
}

impl Sheet {
    /// A synthetic table in the schema of the AI Clinician.
    pub(crate) fn synthetic(settings: &Synthetic) -> Result<Self> {
        let names = Synthetic::columns().iter().map(|name| (*name).to_owned()).collect();
        let mut sheet = Self { names, stays: vec![], patients: None, times: vec![], rows: vec![], seed: settings.seed };
        settings.generate(|stay| {
            for (t, row) in stay.rows.iter().enumerate() {
                sheet.stays.push(stay.id.to_string());
                sheet.times.push((t + 1) as f64);
                sheet.rows.push(row.to_vec());
            }
            ControlFlow::Continue(())
        })?;
        Ok(sheet)
    }

    /// What the linter says of it.
    pub(crate) fn lint(&self, spec: &Spec) -> Result<Vec<Finding>> {
        spec.check()?;
        let columns = spec.columns();
        let mut table = Table::new(&columns, self.patients.is_some());
        for (i, row) in self.rows.iter().enumerate() {
            let cells = columns.iter().map(|name| row[self.at(name)]);
            let patient = self.patients.as_ref().map(|patients| patients[i].as_str());
            table.push(&self.stays[i], patient, self.times[i], cells)?;
        }
        lint(&table, spec, 1)
    }

    fn at(&self, name: &str) -> usize {
        self.names.iter().position(|own| own == name).unwrap_or_else(|| panic!("no column {name}"))
    }

    /// Random numbers for one purpose.
    pub(crate) fn random(&self, purpose: &str) -> ChaCha8Rng {
        stream(self.seed, purpose, 0)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn get(&self, row: usize, name: &str) -> f64 {
        self.rows[row][self.at(name)]
    }

    pub(crate) fn set(&mut self, row: usize, name: &str, x: f64) {
        let at = self.at(name);
        self.rows[row][at] = x;
    }

    /// Rows of every stay.
    pub(crate) fn blocks(&self) -> Vec<Range<usize>> {
        let mut blocks: Vec<Range<usize>> = Vec::new();
        for row in 0..self.len() {
            match blocks.last_mut() {
                Some(block) if self.stays[block.start] == self.stays[row] => block.end = row + 1,
                _ => blocks.push(row..row + 1),
            }
        }
        blocks
    }

    /// A new column, or an old one anew, of what `cell` says of a row.
    pub(crate) fn fill(&mut self, name: &str, mut cell: impl FnMut(&Self, usize) -> f64) {
        let values: Vec<f64> = (0..self.len()).map(|row| cell(self, row)).collect();
        if !self.names.iter().any(|own| own == name) {
            self.names.push(name.into());
            self.rows.iter_mut().for_each(|row| row.push(f64::NAN));
        }
        values.into_iter().enumerate().for_each(|(row, x)| self.set(row, name, x));
    }

    /// Changes the cells of a column in this share of the stays.
    pub(crate) fn change(&mut self, name: &str, share: f64, change: impl Fn(f64) -> f64) {
        let mut random = self.random("stays that are changed");
        for block in self.blocks() {
            if random.random::<f64>() < share {
                block.for_each(|row| self.set(row, name, change(self.get(row, name))));
            }
        }
    }

    /// Whether a stay ended in death, by row.
    pub(crate) fn died(&self, row: usize) -> bool {
        self.get(row, "mortality_90d") == 1.0
    }

    /// Sums over a stay up to and with each row.
    pub(crate) fn running(&mut self, name: &str, add: impl Fn(&Self, usize) -> f64) {
        for block in self.blocks() {
            let mut sum = 0.0;
            for row in block {
                sum += add(self, row);
                self.set(row, name, sum);
            }
        }
    }

    pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
        StandardNormal.sample(rng)
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        let at = self.at(from);
        self.names[at] = to.into();
    }

    pub(crate) fn time(&mut self, time: impl Fn(f64) -> f64) {
        self.times.iter_mut().for_each(|own| *own = time(*own));
    }

    /// Gives the rows of a stay the name of another.
    pub(crate) fn rename_stay(&mut self, block: Range<usize>, like: usize) {
        let name = self.stays[like].clone();
        block.for_each(|row| self.stays[row] = name.clone());
    }

    /// Patients who have every `stays` stays.
    pub(crate) fn with_patients(&mut self, stays: usize) {
        let mut patients = vec![String::new(); self.len()];
        for (i, block) in self.blocks().into_iter().enumerate() {
            block.for_each(|row| patients[row] = format!("p{}", i / stays));
        }
        self.patients = Some(patients);
    }

    pub(crate) fn set_patient(&mut self, row: usize, name: &str) {
        if let Some(patients) = &mut self.patients {
            patients[row] = name.into();
        }
    }

    /// Appends a copy of a stay under another id.
    pub(crate) fn copy(&mut self, block: Range<usize>, name: &str) {
        for row in block {
            self.stays.push(name.into());
            self.times.push(self.times[row]);
            self.rows.push(self.rows[row].clone());
            if let Some(patients) = &mut self.patients {
                patients.push(name.into());
            }
        }
    }

    /// Moves a row to the end of the table.
    pub(crate) fn tear_off(&mut self, row: usize) {
        let stay = self.stays.remove(row);
        self.stays.push(stay);
        let time = self.times.remove(row);
        self.times.push(time);
        let cells = self.rows.remove(row);
        self.rows.push(cells);
    }
}
