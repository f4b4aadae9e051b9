//! A long table as it is read: who, when, and numbers; NaN where nothing was measured.
//!
//! Only the columns that are needed are held, four bytes a number, so that a table of 20 million rows takes the memory of its numbers.

use chrono::DateTime;
use coirl::model::digest::sha256;
use coirl::{Error, Result};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Names of people or stays, by the order in which they were met.
#[derive(Debug, Clone, Default)]
pub(super) struct Ids {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    rows: Vec<u32>,
}

impl Ids {
    fn push(&mut self, name: &str) {
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let number = self.names.len() as u32;
                self.names.push(name.to_owned());
                self.numbers.insert(name.to_owned(), number);
                number
            }
        };
        self.rows.push(number);
    }

    /// The number of the id in a row.
    pub(super) fn of_row(&self, row: usize) -> u32 {
        self.rows[row]
    }

    /// The id of a number.
    pub(super) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}

/// A long table, column by column.
#[derive(Debug, Clone)]
pub struct Table {
    pub(super) stays: Ids,
    pub(super) patients: Option<Ids>,
    pub(super) times: Vec<f64>,
    /// Whether times are the seconds of dates rather than numbers.
    dated: bool,
    names: Vec<String>,
    columns: Vec<Vec<f32>>,
}

impl Table {
    /// No rows yet, for these columns of numbers.
    pub fn new(columns: &[&str], with_patients: bool) -> Self {
        Self {
            stays: Ids::default(),
            patients: with_patients.then(Ids::default),
            times: Vec::new(),
            dated: false,
            names: columns.iter().map(|name| (*name).to_owned()).collect(),
            columns: vec![Vec::new(); columns.len()],
        }
    }

    /// Adds a row: a number per column, NaN where nothing was measured. `patient` is that of the stay where the table names none.
    pub fn push(
        &mut self,
        stay: &str,
        patient: Option<&str>,
        time: f64,
        cells: impl IntoIterator<Item = f64>,
    ) -> Result<()> {
        let row = self.n_rows();
        let refuse =
            |column: &str, reason: String| Err(Error::Cell { row: row as u64 + 1, column: column.into(), reason });
        if stay.is_empty() {
            return refuse("stay", "is empty; expected the id of a stay".into());
        }
        if !time.is_finite() {
            return refuse("time", format!("{time}; expected a finite number"));
        }
        if let Some(patients) = &mut self.patients {
            match patient {
                Some(patient) if !patient.is_empty() => patients.push(patient),
                _ => return refuse("patient", "is empty; expected the id of a patient".into()),
            }
        }
        self.stays.push(stay);
        self.times.push(time);
        let mut cells = cells.into_iter();
        for (column, name) in self.columns.iter_mut().zip(&self.names) {
            let cell = cells.next().unwrap_or(f64::NAN);
            if cell.is_infinite() || (cell as f32).is_infinite() {
                return refuse(name, format!("{cell}; expected a finite number"));
            }
            column.push(cell as f32);
        }
        Ok(())
    }

    /// Says that times are dates, in seconds since the beginning of 1970.
    pub fn say_dated(&mut self) {
        self.dated = true;
    }

    /// Whether times are dates.
    pub(super) fn is_dated(&self) -> bool {
        self.dated
    }

    /// The time of a row as somebody would write it.
    pub(super) fn time_in_words(&self, row: usize) -> String {
        let time = self.times[row];
        if !self.dated {
            return time.to_string();
        }
        match DateTime::from_timestamp(time.floor() as i64, 0) {
            Some(date) => date.format("%Y-%m-%d %H:%M:%S").to_string(),
            None => time.to_string(),
        }
    }

    /// A digest of who is in the table and with how many rows each, whatever the order of rows and the format of the file.
    pub fn fingerprint(&self) -> String {
        let mut lengths = vec![0_u64; self.stays.len()];
        self.stays.rows.iter().for_each(|&stay| lengths[stay as usize] += 1);
        let mut stays: Vec<(&str, u64)> = self.stays.names.iter().map(String::as_str).zip(lengths).collect();
        stays.sort_unstable();
        sha256(|sink| stays.iter().for_each(|(name, rows)| sink(format!("{name}\n{rows}\n").as_bytes())))
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.times.len()
    }

    /// Number of stays.
    pub fn n_stays(&self) -> usize {
        self.stays.len()
    }

    /// A column by its name.
    pub(super) fn column(&self, name: &str) -> Result<&[f32]> {
        let at = self.names.iter().position(|column| column == name);
        let missing =
            || Error::Spec { place: name.into(), reason: "is not a column of the table that was read".into() };
        at.map(|at| self.columns[at].as_slice()).ok_or_else(missing)
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Which of two rows comes first: by time, and where that is the same by what is in them, whatever their places in the table.
    pub(super) fn order_in_time(&self, a: usize, b: usize) -> Ordering {
        let cell = |column: &[f32], row: usize| if column[row].is_nan() { f32::INFINITY } else { column[row] };
        let cells = || {
            let by_cell = |column: &Vec<f32>| cell(column, a).total_cmp(&cell(column, b));
            self.columns.iter().map(by_cell).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        let people = || match &self.patients {
            Some(patients) => patients.name(patients.of_row(a)).cmp(patients.name(patients.of_row(b))),
            None => Ordering::Equal,
        };
        self.times[a].total_cmp(&self.times[b]).then_with(cells).then_with(people)
    }

    /// The first column in which two rows differ.
    pub(super) fn differs(&self, a: usize, b: usize) -> Option<usize> {
        self.columns.iter().position(|column| column[a] != column[b] && !(column[a].is_nan() && column[b].is_nan()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_they_were_written() -> Result<()> {
        let mut table = Table::new(&[], false);
        for (time, _) in WRITTEN {
            table.push("a", None, time, [])?;
        }
        table.say_dated();
        for (row, (_, written)) in WRITTEN.into_iter().enumerate() {
            assert_eq!(table.time_in_words(row), written);
        }
        Ok(())
    }

    const WRITTEN: [(f64, &str); 3] =
        [(0.0, "1970-01-01 00:00:00"), (-1.0, "1969-12-31 23:59:59"), (1_709_209_815.0, "2024-02-29 12:30:15")];

    #[test]
    fn the_fingerprint_is_of_stays_and_not_of_their_order() -> Result<()> {
        let table = |stays: &[&str]| -> Result<String> {
            let mut table = Table::new(&[], false);
            stays.iter().try_for_each(|stay| table.push(stay, None, 0.0, []))?;
            Ok(table.fingerprint())
        };
        assert_eq!(table(&["a", "a", "b"])?, table(&["b", "a", "a"])?);
        assert_ne!(table(&["a", "a", "b"])?, table(&["a", "b", "b"])?);
        Ok(())
    }
}
