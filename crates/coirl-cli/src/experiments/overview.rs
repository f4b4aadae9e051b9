//! An experiment on the terminal: where every method ended, and what the claims came to.

use super::results::Results;
use crate::failure::Failure;
use crate::numbers::short;
use crate::text::{Tabular, pair, title};
use coirl_experiments::{Axis, Found, Judged, MeanCurve, Picture, Verdict};
use std::io::Write;

pub(crate) fn write_overview(out: &mut dyn Write, results: &Results) -> Result<(), Failure> {
    let settings = &results.kept.settings;
    title(out, &settings.title)?;
    if let Some(paper) = &settings.paper {
        pair(out, "paper", paper)?;
    }
    writeln!(out)?;
    last_points(results).write(out)?;
    writeln!(out)?;
    for judged in &results.claims {
        pair(out, verdict_in_words(judged.verdict), &judged.says)?;
        for found in &judged.found {
            pair(out, "", &found_in_words(found))?;
        }
        if let Some(reason) = &judged.reason {
            pair(out, "", reason)?;
        }
    }
    Ok(())
}

/// Where every method ended, by what is drawn.
pub(super) fn last_points(results: &Results) -> Tabular {
    let settings = &results.kept.settings;
    let pictures: Vec<&Picture> = settings.pictures.iter().collect();
    let with_paper = settings.methods.iter().any(|entrant| entrant.paper.is_some());
    let mut methods: Vec<&str> = Vec::new();
    for curve in &results.means {
        if !methods.contains(&curve.method.as_str()) {
            methods.push(&curve.method);
        }
    }
    let row = |method: &&str| -> Vec<String> {
        let cell = |picture: &&Picture| {
            let curve = results.means.iter().find(|curve| curve.method == **method && curve.measure == picture.measure);
            curve.and_then(MeanCurve::last).map_or(String::new(), |point| {
                let number = |x: f64| match picture.scale {
                    Axis::Percent => format!("{:.1}", 100.0 * x),
                    Axis::Linear | Axis::Log => short(x),
                };
                let spread = if point.seeds > 1 { format!(" ± {}", number(point.deviation)) } else { String::new() };
                format!("{}{spread}", number(point.mean))
            })
        };
        let paper = settings.methods.iter().find(|entrant| entrant.name == **method).and_then(|entrant| entrant.paper);
        let paper = paper.map_or(String::new(), |(mean, spread)| format!("{mean} ± {spread}"));
        let cells = [(*method).to_owned()].into_iter().chain(pictures.iter().map(cell));
        cells.chain(with_paper.then_some(paper)).collect()
    };
    let heading = |picture: &&Picture| match picture.scale {
        Axis::Percent => format!("{}, %", picture.measure),
        Axis::Linear | Axis::Log => picture.measure.clone(),
    };
    let mut header = vec![String::new()];
    header.extend(pictures.iter().map(heading));
    header.extend(with_paper.then(|| "paper, %".to_owned()));
    let seeds = match results.kept.runs.len() {
        1 => "one seed".to_owned(),
        n => format!("mean ± standard deviation of {n} seeds"),
    };
    let rows = methods.iter().map(row).filter(|row| row[1..].iter().any(|cell| !cell.is_empty())).collect();
    Tabular { title: format!("Where everyone ended, {seeds}"), header, rows }
}

pub(super) fn verdict_in_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::InPart => "in part",
        Verdict::NotReproduced => "not so",
        Verdict::NotMeasured => "not measured",
    }
}

/// Whether a check holds, with the numbers.
pub(super) fn found_in_words(found: &Found) -> String {
    let Found { check, holds, measured, compared, seeds: (holding, all) } = found;
    let (Some(holds), Some(measured), Some(compared)) = (holds, measured, compared) else {
        return format!("not measured: {check}");
    };
    let answer = if *holds { "yes" } else { "no" };
    let seeds = if *all > 1 { format!(", in {holding} of {all} seeds") } else { String::new() };
    format!("{answer}: {check} ({} against {}{seeds})", short(*measured), short(*compared))
}

/// How many claims came to what.
pub(super) fn counted(all: &[&Judged]) -> String {
    let of = |verdict: Verdict| all.iter().filter(|judged| judged.verdict == verdict).count();
    let mut parts = vec![format!("{} of {} reproduced", of(Verdict::Reproduced), all.len())];
    for (verdict, words) in [
        (Verdict::InPart, "in part"),
        (Verdict::NotReproduced, "not reproduced"),
        (Verdict::NotMeasured, "not measured"),
    ] {
        if of(verdict) > 0 {
            parts.push(format!("{} {words}", of(verdict)));
        }
    }
    parts.join(", ")
}
