//! Time and memory of planning against the number of states and of contexts, with the exponents that fit them.
//!
//! `cargo xtask bench-scaling [--write] [--largest]`. Against states: the maze at discount 0.999, one reward. Against contexts: driving,
//! one reward per context, with feature expectations. Every point is a process of its own, so that its peak of memory is its own; one
//! that takes longer than `--limit` seconds is stopped and told. One thread, wall clock, the least of three runs where they are short.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a benchmark may stop where it stands

use coirl::domains::{Driving, Maze};
use coirl::mapping::RewardMapping;
use coirl::plan::{ManyOptions, Method, Planner};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TOLERANCE: f64 = 1e-6;
const DISCOUNT: f64 = 0.999;
/// About 10³ to 10⁷ cells.
const SIDES: [usize; 5] = [32, 100, 316, 1000, 3162];
const CONTEXTS: [usize; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
/// Where the part of the page begins that is written here.
const HEAD: &str = "## Scaling";
/// Runs of less than this are done three times.
const SHORT: Duration = Duration::from_secs(2);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1)).cloned();
    let number = |name: &str| value(name).map(|n| n.parse::<usize>().unwrap());
    if let (Some(what), Some(size), Some(planner)) = (value("--one"), number("--size"), value("--planner")) {
        println!("{}", one(&what, size, &planner));
        return;
    }
    if !arguments.iter().any(|a| a == "--bench") {
        println!("scaling: run `cargo xtask bench-scaling`");
        return;
    }
    let largest = arguments.iter().any(|a| a == "--largest");
    let limit = Duration::from_secs(number("--limit").unwrap_or(1800) as u64);
    let most = |name: &str, most: usize| number(name).unwrap_or(if largest { usize::MAX } else { most });
    let (most_states, most_contexts) = (most("--most-states", 1_000_000), most("--most-contexts", 100_000));
    let sides: Vec<usize> = SIDES.into_iter().filter(|side| side * side <= most_states).collect();
    let contexts: Vec<usize> = CONTEXTS.into_iter().filter(|&n| n <= most_contexts).collect();
    let series =
        [Series::measure("maze", "states", &sides, limit), Series::measure("driving", "contexts", &contexts, limit)];
    let section = section(&series, largest, limit);
    println!("{section}");
    if let Some(page) = value("--write").map(PathBuf::from) {
        let before = std::fs::read_to_string(&page).unwrap_or_default();
        let kept = before.find(HEAD).map_or(before.as_str(), |at| &before[..at]).trim_end();
        std::fs::write(&page, format!("{kept}\n\n{section}")).unwrap();
        std::fs::write(page.with_file_name("benchmarks-scaling.svg"), picture(&series)).unwrap();
    }
}

/// A point in this process: what was planned for, seconds, and MiB with the model built and at the peak.
fn one(what: &str, size: usize, planner: &str) -> Value {
    let tolerant = Planner::to_tolerance(Method::Automatic, TOLERANCE);
    let planner = if planner == "exact" { Planner::default() } else { tolerant };
    let (model, weights) = if what == "maze" {
        let model = Maze { side: size, discount: DISCOUNT, ..Maze::default() }.build().unwrap();
        let context = model.context_space().context(Maze::STANDARD_CONTEXT).unwrap();
        let weights = Maze::standard_mapping().weights(&context).unwrap();
        (model, weights)
    } else {
        let model = Driving::default().build().unwrap();
        let contexts = model.context_space().sample(size, 1).unwrap();
        let weights = Driving::online_mapping().weights_of_all(&contexts).unwrap();
        (model, weights)
    };
    let before = resident("VmRSS");
    let mdp = model.shared_mdp().unwrap();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let wall = Instant::now();
        if what == "maze" {
            let reward = mdp.reward(&weights).unwrap();
            let _ = one.install(|| planner.plan(&mdp, &reward)).unwrap();
        } else {
            let options = ManyOptions { feature_expectations: true, values: false };
            one.install(|| planner.plan_many(&mdp, &weights, options, |_| ControlFlow::Continue(()))).unwrap();
        }
        least = least.min(wall.elapsed().as_secs_f64());
        if wall.elapsed() > SHORT {
            break;
        }
    }
    let count = if what == "maze" { mdp.n_states() } else { size };
    json!({ "count": count, "seconds": least, "model_mib": before, "peak_mib": resident("VmHWM") })
}

/// A line of this process's memory in MiB.
fn resident(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

/// What one size took, to the tolerance and exactly; nothing where there was no answer in time.
struct Point {
    count: f64,
    model_mib: f64,
    /// Seconds and peak MiB.
    tolerant: Option<(f64, f64)>,
    exact: Option<(f64, f64)>,
}

struct Series {
    model: &'static str,
    unit: &'static str,
    points: Vec<Point>,
}

impl Series {
    fn measure(model: &'static str, unit: &'static str, sizes: &[usize], limit: Duration) -> Self {
        let points = sizes.iter().map(|&size| {
            let [tolerant, exact] = ["tolerance", "exact"].map(|planner| apart(model, size, planner, limit));
            let count = if model == "maze" { size * size } else { size };
            println!("{model}, {count} {unit}: done");
            let found = |answer: &Option<Value>, name: &str| answer.as_ref().and_then(|answer| answer[name].as_f64());
            let of = |answer: &Option<Value>| Some((found(answer, "seconds")?, found(answer, "peak_mib")?));
            Point {
                count: count as f64,
                model_mib: found(&tolerant, "model_mib").or(found(&exact, "model_mib")).unwrap_or(f64::NAN),
                tolerant: of(&tolerant),
                exact: of(&exact),
            }
        });
        Self { model, unit, points: points.collect() }
    }

    /// The points of what is measured, where there are any.
    fn line(&self, of: impl Fn(&Point) -> Option<f64>) -> Vec<(f64, f64)> {
        self.points.iter().filter_map(|point| Some((point.count, of(point)?))).collect()
    }
}

/// A point in a process of its own.
fn apart(model: &str, size: usize, planner: &str, limit: Duration) -> Option<Value> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--one", model, "--size", &size.to_string(), "--planner", planner])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    serde_json::from_str(&answer).ok()
}

/// The slope of a line through the logarithms, of the points from a thousandth of the largest count on: what is small
/// is start-up.
fn exponent(line: &[(f64, f64)]) -> Option<f64> {
    let largest = line.iter().map(|point| point.0).fold(0.0, f64::max);
    let kept = line.iter().filter(|point| point.0 * 1001.0 >= largest);
    let logs: Vec<(f64, f64)> = kept.map(|&(x, y)| (x.ln(), y.ln())).collect();
    let n = logs.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(&|log| log.0), mean(&|log| log.1));
    let spread = mean(&|log| (log.0 - x).powi(2));
    (logs.len() > 1).then(|| mean(&|log| (log.0 - x) * (log.1 - y)) / spread)
}

fn section(series: &[Series; 2], largest: bool, limit: Duration) -> String {
    let mut text = format!(
        "{HEAD}\n\nWritten by `cargo xtask bench-scaling --write{}`. One thread, wall clock; each point is a process of its own. Exponents are \
         slopes through the logarithms of the last points, over three decades at most: time grows like the count to this power.\n\n\
         ![Time and memory against the number of states and of contexts](benchmarks-scaling.svg)\n\n",
        if largest { " --largest" } else { "" }
    );
    for own in series {
        let what = match own.model {
            "maze" => format!("### States: the maze at discount {DISCOUNT}, one reward"),
            _ => "### Contexts: driving, one reward each, with feature expectations".into(),
        };
        let unit = own.unit;
        let _ = writeln!(
            text,
            "{what}\n\n| {unit} | to {TOLERANCE:e} | exact | with the model built | peak to {TOLERANCE:e} | peak exact |\n|---|---|---|---|---|---|"
        );
        let late = || format!("no answer in {} s", limit.as_secs());
        let time = |answer: Option<(f64, f64)>| answer.map_or_else(late, |(seconds, _)| duration(seconds));
        let peak = |answer: Option<(f64, f64)>| answer.map_or("–".into(), |(_, mib)| format!("{mib:.0} MiB"));
        for point in &own.points {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.0} MiB | {} | {} |",
                thousands(point.count),
                time(point.tolerant),
                time(point.exact),
                point.model_mib,
                peak(point.tolerant),
                peak(point.exact)
            );
        }
        let of = |line: Vec<(f64, f64)>| exponent(&line).map_or("–".into(), |slope| format!("**{slope:.2}**"));
        let _ = writeln!(
            text,
            "| exponent | {} | {} | {} | {} | {} |\n",
            of(own.line(|p| p.tolerant.map(|t| t.0))),
            of(own.line(|p| p.exact.map(|t| t.0))),
            of(own.line(|p| Some(p.model_mib))),
            of(own.line(|p| p.tolerant.map(|t| t.1))),
            of(own.line(|p| p.exact.map(|t| t.1)))
        );
    }
    text
}

fn duration(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.2} ms", 1e3 * seconds) } else { format!("{seconds:.2} s") }
}

fn thousands(count: f64) -> String {
    let digits = format!("{count:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Four panels with logarithmic axes: time above, memory below; states on the left, contexts on the right.
fn picture(series: &[Series; 2]) -> String {
    let mut body = String::new();
    for (column, own) in series.iter().enumerate() {
        let left = 70.0 + 370.0 * column as f64;
        let title = format!("{} against {}", own.model, own.unit);
        let time = [own.line(|p| p.tolerant.map(|t| t.0)), own.line(|p| p.exact.map(|t| t.0))];
        body.push_str(&panel(left, 56.0, &format!("{title}: seconds"), &time));
        let memory = [own.line(|p| p.tolerant.map(|t| t.1)), own.line(|p| p.exact.map(|t| t.1))];
        body.push_str(&panel(left, 306.0, &format!("{title}: peak MiB"), &memory));
    }
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 530" font-family="sans-serif" font-size="11" role="img">
<title>Time and memory of planning against the number of states and of contexts</title>
<rect width="760" height="530" fill="#ffffff"/>
<text x="8" y="18" font-size="13">Planning on one thread; logarithmic axes, and beside each line its exponent</text>
<circle cx="12" cy="32" r="3.5" fill="{}"/><text x="20" y="36">to a residual of {TOLERANCE:e}</text>
<circle cx="172" cy="32" r="3.5" fill="{}"/><text x="180" y="36">exact</text>
{body}</svg>
"##,
        COLOURS[0], COLOURS[1]
    )
}

const COLOURS: [&str; 2] = ["#4477aa", "#ee6677"];

/// Lines of two planners from the upper left corner of their axes.
fn panel(left: f64, top: f64, title: &str, lines: &[Vec<(f64, f64)>; 2]) -> String {
    const WIDTH: f64 = 250.0;
    const HEIGHT: f64 = 180.0;
    let decades = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let logs = || lines.iter().flatten().map(|point| of(point).log10());
        let (least, most) =
            (logs().fold(f64::INFINITY, f64::min).floor(), logs().fold(-f64::INFINITY, f64::max).ceil());
        if least < most { (least, most) } else { (least - 1.0, least + 1.0) }
    };
    let mut text = format!(
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\" font-weight=\"bold\">{title}</text>\n",
        left + WIDTH / 2.0,
        top - 4.0
    );
    if lines.iter().all(Vec::is_empty) {
        return text;
    }
    let ((x_least, x_most), (y_least, y_most)) = (decades(&|point| point.0), decades(&|point| point.1));
    let x = |log: f64| left + WIDTH * (log - x_least) / (x_most - x_least);
    let y = |log: f64| top + HEIGHT * (1.0 - (log - y_least) / (y_most - y_least));
    for decade in (x_least as i32)..=(x_most as i32) {
        let at = x(f64::from(decade));
        let _ = writeln!(text, r##"<path d="M{at:.1} {top}v{HEIGHT}" stroke="#dddddd"/>"##);
        let below = top + HEIGHT + 14.0;
        let _ = writeln!(text, r#"<text x="{at:.1}" y="{below:.0}" text-anchor="middle">{}</text>"#, power(decade));
    }
    for decade in (y_least as i32)..=(y_most as i32) {
        let at = y(f64::from(decade));
        let _ = writeln!(text, r##"<path d="M{left:.0} {at:.1}h{WIDTH}" stroke="#dddddd"/>"##);
        let before = left - 5.0;
        let _ =
            writeln!(text, r#"<text x="{before:.0}" y="{:.1}" text-anchor="end">{}</text>"#, at + 4.0, power(decade));
    }
    // The exponents one above the other, where lines end in the same place.
    for ((line, colour), beside) in lines.iter().zip(COLOURS).zip([11.0, -2.0]) {
        let places: Vec<(f64, f64)> = line.iter().map(|point| (x(point.0.log10()), y(point.1.log10()))).collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            text,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="1.5"/>"#,
            path.join(" ")
        );
        for (x, y) in &places {
            let _ = writeln!(text, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{colour}"/>"#);
        }
        if let (Some((x, y)), Some(slope)) = (places.last(), exponent(line)) {
            let _ =
                writeln!(text, r#"<text x="{:.1}" y="{:.1}" fill="{colour}">{slope:.2}</text>"#, x + 6.0, y + beside);
        }
    }
    text
}

fn power(decade: i32) -> String {
    format!("10<tspan dy=\"-4\" font-size=\"8\">{decade}</tspan>")
}
