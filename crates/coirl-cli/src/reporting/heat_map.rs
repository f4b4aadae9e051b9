//! A matrix of signed numbers as a table with coloured cells.

use super::markup::{Markup, column_header, element, framed, text};
use super::shade::Shade;

/// Columns that fit a page; wider matrices are turned on their side where that makes them narrower.
const MOST_COLUMNS: usize = 8;

/// A matrix with its names.
pub(super) struct HeatMap {
    pub(super) title: String,
    /// What rows and columns are.
    pub(super) axes: [&'static str; 2],
    pub(super) rows: Vec<String>,
    pub(super) columns: Vec<String>,
    /// Row by row.
    pub(super) values: Vec<Vec<f64>>,
}

impl HeatMap {
    /// The table with a key to its colours.
    pub(super) fn draw(self) -> Markup {
        let most = self.values.iter().flatten().fold(0.0_f64, |most, x| most.max(x.abs()));
        let turned = self.columns.len() > MOST_COLUMNS.max(self.rows.len());
        let map = if turned { self.turned() } else { self };
        let corner = format!("{} ↓, {} →", map.axes[0], map.axes[1]);
        let header = [corner.as_str()].into_iter().chain(map.columns.iter().map(String::as_str)).map(column_header);
        let cell = |x: &f64| {
            let style = Shade::of(if most > 0.0 { x / most } else { 0.0 }).style();
            element("td", &[("style", &style)], text(&shown(*x, most)))
        };
        let row = |(name, values): (&String, &Vec<f64>)| {
            let name = element("th", &[("scope", "row")], text(name));
            element("tr", &[], Markup::all([name].into_iter().chain(values.iter().map(cell))))
        };
        let rows = map.rows.iter().zip(&map.values).map(row);
        let table = Markup::all([
            element("caption", &[], text(&map.title)),
            element("thead", &[], element("tr", &[], Markup::all(header))),
            element("tbody", &[], Markup::all(rows)),
        ]);
        let sample = |x: f64| {
            let style = Shade::of(x).style();
            element("span", &[("style", &style)], text(&shown(x * most, most)))
        };
        let samples = [-1.0, -0.5, 0.0, 0.5, 1.0].map(sample);
        let key = Markup::all([text("Dark is negative, light is positive: ")].into_iter().chain(samples));
        Markup::all([
            framed(&map.title, element("table", &[("class", "heat")], table)),
            element("p", &[("class", "key")], key),
        ])
    }

    fn turned(self) -> Self {
        let column = |j: usize| self.values.iter().map(|row| row.get(j).copied().unwrap_or(f64::NAN)).collect();
        let values = (0..self.columns.len()).map(column).collect();
        let [rows, columns] = self.axes;
        Self { title: self.title, axes: [columns, rows], rows: self.columns, columns: self.rows, values }
    }
}

/// A number with as many decimals as give the largest three digits.
pub(super) fn shown(x: f64, most: f64) -> String {
    let decimals = if most > 0.0 { (2 - most.log10().floor() as i32).clamp(0, 9) as usize } else { 0 };
    let text = format!("{x:.decimals$}");
    // What rounds to zero has no sign, and a minus is as wide as a plus.
    match text.strip_prefix('-') {
        Some(digits) if digits.chars().all(|c| c == '0' || c == '.') => digits.to_owned(),
        Some(digits) => format!("−{digits}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_of_the_largest() {
        assert_eq!([0.5, -0.0004, -0.25].map(|x| shown(x, 0.5)), ["0.500", "0.000", "−0.250"]);
        assert_eq!([shown(1234.5, 1234.5), shown(0.0, 0.0), shown(-0.002, 0.002)], ["1234", "0", "−0.00200"]);
    }

    #[test]
    fn wide_maps_are_turned() {
        let names = |n: usize, of: &str| (0..n).map(|i| format!("{of}{i}")).collect::<Vec<_>>();
        let map = |n: usize| HeatMap {
            title: "t".into(),
            axes: ["field", "feature"],
            rows: names(2, "field"),
            columns: names(n, "feature"),
            values: vec![(0..n).map(|j| j as f64).collect(), vec![-1.0; n]],
        };
        let heads = |markup: Markup| markup.as_str().matches("scope=\"col\"").count();
        assert_eq!([heads(map(3).draw()), heads(map(30).draw())], [4, 3]);
        assert!(
            map(30).draw().as_str().contains("feature29</th><td style=\"background:#ffdd57;color:#000\">29.0</td>")
        );
    }
}
