//! `coirl predict`: what scripts rely on, and what is refused.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use coirl::agent::act;
use coirl::artifact::read_fitted;
use coirl::contextual::plan_mapping;
use coirl::domains::Driving;
use coirl::plan::{ManyOptions, Policy};
use running::{Folder, as_network, json, numbers, text};
use serde_json::Value;

/// A fit of a small model with three kernels (a mixture) or one, under `run`.
fn fitted(kernels: usize) -> Folder {
    let folder = Folder::new();
    folder.write("truth.csv", "0.5,-0.2,0.1\n-0.3,0.6,0.4\n0.2,0.1,-0.7\n");
    let domain = format!("garnet --states 25 --actions 3 --features 3 --kernels {kernels} --seed 3");
    if kernels == 1 {
        // A garnet with one kernel declares no contexts: they come from a file.
        folder.coirl(&format!("domain export {domain} --out model.npz")).success();
        running::write_contexts(&folder, 12);
        let plans = "plan model.npz --mapping truth.csv --contexts contexts.csv --out plans.npz";
        folder.coirl(plans).success();
        let data = "--model model.npz --contexts contexts.csv --feature-expectations mu.csv";
        let planned = json(folder.coirl(&plans.replace("--out plans.npz", "--json")).success());
        let rows: Vec<String> = planned["plans"].as_array().unwrap().iter().map(row_of_expectations).collect();
        folder.write("mu.csv", rows.concat());
        folder.coirl(&format!("fit {data} --out run --quiet")).success();
    } else {
        let expert = "--mapping truth.csv --contexts 12 --test-contexts 5 --transitions 12 --out demos";
        folder.coirl(&format!("domain demonstrate {domain} {expert}")).success();
        let data = "--model demos/model.npz --contexts demos/contexts.csv";
        let seen = "--feature-expectations demos/feature-expectations.csv";
        folder.coirl(&format!("fit {data} {seen} --out run --quiet")).success();
    }
    folder
}

fn row_of_expectations(plan: &Value) -> String {
    let mu: Vec<String> = numbers(&plan["feature_expectations"]).iter().map(|x| format!("{x:?}")).collect();
    format!("{}\n", mu.join(","))
}

/// What ships, learned.
fn driving() -> Folder {
    let folder = Folder::new();
    folder.coirl("fit --shipped driving --method adaptive --quiet --out run").success();
    folder
}

fn refused(folder: &Folder, arguments: &str) -> String {
    let run = folder.coirl(arguments).failure();
    String::from_utf8(run.get_output().stderr.clone()).unwrap()
}

/// Columns that name what they hold may come in any order, wherever contexts and expectations are read.
#[test]
fn tables_are_read_by_the_names_of_their_columns() {
    let folder = Folder::new();
    folder.coirl("domain demonstrate driving --contexts 8 --test-contexts 3 --out demos --seed 2").success();
    // Columns reordered, names and numbers together.
    let turned = |from: &str, to: &str| {
        let lines = std::fs::read_to_string(folder.path(from)).unwrap();
        let turn = |line: &str| {
            let mut cells: Vec<&str> = line.split(',').collect();
            cells.rotate_left(1);
            cells.join(",")
        };
        folder.write(to, lines.lines().map(|line| turn(line) + "\n").collect::<String>());
    };
    turned("demos/contexts.csv", "contexts.csv");
    turned("demos/feature-expectations.csv", "mu.csv");
    turned("demos/true-mapping.csv", "truth.csv");
    turned("demos/test-contexts.csv", "test.csv");
    let fit = |contexts: &str, mu: &str, truth: &str, test: &str, out: &str| {
        let data =
            format!("--contexts {contexts} --feature-expectations {mu} --true-mapping {truth} --test-contexts {test}");
        json(folder.coirl(&format!("fit --model driving {data} --out {out} --json --quiet")).success())["mapping"]
            .clone()
    };
    let plain = fit(
        "demos/contexts.csv",
        "demos/feature-expectations.csv",
        "demos/true-mapping.csv",
        "demos/test-contexts.csv",
        "plain",
    );
    assert_eq!(fit("contexts.csv", "mu.csv", "truth.csv", "test.csv", "turned"), plain);
    let planned = |contexts: &str| {
        json(folder.coirl(&format!("plan driving --mapping plain/mapping.csv --contexts {contexts} --json")).success())
    };
    assert_eq!(planned("test.csv"), planned("demos/test-contexts.csv"));
    folder.write("wrong.csv", "speed priority,colision priority,off-road priority\n0.2,0.3,0.5\n");
    let error = refused(&folder, "plan driving --mapping plain/mapping.csv --contexts wrong.csv");
    assert!(error.contains("colision") && error.contains("collision priority"), "{error}");
}

/// A model that has changed since is refused however the answer is obtained; one that is typed is taken.
#[test]
fn a_changed_model_is_refused() {
    let folder = Folder::new();
    folder.coirl("domain demonstrate driving --contexts 8 --out demos --seed 2").success();
    let data =
        "--model demos/model.npz --contexts demos/contexts.csv --feature-expectations demos/feature-expectations.csv";
    folder.coirl(&format!("fit {data} --out run --quiet")).success();
    folder.coirl("predict run --context 0.2,0.3,0.5 --plan").success();
    folder.coirl("domain export driving --discount 0.5 --out demos/model.npz").success();
    for how in ["", "--plan", "--library cover --radius 0.2"] {
        let error = refused(&folder, &format!("predict run --context 0.2,0.3,0.5 {how}"));
        assert!(error.contains("other data"), "{how}: {error}");
    }
    folder.coirl("predict run --context 0.2,0.3,0.5 --model driving --quiet").success();
}

#[test]
fn a_context_by_its_fields() {
    let folder = driving();
    let by_number = json(folder.coirl("predict run --context 0.2,0.3,0.5 --json --realised").success());
    let by_name = "predict run/fitted.safetensors --context off-road-priority=0.5,speed_priority=0.2,collision-priority=0.3 --json --realised";
    assert_eq!(by_number, json(folder.coirl(by_name).success()));
    assert_eq!(by_number["obtained"], "improved");
    assert_eq!(by_number["library"]["contexts"], 100);
    assert!(by_number["bound_is"].as_str().unwrap().contains("not to the expert"));
    let number = |key: &str| by_number[key].as_f64().unwrap();
    let gap = by_number["realised"]["largest"].as_f64().unwrap();
    assert!(gap <= number("bound") && number("bound") <= by_number["theorem"]["bound"].as_f64().unwrap());
    // The same as planning, by another command.
    let planned = "plan driving --mapping run/fitted.safetensors --context 0.2,0.3,0.5 --json";
    let best = json(folder.coirl(planned).success())["value"].as_f64().unwrap();
    assert!((best - number("value") - by_number["realised"]["from_start"].as_f64().unwrap()).abs() < 1e-9);
    assert_eq!(by_number["policy"].as_array().unwrap().len(), 1531);

    let page = text(folder.coirl("predict run --context 0.2,0.3,0.5 --states 0,17 --realised --quiet").success());
    for words in
        ["speed priority=0.2", "generalised policy improvement", "not to the expert", "theorem", "realised", "state"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}

#[test]
fn wanted_bounds_are_kept_by_planning() {
    let folder = driving();
    let exact = json(folder.coirl("predict run --context 0.7,0.2,0.1 --bound 0 --json").success());
    let plain = json(folder.coirl("predict run --context 0.7,0.2,0.1 --plan --json").success());
    assert_eq!((&exact["obtained"], &plain["obtained"]), (&"planned".into(), &"planned".into()));
    assert_eq!((&exact["warm"], &plain["warm"]), (&true.into(), &false.into()));
    assert_eq!(exact["policy"], plain["policy"]);
    let (exactly, plainly) = (exact["value"].as_f64().unwrap(), plain["value"].as_f64().unwrap());
    assert!((exactly - plainly).abs() < 1e-12 * plainly.abs().max(1.0), "{exactly} {plainly}");
    assert!(exact["sweeps"].as_u64() < plain["sweeps"].as_u64());
    let loose = json(folder.coirl("predict run --context 0.7,0.2,0.1 --bound 1000 --json").success());
    assert_eq!((&loose["obtained"], &loose["bound_by"]), (&"improved".into(), &"theorem".into()));
}

#[test]
fn files_of_contexts_and_saved_libraries() {
    let folder = driving();
    folder.write("a.csv", "speed priority,collision priority,off-road priority\n0.2,0.3,0.5\n0.6,0.3,0.1\n");
    folder.write("b.csv", "off-road priority,speed priority,collision priority\n0.5,0.2,0.3\n0.1,0.6,0.3\n");
    let make = "--library cover --library-size 12 --save-library known.safetensors --out policies.csv --json --quiet";
    let first = json(folder.coirl(&format!("predict run --contexts a.csv {make}")).success());
    assert_eq!(first["predictions"].as_array().unwrap().len(), 2);
    let read = "--library known.safetensors --out policies.json --json";
    let again = folder.coirl(&format!("predict run --contexts b.csv {read}")).success();
    assert_eq!(first, json(again));
    assert_eq!(serde_json::from_slice::<Value>(&folder.read("policies.json")).unwrap(), first);
    let table = String::from_utf8(folder.read("policies.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "context,state,action,name,value,obtained,bound");
    assert_eq!(lines.len(), 1 + 2 * 1531);
    let policy = first["predictions"][1]["policy"].as_array().unwrap();
    for (state, action) in policy.iter().enumerate() {
        assert!(lines[1 + 1531 + state].starts_with(&format!("1,{state},{action},")));
    }
    let page = text(folder.coirl("predict run --contexts a.csv --library b.csv --states 0 --quiet").success());
    assert!(page.contains("state 0") && page.contains("2 known contexts"), "{page}");
    let pruned = "predict run --contexts a.csv --prune --json --states 3";
    let whole = json(folder.coirl("predict run --contexts a.csv --json --states 3").success());
    assert!(whole["predictions"][0]["states"][0]["name"].is_string());
    let pruned = json(folder.coirl(pruned).success());
    for i in 0..2 {
        assert_eq!(pruned["predictions"][i]["states"], whole["predictions"][i]["states"]);
    }
    assert!(pruned["library"]["policies"].as_u64() < whole["library"]["policies"].as_u64());
    // What had to be planned is known afterwards.
    let planned = "predict run --contexts a.csv --plan --prune --save-library planned.safetensors --quiet";
    folder.coirl(planned).success();
    let known = json(folder.coirl("predict run --contexts a.csv --library planned.safetensors --json").success());
    assert_eq!(known["library"]["contexts"], 2);
    let grown = "predict run --contexts a.csv --library b.csv --bound 0 --save-library grown.safetensors --json";
    folder.write("b.csv", "0.1,0.1,0.8\n");
    assert_eq!(json(folder.coirl(grown).success())["predictions"][1]["obtained"], "planned");
    let after = json(folder.coirl("predict run --contexts a.csv --library grown.safetensors --json").success());
    assert_eq!(after["library"]["contexts"], 3);
    assert_eq!(after["predictions"][1]["theorem"]["distance"], 0.0);
}

#[test]
fn mixtures_take_the_nearest_context() {
    let folder = fitted(3);
    let found = json(folder.coirl("predict run --context 0.2,0.3,0.5 --json --realised").success());
    assert_eq!(found["obtained"], "nearest");
    assert!(found["realised"]["largest"].as_f64().unwrap() <= found["bound"].as_f64().unwrap());
    let theorem = &found["theorem"];
    let (bound, printed) = (theorem["bound"].as_f64().unwrap(), theorem["printed"].as_f64().unwrap());
    assert!((bound / printed - 0.9).abs() < 1e-9);
    let exact = json(folder.coirl("predict run --context 0.2,0.3,0.5 --json --bound 1e-9").success());
    assert!(exact["bound"].as_f64().unwrap() <= 1e-9);
}

#[test]
fn what_is_refused() {
    let folder = fitted(1);
    let error = refused(&folder, "predict run --context 0.2,0.3");
    assert!(error.contains("2 numbers") && error.contains('3'), "{error}");
    let error = refused(&folder, "predict run --context speed=0.2,collision=0.3,offroad=0.5");
    assert!(error.contains("give them alone"), "{error}");
    let error = refused(&folder, "predict run --context 0.2,0.3,0.5 --states 3,25");
    assert!(error.contains("no state 25") && error.contains("0 to 24"), "{error}");
    let error = refused(&folder, "predict run --context 0.2,0.3,0.5 --library cover");
    assert!(error.contains("no space of contexts to cover"), "{error}");
    let error = refused(&folder, "predict run --context 0.2,0.3,0.5 --library-size 0");
    assert!(error.contains("library is empty"), "{error}");
    let error = refused(&folder, "predict run --context 0.2,0.3,0.5 --out policy.txt");
    assert!(error.contains(".csv or .json"), "{error}");
    let error = refused(&folder, "predict run --context 0.2,0.3,0.5 --bound -1");
    assert!(error.contains("not negative"), "{error}");
    folder.coirl("predict run").failure().code(2);
    folder.coirl("predict run --context 0.2,0.3,0.5 --plan --transfer").failure().code(2);
    let error = refused(&folder, "predict nowhere --context 0.2,0.3,0.5");
    assert!(error.contains("nowhere"), "{error}");
    // A library of one run is not one of another.
    let library = "--context 0.2,0.3,0.5 --json --library";
    folder.coirl("predict run --context 0.2,0.3,0.5 --save-library known.safetensors --quiet").success();
    folder.coirl(&format!("predict run {library} known.safetensors")).success();
    let again = "fit --model model.npz --contexts contexts.csv --feature-expectations mu.csv --out other --steps 3";
    folder.coirl(again).success();
    let error = refused(&folder, &format!("predict other {library} known.safetensors"));
    assert!(error.contains("another mapping or model"), "{error}");
    let error = refused(&folder, &format!("predict run {library} known.safetensors --radius 0.1"));
    assert!(error.contains("has its own"), "{error}");
}

#[test]
fn mistyped_fields_find_their_names() {
    let folder = driving();
    let error =
        refused(&folder, "predict run --context speed-priority=0.2,colision-priority=0.3,off-road-priority=0.5");
    assert!(error.contains("'colision-priority'") && error.contains("'collision priority'"), "{error}");
    let error = refused(&folder, "predict run --context speed-priority=0.2,collision-priority=0.8");
    assert!(error.contains("'off-road priority' is missing"), "{error}");
    folder.write("wrong.csv", "speed priority,crash,off-road priority\n0.2,0.3,0.5\n");
    let error = refused(&folder, "predict run --contexts wrong.csv");
    assert!(error.contains("wrong.csv") && error.contains("'crash'"), "{error}");
    let error = refused(&folder, "predict run --context 0.2,0.3,0.5 --library cover --radius 0.0001");
    assert!(error.contains("more than the 10000 allowed"), "{error}");
    std::fs::remove_file(folder.path("run/source.json")).unwrap();
    let error = refused(&folder, "predict run --context 0.2,0.3,0.5");
    assert!(error.contains("--model"), "{error}");
    let known = "--model driving --library cover --library-size 5 --json";
    assert!(json(folder.coirl(&format!("predict run --context 0.2,0.3,0.5 {known}")).success())["value"].is_f64());
}

#[test]
fn networks_transfer_plan_and_keep_their_libraries() {
    let folder = driving();
    let network = as_network(&folder, "run", 1);
    let model = Driving::default().build().unwrap();
    let context = model.context_space().context(vec![0.2, 0.3, 0.5]).unwrap();
    let options = ManyOptions { feature_expectations: false, values: false };
    let best = &plan_mapping(&model, &network, &[context], options).unwrap()[0];
    let asked = "predict run --context 0.2,0.3,0.5";
    let planned = json(folder.coirl(&format!("{asked} --plan --json")).success());
    assert!((planned["value"].as_f64().unwrap() - best.value).abs() < 1e-9);
    let actions: Vec<u32> = best.policy.actions().unwrap().iter().map(|action| action.0).collect();
    assert_eq!(planned["policy"], Value::from(actions));
    // Transferred from the rewards of the training contexts.
    let moved = json(folder.coirl(&format!("{asked} --transfer --realised --json")).success());
    assert_eq!((&moved["obtained"], &moved["theorem"]["distance_of"]), (&"improved".into(), &"weights".into()));
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(number(&moved["realised"]["largest"]) <= number(&moved["bound"]) + 1e-9);
    assert!(number(&moved["bound"]) <= number(&moved["theorem"]["bound"]));
    assert!((best.value - number(&moved["value"]) - number(&moved["realised"]["from_start"])).abs() < 1e-9);
    let page = text(folder.coirl(&format!("{asked} --transfer --states 0 --quiet")).success());
    assert!(page.split_whitespace().collect::<Vec<_>>().join(" ").contains("from a known reward"), "{page}");
    // No radius of contexts promises a bound.
    let cover = folder.coirl(&format!("{asked} --library cover --bound 0.5 --json")).success();
    let notes = String::from_utf8(cover.get_output().stderr.clone()).unwrap();
    assert!(notes.contains("no cover promises a bound for a network"), "{notes}");
    assert!(number(&json(cover)["bound"]) <= 0.5);
    // Libraries belong to their network.
    let known = "--library known.safetensors --transfer --json";
    let saved = "--library cover --library-size 12 --transfer --save-library known.safetensors --json";
    let first = json(folder.coirl(&format!("{asked} {saved}")).success());
    assert_eq!(json(folder.coirl(&format!("{asked} {known}")).success()), first);
    folder.coirl("fit --shipped driving --method adaptive --quiet --out run").success();
    let error = refused(&folder, &format!("{asked} {known}"));
    assert!(error.contains("another mapping or model"), "{error}");
    as_network(&folder, "run", 2);
    let error = refused(&folder, &format!("{asked} {known}"));
    assert!(error.contains("another mapping or model"), "{error}");
}

/// Whatever has no mapping to plan for is asked what it does, and says whether it draws.
#[test]
fn agents_without_a_plan_are_followed_as_they_are() {
    let folder = Folder::new();
    folder.write("two.csv", "0.2,0.3,0.5\n0.6,0.3,0.1\n");
    let model = Driving::default().build().unwrap();
    let contexts: Vec<_> =
        [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]].map(|c| model.context_space().context(c.to_vec()).unwrap()).to_vec();
    folder.coirl("domain demonstrate driving --contexts 10 --out demos --seed 2").success();
    let seen = "--model demos/model.npz --contexts demos/contexts.csv --trajectories demos/trajectories.csv";
    let estimated = format!("{seen} --estimator truncated");
    let methods = [
        ("bc", "cloned", "stochastic", seen),
        ("majority", "fixed", "deterministic", seen),
        ("nearest", "copied", "deterministic", seen),
        ("uniform", "uniform", "stochastic", seen),
        ("max-entropy", "soft", "stochastic", &estimated),
        ("projection", "mixed", "mixture", "--shipped driving"),
    ];
    for (method, agent, kind, data) in methods {
        folder.coirl(&format!("fit {data} --method {method} --steps 6 --out {method} --quiet")).success();
        let fitted = read_fitted(&folder.path(method).join("fitted.safetensors")).unwrap();
        let expected = act(&model, &fitted.agent, &contexts).unwrap();
        let found = json(folder.coirl(&format!("predict {method} --contexts two.csv --json")).success());
        for (i, behaviours) in expected.iter().enumerate() {
            let answer = &found["predictions"][i];
            assert_eq!((&answer["agent"], &answer["policy_is"]), (&agent.into(), &kind.into()), "{method}");
            assert!(answer["bound"].is_null() && answer["bound_is"].as_str().unwrap().starts_with("none"), "{method}");
            // Worth is only known under a mapping, and is that of the policy itself.
            assert_eq!(answer["value"].is_f64(), agent == "soft", "{method}");
            if let Ok(mapping) = fitted.agent.reward_mapping() {
                let weights = mapping.weights(&contexts[i]).unwrap();
                let own: f64 = weights.iter().zip(behaviours[0].feature_expectations.iter()).map(|(w, x)| w * x).sum();
                assert!((answer["value"].as_f64().unwrap() - own).abs() < 1e-12);
            }
            let policies = answer["policies"].as_array().unwrap();
            assert_eq!(policies.len(), behaviours.len());
            for (policy, behaviour) in policies.iter().zip(behaviours) {
                assert_eq!(policy["share"], behaviour.share);
                match &behaviour.policy {
                    Policy::Stationary(actions) => {
                        let actions: Vec<u32> = actions.iter().map(|action| action.0).collect();
                        assert_eq!(policy["policy"], Value::from(actions), "{method}");
                    }
                    Policy::Stochastic(probabilities) => {
                        for state in [0, 17, 1530] {
                            let mut row = vec![0.0; model.n_actions()];
                            for pair in model.pairs().of_state(state) {
                                row[model.pairs().action(pair).index()] = probabilities[pair];
                            }
                            assert_eq!(numbers(&policy["probabilities"][state]), row, "{method}");
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        // The same in a table, and for people.
        folder.coirl(&format!("predict {method} --contexts two.csv --out {method}.csv --states 3 --quiet")).success();
        let table = String::from_utf8(folder.read(&format!("{method}.csv"))).unwrap();
        assert!(table.starts_with("context,policy,share,state,action,name,probability\n0,0,"), "{table}");
        let sum: f64 = table
            .lines()
            .skip(1)
            .map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                cells[2].parse::<f64>().unwrap() * cells[6].parse::<f64>().unwrap()
            })
            .sum();
        assert!((sum - 2.0).abs() < 1e-9, "{method}: {sum}");
        let one = format!("predict {method} --context 0.2,0.3,0.5 --states 0,3");
        let states = json(folder.coirl(&format!("{one} --json")).success())["states"].clone();
        let of_state: f64 =
            states[1]["actions"].as_array().unwrap().iter().map(|a| a["probability"].as_f64().unwrap()).sum();
        assert!((of_state - 1.0).abs() < 1e-9);
        let page = text(folder.coirl(&one).success());
        for words in ["speed priority=0.2", agent, kind, "none; bounds are of agents", "state"] {
            assert!(page.contains(words), "{method}, {words}: {page}");
        }
        assert_eq!(page.contains("of this policy itself"), agent == "soft", "{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        let many = text(folder.coirl(&format!("predict {method} --contexts two.csv --states 3")).success());
        assert!(many.contains(kind) && many.contains("state 3") && !many.contains("library"), "{many}");
    }
    // What is about planning does not apply.
    for option in ["--plan", "--transfer", "--bound 1", "--realised", "--library cover", "--prune", "--radius 0.1"] {
        let run = folder.coirl(&format!("predict bc --context 0.2,0.3,0.5 {option}")).failure().code(2);
        let error = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        let named = error.contains(option.split(' ').next().unwrap());
        assert!(named && error.contains("followed as it is (cloned)"), "{error}");
    }
}
