//! Every relative link of the documentation leads to something that exists, and every page is in the book.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All markdown files below a folder, in the order of their names.
fn pages_below(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let of = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => pages_below(&path),
        Some(extension) if extension == "md" => vec![path],
        _ => Vec::new(),
    };
    entries.into_iter().flat_map(of).collect()
}

/// Targets of links and pictures, with their line, counted from one. What is code is no link.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            // Every other part between back-quotes is code.
            let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            let targets = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
            found.extend(targets.map(|target| (i + 1, target.to_owned())));
        }
    }
    found
}

/// The file that a link leads to; nothing for the network.
fn file(page: &Path, target: &str) -> Option<PathBuf> {
    let elsewhere = ["https:", "http:", "mailto:"].iter().any(|scheme| target.starts_with(scheme));
    match target.split('#').next() {
        _ if elsewhere => None,
        None | Some("") => Some(page.to_owned()),
        Some(path) => Some(page.parent().unwrap().join(path)),
    }
}

/// Whether a page has the heading that a link names after '#'.
fn has_heading(text: &str, fragment: &str) -> bool {
    let name = |heading: &str| -> String {
        let kept = heading.trim().to_lowercase().replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    };
    text.lines().filter_map(|line| line.strip_prefix('#')).any(|line| name(line.trim_start_matches('#')) == fragment)
}

/// What is wrong with a link; nothing where it leads somewhere.
fn wrong(page: &Path, target: &str) -> Option<&'static str> {
    let path = file(page, target)?;
    if !path.exists() {
        return Some("there is no such file");
    }
    let (_, fragment) = target.split_once('#')?;
    let found =
        path.extension().is_some_and(|e| e == "md") && has_heading(&fs::read_to_string(path).unwrap(), fragment);
    (!found).then_some("there is no such heading")
}

#[test]
fn links_lead_somewhere() {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    pages.extend(pages_below(&root().join("docs")));
    let mut broken = Vec::new();
    for page in pages {
        for (line, target) in links(&fs::read_to_string(&page).unwrap()) {
            if let Some(reason) = wrong(&page, &target) {
                let shown = page.strip_prefix(root()).unwrap().display();
                broken.push(format!("{shown}, line {line}: {target}: {reason}"));
            }
        }
    }
    assert!(broken.is_empty(), "links to nothing:\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_book() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let text = fs::read_to_string(&summary).unwrap();
    let listed: Vec<PathBuf> = links(&text).iter().filter_map(|(_, target)| file(&summary, target)).collect();
    let missing = |page: &&PathBuf| **page != summary && !listed.contains(page);
    let pages = pages_below(&docs);
    let missing: Vec<&PathBuf> = pages.iter().filter(missing).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
    let twice = |i: &usize| listed[..*i].contains(&listed[*i]);
    let twice: Vec<&PathBuf> = (0..listed.len()).filter(twice).map(|i| &listed[i]).collect();
    assert!(twice.is_empty(), "more than once in docs/SUMMARY.md: {twice:?}");
}

#[test]
fn links_are_found() {
    let text = "[a](x.md), ![b](y.svg \"title\") and `[c](no.md)`\n```\n[d](no.md)\n```\n[e](z.md#there) [f](#here)";
    let found: Vec<(usize, String)> = links(text);
    let expected = [(1, "x.md"), (1, "y.svg"), (5, "z.md#there"), (5, "#here")];
    assert_eq!(found, expected.map(|(line, target)| (line, target.to_owned())));
    let page = Path::new("docs/page.md");
    assert_eq!(file(page, "z.md#there"), Some(PathBuf::from("docs/z.md")));
    assert_eq!(file(page, "#here"), Some(page.to_owned()));
    assert_eq!(file(page, "https://example.org/x.md"), None);
    assert!(has_heading("# A\n\n## Fit, and `look`\n", "fit-and-look"));
    assert!(!has_heading("# A\n\nFit, and look\n", "fit-and-look"));
}

/// All Rust files of tests, as one text.
fn tests_below(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => tests_below(&path),
        Some(extension) if extension == "rs" => fs::read_to_string(path).unwrap(),
        _ => String::new(),
    };
    entries.map(of).collect()
}

#[test]
fn tests_that_a_promise_names_exist() {
    let page = fs::read_to_string(root().join("docs/reliability.md")).unwrap();
    let tests =
        ["crates/coirl/tests", "crates/coirl-cli/tests"].map(|folder| tests_below(&root().join(folder))).concat();
    let code: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let functions =
        code.iter().filter(|word| word.contains('_') && word.chars().all(|c| c.is_alphanumeric() || c == '_'));
    let missing: Vec<&&str> = functions.filter(|name| !tests.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "docs/reliability.md names tests that are not there: {missing:?}");
    for file in code.iter().filter(|word| word.ends_with(".rs")) {
        let stem = file.trim_end_matches(".rs");
        let places = ["crates/coirl/tests", "crates/coirl-cli/tests", "crates/coirl/tests/numbers_under_attack"];
        let there =
            places.iter().any(|place| root().join(place).join(file).exists() || root().join(place).join(stem).is_dir());
        assert!(there, "docs/reliability.md names {file}, which is not there");
    }
}
