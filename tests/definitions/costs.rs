//! Estimated costs of validation rules, as `generate-crds` reports them. Cases and recorded responses come from the
//! API server's tests in `conformance/`.

use std::{collections::BTreeMap, fs, path::PathBuf};

use kctl::{Json, from_yaml};
use kctl_runtime::manifest::check;

/// The server reports a larger factor as "more than 100".
const FACTOR_MAX: f64 = 100.0;

/// The ratio of the estimated cost of a rule to the limit.
#[derive(Debug, PartialEq)]
enum Factor {
    Affordable,
    Times(String),
    TooMany,
}

fn file(name: &str) -> String {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conformance").join(name);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn number(text: &str) -> Factor {
    let factor: f64 = text.parse().unwrap();
    if factor > FACTOR_MAX { Factor::TooMany } else { Factor::Times(format!("{factor:.1}")) }
}

/// Returns the factor that the real server reported for a too expensive rule; `None` if it reported another error.
fn of_real(response: &Json) -> Option<Factor> {
    const WHAT: &str = "estimated rule cost exceeds budget by factor of ";
    if response["code"] == 201 {
        return Some(Factor::Affordable);
    }
    // Some responses are recorded as parts of the body, keyed by JSON pointer.
    let message = response["body"]["message"].as_str().or_else(|| response["body"]["/message"].as_str())?;
    let (_, rest) = message.split_once(WHAT)?;
    let (factor, _) = rest.split_once("x (")?;
    Some(if factor == "more than 100" { Factor::TooMany } else { number(factor) })
}

fn of_check(definition: &Json) -> Result<Factor, String> {
    let mut found = Factor::Affordable;
    for problem in check(definition).rejected {
        let text = problem.to_string();
        let stated_factor =
            text.split_once(": it costs ").and_then(|(_, rest)| rest.split_once(" times what a rule may"));
        match stated_factor {
            // If several rules are too expensive, the server's message begins with the first one.
            Some((factor, _)) if found == Factor::Affordable => found = number(factor),
            Some(_) => {}
            // A total of all rules that is too high is a separate error, which is not compared.
            None if text.contains("all rules together cost") => {}
            None => return Err(text),
        }
    }
    Ok(found)
}

/// Sets the value at a JSON pointer, and creates missing parents.
fn set(mut body: &mut Json, pointer: &str, value: &Json) {
    for step in pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")) {
        body = match body {
            Json::Array(items) => &mut items[step.parse::<usize>().unwrap()],
            other => &mut other[step.as_str()],
        };
    }
    value.clone_into(body);
}

#[test]
fn rule_costs_match_the_real_server() {
    let topic: Json = from_yaml(&file("cases/crd_rule_costs.yaml")).unwrap();
    let recorded: BTreeMap<String, Vec<Json>> = serde_json::from_str(&file("recorded/crd_rule_costs.json")).unwrap();
    let (mut n_compared, mut different) = (0, Vec::new());
    for case in topic["cases"].as_array().unwrap() {
        let name = case["case"].as_str().unwrap();
        for (step, response) in case["steps"].as_array().unwrap().iter().zip(&recorded[name]) {
            let Some(expected) = of_real(response) else { continue };
            let mut definition = topic["bases"]["rule"]["body"].clone();
            for (pointer, value) in step["with"].as_object().into_iter().flatten() {
                set(&mut definition, pointer, value);
            }
            n_compared += 1;
            match of_check(&definition) {
                Ok(found) if found == expected => {}
                found => different.push(format!("{name}: {}\n    {found:?}, the server {expected:?}", step["with"])),
            }
        }
    }
    assert!(n_compared >= 70, "{n_compared}");
    assert!(different.is_empty(), "{} of {n_compared}:\n{}", different.len(), different.join("\n"));
}
