//! Plans as rows of a Parquet file: the columns of the comma-separated rows, with lists for policies and values.

use super::rows::status_word;
use super::{Columns, PlanWriter};
use crate::failure::Failure;
use arrow_array::builder::{Float64Builder, Int32Builder, ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use coirl::model::ActionId;
use coirl::plan::{PlannedReward, Policy};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;

/// Numbers in a batch.
const BATCH_NUMBERS: usize = 1 << 20;
/// Encoded bytes after which a row group is closed.
const ROW_GROUP_BYTES: usize = 64 << 20;

pub(super) struct ParquetRows<'a> {
    columns: &'a Columns<'a>,
    schema: Arc<Schema>,
    out: ArrowWriter<&'a mut BufWriter<File>>,
    batch: Batch,
    batch_rows: usize,
}

/// Rows not yet written, by column.
struct Batch {
    index: UInt64Builder,
    context: Vec<Float64Builder>,
    value: Float64Builder,
    expectations: Vec<Float64Builder>,
    status: StringBuilder,
    residual: Float64Builder,
    suboptimality_bound: Float64Builder,
    value_error_bound: Float64Builder,
    sweeps: UInt64Builder,
    policy: Option<Actions>,
    values: Option<ListBuilder<Float64Builder>>,
    n_rows: usize,
}

/// A list of actions, or one list per stage.
enum Actions {
    Stationary(ListBuilder<Int32Builder>),
    Staged(ListBuilder<ListBuilder<Int32Builder>>),
}

impl<'a> ParquetRows<'a> {
    pub(super) fn new(columns: &'a Columns<'a>, out: &'a mut BufWriter<File>) -> Result<Self, Failure> {
        let schema = Arc::new(schema(columns));
        let compression = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(compression).build();
        let out = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(parquet_error)?;
        let n_states = columns.model.n_states();
        let mut width = 8 + columns.n_context() + columns.model.n_features();
        if columns.policy {
            width += n_states * columns.stages().unwrap_or(1);
        }
        if columns.options.values {
            width += n_states;
        }
        let batch_rows = (BATCH_NUMBERS / width).clamp(1, 8192);
        Ok(Self { columns, schema, out, batch: Batch::new(columns), batch_rows })
    }

    fn write_batch(&mut self) -> Result<(), Failure> {
        let arrays = self.batch.finish();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).map_err(io::Error::other)?;
        self.out.write(&batch).map_err(parquet_error)?;
        if self.out.in_progress_size() > ROW_GROUP_BYTES {
            self.out.flush().map_err(parquet_error)?;
        }
        Ok(())
    }
}

impl PlanWriter for ParquetRows<'_> {
    fn push(&mut self, plan: &PlannedReward) -> Result<(), Failure> {
        self.batch.push(self.columns, plan)?;
        if self.batch.n_rows >= self.batch_rows { self.write_batch() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        self.write_batch()?;
        self.out.close().map_err(parquet_error)?;
        Ok(())
    }
}

fn schema(columns: &Columns<'_>) -> Schema {
    let number = |name: String| Field::new(name, DataType::Float64, false);
    let list = |name: &str, item: DataType| Field::new(name, list_of(item), false);
    let mut fields = vec![Field::new("index", DataType::UInt64, false)];
    fields.extend(columns.context_columns().into_iter().map(number));
    fields.push(number("value".into()));
    if columns.options.feature_expectations {
        fields.extend(columns.expectation_columns().into_iter().map(number));
    }
    fields.push(Field::new("status", DataType::Utf8, false));
    fields.extend(["residual", "suboptimality_bound", "value_error_bound"].map(|name| number(name.into())));
    fields.push(Field::new("sweeps", DataType::UInt64, false));
    if columns.policy {
        fields.push(match columns.stages() {
            None => list("policy", DataType::Int32),
            Some(_) => list("policy", list_of(DataType::Int32)),
        });
    }
    if columns.options.values {
        fields.push(list("values", DataType::Float64));
    }
    Schema::new(fields)
}

/// The type that list builders give.
fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

impl Batch {
    fn new(columns: &Columns<'_>) -> Self {
        let n_expectations = if columns.options.feature_expectations { columns.model.n_features() } else { 0 };
        let numbers = |n: usize| (0..n).map(|_| Float64Builder::new()).collect();
        let actions = || ListBuilder::new(Int32Builder::new());
        Self {
            index: UInt64Builder::new(),
            context: numbers(columns.n_context()),
            value: Float64Builder::new(),
            expectations: numbers(n_expectations),
            status: StringBuilder::new(),
            residual: Float64Builder::new(),
            suboptimality_bound: Float64Builder::new(),
            value_error_bound: Float64Builder::new(),
            sweeps: UInt64Builder::new(),
            policy: columns.policy.then(|| match columns.stages() {
                None => Actions::Stationary(actions()),
                Some(_) => Actions::Staged(ListBuilder::new(actions())),
            }),
            values: columns.options.values.then(|| ListBuilder::new(Float64Builder::new())),
            n_rows: 0,
        }
    }

    fn push(&mut self, columns: &Columns<'_>, plan: &PlannedReward) -> Result<(), Failure> {
        let fill = |builders: &mut [Float64Builder], numbers: &[f64]| {
            builders.iter_mut().zip(numbers).for_each(|(builder, x)| builder.append_value(*x));
        };
        let certificate = &plan.certificate;
        self.index.append_value(plan.index as u64);
        fill(&mut self.context, columns.context(plan.index).unwrap_or_default());
        self.value.append_value(plan.value);
        fill(&mut self.expectations, plan.feature_expectations.as_deref().unwrap_or_default());
        self.status.append_value(status_word(certificate.status));
        self.residual.append_value(certificate.residual);
        self.suboptimality_bound.append_value(certificate.suboptimality_bound);
        self.value_error_bound.append_value(certificate.value_error_bound);
        self.sweeps.append_value(certificate.sweeps as u64);
        match (&mut self.policy, &plan.policy) {
            (None, _) => {}
            (Some(Actions::Stationary(lists)), Policy::Stationary(actions)) => append_actions(lists, actions),
            (Some(Actions::Staged(lists)), Policy::Staged(stages)) => {
                stages.iter().for_each(|actions| append_actions(lists.values(), actions));
                lists.append(true);
            }
            (Some(_), _) => return Err(Failure::refused("the policy has another form than the model's criterion")),
        }
        if let (Some(lists), Some(values)) = (&mut self.values, &plan.values) {
            lists.values().append_slice(values);
            lists.append(true);
        }
        self.n_rows += 1;
        Ok(())
    }

    /// The columns in the order of the schema; the batch is empty afterwards.
    fn finish(&mut self) -> Vec<ArrayRef> {
        self.n_rows = 0;
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(self.index.finish())];
        arrays.extend(self.context.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef));
        arrays.push(Arc::new(self.value.finish()));
        arrays.extend(self.expectations.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef));
        arrays.push(Arc::new(self.status.finish()));
        arrays.push(Arc::new(self.residual.finish()));
        arrays.push(Arc::new(self.suboptimality_bound.finish()));
        arrays.push(Arc::new(self.value_error_bound.finish()));
        arrays.push(Arc::new(self.sweeps.finish()));
        match &mut self.policy {
            Some(Actions::Stationary(lists)) => arrays.push(Arc::new(lists.finish())),
            Some(Actions::Staged(lists)) => arrays.push(Arc::new(lists.finish())),
            None => {}
        }
        if let Some(lists) = &mut self.values {
            arrays.push(Arc::new(lists.finish()));
        }
        arrays
    }
}

fn append_actions(lists: &mut ListBuilder<Int32Builder>, actions: &[ActionId]) {
    actions.iter().for_each(|action| lists.values().append_value(action.0 as i32));
    lists.append(true);
}

fn parquet_error(error: parquet::errors::ParquetError) -> Failure {
    Failure::from(io::Error::other(error))
}
