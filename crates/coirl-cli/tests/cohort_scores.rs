//! What `score`, `report` and `fit` say of an agent beside trivial rules, and of what limits its scores.
#![allow(clippy::unwrap_used)]

mod running;

use running::{Folder, json, text};
use serde_json::Value;

/// Numbered actions, of which the last is rare and goes with what is measured late in a stay: machines that are replaced when they are worn.
fn machines(stays: usize) -> String {
    let mut random = 5_u64;
    let mut next = || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as f64 / (1_u64 << 31) as f64
    };
    let mut table = String::from("machine,month,site,wear,action\n");
    for machine in 0..stays {
        let (site, mut wear, mut usual) = (u8::from(next() < 0.5), 0.0, 0);
        for month in 0..30 {
            // Two ways of running it, which are kept up for some time.
            usual = if next() < 0.1 { 1 - usual } else { usual };
            let action = if wear > 0.6 && next() < 0.35 { 2 } else { usual };
            table += &format!("{machine},{month},{site},{wear:.3},{action}\n");
            wear = if action == 2 { 0.0 } else { wear + 0.06 * next() };
        }
    }
    table
}

const MACHINES: &str = "preset = \"long\"\n[table]\npath = \"machines.csv\"\nstay = \"machine\"\ntime = \"month\"\n[context]\nfields = [\"site\"]\n\
    [state]\nmeasurements = [\"wear\"]\nclusters = 6\n[action]\ncolumn = \"action\"\nnumber = 3\n";

fn with_machines(stays: usize) -> Folder {
    let folder = Folder::new();
    folder.write("machines.csv", machines(stays));
    folder.write("machines.toml", MACHINES);
    folder.coirl("cohort build machines.toml --out c -q").success();
    folder
}

fn rule<'a>(scored: &'a Value, name: &str) -> &'a Value {
    let all = scored["runs"][0]["agreement"]["comparisons"].as_array().unwrap();
    all.iter().find(|own| own["rule"] == name).unwrap_or_else(|| panic!("{name}: {all:?}"))
}

/// Steps of a part as (stay, state, action).
fn steps(folder: &Folder, part: &str) -> Vec<(u32, u32, u32)> {
    let file = String::from_utf8(folder.read(&format!("c/{part}/trajectories.csv"))).unwrap();
    let cells = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |i: usize| cells[i].parse().unwrap();
        (!cells[3].is_empty()).then(|| (number(0), number(2), number(3)))
    };
    file.lines().skip(1).filter_map(cells).collect()
}

fn most_frequent(actions: impl Iterator<Item = u32>) -> u32 {
    let mut times = [0; 8];
    actions.for_each(|action| times[action as usize] += 1);
    (0..8).rev().max_by_key(|&action| times[action]).unwrap() as u32
}

#[test]
fn rules_are_learned_from_training_stays_and_counted_right() {
    let folder = with_machines(120);
    folder.coirl("fit c --method majority --out run -q").success();
    let scored = json(folder.coirl("cohort score run --resamples 50 --json -q").success());
    let (train, test) = (steps(&folder, "train"), steps(&folder, "test"));
    let share =
        |right: &dyn Fn(usize) -> bool| (0..test.len()).filter(|&i| right(i)).count() as f64 / test.len() as f64;
    let found = |name: &str| rule(&scored, name)["same_action"]["value"].as_f64().unwrap();
    let most = most_frequent(train.iter().map(|step| step.2));
    assert!((found("most_frequent") - share(&|i| test[i].2 == most)).abs() < 1e-12);
    let of_state = |state: u32| most_frequent(train.iter().filter(|step| step.1 == state).map(|step| step.2));
    assert!((found("most_frequent_of_state") - share(&|i| test[i].2 == of_state(test[i].1))).abs() < 1e-12);
    let is_first = |list: &[(u32, u32, u32)], i: usize| i == 0 || list[i - 1].0 != list[i].0;
    let first = most_frequent((0..train.len()).filter(|&i| is_first(&train, i)).map(|i| train[i].2));
    let before = |i: usize| if is_first(&test, i) { first } else { test[i - 1].2 };
    assert!((found("previous") - share(&|i| test[i].2 == before(i))).abs() < 1e-12);
    // Who sees what was done before and what is measured sees most.
    assert!(found("logistic") > found("most_frequent") + 0.2 && found("logistic") >= found("previous") - 0.02);
    assert_eq!(scored["logistic"]["converged"], true);
    assert_eq!(scored["logistic"]["measurements"], true);
    // The differences are those of the agent.
    let own = scored["runs"][0]["agreement"]["overall"]["top_one"]["value"].as_f64().unwrap();
    let difference = rule(&scored, "previous")["same_action_difference"]["value"].as_f64().unwrap();
    assert!((own - found("previous") - difference).abs() < 1e-12);
    let verdict = &scored["runs"][0]["verdict"];
    assert_eq!(verdict["standing"], "worse", "{verdict}");
    let shown = text(folder.coirl("cohort score run --resamples 50 -q").success());
    let unwrapped = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("run is worse than the best trivial rule, "), "{shown}");
    assert!(shown.find("Verdict").unwrap() < shown.find("Action matching").unwrap(), "{shown}");
}

#[test]
fn nominal_actions_have_no_neighbours_and_rare_ones_a_curve() {
    let folder = with_machines(120);
    folder.coirl("fit c --method bc --out run -q").success();
    let scored = json(folder.coirl("cohort score run --resamples 50 --json -q").success());
    let agreement = &scored["runs"][0]["agreement"];
    assert_eq!(agreement["overall"]["within_one"], Value::Null);
    let rare = &agreement["rare"].as_array().unwrap()[..];
    assert_eq!(rare.len(), 1, "{rare:?}");
    assert_eq!(rare[0]["event"], "action 2");
    assert!(rare[0]["auc"]["value"].as_f64().unwrap() > 0.8, "{}", rare[0]["auc"]);
    let hazard = rare[0]["hazard"].as_array().unwrap();
    let ends = [&hazard[0], &hazard[hazard.len() - 1]].map(|bin| bin["recorded"].as_f64().unwrap());
    assert!(hazard.len() >= 4 && ends[1] > ends[0] + 0.05, "{hazard:?}");
    let shown = text(folder.coirl("cohort score run --resamples 50 -q").success());
    assert!(!shown.contains("within one level") && shown.contains("Rare actions"), "{shown}");
    // Nobody said who the patients are.
    assert!(shown.contains("stays to score on") && !shown.contains("patients to score on"), "{shown}");
    folder.coirl("report run --resamples 50 -q").success();
    let page = String::from_utf8(folder.read("run/report.html")).unwrap();
    assert!(page.contains("<section id=\"rare\"") && page.contains("<dt>stays</dt>"));
    assert!(!page.contains("within one level"));
}

#[test]
fn few_patients_many_parameters_and_actions_that_nobody_can_take_are_told() {
    let folder = with_machines(30);
    folder.coirl("cohort build machines.toml --set dynamics.min_support=40 --out c -q").success();
    let fitted =
        text(folder.coirl("fit c --method network --steps 3 --set hidden.layers=200,200 --out run -q").success());
    let unwrapped = |shown: &str| shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["stays to score on, fewer than 50", "parameters, learned from", "it can know them by heart"] {
        assert!(unwrapped(&fitted).contains(words), "{words}: {fitted}");
    }
    let said = json(folder.coirl("fit c --method majority --out small --json -q").success());
    assert_eq!(said["limits"].as_array().unwrap().len(), 1, "{}", said["limits"]);
    let scored = json(folder.coirl("cohort score run --resamples 20 --json -q").success());
    let admitted = scored["limits"]["admitted"].as_f64().unwrap();
    // Pairs with 40 training steps, and where a state has none the most frequent one.
    let (train, test) = (steps(&folder, "train"), steps(&folder, "test"));
    let seen = |state: u32, action: u32| train.iter().filter(|step| (step.1, step.2) == (state, action)).count();
    let known = |state: u32, action: u32| {
        seen(state, action) >= (0..3).map(|action| seen(state, action)).max().unwrap().clamp(1, 40)
    };
    let expected = test.iter().filter(|step| known(step.1, step.2)).count() as f64 / test.len() as f64;
    assert!((admitted - expected).abs() < 1e-12 && admitted < 1.0, "{admitted} instead of {expected}");
    let own = scored["runs"][0]["agreement"]["overall"]["top_one"]["value"].as_f64().unwrap();
    assert!(own <= admitted);
    let shown = text(folder.coirl("cohort score run --resamples 20 -q").success());
    let ceiling = format!("no agent that keeps to known pairs can exceed {:.1} %", 100.0 * admitted);
    assert!(unwrapped(&shown).contains(&ceiling), "{ceiling}: {shown}");
    folder.coirl("report run --resamples 20 -q").success();
    assert!(String::from_utf8(folder.read("run/report.html")).unwrap().contains(&ceiling));
}

#[test]
fn parts_of_the_split_and_doses_are_told_in_the_units_of_people() {
    let folder = Folder::new();
    folder.coirl("cohort synthesize --stays 250 --seed 1 --out table.csv -q").success();
    let units = "--set units.age=days --set units.input_4hourly=mL";
    let built = text(folder.coirl(&format!("cohort build table.csv --states 20 {units} --out c -q")).success());
    let line = |start: &str| {
        built.lines().find(|line| line.trim_start().starts_with(start)).unwrap_or_else(|| panic!("{start}: {built}"))
    };
    assert!(line("age, mean").matches(" years").count() == 3, "{built}");
    assert!(line("mortality_90d, bad").matches(" %").count() == 3, "{built}");
    folder.coirl("fit c --method majority --out run -q").success();
    let predicted = text(folder.coirl("predict run --context 0.1,0.1,0.1,0.1,0.2,0.2,0.2 -q").success());
    assert!(predicted.contains("Levels of the doses") && predicted.contains(" mL"), "{predicted}");
    folder.coirl("report run --resamples 20 --off-policy-resamples 2 --true-patients 2 -q").success();
    let page = String::from_utf8(folder.read("run/report.html")).unwrap();
    // What was recorded is no estimate.
    assert!(!page.contains("clinicians, recorded") && page.contains("of the stays ended well"));
    assert!(page.contains(" years</td>") && page.contains(" mL"));
}

#[test]
fn resampled_fits_stop_where_the_run_did() {
    let folder = with_machines(200);
    folder.coirl("fit c --method adaptive --steps 3000 --out run -q").success();
    let explained = json(folder.coirl("explain run --bootstrap 20 --folds 0 --entries 1 --json -q").success());
    let entries = explained["entries"].as_array().unwrap();
    let is_outside = |entry: &&Value| {
        let end = |name: &str| entry["bootstrap"][name].as_f64().unwrap();
        let weight = entry["weight"].as_f64().unwrap();
        weight < end("lower") || weight > end("upper")
    };
    let outside = entries.iter().filter(is_outside).count();
    assert!(4 * outside <= entries.len(), "{outside} of {}", entries.len());
}
