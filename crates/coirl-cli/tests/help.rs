//! What people read: the help pages, the list of domains and a domain in numbers.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use running::{Folder, text};

fn page(arguments: &str) -> String {
    let page = text(Folder::new().coirl(arguments).success());
    let widest = page.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 80, "{arguments}: {widest} columns");
    assert!(!page.contains('\u{1b}'), "{arguments}: styles without a terminal");
    page
}

#[test]
fn help_pages() {
    for (name, arguments) in [
        ("coirl", "--help"),
        ("check", "check --help"),
        ("fit", "fit --help"),
        ("explain", "explain --help"),
        ("predict", "predict --help"),
        ("report", "report --help"),
        ("domain", "domain --help"),
        ("domain_list", "domain list --help"),
        ("domain_show", "domain show --help"),
        ("domain_show_grid", "domain show grid --help"),
        ("domain_show_pendulum", "domain show pendulum --help"),
        ("domain_show_maze", "domain show maze --help"),
        ("domain_show_epidemic", "domain show epidemic --help"),
        ("domain_export", "domain export --help"),
        ("domain_export_driving", "domain export driving --help"),
        ("domain_export_garnet", "domain export garnet --help"),
        ("domain_demonstrate", "domain demonstrate --help"),
        ("domain_demonstrate_driving", "domain demonstrate driving --help"),
        ("domain_draw", "domain draw --help"),
        ("domain_draw_driving", "domain draw driving --help"),
        ("plan", "plan --help"),
        ("info", "info --help"),
        ("completions", "completions --help"),
    ] {
        insta::assert_snapshot!(format!("help_{name}"), page(arguments));
    }
}

#[test]
fn domains_in_words() {
    insta::assert_snapshot!("domain_list", page("domain list"));
    insta::assert_snapshot!("domain_show_driving", page("domain show driving"));
    insta::assert_snapshot!("domain_show_garnet", page("domain show garnet --kernels 3 --seed 2"));
    insta::assert_snapshot!("domain_show_maze", page("domain show maze --side 20 --seed 2"));
}

#[test]
fn a_plan_in_words() {
    let folder = Folder::new();
    let plan = text(folder.coirl("plan grid --weights 1,0,0,0,0,0,0,0,0,0,0,0 --tolerance 1e-3 --values").success());
    // Bounds and sweeps are the planner's business.
    let changing = ["within", "certificate", "sweeps"];
    let words: Vec<&str> = plan.lines().filter(|line| !changing.iter().any(|word| line.contains(word))).collect();
    insta::assert_snapshot!("plan_grid", words.join("\n"));
}
