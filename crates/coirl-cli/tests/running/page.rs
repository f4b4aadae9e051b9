//! What every page promises, and a real browser to read it with.

use std::path::Path;
use std::process::Command;

/// Elements are closed in order, tables have captions, ids are unique, and nothing is fetched or run.
pub(crate) fn well_formed(page: &str) {
    assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">") && page.ends_with("</html>\n"));
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once('<') {
        if let Some(comment) = after.strip_prefix("!--") {
            rest = comment.split_once("-->").unwrap().1;
            continue;
        }
        let (tag, after) = after.split_once('>').unwrap();
        rest = after;
        let name = tag.split([' ', '\n']).next().unwrap().trim_end_matches('/');
        match name.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed), "before {:.80}", rest),
            None if tag.ends_with('/') || matches!(name, "meta" | "!doctype") => {}
            None => {
                assert!(name.chars().all(|c| c.is_ascii_alphanumeric()) && !name.is_empty(), "<{tag}>");
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for word in ["http", "<script", "<link", "<img", "@import", "url(//", "javascript:"] {
        assert!(!page.contains(word), "{word}");
    }
    let count = |piece: &str| page.matches(piece).count();
    assert_eq!((count("<h1"), count("<table"), count("<figure")), (1, count("<caption"), count("role=\"img\"")));
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).map(|piece| piece.split('"').next().unwrap()).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    for target in page.split("href=\"#").skip(1).map(|piece| piece.split('"').next().unwrap()) {
        assert!(ids.contains(&target), "#{target}");
    }
}

/// The page as a browser understands it, with whatever it complained about. Nothing where no browser is installed, which is refused where
/// `COIRL_REQUIRE_BROWSER` is set, as in `cargo xtask test`.
pub(crate) fn in_browser(page: &Path) -> Option<(String, String)> {
    let profile = tempfile::tempdir().unwrap();
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(|browser| {
        let mut command = Command::new(browser);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ]);
        command.args(["--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--dump-dom"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.arg(format!("file://{}", page.display())).output().ok()
    });
    let Some(output) = found else {
        assert!(std::env::var_os("COIRL_REQUIRE_BROWSER").is_none(), "no browser was found");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr).lines().filter(|line| line.contains("CONSOLE")).collect();
    Some((String::from_utf8(output.stdout).unwrap(), errors))
}
