//! Pictures of domains: well-formed, the same every time, and in agreement with the plans they show.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use running::{Folder, json};
use std::collections::BTreeMap;

const ROAD: &str = "0.1,-1,-0.5";

fn drawn(arguments: &str) -> String {
    let folder = Folder::new();
    folder.coirl(&format!("domain draw {arguments} --quiet --out picture.svg")).success();
    String::from_utf8(folder.read("picture.svg")).unwrap()
}

/// The attributes of every element of an SVG; every element must be closed, in the order of opening.
fn elements(svg: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        assert!(!text.contains('>') && !text.replace("&amp;", "").contains("& "), "{text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut attributes = BTreeMap::new();
        while let Some((attribute, after)) = rest.trim_start().split_once("=\"") {
            let (value, after) = after.split_once('"').unwrap();
            assert!(attributes.insert(attribute.to_owned(), value.to_owned()).is_none(), "{attribute} twice");
            rest = after;
        }
        assert_eq!(rest.trim(), "", "{tag}");
        all.push((name.to_owned(), attributes));
        if !closed {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

/// Which action is drawn in which state.
fn arrows(svg: &str) -> BTreeMap<usize, String> {
    let said = elements(svg).into_iter().filter_map(|(_, mut attributes)| {
        Some((attributes.get("data-state")?.parse().unwrap(), attributes.remove("data-action")?))
    });
    said.collect()
}

/// The policy of `coirl plan`, by action number.
fn planned(arguments: &str) -> Vec<u64> {
    let plan = json(Folder::new().coirl(&format!("plan {arguments} --json")).success());
    plan["policy"].as_array().unwrap().iter().map(|action| action.as_u64().unwrap()).collect()
}

#[test]
fn pictures_are_well_formed_and_the_same_every_time() {
    for arguments in [
        "grid --weights 1,0,0,0,0,-1,0,0,0,0,0,0".to_owned(),
        format!("driving --weights {ROAD}"),
        format!("driving --weights {ROAD} --roll-out"),
        format!("driving --weights {ROAD} --roll-out 1 --actions 2 --polarity paper"),
        "driving --weights 0,0,0".to_owned(),
        "grid --width 1 --height 1 --weights 0".to_owned(),
    ] {
        let svg = drawn(&arguments);
        assert_eq!(svg, drawn(&arguments), "{arguments}");
        let elements = elements(&svg);
        assert_eq!(elements[0].0, "svg");
        // On white, so that it can be read on a dark page.
        assert_eq!((&*elements[1].0, &*elements[1].1["fill"]), ("rect", "#ffffff"), "{arguments}");
        assert_eq!(elements[1].1["width"], elements[0].1["width"]);
        for (name, value) in elements.iter().flat_map(|(_, attributes)| attributes) {
            let spoiled = ["NaN", "inf"].iter().any(|word| value.contains(word));
            assert!(!spoiled || name == "aria-label" || value == "indefinite", "{arguments}: {name}={value}");
        }
        assert!(!svg.contains("<script") && !svg.contains("url("), "{arguments}");
    }
}

#[test]
fn arrows_of_the_grid_lead_to_the_only_reward() {
    // A reward in cell (1, 1) alone: every cell next to it has one shortest way, worth 0.9 / (1 - 0.81) from the second step on.
    let weights = "0,0,0,0,1,0,0,0,0,0,0,0";
    let svg = drawn(&format!("grid --weights {weights}"));
    let arrows = arrows(&svg);
    let known = [(1, "down"), (3, "right"), (5, "left"), (7, "up")];
    known.iter().for_each(|(cell, action)| assert_eq!(arrows[cell], *action, "cell {cell}"));
    let names = ["left", "up", "right", "down"];
    let policy = planned(&format!("grid --weights {weights}"));
    assert_eq!(arrows.into_values().collect::<Vec<_>>(), policy.iter().map(|a| names[*a as usize]).collect::<Vec<_>>());
    // 1 + γ² + γ⁴ + …, and γ times that beside it.
    assert!(svg.contains(">5.26</text>") && svg.contains(">4.74</text>"), "{svg}");
}

#[test]
fn arrows_of_the_road_are_those_of_the_plan() {
    let policy = planned(&format!("driving --weights {ROAD}"));
    let arrows = arrows(&drawn(&format!("driving --weights {ROAD}")));
    // One speed: 17 places of car A, three lanes and ten places of car B.
    assert_eq!(arrows.len(), 510);
    let speed = [1, 0, 2][policy[0] as usize];
    assert_eq!(arrows.keys().next(), Some(&(1 + 510 * speed)));
    let names = ["stay", "left", "right"];
    arrows.iter().for_each(|(state, action)| assert_eq!(action, names[policy[*state] as usize], "state {state}"));
    // Far left of the road, with car B far away in the right lane, there is no reason but to come back.
    assert_eq!(arrows[&(1 + 510 * speed + 2 * 10)], "right");
}

#[test]
fn a_drive_moves_and_stays_the_drive_of_its_seed() {
    let careful = format!("driving --weights {ROAD} --roll-out 25");
    let svg = drawn(&careful);
    assert!(svg.contains("A drive of 25 steps") && svg.contains("steps with a collision: 0; off the road: 0"), "{svg}");
    assert_ne!(svg, drawn(&format!("{careful} --seed 1")));
    // Whoever likes collisions has some.
    let reckless = drawn("driving --weights 0,1,0 --roll-out 25");
    assert!(!reckless.contains("steps with a collision: 0;"));
    for (name, attributes) in elements(&svg).iter().filter(|(name, _)| name.starts_with("animate")) {
        let values: Vec<&str> = attributes["values"].split(';').collect();
        let Some(times) = attributes.get("keyTimes") else { continue };
        let times: Vec<f64> = times.split(';').map(|time| time.parse().unwrap()).collect();
        assert_eq!(times.len(), values.len(), "{name}");
        assert!(times[0] == 0.0 && times.windows(2).all(|pair| pair[0] <= pair[1]) && times[times.len() - 1] <= 1.0);
        // Between other times than 0 and 1 nothing would be shown at all.
        assert!(attributes.contains_key("calcMode") || times[times.len() - 1] == 1.0, "{times:?}");
        assert_eq!(attributes["dur"], "15s");
    }
    assert_eq!(svg.matches("<animate").count(), 7);
}

#[test]
fn learned_rewards_are_drawn() {
    let folder = Folder::new();
    running::write_contexts(&folder, 12);
    let mapped = folder.coirl("domain draw driving --mapping mapping.csv --context 0.2,0.3,0.5 --out mapped.svg");
    mapped.success();
    let typed = folder.coirl("domain draw driving --weights 0.325,0.35,0.075 --out typed.svg");
    typed.success();
    let arrows_of = |name: &str| arrows(&String::from_utf8(folder.read(name)).unwrap());
    assert_eq!(arrows_of("mapped.svg"), arrows_of("typed.svg"));
    folder.coirl("domain demonstrate driving --contexts 8 --out demos").success();
    let fit = "fit --model driving --contexts demos/contexts.csv --feature-expectations demos/feature-expectations.csv";
    folder.coirl(&format!("{fit} --steps 5 --out run --quiet")).success();
    folder.coirl("domain draw driving --run run --context 0.2,0.3,0.5 --roll-out --out run.png").success();
    assert!(folder.read("run.png").starts_with(b"\x89PNG"));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let folder = Folder::new();
    let refused = |arguments: &str, words: &str| {
        let run = folder.coirl(&format!("domain draw {arguments}"));
        let said = String::from_utf8(run.failure().get_output().stderr.clone()).unwrap();
        assert!(said.contains(words), "{arguments}: {said}");
    };
    refused("driving --weights 1,2 --out a.svg", "2 numbers");
    refused("driving --weights 1,2,3 --out a.pdf", ".svg or .png");
    refused("driving --weights 1,2,3 --out nowhere/a.svg", "folder");
    refused("driving --mapping m.csv --out a.svg", "--context");
    refused("driving --weights 1,2,3 --roll-out 0 --out a.svg", "--roll-out");
    let weights = ["0"; 930].join(",");
    refused(&format!("grid --width 31 --height 30 --weights {weights} --out a.svg"), "at most 900");
    assert!(folder.names().is_empty());
}
