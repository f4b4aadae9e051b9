//! Every format holds the same plans, whatever the threads and the instructions.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use running::{Folder, json, numbers, text, write_contexts};
use std::fs::File;

const N: usize = 100;
const PLAN: &str = "plan driving --mapping mapping.csv --contexts contexts.csv";

fn folder() -> Folder {
    let folder = Folder::new();
    write_contexts(&folder, N);
    folder
}

#[test]
fn all_formats_agree() {
    let folder = folder();
    let plans = json(folder.coirl(&format!("{PLAN} --values --json")).success());
    let plans = plans["plans"].as_array().unwrap();
    assert_eq!(plans.len(), N);
    let column = |name: &str| plans.iter().map(|plan| plan[name].as_f64().unwrap()).collect::<Vec<_>>();
    let rows = |name: &str| plans.iter().flat_map(|plan| numbers(&plan[name])).collect::<Vec<_>>();

    folder.coirl(&format!("{PLAN} --values --out plans.npz")).success();
    let array = |key: &str| coirl::artifact::read_numbers(&folder.path("plans.npz"), key).unwrap();
    assert_eq!(array("value"), (vec![N], column("value")));
    assert_eq!(array("feature_expectations"), (vec![N, 3], rows("feature_expectations")));
    assert_eq!(array("policy"), (vec![N, 1531], rows("policy")));
    assert_eq!(array("values"), (vec![N, 1531], rows("values")));
    assert_eq!(array("contexts"), (vec![N, 3], rows("context")));
    let bounds: Vec<f64> =
        plans.iter().map(|plan| plan["certificate"]["suboptimality_bound"].as_f64().unwrap()).collect();
    assert_eq!(array("suboptimality_bound"), (vec![N], bounds.clone()));

    folder.coirl(&format!("{PLAN} --policy --out plans.csv")).success();
    let mut reader = csv::Reader::from_path(folder.path("plans.csv")).unwrap();
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let records: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    let cells = |name: &str| records.iter().map(|row| row[at(name)].parse().unwrap()).collect::<Vec<f64>>();
    assert_eq!(cells("value"), column("value"));
    assert_eq!(cells("suboptimality_bound"), bounds);
    let speed: Vec<f64> = plans.iter().map(|plan| plan["feature_expectations"][0].as_f64().unwrap()).collect();
    assert_eq!(cells("mu_speed"), speed);
    let policies = records.iter().flat_map(|row| row[at("policy")].split(' ')).map(|a| a.parse().unwrap());
    assert_eq!(policies.collect::<Vec<f64>>(), rows("policy"));
    assert!(records.iter().all(|row| &row[at("status")] == "exact"));

    folder.coirl(&format!("{PLAN} --policy --values --out plans.parquet")).success();
    let file = File::open(folder.path("plans.parquet")).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let (mut value, mut policy, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for batch in batches {
        let batch = batch.unwrap();
        let of = |name: &str| batch.column_by_name(name).unwrap().clone();
        value.extend_from_slice(of("value").as_primitive::<Float64Type>().values());
        policy.extend(
            of("policy").as_list::<i32>().values().as_primitive::<Int32Type>().values().iter().map(|&a| f64::from(a)),
        );
        values.extend_from_slice(of("values").as_list::<i32>().values().as_primitive::<Float64Type>().values());
    }
    assert_eq!(value, column("value"));
    assert_eq!(policy, rows("policy"));
    assert_eq!(values, rows("values"));
}

#[test]
fn one_plan_and_many_agree() {
    let folder = folder();
    let many = json(folder.coirl(&format!("{PLAN} --json")).success());
    let context: Vec<String> = numbers(&many["plans"][7]["context"]).iter().map(f64::to_string).collect();
    let one = format!("plan driving --mapping mapping.csv --context {} --json", context.join(","));
    let one = json(folder.coirl(&one).success());
    assert_eq!(one["policy"], many["plans"][7]["policy"]);
    let (x, y) = (one["value"].as_f64().unwrap(), many["plans"][7]["value"].as_f64().unwrap());
    assert!((x - y).abs() < 1e-9);
}

#[test]
fn the_bytes_do_not_depend_on_threads_or_instructions() {
    let folder = folder();
    for extension in ["csv", "parquet", "npz", "json"] {
        let bytes = |options: &str| {
            let file = format!("plans.{extension}");
            folder.coirl(&format!("{PLAN} --policy --values {options} --out {file}")).success();
            folder.read(&file)
        };
        let reference = bytes("--threads 1");
        for options in ["--threads 2", "--threads 7", "--simd portable", "--simd auto"] {
            assert!(bytes(options) == reference, "{extension} {options}");
        }
    }
}

#[test]
fn mixtures_do_not_depend_on_threads() {
    let folder = folder();
    let plan = "plan mixed.npz --weights 1,0,0,0,-1 --contexts contexts.csv --policy --format csv";
    folder.coirl("domain export garnet --states 40 --kernels 3 --out mixed.npz").success();
    let reference = text(folder.coirl(&format!("{plan} --threads 1")).success());
    assert_eq!(reference.lines().count(), N + 1);
    for threads in [2, 7] {
        assert_eq!(text(folder.coirl(&format!("{plan} --threads {threads}")).success()), reference);
    }
}

#[test]
fn every_form_of_a_table_is_read() {
    let folder = folder();
    let reference = text(folder.coirl(&format!("{PLAN} --format csv")).success());
    // What a run wrote is read again: the archive holds `contexts` beside other arrays.
    folder.coirl(&format!("{PLAN} --out plans.npz")).success();
    let again = "plan driving --mapping mapping.csv --contexts plans.npz --format csv";
    assert_eq!(text(folder.coirl(again).success()), reference);
}

#[test]
fn finite_horizons_in_every_format() {
    let folder = Folder::new();
    folder.write("weights.csv", "1,0,0\n0,0,1\n");
    let plan = "plan driving --weights-file weights.csv --horizon 4 --policy";
    let plans = json(folder.coirl(&format!("{plan} --json")).success());
    let policy: Vec<f64> = (0..2)
        .flat_map(|i| (0..4).flat_map(|t| numbers(&plans["plans"][i]["policy"][t])).collect::<Vec<_>>())
        .collect();
    folder.coirl(&format!("{plan} --out plans.npz")).success();
    let read = coirl::artifact::read_numbers(&folder.path("plans.npz"), "policy").unwrap();
    assert_eq!(read, (vec![2, 4, 1531], policy));
    folder.coirl(&format!("{plan} --out plans.parquet")).success();
    let table = text(folder.coirl(&format!("{plan} --format csv")).success());
    assert_eq!(table.lines().nth(1).unwrap().matches('|').count(), 3);
}
