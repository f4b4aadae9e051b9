//! From what is known of a person to a context.

use super::spec::{ContextScale, Spec};
use super::stays::Stay;
use super::table::Table;
use coirl::check::check_length;
use coirl::model::{Context, ContextSpace};
use coirl::{Error, Result};
use serde::{Deserialize, Serialize};

/// What every field is raised by on the simplex, so that none is without a voice.
const VOICE: f64 = 0.1;
/// Quantiles that bound a field where nothing is said.
const BOUNDS: [f64; 2] = [0.01, 0.99];

/// A field with what was fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextField {
    /// The column.
    pub column: String,
    /// Scaled to 0 and 1, or to mean and one standard deviation above it.
    pub range: [f64; 2],
    /// The training median, where nothing was recorded.
    pub fill: f64,
    /// Values outside count as not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plausible: Option<[f64; 2]>,
}

impl ContextField {
    /// Whether a value was recorded and can be right.
    pub fn knows(&self, x: f64) -> bool {
        is_known(x, self.plausible)
    }
}

fn is_known(x: f64, plausible: Option<[f64; 2]>) -> bool {
    !x.is_nan() && plausible.is_none_or(|[lo, hi]| (lo..=hi).contains(&x))
}

/// How fields become a context, fitted on training stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextScaling {
    /// The fields.
    pub fields: Vec<ContextField>,
    /// How they are put together.
    pub scale: ContextScale,
}

impl ContextScaling {
    pub(super) fn fit(table: &Table, spec: &Spec, train: &[Stay]) -> Result<Self> {
        let fit = |name: &str| {
            let column = table.column(name)?;
            let firsts = train.iter().filter_map(|stay| stay.rows.first());
            let plausible = spec.cohort.plausible.get(name).copied();
            let mut values: Vec<f64> =
                firsts.map(|&row| f64::from(column[row as usize])).filter(|x| is_known(*x, plausible)).collect();
            values.sort_by(f64::total_cmp);
            let quantile = |share: f64| values.get((share * values.len() as f64) as usize).or(values.last()).copied();
            let Some(fill) = quantile(0.5) else {
                let reason = "no training stay has a plausible value in its first row".into();
                return Err(Error::Spec { place: format!("context field {name}"), reason });
            };
            let range = match (spec.context.scale, spec.context.bounds.get(name)) {
                (ContextScale::Simplex, Some(bounds)) => *bounds,
                (ContextScale::Simplex, None) => BOUNDS.map(|share| quantile(share).unwrap_or(fill)),
                (ContextScale::Standardise, _) => {
                    let n = values.len() as f64;
                    let mean = values.iter().sum::<f64>() / n;
                    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
                    [mean, mean + variance.sqrt()]
                }
            };
            // A field that never changes says nothing, and is 0 for everybody.
            let range = if range[0] < range[1] { range } else { [range[0], range[0] + 1.0] };
            Ok(ContextField { column: name.into(), range, fill, plausible })
        };
        let fields = spec.context.columns().map(fit).collect::<Result<_>>()?;
        Ok(Self { fields, scale: spec.context.scale })
    }

    /// Where contexts live.
    pub fn space(&self) -> ContextSpace {
        match self.scale {
            ContextScale::Simplex => ContextSpace::Simplex { dimension: self.fields.len() },
            ContextScale::Standardise => ContextSpace::Any,
        }
    }

    /// Names of the coordinates.
    pub fn names(&self) -> Vec<String> {
        let fields = self.fields.iter().map(|field| field.column.clone());
        let constant = (self.scale == ContextScale::Standardise).then(|| "constant".to_owned());
        fields.chain(constant).collect()
    }

    /// The context of these fields, in the units of the table; NaN where nothing is known.
    pub fn context(&self, values: &[f64]) -> Result<Context> {
        check_length("context fields", self.fields.len(), values.len())?;
        let scaled = self.fields.iter().zip(values).map(|(field, &x)| {
            let x = if field.knows(x) { x } else { field.fill };
            (x - field.range[0]) / (field.range[1] - field.range[0])
        });
        let values: Vec<f64> = match self.scale {
            ContextScale::Simplex => {
                let raised: Vec<f64> = scaled.map(|x| x.clamp(0.0, 1.0) + VOICE).collect();
                let sum: f64 = raised.iter().sum();
                raised.iter().map(|x| x / sum).collect()
            }
            ContextScale::Standardise => scaled.chain([1.0]).collect(),
        };
        self.space().context(values)
    }

    /// The fields of a stay, from its first row.
    pub(super) fn fields_of(&self, table: &Table, stay: &Stay) -> Result<Vec<f64>> {
        let first = stay.rows.first().copied().unwrap_or_default() as usize;
        self.fields.iter().map(|field| Ok(f64::from(table.column(&field.column)?[first]))).collect()
    }
}
