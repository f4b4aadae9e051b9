//! `coirl report`: one page that is well-formed, safe, the same every time, and says what the other commands say.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use coirl::artifact::{read_fitted, write_fitted};
use running::page::well_formed;
use running::{Folder, as_network, json, numbers};
use serde_json::Value;

/// A quick fit of the driver's demonstrations, and what it says of itself.
fn driving(folder: &Folder) -> Value {
    json(folder.coirl("fit --shipped driving --method adaptive --steps 10 --out run --quiet --json").success())
}

/// A page that was written, checked for what every page promises.
fn page(folder: &Folder, name: &str) -> String {
    let page = String::from_utf8(folder.read(name)).unwrap();
    well_formed(&page);
    page
}

/// The texts of the cells with this start, in order.
fn cells<'a>(page: &'a str, start: &str) -> Vec<&'a str> {
    page.split(start).skip(1).map(|piece| piece.split_once('>').unwrap().1.split('<').next().unwrap()).collect()
}

fn complaint(folder: &Folder, arguments: &str) -> String {
    String::from_utf8(folder.coirl(arguments).failure().code(1).get_output().stderr.clone()).unwrap()
}

/// What the digits of a page leave open: rewards of the choice model have any length.
fn rounding(numbers: &[f64]) -> f64 {
    5.1e-4 * numbers.iter().fold(1.0, |most: f64, x| most.max(x.abs()))
}

#[test]
fn a_page_about_a_driver() {
    let folder = Folder::new();
    let fitted = json(folder.coirl("fit --shipped driving --steps 10 --out run --quiet --json").success());
    let written = json(folder.coirl("report run --json --quiet").success());
    assert_eq!(written["report"], "run/report.html");
    let page = page(&folder, "run/report.html");
    for heading in ["The run", "Convergence", "The learned mapping", "The reward in one context", "Against the truth"] {
        assert!(page.contains(&format!("-heading\">{heading}</h2>")), "{heading}");
    }
    // Near one hundred there is a digit more.
    for key in ["value_ratio", "relative_value", "accuracy", "visited_accuracy", "optimal_accuracy"] {
        let percent = 100.0 * fitted[key].as_f64().unwrap();
        let shown = [format!("<td>{percent:.2} %</td>"), format!("<td>{percent:.3} %</td>")];
        assert!(shown.iter().any(|own| page.contains(own)), "{key}: {percent}");
    }
    assert!(page.contains(fitted["digest"].as_str().unwrap()) && page.contains("shipped with coirl"));
    let entries: Vec<f64> = fitted["mapping"].as_array().unwrap().iter().flat_map(numbers).collect();
    let shown: Vec<f64> = cells(&page, "<td style=").iter().map(|x| x.replace('−', "-").parse().unwrap()).collect();
    assert_eq!(shown.len(), 9);
    assert!(shown.iter().zip(&entries).all(|(x, y)| (x - y).abs() <= rounding(&entries)), "{shown:?} {entries:?}");
    assert!(!page.contains("clinical"), "nobody is treated on a road");
    // Not the terminal's job, and not the clock's.
    folder.coirl("report run --out other.html --threads 1 --quiet").success().stdout("");
    assert_eq!(folder.read("other.html"), page.as_bytes());
}

#[test]
fn the_reward_of_a_context() {
    let folder = Folder::new();
    let fitted = driving(&folder);
    folder.coirl("report run --context 0.2,0.5,0.3 --quiet").success();
    let page = page(&folder, "run/report.html");
    let rows: Vec<Vec<f64>> = fitted["mapping"].as_array().unwrap().iter().map(numbers).collect();
    let weight = |j: usize| [0.2, 0.5, 0.3].iter().zip(&rows).map(|(c, row)| c * row[j]).sum::<f64>();
    let mut expected = [0, 1, 2].map(weight);
    expected.sort_by(|a, b| b.abs().total_cmp(&a.abs()));
    let table = page.split("class=\"bars\"").nth(1).unwrap().split("</table>").next().unwrap();
    let shown: Vec<f64> = cells(table, "<td").iter().filter_map(|x| x.replace('−', "-").parse().ok()).collect();
    assert_eq!(shown.len(), 3);
    assert!(shown.iter().zip(expected).all(|(x, y)| (x - y).abs() <= rounding(&expected)), "{shown:?} {expected:?}");
    // The longest bar is half of its cell, on the side of its sign.
    let side = if expected[0] < 0.0 {
        "class=\"minus\" style=\"margin-left:0.0%"
    } else {
        "class=\"plus\" style=\"margin-left:50.0%"
    };
    assert!(table.contains(&format!("{side};width:50.0%")), "{table}");
}

#[test]
fn names_cannot_become_markup() {
    let folder = Folder::new();
    driving(&folder);
    let path = folder.path("run").join("fitted.safetensors");
    let mut fitted = read_fitted(&path).unwrap();
    fitted.names.features[0] = "<script>alert('x')</script>".into();
    fitted.names.contexts[1] = "\"><img src=x> & co".into();
    fitted.names.model = "</style><b>".into();
    write_fitted(&path, &fitted).unwrap();
    folder.coirl("report run --quiet").success();
    let page = page(&folder, "run/report.html");
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;</th>"));
    assert!(page.contains("&quot;&gt;&lt;img src=x&gt; &amp; co</th>"));
}

#[test]
fn networks_say_how_the_reward_changes() {
    let folder = Folder::new();
    driving(&folder);
    as_network(&folder, "run", 3);
    folder.coirl("report run --quiet").success();
    let page = page(&folder, "run/report.html");
    assert!(page.contains("How the reward changes with the context") && !page.contains("mapping.csv"));
    assert_eq!(cells(&page, "<td style=").len(), 9);
}

#[test]
fn a_page_about_a_cohort() {
    let folder = Folder::new();
    folder.coirl("cohort synthesize --stays 300 --seed 1 --out table.csv --quiet").success();
    let built = json(folder.coirl("cohort build table.csv --states 40 --out cohort --quiet --json").success());
    folder.coirl("fit cohort --steps 3 --out run --quiet").success();
    folder.coirl("fit cohort --method majority --out usual --quiet").success();
    let how = "--resamples 20 --true-patients 10 --quiet";
    let scores = json(folder.coirl(&format!("cohort score run {how} --json")).success());
    folder.coirl(&format!("report run {how}")).success();
    let page = page(&folder, "run/report.html");
    assert_eq!(page.matches("Research software, not for clinical use.").count(), 2);

    let interval = |estimate: &Value, factor: f64, decimals: usize| {
        let shown = |x: &Value| format!("{:.decimals$}", factor * x.as_f64().unwrap());
        let (lower, upper) = (&estimate["interval"]["lower"], &estimate["interval"]["upper"]);
        format!("<td>{} [{}, {}]</td>", shown(&estimate["value"]), shown(lower), shown(upper))
    };
    let agreement = &scores["runs"][0]["agreement"];
    for key in ["top_one", "top_one_by_patient", "top_three", "within_one"] {
        let cell = interval(&agreement["overall"][key], 100.0, 1);
        assert!(page.contains(&cell), "{key}: {cell}");
    }
    assert!(page.contains(&interval(&agreement["overall"]["log_loss"], 1.0, 3)));
    assert!(page.contains(&interval(&agreement["published_accuracy"], 100.0, 1)));
    for grouping in agreement["groupings"].as_array().unwrap() {
        for group in grouping["groups"].as_array().unwrap() {
            // Bounds are in the units that people use.
            let (label, end) = match group["label"].as_str().unwrap() {
                label if label.starts_with("above ") => ("above ", ""),
                label if label.starts_with("at most ") => ("at most ", ""),
                label => (label, "</th>"),
            };
            let row = format!("{} {label}{end}", grouping["name"].as_str().unwrap());
            let cell = match &group["agreement"] {
                Value::Null => "<td>too few to tell</td>".to_owned(),
                agreement => interval(&agreement["top_one"], 100.0, 1),
            };
            let after = page.split_once(&row).unwrap_or_else(|| panic!("{row}")).1;
            assert!(after.split("</tr>").next().unwrap().contains(&cell), "{row}: {cell}");
        }
    }
    assert!(page.contains("age above 68.4 years</th>"));
    let recorded = interval(&scores["off_policy"]["recorded"], 100.0, 1);
    assert!(page.contains(recorded.trim_start_matches("<td>").trim_end_matches("</td>")), "{recorded}");
    assert!(page.contains("<td>refused</td>") && page.contains("<dt>refused</dt>\n<dd>run: "));
    let survival = 100.0 * scores["runs"][0]["truth"]["policy"]["survival"].as_f64().unwrap();
    let worth = page.split("id=\"worth\"").nth(1).unwrap();
    assert!(worth.contains(&format!("<td>{survival:.1} %</td>")), "{survival}");

    let flow = page.split("id=\"cohort\"").nth(1).unwrap();
    for step in built["flow"].as_array().unwrap() {
        assert!(flow.contains(step["rule"].as_str().unwrap()), "{step}");
    }
    for finding in built["findings"].as_array().unwrap() {
        assert!(page.contains(finding["code"].as_str().unwrap()), "{finding}");
    }
    assert!(page.contains("same action on validation, of admitted steps from "), "the curve of a cohort, in words");

    folder.coirl(&format!("report usual {how} --no-off-policy")).success();
    let usual = self::page(&folder, "usual/report.html");
    assert!(
        !usual.contains("id=\"off-policy\"") && !usual.contains("id=\"mapping\"") && !usual.contains("id=\"reward\"")
    );
    assert!(usual.contains("id=\"matching\""));
    folder.coirl(&format!("report usual {how} --no-off-policy --threads 1 --out again.html")).success();
    assert_eq!(folder.read("again.html"), usual.as_bytes());
    let none = complaint(&folder, "report usual --context 0.1,0.1,0.2,0.1,0.2,0.2,0.1");
    assert!(none.contains("fixed"), "{none}");
    let cohort = complaint(&folder, "report cohort");
    assert!(cohort.contains("is a cohort, not a run; `coirl fit cohort"), "{cohort}");
}

#[test]
fn what_is_no_run_is_refused() {
    let folder = Folder::new();
    assert!(complaint(&folder, "report nowhere").contains("nowhere"));
    assert!(complaint(&folder, "report .").contains("it holds no fitted.safetensors"));
    driving(&folder);
    assert!(complaint(&folder, "report run --out missing/page.html").contains("its folder is not there"));
    assert!(complaint(&folder, "report run --context 0.5,0.5").contains("--context"));
    std::fs::remove_file(folder.path("run").join("source.json")).unwrap();
    assert!(complaint(&folder, "report run").contains("has no source.json beside it"));
    assert!(!folder.path("run").join("report.html").exists());
}
