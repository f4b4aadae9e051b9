//! Experiments as one page: pictures, tables, settings, and the paper's claims beside what was measured.

use super::overview::{counted, found_in_words, last_points, verdict_in_words};
use super::results::{RESULTS, Results};
use super::scenes::{Scene, scenes};
use super::shipped::SHIPPED;
use crate::destination::to_file;
use crate::failure::Failure;
use crate::pictures::experiment_pictures;
use crate::reporting::{Markup, Page, Section, details, element, paragraph, table, table_of_words, text};
use crate::text::Tabular;
use coirl_experiments::{Judged, MeanCurve, Place, Scale, Verdict};
use std::io::Write;
use std::path::Path;

/// All experiments that were run into a folder: those that ship in the order of the paper, then others by name.
pub(crate) fn read_folder(folder: &Path) -> Result<Vec<Results>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::in_file(folder, error))?;
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Failure::in_file(folder, error))?;
        if entry.path().join(RESULTS).is_file()
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    let place = |name: &String| SHIPPED.iter().position(|(known, _)| known == name).unwrap_or(SHIPPED.len());
    names.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.cmp(b)));
    names.iter().map(|name| Results::read(&folder.join(name).join(RESULTS))).collect()
}

/// Writes a page about experiments.
pub(crate) fn write_page(path: &Path, all: &[Results], command: String) -> Result<(), Failure> {
    let mut sections = vec![verdicts(all)];
    let drives = |results: &Results| {
        matches!(results.kept.settings.study.place(), Some(Place::Driving | Place::DrivingInteractive))
    };
    if all.iter().any(drives) {
        sections.push(what_a_reward_does(&scenes()?));
    }
    for results in all {
        sections.push(experiment(results)?);
    }
    let page = Page {
        title: "The experiments of the paper, run again".into(),
        lead: "Inverse Reinforcement Learning in Contextual MDPs: what its experiments show when they are run anew. \
               Every verdict on this page is computed from the results below it."
            .into(),
        clinical: all.iter().any(|results| results.kept.settings.study.is_clinical()),
        command,
        sections,
    };
    to_file(path, |file| page.write(file))
}

/// All claims with their verdicts.
fn verdicts(all: &[Results]) -> Section {
    let claims: Vec<&Judged> = all.iter().flat_map(|results| &results.claims).collect();
    let row = |results: &Results, judged: &Judged| {
        let target = format!("#{}", results.kept.name);
        let link = element("a", &[("href", &target)], text(&results.kept.name));
        let verdict = element("span", &[("class", class(judged.verdict))], text(verdict_in_words(judged.verdict)));
        let cells = [element("td", &[], verdict), element("td", &[], text(&judged.says)), element("td", &[], link)];
        element("tr", &[], Markup::all(cells))
    };
    let rows = all.iter().flat_map(|results| results.claims.iter().map(move |judged| row(results, judged)));
    let heads = ["verdict", "the paper says, or we do", "experiment"]
        .map(|name| element("th", &[("scope", "col")], text(name)));
    let head = element("thead", &[], element("tr", &[], Markup::all(heads)));
    let body = element("tbody", &[], Markup::all(rows));
    let caption = element("caption", &[], text(&format!("{}.", counted(&claims))));
    let listed = element("table", &[("class", "words")], Markup::all([caption, head, body]));
    let scaled = match all.first().map(|results| results.kept.scale) {
        Some(Scale::Quick) => {
            "A quick run: a few contexts, one or two seeds. It shows that everything works; orderings may be chance."
        }
        Some(Scale::Paper) => "At the scale of the paper.",
        _ => "Scaled for two processors and a quarter of an hour; the settings of every experiment are below it.",
    };
    let content = Markup::all([
        paragraph(scaled),
        element("div", &[("class", "wide"), ("role", "region"), ("tabindex", "0"), ("aria-label", "Verdicts")], listed),
    ]);
    Section::new("verdicts", "Verdicts", content)
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "verdict holds",
        Verdict::InPart => "verdict partly",
        Verdict::NotReproduced => "verdict fails",
        Verdict::NotMeasured => "verdict open",
    }
}

/// Pictures for those who have not met the domains yet.
fn what_a_reward_does(scenes: &[Scene]) -> Section {
    let shown = |scene: &Scene| {
        let drawn = Markup::drawing(&scene.svg, scene.title, &scene.says)?;
        let figure = element("figure", &[("tabindex", "0"), ("aria-label", scene.title)], drawn);
        Some(Markup::all([element("h3", &[], text(scene.title)), paragraph(&scene.says), figure]))
    };
    Section::new("rewards", "What a reward does", Markup::all(scenes.iter().filter_map(shown)))
}

/// Writes the same pictures as files.
pub(crate) fn write_scenes(folder: &Path) -> Result<(), Failure> {
    for scene in scenes()? {
        to_file(&folder.join(format!("{}.svg", scene.stem)), |file| Ok(file.write_all(scene.svg.as_bytes())?))?;
    }
    Ok(())
}

/// One experiment.
fn experiment(results: &Results) -> Result<Section, Failure> {
    let settings = &results.kept.settings;
    let mut content = Vec::new();
    if let Some(paper) = &settings.paper {
        content.push(element("p", &[("class", "lead")], text(paper)));
    }
    content.push(paragraph(settings.about.trim()));
    for judged in &results.claims {
        let verdict = element("span", &[("class", class(judged.verdict))], text(verdict_in_words(judged.verdict)));
        let says = element("p", &[("class", "claim")], Markup::all([verdict, text(" "), text(&judged.says)]));
        let found = judged.found.iter().map(|found| element("li", &[], text(&found_in_words(found))));
        let reason = judged.reason.as_ref().map_or_else(Markup::default, |reason| paragraph(reason));
        content.push(Markup::all([says, element("ul", &[], Markup::all(found)), reason]));
    }
    for (stem, svg) in experiment_pictures(settings, &results.means) {
        if stem == "figure" {
            continue;
        }
        let measure = settings.pictures.iter().find(|picture| crate::pictures::stem(&picture.measure) == stem);
        let name = measure.map_or(stem.as_str(), |picture| picture.measure.as_str());
        let drawn = Markup::drawing(&svg, name, &in_words(results, name));
        let figure = drawn.map(|drawn| element("figure", &[("tabindex", "0"), ("aria-label", name)], drawn));
        content.extend(figure);
    }
    content.push(table(&last_points(results)));
    content.push(details("Every point", every_point(results)));
    content.push(details("Settings, complete", element("pre", &[], element("code", &[], text(&settings.to_toml()?)))));
    if !results.kept.given.is_empty() {
        let rows = results.kept.given.iter().map(|(path, digest)| vec![path.clone(), digest.clone()]).collect();
        content.push(table_of_words(&Tabular::new("Files given", &["file", "SHA-256"], rows)));
    }
    Ok(Section::new(results.kept.name.clone(), settings.title.clone(), Markup::all(content)))
}

/// What a picture shows, for those who cannot see it.
fn in_words(results: &Results, measure: &str) -> String {
    let ends = |curve: &MeanCurve| {
        let (first, last) = (curve.points.first()?, curve.last()?);
        let number = crate::numbers::short;
        Some(format!(
            "{} from {} at {} to {} at {}",
            curve.method,
            number(first.mean),
            number(first.x),
            number(last.mean),
            number(last.x)
        ))
    };
    let all: Vec<String> = results.means.iter().filter(|curve| curve.measure == measure).filter_map(ends).collect();
    format!("Curves of {measure}: {}.", all.join("; "))
}

fn every_point(results: &Results) -> Markup {
    let drawn = |curve: &&MeanCurve| results.kept.settings.pictures.iter().any(|p| p.measure == curve.measure);
    let rows = results.means.iter().filter(drawn).flat_map(|curve| {
        curve.points.iter().map(|point| {
            let number = crate::numbers::short;
            vec![
                curve.method.clone(),
                curve.measure.clone(),
                number(point.x),
                number(point.mean),
                number(point.deviation),
                point.seeds.to_string(),
            ]
        })
    });
    let header = ["method", "measure", "x", "mean", "standard deviation", "seeds"];
    table(&Tabular::new("All means", &header, rows.collect()))
}
