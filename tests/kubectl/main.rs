//! kubectl has the same output and exit status with the embedded API server as with a real one.
//!
//! For error messages, only reasons, fields and types are compared. Other differences in wording are printed.
//!
//! `cargo test -p kctl-tests --test kubectl` compares with `recorded/` and needs kubectl, but no cluster. With
//! `REAL_SERVER` the commands also run against that server, whose output must match the recorded one; with `RECORD=1` it
//! is recorded. `CASE=part` selects the cases whose names contain `part`.

mod case;
mod normal;
mod run;

use std::{collections::BTreeMap, env, path::Path};

use self::{
    case::Topic,
    run::{Cluster, Step},
};

/// Version of kubectl whose output is recorded.
const RECORDED_WITH: &str = "v1.32.";

macro_rules! topics {
    ($($topic:ident),* $(,)?) => {
        const TOPICS: &[&str] = &[$(stringify!($topic)),*];

        mod prints_what_it_prints_on_a_real_server {
            $(
                #[test]
                #[ignore = "needs kubectl 1.32: cargo xtask kubectl"]
                fn $topic() {
                    super::check(stringify!($topic));
                }
            )*
        }
    };
}

topics! { access, apply, change, corners, nodes, read, workloads }

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/kubectl"))
}

/// The output of the steps, by case.
type RecordedSteps = BTreeMap<String, Vec<Step>>;

fn read_recorded(topic: &str) -> RecordedSteps {
    let file = folder().join(format!("recorded/{topic}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|_| "{}".into());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn check(name: &str) {
    let topic = Topic::read(name, &env::var("CASE").unwrap_or_default());
    match run::version() {
        Some(version) if version.starts_with(RECORDED_WITH) => {}
        Some(version) => panic!("kubectl is {version}, and the answers are of {RECORDED_WITH}x"),
        None => panic!("kubectl is not installed"),
    }
    if let Some(real) = kctl_tests::real_server() {
        let responses = run::run_cases(&topic, &Cluster::Real(real));
        if env::var("RECORD").is_ok_and(|value| value == "1") {
            let mut all = read_recorded(name);
            all.extend(responses.clone());
            let whole = Topic::read(name, "");
            all.retain(|case, _| whole.cases.iter().any(|known| known.name == *case));
            let text = serde_json::to_string_pretty(&all).unwrap() + "\n";
            std::fs::write(folder().join(format!("recorded/{name}.json")), text).unwrap();
        }
        report(&topic, &responses, true, "the real server no longer answers as recorded");
    }
    report(
        &topic,
        &run::run_cases(&topic, &Cluster::Embedded),
        false,
        "kubectl prints otherwise than on the real server",
    );
}

#[expect(clippy::print_stdout, reason = "a report of differences that fail nothing: `-- --nocapture` shows it")]
fn report(topic: &Topic, responses: &RecordedSteps, is_real: bool, what: &str) {
    let recorded = read_recorded(&topic.name);
    let mut failures = Vec::new();
    for case in &topic.cases {
        let Some(expected) = recorded.get(&case.name) else {
            failures.push(format!("{}: it is not recorded; run with REAL_SERVER and RECORD=1", case.name));
            continue;
        };
        let found = &responses[&case.name];
        assert_eq!(found.len(), case.run.len(), "{}", case.name);
        if expected.len() != found.len() {
            failures.push(format!("{}: its steps have changed; record it again", case.name));
            continue;
        }
        for ((line, expected), found) in case.run.iter().zip(expected).zip(found) {
            let expected = if is_real { expected.clone() } else { case.expected_output(line, expected) };
            if !expected.has_same_meaning(found, line) {
                failures.push(format!("{}: {line}\n{}", case.name, expected.differing_lines(found)));
            } else if expected != *found {
                println!("differs in wording: {}: {line}\n{}", case.name, expected.differing_lines(found));
            }
        }
    }
    assert!(failures.is_empty(), "{what} in {}:\n\n{}", topic.name, failures.join("\n"));
}

#[test]
fn kubectl_recordings_match_cases_of_each_topic() {
    let mut files: Vec<String> = std::fs::read_dir(folder().join("cases"))
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert_eq!(files, TOPICS);
    for topic in TOPICS {
        let mut names: Vec<String> = Topic::read(topic, "").cases.into_iter().map(|case| case.name).collect();
        names.sort();
        assert_eq!(names, read_recorded(topic).into_keys().collect::<Vec<_>>(), "{topic}");
    }
}
