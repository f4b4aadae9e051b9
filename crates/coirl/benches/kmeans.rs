//! k-means against scikit-learn on the same rows, interleaved in one run:
//!
//! ```text
//! cargo xtask bench-kmeans                                                    with scikit-learn, which it installs
//! cargo bench -p coirl --bench kmeans -- --rows 250000 --clusters 750,5000    ours alone
//! ```
//!
//! The rows look like z-scored clinical measurements: 60 kinds of patient, twelve causes behind 47 columns, two columns in five
//! with long tails. Options: `--rows`, `--clusters`, `--seeds` (how many), `--write FILE.npy` (the rows), `--python` (with scikit-learn).
//! On a machine that others use too the ratio of CPU times says more than that of the clocks.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a benchmark may stop where it stands, and tables are the result

use coirl::clustering::{KMeans, Points, Progress, Step};
use cpu_time::ProcessTime;
use npyz::WriterBuilder;
use rand::RngExt;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Exp1, StandardNormal};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

const WIDTH: usize = 47;
const KINDS: usize = 60;
const CAUSES: usize = 12;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1)).cloned();
    let number = |name: &str, otherwise: usize| value(name).map_or(otherwise, |word| word.parse().unwrap());
    let points = measurements(number("--rows", 250_000), 1);
    let folder = tempfile::tempdir().unwrap();
    let file = value("--write").map_or(folder.path().join("rows.npy"), PathBuf::from);
    write(&file, &points);
    let mut peer = value("--python").map(|python| Peer::start(&python, &file));
    println!("{} rows x {WIDTH}, {} threads", points.n_rows(), rayon::current_num_threads());
    for clusters in value("--clusters").unwrap_or("750,5000".into()).split(',') {
        let clusters = clusters.parse().unwrap();
        println!(
            "\n| k = {clusters} | seconds | of it seeding | CPU | iterations | inertia | seconds / ours | CPU / ours | inertia / ours |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        for seed in 1..=number("--seeds", 1) as u64 {
            let ours = fit(&points, clusters, seed);
            println!("{}", ours.line("coirl", &ours));
            for algorithm in ["lloyd", "elkan"] {
                if let Some(peer) = &mut peer {
                    let theirs = peer.fit(clusters, seed, algorithm);
                    println!("{}", theirs.line(&format!("scikit-learn, {algorithm}"), &ours));
                }
            }
        }
    }
}

struct Timed {
    seconds: f64,
    cpu: f64,
    seeding: f64,
    iterations: u64,
    inertia: f64,
}

impl Timed {
    fn line(&self, name: &str, ours: &Timed) -> String {
        let Timed { seconds, cpu, seeding, iterations, inertia } = self;
        let (time, work, loss) = (seconds / ours.seconds, cpu / ours.cpu, inertia / ours.inertia);
        format!(
            "| {name} | {seconds:.2} | {seeding:.2} | {cpu:.2} | {iterations} | {inertia:.6e} | {time:.2} | {work:.2} | {loss:.5} |"
        )
    }
}

fn fit(points: &Points, clusters: usize, seed: u64) -> Timed {
    let (clock, cpu) = (Instant::now(), ProcessTime::now());
    let mut seeding = 0.0;
    let listener = &mut |progress: Progress| {
        if matches!(progress.step, Step::Drawn { .. }) {
            seeding = clock.elapsed().as_secs_f64();
        }
        ControlFlow::Continue(())
    };
    let found = KMeans { clusters, seed, ..KMeans::default() }.fit_with(points, listener).unwrap();
    let (seconds, cpu) = (clock.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64());
    Timed { seconds, cpu, seeding, iterations: found.iterations as u64, inertia: found.inertia }
}

/// Rows like z-scored clinical measurements.
fn measurements(n_rows: usize, seed: u64) -> Points {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normals = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.sample(StandardNormal)).collect() };
    let (kinds, loadings) = (normals(KINDS * CAUSES), normals(CAUSES * WIDTH));
    let shares: Vec<f64> = (0..KINDS).map(|_| rng.sample::<f64, _>(Exp1)).collect();
    let all: f64 = shares.iter().sum();
    let mut columns = vec![Vec::new(); WIDTH];
    for _ in 0..n_rows {
        let mut quantile = rng.random::<f64>() * all;
        let kind = shares.iter().position(|share| {
            quantile -= share;
            quantile < 0.0
        });
        let kind = &kinds[kind.unwrap_or(KINDS - 1) * CAUSES..][..CAUSES];
        let causes: Vec<f64> = kind.iter().map(|mean| mean + 0.7 * rng.sample::<f64, _>(StandardNormal)).collect();
        for (j, column) in columns.iter_mut().enumerate() {
            let common: f64 = causes.iter().zip(loadings.chunks_exact(WIDTH)).map(|(f, l)| f * l[j]).sum();
            let x = common / (CAUSES as f64).sqrt() + 0.4 * rng.sample::<f64, _>(StandardNormal);
            column.push(if j % 5 < 2 { x.sinh() } else { x });
        }
    }
    for column in &mut columns {
        let mean = column.iter().sum::<f64>() / n_rows as f64;
        let deviation = (column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n_rows as f64).sqrt();
        column.iter_mut().for_each(|x| *x = (*x - mean) / deviation);
    }
    let values = (0..n_rows).flat_map(|row| columns.iter().map(move |column| column[row] as f32)).collect();
    Points::new(values, WIDTH).unwrap()
}

fn write(path: &Path, points: &Points) {
    let shape = [points.n_rows() as u64, points.width() as u64];
    let file = BufWriter::new(File::create(path).unwrap());
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(file).begin_nd().unwrap();
    writer.extend(points.values().iter().copied()).unwrap();
    writer.finish().unwrap();
}

/// scikit-learn in a process of its own.
struct Peer {
    _process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(python: &str, rows: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/kmeans_peer.py");
        let mut command = Command::new(python);
        command.arg(script).arg(rows).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let requests = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { _process: process, requests, answers }
    }

    fn fit(&mut self, clusters: usize, seed: u64, algorithm: &str) -> Timed {
        writeln!(self.requests, "{}", json!({"clusters": clusters, "seed": seed, "algorithm": algorithm})).unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let real = |name: &str| answer[name].as_f64().unwrap();
        let (seconds, cpu, seeding, inertia) = (real("seconds"), real("cpu"), real("seeding"), real("inertia"));
        Timed { seconds, cpu, seeding, iterations: answer["iterations"].as_u64().unwrap(), inertia }
    }
}
