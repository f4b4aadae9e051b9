//! The pictures of an experiment: one for each measure that its file asks for, and all of them side by side.
//!
//! Panels stand in a row, the legend below them: it covers no data whatever they are.

use super::drawing::{Anchor, Drawing, Frame, Lettering, number};
use super::legend::{Legend, Sample};
use super::panel::{Panel, Series, lines};
use super::rows::{Row, rows};
use super::style::{Style, styles};
use coirl_experiments::{Experiment, MeanCurve, Picture, Point};

const MARGIN: f64 = 16.0;
const BETWEEN: f64 = 30.0;
const TITLE: Lettering = Lettering::bold(15.0);
const TITLE_HEIGHT: f64 = 32.0;

/// Name of the file, without its extension, and SVG of every picture; those without a point are left out.
pub(crate) fn experiment_pictures(experiment: &Experiment, means: &[MeanCurve]) -> Vec<(String, String)> {
    let cast = Cast::of(experiment, means);
    let mut pictures: Vec<(String, String)> = Vec::new();
    for picture in &experiment.pictures {
        let drawn = cast.figure("", std::slice::from_ref(picture));
        pictures.extend(drawn.map(|figure| (stem(&picture.measure), figure.svg(&experiment.title))));
    }
    let all = cast.figure(&experiment.title, &experiment.pictures);
    pictures.extend(all.map(|figure| ("figure".to_owned(), figure.svg(&experiment.title))));
    pictures
}

/// "value by planner calls" as "value-by-planner-calls".
pub(crate) fn stem(measure: &str) -> String {
    let words = measure.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("-")
}

/// Who takes part, with what each looks like in all pictures of the experiment.
struct Cast<'a> {
    experiment: &'a Experiment,
    means: &'a [MeanCurve],
    methods: Vec<&'a str>,
    styles: Vec<Style>,
}

/// Panels and a legend with their places.
struct Figure<'a> {
    title: &'a str,
    panels: Vec<Panel>,
    legend: Legend<'a>,
}

impl<'a> Cast<'a> {
    fn of(experiment: &'a Experiment, means: &'a [MeanCurve]) -> Self {
        let mut methods: Vec<&str> = experiment.methods.iter().map(|entrant| &*entrant.name).collect();
        for curve in means {
            if !methods.contains(&&*curve.method) {
                methods.push(&curve.method);
            }
        }
        let styles = styles(methods.iter().copied());
        Self { experiment, means, methods, styles }
    }

    fn curve(&self, method: &str, picture: &Picture) -> Option<&'a MeanCurve> {
        let wanted = |curve: &&MeanCurve| curve.method == method && curve.measure == picture.measure;
        self.means.iter().find(wanted).filter(|curve| !curve.points.is_empty())
    }

    /// Methods that are drawn in a picture, by their numbers.
    fn drawn(&self, picture: &Picture) -> Vec<(usize, &'a [Point])> {
        let points = |i: usize| Some((i, &*self.curve(self.methods[i], picture)?.points));
        (0..self.methods.len()).filter_map(points).collect()
    }

    /// The pictures side by side; nothing where none has a point.
    fn figure(&'a self, title: &'a str, pictures: &[Picture]) -> Option<Figure<'a>> {
        let mut panels = Vec::new();
        let mut shown: Vec<usize> = Vec::new();
        let (mut with_rows, mut with_paper) = (false, false);
        let single = |picture: &Picture| self.drawn(picture).iter().all(|(_, points)| points.len() == 1);
        // Methods that occur in any panel of rows are in all of them, so that a row is one method all along.
        let listed: Vec<usize> = (0..self.methods.len())
            .filter(|i| pictures.iter().any(|p| single(p) && self.curve(self.methods[*i], p).is_some()))
            .collect();
        for picture in pictures {
            let drawn = self.drawn(picture);
            let panel = if single(picture) {
                // What the paper reports is one number, of the first measure.
                let first = self.experiment.pictures.first() == Some(picture);
                let row = |i: &usize| self.row(*i, picture, first);
                let listed: Vec<Row<'_>> = listed.iter().map(row).collect();
                let panel = rows(picture, &listed, !with_rows);
                with_rows |= panel.is_some();
                with_paper |= panel.is_some() && listed.iter().any(|row| row.paper.is_some());
                panel
            } else {
                shown.extend(drawn.iter().map(|(i, _)| *i));
                let series = drawn.iter().map(|(i, points)| Series { style: &self.styles[*i], points });
                lines(picture, &series.collect::<Vec<_>>())
            };
            panels.extend(panel);
        }
        if panels.is_empty() {
            return None;
        }
        shown.sort_unstable();
        shown.dedup();
        let with_lines = !shown.is_empty();
        let line = |i: usize| (Sample::Line(&self.styles[i]), self.methods[i].to_owned());
        let mut entries: Vec<(Sample<'_>, String)> = shown.into_iter().map(line).collect();
        let seeds = self.means.iter().flat_map(|curve| &curve.points).map(|point| point.seeds).max().unwrap_or(0);
        if with_rows {
            let ours = if seeds > 1 { "mean ± one standard deviation" } else { "measured" };
            entries.push((Sample::Bar { paper: false }, ours.to_owned()));
        }
        if with_paper {
            entries.push((Sample::Bar { paper: true }, "what the paper reports".to_owned()));
        }
        let note = match seeds {
            0 | 1 => "one seed".to_owned(),
            n if with_lines => format!("means of {n} seeds; bands: ± one standard deviation"),
            n => format!("{n} seeds"),
        };
        Some(Figure { title, panels, legend: Legend { entries, note } })
    }

    fn row(&'a self, i: usize, picture: &Picture, with_paper: bool) -> Row<'a> {
        let method = self.methods[i];
        let entrant = self.experiment.methods.iter().find(|entrant| entrant.name == method);
        let paper = entrant.and_then(|entrant| entrant.paper).filter(|_| with_paper);
        let paper = paper.map(|(mean, deviation)| (mean / 100.0, deviation / 100.0));
        let point = self.curve(method, picture).and_then(|curve| curve.points.first().copied());
        Row { method, style: &self.styles[i], point, paper }
    }
}

impl Figure<'_> {
    /// Where panels begin.
    fn corners(&self) -> Vec<(f64, f64)> {
        let top = MARGIN + if self.title.is_empty() { 0.0 } else { TITLE_HEIGHT };
        let mut x = MARGIN;
        let mut corner = |panel: &Panel| {
            let corner = (x, top);
            x += panel.width + BETWEEN;
            corner
        };
        self.panels.iter().map(&mut corner).collect()
    }

    /// Where the legend is.
    fn legend_frame(&self) -> Frame {
        let ends = self.corners().into_iter().zip(&self.panels);
        let (right, bottom) = ends.fold((0.0_f64, 0.0_f64), |(right, bottom), ((x, y), panel)| {
            (right.max(x + panel.width), bottom.max(y + panel.height))
        });
        let width = (right - MARGIN).max(if self.title.is_empty() { 0.0 } else { TITLE.width(self.title) });
        Frame { x: MARGIN, y: bottom + 12.0, width, height: self.legend.height(width) }
    }

    fn svg(&self, label: &str) -> String {
        let mut drawing = Drawing::default();
        if !self.title.is_empty() {
            drawing.text((MARGIN, MARGIN + 13.0), Anchor::Start, TITLE, self.title);
        }
        let moved = |x: f64, y: f64| format!("translate({} {})", number(x), number(y));
        for ((x, y), panel) in self.corners().into_iter().zip(&self.panels) {
            drawing.around("g", &[("transform", &moved(x, y))], |inside| inside.add(panel.drawing.clone()));
        }
        let frame = self.legend_frame();
        drawing.around("g", &[("transform", &moved(frame.x, frame.y))], |inside| self.legend.draw(inside, frame.width));
        drawing.finish(frame.right() + MARGIN, frame.bottom() + MARGIN - 4.0, label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::SHIPPED;
    use crate::pictures::png_of;
    use coirl_experiments::{Axis, Curve, Scale, SeedCurves, over_seeds};

    fn shipped(name: &str) -> Experiment {
        let text = SHIPPED.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| *text);
        Experiment::read(text, Scale::Usual, &[]).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Curves as an experiment may have them: all that its pictures ask for, with some that fall below zero.
    fn curves(experiment: &Experiment, seeds: u64, xs: &[f64]) -> Vec<MeanCurve> {
        let run = |seed: u64| {
            let names = experiment.methods.iter().map(|entrant| &*entrant.name).chain(["one policy for everybody"]);
            let curves = names.enumerate().flat_map(|(i, name)| {
                experiment.pictures.iter().map(move |picture| {
                    let top = if picture.scale == Axis::Percent { 1.0 } else { 40.0 };
                    let y = |x: f64| {
                        let noise = ((x * 0.37 + i as f64 + seed as f64 * 1.7).sin() - 0.2) / (3.0 + i as f64);
                        let learned = 1.0 - 0.8 * (-(x / xs[xs.len() - 1]) * (6.0 - 0.7 * i as f64)).exp();
                        top * match picture.scale {
                            Axis::Log => (1.02 - learned) * (1.0 + noise) * 0.01 - 2e-4 * f64::from(x == xs[0]),
                            _ => learned + 0.1 * noise,
                        }
                    };
                    Curve::new(name, &*picture.measure, xs.iter().map(|x| (*x, y(*x))))
                })
            });
            SeedCurves { seed, curves: curves.collect() }
        };
        over_seeds(&(0..seeds).map(run).collect::<Vec<_>>())
    }

    fn steps(n: usize) -> Vec<f64> {
        (1..=n).map(|k| 500.0 * k as f64 / n as f64).collect()
    }

    #[test]
    fn every_experiment_is_drawn() {
        for (name, _) in SHIPPED {
            let experiment = shipped(name);
            let xs = if name == "patients" { vec![4000.0] } else { steps(50) };
            for seeds in [1, 5] {
                let pictures = experiment_pictures(&experiment, &curves(&experiment, seeds, &xs));
                assert_eq!(pictures.len(), experiment.pictures.len() + 1, "{name}");
                assert_eq!(pictures, experiment_pictures(&experiment, &curves(&experiment, seeds, &xs)));
                for (stem, svg) in &pictures {
                    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}: {stem}");
                    // Bands are means with a spread.
                    let banded = svg.contains("fill-opacity");
                    assert_eq!(banded, seeds > 1 && name != "patients", "{name}: {stem}");
                }
            }
        }
    }

    #[test]
    fn the_legend_covers_no_plot() {
        for (name, _) in SHIPPED {
            let experiment = shipped(name);
            let xs = if name == "patients" { vec![4000.0] } else { steps(20) };
            let means = curves(&experiment, 3, &xs);
            let cast = Cast::of(&experiment, &means);
            let Some(figure) = cast.figure(&experiment.title, &experiment.pictures) else { panic!("{name}: nothing") };
            let (legend, corners) = (figure.legend_frame(), figure.corners());
            for ((x, y), panel) in corners.iter().zip(&figure.panels) {
                assert!(y + panel.plot.bottom() < legend.y && x + panel.plot.right() <= legend.right(), "{name}");
                assert!(panel.plot.bottom() < panel.height && panel.plot.right() < panel.width + 1e-9, "{name}");
            }
            for (pair, panel) in corners.windows(2).zip(&figure.panels) {
                assert!(pair[0].0 + panel.width < pair[1].0, "{name}: panels meet");
            }
        }
    }

    #[test]
    fn a_line_goes_through_its_means_and_a_band_has_their_spread() {
        let text = "title='t'\nabout='a'\nseeds=2\n[study]\nkind='online'\nplace='driving'\ncontexts=2\nevery=1\ntest_contexts=1\n\
            [[method]]\nname='PSGD'\nlearner={name='mirror_descent'}\n[[picture]]\nmeasure='v'\nx='x'\ny='y'\nrange=[0.0,10.0]\n";
        let experiment = Experiment::read(text, Scale::Usual, &[]).unwrap_or_else(|error| panic!("{error}"));
        let run = |seed, y| SeedCurves { seed, curves: vec![Curve::new("PSGD", "v", [(0.0, y), (10.0, y + 5.0)])] };
        let means = over_seeds(&[run(0, 0.0), run(1, 2.0)]);
        let svg = &experiment_pictures(&experiment, &means)[0].1;
        // 300 × 210 pixels with 7 on every side: x from 7 to 293, y from 203 down at 0 to 7 at 10, so 19.6 for each unit.
        assert!(svg.contains("<polyline points=\"7,183.4 293,85.4\""), "{svg}");
        // One standard deviation is √2.
        assert!(svg.contains("<polygon points=\"7,155.68 293,57.68 293,113.12 7,211.12\""), "{svg}");
    }

    #[test]
    fn what_has_no_logarithm_is_left_out() {
        let experiment = shipped("driving-online");
        let run =
            SeedCurves { seed: 0, curves: vec![Curve::new("PSGD", "loss", [(1.0, -1.0), (2.0, 0.1), (3.0, 0.01)])] };
        let pictures = experiment_pictures(&experiment, &over_seeds(&[run]));
        assert_eq!(pictures.iter().map(|(stem, _)| &**stem).collect::<Vec<_>>(), ["loss", "figure"]);
        let line = pictures[0].1.lines().find(|line| line.starts_with("<polyline")).unwrap_or_default();
        assert_eq!(line.matches(',').count(), 2, "{line}");
        assert!(experiment_pictures(&experiment, &[]).is_empty());
    }

    #[test]
    fn pixels_are_the_same_every_time() {
        let experiment = shipped("patients");
        let pictures = experiment_pictures(&experiment, &curves(&experiment, 2, &[4000.0]));
        let png = |i: usize| png_of(&pictures[i].1).unwrap_or_default();
        assert!(png(0).starts_with(b"\x89PNG") && png(0) == png(0) && png(0) != png(1));
        assert!(pictures[0].1.contains("what the paper reports") && !pictures[1].1.contains("what the paper reports"));
        assert!(png_of("no picture").is_err());
    }

    #[test]
    fn file_names_are_words() {
        assert_eq!(stem("value above random, training contexts"), "value-above-random-training-contexts");
        assert_eq!(stem("macro-F1"), "macro-f1");
    }
}
