//! Pieces of a page. Text enters escaped and every element is closed, so that no name in a file can become markup.

use crate::text::{Tabular, escaped};

/// A well-formed piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct Markup(String);

impl Markup {
    /// Several pieces, one after the other.
    pub(crate) fn all(pieces: impl IntoIterator<Item = Markup>) -> Self {
        Self(pieces.into_iter().map(|piece| piece.0).collect())
    }

    /// A drawing as the plotting library writes it. What it is called is read out in its place.
    ///
    /// The size becomes a view box, so that the drawing fits the page, and the namespace goes, which HTML knows by itself.
    pub(crate) fn drawing(svg: &str, title: &str, label: &str) -> Option<Self> {
        let start = svg.find("<svg ")? + "<svg ".len();
        let (attributes, inside) = svg[start..].split_once('>')?;
        let attribute = |name: &str| attributes.split_once(&format!("{name}=\""))?.1.split_once('"').map(|(x, _)| x);
        let (width, height) = (attribute("width")?, attribute("height")?);
        let fonts = attribute("font-family").unwrap_or("sans-serif");
        let opening = format!(
            "<svg viewBox=\"0 0 {width} {height}\" style=\"max-width:{width}px\" role=\"img\" aria-label=\"{}\" font-family=\"{}\">",
            escaped(label),
            escaped(fonts)
        );
        Some(Self(format!("{opening}<title>{}</title>{inside}", escaped(title))))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Text as it is.
pub(crate) fn text(text: &str) -> Markup {
    Markup(escaped(text))
}

/// An element around its content.
pub(crate) fn element(name: &str, attributes: &[(&str, &str)], content: Markup) -> Markup {
    let attributes: String = attributes.iter().map(|(name, value)| format!(" {name}=\"{}\"", escaped(value))).collect();
    // A line per block keeps the source readable without adding spaces inside of text.
    let end = if matches!(name, "span" | "code" | "a" | "th" | "td" | "b") { "" } else { "\n" };
    Markup(format!("<{name}{attributes}>{}</{name}>{end}", content.0))
}

/// A paragraph of text.
pub(crate) fn paragraph(words: &str) -> Markup {
    element("p", &[], text(words))
}

/// What is shown only when asked for.
pub(crate) fn details(summary: &str, content: Markup) -> Markup {
    element("details", &[], Markup::all([element("summary", &[], text(summary)), content]))
}

/// Settings as they are saved.
pub(super) fn json(value: &impl serde::Serialize) -> std::io::Result<Markup> {
    let pretty = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    let lines = pretty.lines().map(|line| Markup(format!("{}\n", escaped(line))));
    let code = element("code", &[], Markup::all(lines));
    Ok(element("pre", &[("tabindex", "0"), ("aria-label", "JSON")], code))
}

/// Terms with what is to be said of each.
pub(super) fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> Markup {
    let pair =
        |(term, words): (&str, String)| Markup::all([element("dt", &[], text(term)), element("dd", &[], text(&words))]);
    element("dl", &[], Markup::all(pairs.into_iter().map(pair)))
}

/// A table of numbers: every column but the first is aligned to the right.
pub(crate) fn table(table: &Tabular) -> Markup {
    framed(&table.title, table_of_class("numbers", table))
}

/// A table of words.
pub(crate) fn table_of_words(table: &Tabular) -> Markup {
    framed(&table.title, table_of_class("words", table))
}

/// What was found, in numbers with remarks: three columns that need no header.
pub(super) fn facts(title: &str, rows: Vec<Vec<String>>) -> Markup {
    framed(title, table_of_class("facts", &Tabular::new(title, &[], rows)))
}

fn table_of_class(class: &str, table: &Tabular) -> Markup {
    let named = table.header.iter().any(|name| !name.is_empty());
    let header = Markup::all(table.header.iter().map(|name| column_header(name)));
    let head = if named { element("thead", &[], element("tr", &[], header)) } else { Markup::default() };
    let row = |cells: &Vec<String>| {
        let cells = cells.iter().enumerate().map(|(i, cell)| match i {
            0 => element("th", &[("scope", "row")], text(cell)),
            _ => element("td", &[], text(cell)),
        });
        element("tr", &[], Markup::all(cells))
    };
    let body = element("tbody", &[], Markup::all(table.rows.iter().map(row)));
    let caption = element("caption", &[], text(&table.title));
    element("table", &[("class", class)], Markup::all([caption, head, body]))
}

/// The header of a column; of one without a name nothing is announced.
pub(super) fn column_header(name: &str) -> Markup {
    match name {
        "" => element("td", &[], Markup::default()),
        name => element("th", &[("scope", "col")], text(name)),
    }
}

/// What may be wider than the page scrolls on its own, by keys as well.
pub(super) fn framed(label: &str, content: Markup) -> Markup {
    element("div", &[("class", "wide"), ("role", "region"), ("tabindex", "0"), ("aria-label", label)], content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_markup() {
        let shown = element("p", &[("title", "a\"b")], text("<script>'&\u{7}</script>"));
        assert_eq!(shown.0, "<p title=\"a&quot;b\">&lt;script&gt;&#39;&amp; &lt;/script&gt;</p>\n");
    }

    #[test]
    fn a_drawing_fits_the_page_and_says_what_it_is() {
        let svg = "<?xml?><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"5\"><g/></svg>";
        let drawing = Markup::drawing(svg, "T", "a & b").unwrap_or_default().0;
        assert!(
            drawing.starts_with(
                "<svg viewBox=\"0 0 10 5\" style=\"max-width:10px\" role=\"img\" aria-label=\"a &amp; b\""
            ),
            "{drawing}"
        );
        assert!(drawing.ends_with("><title>T</title><g/></svg>") && !drawing.contains("http"), "{drawing}");
        assert!(Markup::drawing("no drawing", "", "").is_none());
    }
}
