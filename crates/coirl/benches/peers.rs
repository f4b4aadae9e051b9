//! This planner against QuantEcon, mdpsolver, Storm and madupite on the same problems, interleaved in one run.
//!
//! Run it through `cargo xtask bench-peers`, which installs the peers. The problems are drawn from a fresh seed, every answer
//! is compared with ours, and what is reported is the median over the runs of CPU time on one thread.
//!
//! P1 driving; P2a, P2b random 5,000 × 5 × 20 at discount 0.7 and 0.95; P3 ICU-Sepsis at 0.99; P4 random 100,000 × 4 × 10 at
//! 0.99; P5b, P5c: P2a, P2b with 1,000 rewards from 40 features; P5d: P1 with 1,000 rewards. P6, P7, P8: a pendulum, a maze and an
//! epidemic, which mix slowly, small (a) and large (b), at three discounts; see `peers/slow.rs`. A peer that cannot be imported is left
//! out.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a benchmark may stop where it stands

#[path = "peers/slow.rs"]
mod slow;

use coirl::domains::{Driving, Garnet};
use coirl::model::{Cmdp, Criterion, Dynamics, Features, Kernel, Mdp};
use coirl::plan::{ManyOptions, Method, Planner, evaluate};
use cpu_time::{ProcessTime, ThreadTime};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const RUNS: usize = 11;
const TOLERANCE: f64 = 1e-6;
const MANY: usize = 1000;
/// Rewards per run that a peer solves of the thousand; its time is scaled up.
const PEER_SHARE: usize = 10;
/// Where the part of the page begins that the benchmark `scaling` writes.
const SCALING: &str = "## Scaling";

struct Options {
    python: PathBuf,
    seed: u64,
    only: Option<String>,
    /// What a peer's variant may take on P6 to P8.
    limit: Duration,
    write: Option<PathBuf>,
}

impl Options {
    fn wants(&self, problem: &str) -> bool {
        let named =
            |name: &str| name == problem || problem.strip_prefix(name).is_some_and(|rest| matches!(rest, "a" | "b"));
        self.only.as_ref().is_none_or(|only| only.split(',').any(named))
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1)).cloned();
    if let Some(name) = value("--memory") {
        return report_memory(&name);
    }
    let Some(python) = value("--python") else {
        println!("peers: run `cargo xtask bench-peers`, which installs the peers and passes their interpreter");
        return;
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let seed = value("--seed").map_or(now, |s| s.parse().unwrap());
    let only = value("--only");
    let limit = Duration::from_secs(value("--limit").map_or(30, |s| s.parse().unwrap()));
    run(&Options { python: python.into(), seed, only, limit, write: value("--write").map(PathBuf::from) });
}

fn run(options: &Options) {
    let folder = tempfile::tempdir().unwrap();
    let mut report = String::new();
    let mut chart = Vec::new();
    println!("seed {}, {RUNS} interleaved runs, one thread, CPU time, Bellman residual {TOLERANCE:e}", options.seed);
    let mut peers: Vec<Peer> = available(options).iter().map(|name| Peer::start(options, name)).collect();
    for name in PROBLEMS {
        if options.wants(name) {
            let problem = problem(name, options, folder.path());
            let Compared { section, ratios } = compare(&problem, &mut peers, folder.path());
            println!("{section}");
            report.push_str(&section);
            chart.push((problem.name, ratios));
        }
    }
    for bed in slow::beds(options.seed).iter().filter(|bed| options.wants(bed.name)) {
        let section = slow::compare(bed, options, &mut peers, folder.path());
        println!("{section}");
        report.push_str(&section);
    }
    if options.only.is_none() {
        let memory = memory_section();
        println!("{memory}");
        report.push_str(&memory);
    }
    if let Some(path) = &options.write {
        // What `cargo xtask bench-scaling` wrote stays.
        let before = std::fs::read_to_string(path).unwrap_or_default();
        let scaling = before.find(SCALING).map(|at| &before[at..]).unwrap_or_default();
        std::fs::write(path, page(options, &peers, &report) + scaling).unwrap();
        std::fs::write(path.with_extension("svg"), picture(&chart)).unwrap();
    }
}

/// A model with the rewards to plan for.
struct Problem {
    name: &'static str,
    what: String,
    model: Cmdp,
    /// Row-major, one row of weights per reward.
    weights: Vec<f64>,
    many: bool,
}

impl Problem {
    fn rewards(&self) -> impl Iterator<Item = &[f64]> {
        self.weights.chunks_exact(self.model.n_features())
    }
}

const PROBLEMS: [&str; 8] = ["P1", "P2a", "P2b", "P3", "P4", "P5b", "P5c", "P5d"];

fn problem(name: &'static str, options: &Options, folder: &Path) -> Problem {
    let driving = || Driving::default().build().unwrap();
    let garnet = |n_states, n_actions, n_successors, n_features, discount, offset| {
        let seed = options.seed.wrapping_add(offset);
        Garnet { n_states, n_actions, n_successors, n_features, discount, seed, ..Garnet::default() }.build().unwrap()
    };
    let each_feature = || (0..RUNS * RUNS).map(|i| f64::from(u8::from(i / RUNS == i % RUNS))).collect::<Vec<_>>();
    let uniform = |n: usize, offset: u64| sequence(options.seed.wrapping_add(offset), n);
    let random = |what: &str| format!("random sparse, {what}");
    let (what, model, weights) = match name {
        "P1" => ("driving, 1,531 × 3, discount 0.9".into(), driving(), uniform(3 * RUNS, 1)),
        "P2a" => (random("5,000 × 5 × 20, discount 0.7"), garnet(5_000, 5, 20, RUNS, 0.7, 2), each_feature()),
        "P2b" => (random("5,000 × 5 × 20, discount 0.95"), garnet(5_000, 5, 20, RUNS, 0.95, 3), each_feature()),
        "P3" => ("ICU-Sepsis, 716 × 25, discount 0.99".into(), icu_sepsis(options, folder), vec![1.0; RUNS]),
        "P4" => (random("100,000 × 4 × 10, discount 0.99"), garnet(100_000, 4, 10, RUNS, 0.99, 4), each_feature()),
        "P5b" => {
            ("P2a with 1,000 rewards from 40 features".into(), garnet(5_000, 5, 20, 40, 0.7, 5), uniform(40 * MANY, 6))
        }
        "P5c" => {
            ("P2b with 1,000 rewards from 40 features".into(), garnet(5_000, 5, 20, 40, 0.95, 7), uniform(40 * MANY, 8))
        }
        _ => ("P1 with 1,000 rewards uniform in [−1, 1]³".into(), driving(), uniform(3 * MANY, 9)),
    };
    Problem { name, what, model, weights, many: name.starts_with("P5") }
}

/// Numbers in [−1, 1) by SplitMix64.
fn sequence(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// ICU-Sepsis as its package ships it, with the survival state as the only feature.
fn icu_sepsis(options: &Options, folder: &Path) -> Cmdp {
    let path = folder.join("icu_sepsis.npz");
    let status = Command::new(&options.python).arg(script()).arg("icu-sepsis").arg(&path).status().unwrap();
    assert!(status.success(), "writing ICU-Sepsis failed");
    let mut archive = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
    let mut array = |name: &str| {
        let mut bytes = Vec::new();
        archive.by_name(&format!("{name}.npy")).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    let starts: Vec<i64> = npyz::NpyFile::new(&array("indptr")[..]).unwrap().into_vec().unwrap();
    let next: Vec<i32> = npyz::NpyFile::new(&array("indices")[..]).unwrap().into_vec().unwrap();
    let p: Vec<f64> = npyz::NpyFile::new(&array("data")[..]).unwrap().into_vec().unwrap();
    let survival: Vec<f64> = npyz::NpyFile::new(&array("rewards")[..]).unwrap().into_vec().unwrap();
    let n_states = survival.len();
    let starts: Vec<usize> = starts.iter().map(|&x| x as usize).collect();
    let next: Vec<i64> = next.iter().map(|&x| i64::from(x)).collect();
    let kernel = Kernel::from_csr(n_states, (starts.len() - 1) / n_states, &starts, &next, &p, None).unwrap();
    let features = Features::per_state(n_states, 1, survival).unwrap();
    let initial = vec![1.0 / n_states as f64; n_states];
    Cmdp::new(Dynamics::Shared(kernel), features, initial, Criterion::discounted(0.99).unwrap()).unwrap()
}

/// A problem's tables, and how many times longer each rival took.
struct Compared {
    section: String,
    ratios: Vec<(String, f64)>,
}

fn compare(problem: &Problem, peers: &mut [Peer], folder: &Path) -> Compared {
    let mdp = problem.model.shared_mdp().unwrap();
    let path = folder.join(format!("{}.npz", problem.name));
    let rewards: Vec<Vec<f64>> = problem
        .rewards()
        .take(if problem.many { RUNS * PEER_SHARE } else { RUNS })
        .map(|w| match mdp.reward(w).unwrap() {
            coirl::model::Reward::State(values) => values,
            coirl::model::Reward::Pair(_) => unreachable!("the benchmark's rewards are per state"),
        })
        .collect();
    write_problem(&path, &mdp, &rewards);
    let scale = if problem.many { MANY as f64 / PEER_SHARE as f64 } else { 1.0 };
    let share = if problem.many { PEER_SHARE } else { 1 };

    // A pilot run of every variant chooses the best one of each peer; QuantEcon's default is kept beside it.
    let mut rivals: Vec<Rival> = Vec::new();
    for (index, peer) in peers.iter_mut().enumerate() {
        let variants = peer.load(&path);
        let mut pilots: Vec<(f64, String)> =
            variants.into_iter().map(|v| (peer.solve(&v, 0, share, None).0, v)).collect();
        pilots.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (rank, (_, variant)) in pilots.iter().enumerate() {
            if rank == 0 || (peer.name == "quantecon" && variant == "mpi-20") {
                rivals.push(Rival { peer: index, variant: variant.clone(), times: Vec::new() });
            }
        }
    }
    let mut ours = Vec::new();
    let mut exact = Vec::new();
    let (mut wall_one, mut wall_two, mut wall_twice) = (Vec::new(), Vec::new(), Vec::new());
    let threads = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    let (one, other, two) = (threads(1), threads(1), threads(2));
    let tolerant = Planner::to_tolerance(Method::Automatic, TOLERANCE);
    let values_file = folder.join("values.npy");
    let mut worst: f64 = 0.0;
    for run in 0..RUNS {
        if problem.many {
            let many = |planner: Planner| {
                let options = ManyOptions { feature_expectations: true, values: false };
                planner.plan_many(&mdp, &problem.weights, options, |_| ControlFlow::Continue(())).unwrap();
            };
            let wall = Instant::now();
            let cpu = ProcessTime::now();
            one.install(|| many(tolerant));
            ours.push(cpu.elapsed().as_secs_f64());
            wall_one.push(wall.elapsed().as_secs_f64());
            let wall = Instant::now();
            two.install(|| many(tolerant));
            wall_two.push(wall.elapsed().as_secs_f64());
            // The same twice, side by side with nothing in common: what two threads could gain on this machine at this moment.
            let wall = Instant::now();
            std::thread::scope(|scope| {
                scope.spawn(|| one.install(|| many(tolerant)));
                other.install(|| many(tolerant));
            });
            wall_twice.push(wall.elapsed().as_secs_f64());
            let cpu = ProcessTime::now();
            one.install(|| many(Planner::default()));
            exact.push(cpu.elapsed().as_secs_f64());
        } else {
            let reward = mdp.reward(problem.rewards().nth(run).unwrap()).unwrap();
            let cpu = ThreadTime::now();
            let _ = tolerant.plan(&mdp, &reward).unwrap();
            ours.push(cpu.elapsed().as_secs_f64());
            let cpu = ThreadTime::now();
            let _ = Planner::default().plan(&mdp, &reward).unwrap();
            exact.push(cpu.elapsed().as_secs_f64());
        }
        for rival in &mut rivals {
            let peer = &mut peers[rival.peer];
            let (seconds, residual) = peer.solve(&rival.variant, run * share, (run + 1) * share, Some(&values_file));
            assert!(residual <= 1.001 * TOLERANCE, "{} {} stopped at residual {residual:e}", peer.name, rival.variant);
            rival.times.push(seconds * scale);
            worst = worst.max(largest_difference(&mdp, &values_file, &rewards[run * share..(run + 1) * share]));
        }
    }
    let allowed = 2.0 * TOLERANCE / (1.0 - mdp.criterion().discount());
    assert!(worst <= allowed, "{}: a peer's values differ from ours by {worst:e}", problem.name);

    let mut section = String::new();
    let _ = writeln!(section, "### {}: {}\n", problem.name, problem.what);
    let what = if problem.many { "coirl, with feature expectations" } else { "coirl" };
    let own = median(&mut ours);
    let _ = writeln!(section, "| planner | time | ratio |\n|---|---|---|");
    let _ = writeln!(section, "| **{what}** | {} | 1 |", seconds(own));
    let exact = median(&mut exact);
    let _ = writeln!(section, "| {what}, exact | {} | {:.2} |", seconds(exact), exact / own);
    let mut ratios = Vec::new();
    for rival in &mut rivals {
        let time = median(&mut rival.times);
        let name = &peers[rival.peer].name;
        ratios.push((format!("{name} {}", rival.variant), time / own));
        let _ = writeln!(section, "| {name} {} | {} | **{:.1}** |", rival.variant, seconds(time), time / own);
    }
    let _ = writeln!(section, "\nLargest difference of the values from ours: {worst:.1e}.");
    if problem.many {
        let one = median(&mut wall_one);
        let (speedup, bound) = (one / median(&mut wall_two), 2.0 * one / median(&mut wall_twice));
        let _ = writeln!(
            section,
            "Two threads: {speedup:.2} times as fast as one (wall clock); two planners side by side, which share nothing, do {bound:.2} times as much as one."
        );
    }
    section.push('\n');
    Compared { section, ratios }
}

struct Rival {
    peer: usize,
    variant: String,
    times: Vec<f64>,
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn seconds(x: f64) -> String {
    if x < 1.0 { format!("{:.2} ms", 1e3 * x) } else { format!("{x:.2} s") }
}

/// Sup norm of (peer's values − exact values).
fn largest_difference(mdp: &Mdp<'_>, path: &Path, rewards: &[Vec<f64>]) -> f64 {
    let values = npy_values(path);
    let mut worst: f64 = 0.0;
    for (row, reward) in values.chunks_exact(mdp.n_states()).zip(rewards) {
        let reward = coirl::model::Reward::per_state(reward.clone()).unwrap();
        let exact = Planner::default().plan(mdp, &reward).unwrap();
        worst = row.iter().zip(&exact.values).fold(worst, |worst, (a, b)| worst.max((a - b).abs()));
    }
    worst
}

fn npy_values(path: &Path) -> Vec<f64> {
    npyz::NpyFile::new(BufReader::new(File::open(path).unwrap())).unwrap().into_vec().unwrap()
}

/// A peer in a process of its own, which is ended when it takes too long, and started anew.
struct Peer {
    name: String,
    version: String,
    python: PathBuf,
    running: Running,
}

struct Running {
    process: Child,
    requests: ChildStdin,
    /// Lines of its output, read on a thread of their own so that one can stop waiting for them.
    answers: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers.py")
}

/// The peers that this interpreter can import.
fn available(options: &Options) -> Vec<String> {
    let output = Command::new(&options.python).arg(script()).arg("available").output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().map(String::from).collect()
}

impl Running {
    fn start(python: &Path, name: &str) -> Self {
        let mut command = Command::new(python);
        command.arg(script()).arg(name).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let requests = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            // Ends with the process, or when nobody listens any more.
            let _ = output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line));
        });
        Self { process, requests, answers }
    }
}

impl Peer {
    fn start(options: &Options, name: &str) -> Self {
        let running = Running::start(&options.python, name);
        Self { name: name.into(), version: String::new(), python: options.python.clone(), running }
    }

    /// The answer; nothing when the time is over, after which the peer has to load again; or what it says is wrong.
    fn ask_within(&mut self, request: &Value, limit: Duration) -> Result<Option<Value>, String> {
        let sent = writeln!(self.running.requests, "{request}");
        let answer = self.running.answers.recv_timeout(limit);
        let line = match (sent, answer) {
            (Ok(()), Ok(line)) => line,
            (Ok(()), Err(RecvTimeoutError::Timeout)) => {
                self.running = Running::start(&self.python, &self.name);
                return Ok(None);
            }
            _ => {
                self.running = Running::start(&self.python, &self.name);
                return Err("its process ended".into());
            }
        };
        let answer: Value = serde_json::from_str(&line).map_err(|_| format!("it said {line:?}"))?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(error.chars().take(80).collect::<String>().replace('|', "/")),
            None => Ok(Some(answer)),
        }
    }

    fn ask(&mut self, request: &Value) -> Value {
        let answer = self.ask_within(request, Duration::from_secs(86_400));
        answer.unwrap_or_else(|error| panic!("{}: {error}", self.name)).unwrap()
    }

    fn load(&mut self, path: &Path) -> Vec<String> {
        let answer = self.ask(&json!({"op": "load", "path": path}));
        self.loaded(&answer)
    }

    /// The variants for a model that mixes slowly.
    fn load_slow(&mut self, path: &Path, limit: Duration) -> Result<Vec<String>, String> {
        let answer = self.ask_within(&json!({"op": "load", "path": path, "slow": true}), limit)?;
        answer.map(|answer| self.loaded(&answer)).ok_or_else(|| format!("not loaded in {} s", limit.as_secs()))
    }

    fn loaded(&mut self, answer: &Value) -> Vec<String> {
        self.version = answer["version"].as_str().unwrap_or_default().to_owned();
        answer["variants"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
    }

    /// CPU seconds and the residual reached.
    fn solve(&mut self, variant: &str, from: usize, to: usize, values: Option<&Path>) -> (f64, f64) {
        let answer = self.ask(&solve_request(variant, from, to, values));
        (answer["cpu_s"].as_f64().unwrap(), answer["residual"].as_f64().unwrap())
    }

    /// The same for the first reward, within a limit of time.
    fn solve_within(&mut self, variant: &str, values: &Path, limit: Duration) -> Result<Option<(f64, f64)>, String> {
        let answer = self.ask_within(&solve_request(variant, 0, 1, Some(values)), limit)?;
        let number = |answer: &Value, name: &str| answer[name].as_f64().unwrap_or(f64::NAN);
        Ok(answer.map(|answer| (number(&answer, "cpu_s"), number(&answer, "residual"))))
    }
}

fn solve_request(variant: &str, from: usize, to: usize, values: Option<&Path>) -> Value {
    json!({"op": "solve", "rewards": [from, to], "variant": variant, "tolerance": TOLERANCE, "values": values})
}

/// The problem as the peers read it; rewards of states, or of pairs.
fn write_problem(path: &Path, mdp: &Mdp<'_>, rewards: &[Vec<f64>]) {
    let mut archive = zip::ZipWriter::new(File::create(path).unwrap());
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored).large_file(true);
    let (mut starts, mut next, mut p) = (vec![0_i64], Vec::new(), Vec::new());
    for pair in 0..mdp.pairs().len() {
        for (s, probability) in mdp.kernel().successors(pair) {
            next.push(s as i32);
            p.push(probability);
        }
        starts.push(next.len() as i64);
    }
    let n = mdp.n_states() as u64;
    let mut put = |name: &str, bytes: Vec<u8>| {
        archive.start_file(format!("{name}.npy"), stored).unwrap();
        archive.write_all(&bytes).unwrap();
    };
    put("indptr", npy(&[starts.len() as u64], &starts));
    put("indices", npy(&[next.len() as u64], &next));
    put("data", npy(&[p.len() as u64], &p));
    put("n_states", npy(&[], &[n as i64]));
    put("n_actions", npy(&[], &[mdp.pairs().n_actions() as i64]));
    put("discount", npy(&[], &[mdp.criterion().discount()]));
    put("rewards", npy(&[rewards.len() as u64, rewards[0].len() as u64], &rewards.concat()));
    archive.finish().unwrap();
}

fn npy<T: npyz::AutoSerialize + Copy>(shape: &[u64], values: &[T]) -> Vec<u8> {
    use npyz::WriterBuilder;
    let mut bytes = Vec::new();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(shape).writer(&mut bytes).begin_nd().unwrap();
    writer.extend(values.iter().copied()).unwrap();
    writer.finish().unwrap();
    bytes
}

/// Plans a large problem in a process of its own and prints the model's and the planner's peak memory.
fn report_memory(name: &str) {
    let (model, weights) = match name {
        "P4" => {
            let garnet =
                Garnet { n_states: 100_000, n_successors: 10, n_features: 1, discount: 0.99, ..Garnet::default() };
            (garnet.build().unwrap(), vec![1.0])
        }
        _ => {
            let garnet = Garnet { n_states: 5_000, n_actions: 5, n_successors: 20, n_features: 1, ..Garnet::default() };
            let plain = garnet.build().unwrap();
            let features = Features::indicators(plain.pairs()).unwrap();
            let weights = sequence(1, features.n_features());
            let model =
                Cmdp::new(plain.dynamics().clone(), features, plain.initial().to_vec(), plain.criterion()).unwrap();
            (model, weights)
        }
    };
    let before = resident("VmRSS");
    let mdp = model.shared_mdp().unwrap();
    let plan = Planner::default().plan(&mdp, &mdp.reward(&weights).unwrap()).unwrap();
    let mu = evaluate::feature_expectations(&mdp, &plan.policy).unwrap();
    assert_eq!(mu.len(), weights.len());
    println!("{before} {}", resident("VmHWM"));
}

/// A line of this process's memory in MiB.
fn resident(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn memory_section() -> String {
    let measure = |name: &str| {
        let output = Command::new(std::env::current_exe().unwrap()).args(["--memory", name]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let numbers: Vec<u64> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
        (numbers[0], numbers[1])
    };
    let (p4, indicators) = (measure("P4"), measure("indicators"));
    format!(
        "### Memory\n\n| problem | with the model built | peak while planning exactly, with feature expectations |\n|---|---|---|\n\
         | P4 | {} MiB | {} MiB |\n| 5,000 states × 5,005 features | {} MiB | {} MiB |\n\n",
        p4.0, p4.1, indicators.0, indicators.1
    )
}

fn page(options: &Options, peers: &[Peer], report: &str) -> String {
    let versions: Vec<String> = peers.iter().map(|peer| format!("{} {}", peer.name, peer.version)).collect();
    format!(
        "# Planning speed\n\nWritten by `cargo xtask bench-peers --write`. Seed {}; median of {RUNS} interleaved runs; CPU time on one \
         thread; all planners run to a sup-norm Bellman residual of {TOLERANCE:e}, and *exact* is this planner's default, where the \
         policy is greedy for its own exactly evaluated values. Ratios are what to read: the times depend on the machine.\n\n\
         Peers: {}. Of each peer the fastest variant of a pilot run is shown (QuantEcon's default, mpi-20, beside it); peers \
         do not compute feature expectations. A pilot is one run, so where two variants are close the other may be the faster \
         one. On P5 a peer solves {PEER_SHARE} of the {MANY} rewards in each run and its time is scaled up; ours are all {MANY}. \
         mdpsolver's rebuilding of a model for each reward is not counted.\n\n\
         P6 to P8 mix slowly: median of three runs of one reward, all variants that were tried, and beside each time its ratio to \
         ours. A variant that has no answer after {} s is stopped (wall clock), and not tried at a discount nearer to one (–); \
         QuantEcon's policy iteration always is.\n\n{report}",
        options.seed,
        versions.join(", "),
        options.limit.as_secs()
    )
}

/// Bars of the ratios on a logarithmic axis, as a self-contained picture.
fn picture(chart: &[(&str, Vec<(String, f64)>)]) -> String {
    const LEFT: f64 = 190.0;
    const WIDTH: f64 = 480.0;
    const ROW: f64 = 17.0;
    const LONGEST: f64 = 200.0;
    let x = |ratio: f64| LEFT + WIDTH * ratio.clamp(1.0, LONGEST).ln() / LONGEST.ln();
    let colour = |name: &str| match name.split(' ').next() {
        Some("quantecon") => "#4477aa",
        Some("mdpsolver") => "#ccbb44",
        _ => "#ee6677",
    };
    let mut body = String::new();
    let mut y = 44.0;
    for (problem, ratios) in chart {
        let middle = y + ROW * ratios.len() as f64 / 2.0 + 4.0;
        let _ = writeln!(body, r#"<text x="8" y="{middle:.0}" font-weight="bold">{problem}</text>"#);
        for (name, ratio) in ratios {
            let _ = writeln!(body, r#"<text x="{}" y="{:.0}" text-anchor="end">{name}</text>"#, LEFT - 6.0, y + 12.0);
            let (width, fill) = (x(*ratio) - LEFT, colour(name));
            let _ =
                writeln!(body, r#"<rect x="{LEFT}" y="{:.0}" width="{width:.1}" height="13" fill="{fill}"/>"#, y + 1.0);
            let _ = writeln!(body, r#"<text x="{:.0}" y="{:.0}">{ratio:.1}×</text>"#, x(*ratio) + 4.0, y + 12.0);
            y += ROW;
        }
        y += 9.0;
    }
    let mut axis = String::new();
    for tick in [1.0, 3.0, 10.0, 30.0, 100.0] {
        let at = x(tick);
        let _ = writeln!(axis, r##"<line x1="{at:.0}" y1="38" x2="{at:.0}" y2="{:.0}" stroke="#d0d0d0"/>"##, y - 6.0);
        let _ = writeln!(axis, r#"<text x="{at:.0}" y="34" text-anchor="middle">{tick}×</text>"#);
    }
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height:.0}" font-family="sans-serif" font-size="11" role="img">
<title>CPU time of other planners as a multiple of coirl's</title>
<rect width="760" height="{height:.0}" fill="#ffffff"/>
<text x="8" y="16" font-size="13">CPU time as a multiple of coirl's (logarithmic; longer is slower)</text>
{axis}{body}</svg>
"##,
        height = y
    )
}
