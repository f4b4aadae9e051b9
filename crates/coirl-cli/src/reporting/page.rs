//! The skeleton of a page: head, contents, sections and foot. Light and dark as the reader prefers, and printable.

use super::markup::{Markup, element, paragraph, text};
use crate::cohorts::NOT_FOR_CLINICAL_USE;
use crate::failure::Failure;
use std::borrow::Cow;
use std::io::Write;

const STYLE: &str = include_str!("page.css");

/// A part of the page below a heading of its own.
pub(crate) struct Section {
    /// What links call it.
    pub(super) id: Cow<'static, str>,
    pub(super) heading: Cow<'static, str>,
    pub(super) content: Markup,
}

impl Section {
    pub(crate) fn new(
        id: impl Into<Cow<'static, str>>,
        heading: impl Into<Cow<'static, str>>,
        content: Markup,
    ) -> Self {
        Self { id: id.into(), heading: heading.into(), content }
    }
}

/// A page.
pub(crate) struct Page {
    pub(crate) title: String,
    /// One sentence below the title.
    pub(crate) lead: String,
    /// Whether it may show patients.
    pub(crate) clinical: bool,
    /// What writes the same page again.
    pub(crate) command: String,
    pub(crate) sections: Vec<Section>,
}

impl Page {
    pub(crate) fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let caution = || match self.clinical {
            true => element("p", &[("class", "caution")], text(NOT_FOR_CLINICAL_USE)),
            false => Markup::default(),
        };
        let lead = element("p", &[("class", "lead")], text(&self.lead));
        let header = Markup::all([element("h1", &[], text(&self.title)), lead, caution()]);
        let link = |section: &Section| {
            let target = format!("#{}", section.id);
            element("li", &[], element("a", &[("href", &target)], text(&section.heading)))
        };
        let contents = element("ul", &[], Markup::all(self.sections.iter().map(link)));
        let section = |section: &Section| {
            let heading = format!("{}-heading", section.id);
            let content =
                Markup::all([element("h2", &[("id", &heading)], text(&section.heading)), section.content.clone()]);
            element("section", &[("id", &section.id), ("aria-labelledby", &heading)], content)
        };
        let made = Markup::all([
            text(&format!("Made by coirl {} with ", env!("CARGO_PKG_VERSION"))),
            element("code", &[], text(&self.command)),
            text("."),
        ]);
        let research = if self.clinical { paragraph(NOT_FOR_CLINICAL_USE) } else { Markup::default() };
        let body = Markup::all([
            element("header", &[], header),
            element("nav", &[("aria-label", "Contents")], contents),
            element("main", &[], Markup::all(self.sections.iter().map(section))),
            element("footer", &[], Markup::all([element("p", &[], made), research])),
        ]);
        writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
        writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
        write!(out, "{}", element("title", &[], text(&self.title)).as_str())?;
        write!(out, "<style>\n{STYLE}</style>\n</head>\n{}</html>\n", element("body", &[], body).as_str())?;
        Ok(())
    }
}
