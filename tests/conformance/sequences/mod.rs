//! Sends random sequences of writes by several managers, and compares the resulting objects and `managedFields`.
//!
//! The responses to the first seeds are recorded. With `REAL_SERVER` the sequences of `SEEDS` (`0..80` by default) are
//! sent to both servers.

mod grammar;
mod writes;

use std::{collections::BTreeMap, env, path::Path};

use serde::Deserialize;
use serde_json::{Value, json};

use self::writes::{Kind, Write, path_of, writes_of};
use crate::{
    TRIES_MAX,
    case::{Step, Topic},
    recorded, rng,
    run::{self, Variables},
    server::Server,
    tiers::{self, ClientStrings},
};

/// Number of sequences whose responses are recorded.
const RECORDED: u64 = 25;
/// Number of sequences that run on both servers with `REAL_SERVER`.
const SEEDS: u64 = 80;
const NAME: &str = "sequences";

/// The responses to the writes of each sequence, by its name.
type Responses = BTreeMap<String, Vec<Value>>;

#[derive(Deserialize)]
struct Grammar {
    setup: Vec<Step>,
    kinds: Vec<Kind>,
}

impl Grammar {
    fn read() -> Self {
        let text = include_str!("grammar.yaml");
        let options = serde_saphyr::options! { strict_booleans: true };
        // Other top-level fields of the file hold YAML anchors.
        serde_saphyr::from_str_with_options(text, options).expect("the grammar is well formed")
    }

    fn kind_of(&self, seed: u64) -> &Kind {
        &self.kinds[usize::try_from(seed).expect("seeds are small") % self.kinds.len()]
    }
}

#[test]
fn random_writes_match_real_server() {
    let grammar = &Grammar::read();
    let kubeconfig = kctl_tests::real_server();
    let seeds: Vec<u64> = if kubeconfig.is_none() { 0..RECORDED } else { rng::seeds(0..SEEDS) }.collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let ours = runtime.block_on(async { run_sequences(&Server::embedded(), grammar, &seeds, "embedded0").await });
    let failures = if let Some(kubeconfig) = kubeconfig {
        failures_beside_real(grammar, &seeds, &kubeconfig, &ours)
    } else {
        let recorded = recorded::read(NAME);
        failures(grammar, &seeds, &recorded, &recorded, &ours)
    };
    let messages: Vec<String> = failures.into_values().collect();
    assert!(messages.is_empty(), "{} sequences get another response:\n{}", messages.len(), messages.join("\n"));
}

/// Returns the sequences in which the real server differs from its recording, or the embedded server from the real one.
///
/// Such sequences run again: the real server first tries a patch on its cached object, and repeats it on the stored
/// object if the cache was stale. The response then has the warnings of both attempts.
fn failures_beside_real(
    grammar: &Grammar,
    seeds: &[u64],
    kubeconfig: &Path,
    ours: &Responses,
) -> BTreeMap<u64, String> {
    let mut real = run_on_real(grammar, seeds, kubeconfig);
    if env::var("RECORD").is_ok_and(|value| value == "1") {
        let names: Vec<String> = (0..RECORDED).map(|seed| name_of(grammar, seed)).collect();
        let kept = real.iter().filter(|(name, _)| names.contains(name));
        recorded::write_all(NAME, &kept.map(|(name, responses)| (name.clone(), responses.clone())).collect());
    }
    let recorded = recorded::read(NAME);
    for attempt in 1..TRIES_MAX {
        let failures = failures(grammar, seeds, &recorded, &real, ours);
        if failures.is_empty() {
            break;
        }
        let (again, messages): (Vec<u64>, Vec<String>) = failures.into_iter().unzip();
        eprintln!("attempt {attempt} of {TRIES_MAX} got another response:\n{}", messages.join("\n"));
        real.extend(run_on_real(grammar, &again, kubeconfig));
    }
    failures(grammar, seeds, &recorded, &real, ours)
}

/// Returns the first difference of each sequence that has one, by seed.
fn failures(
    grammar: &Grammar,
    seeds: &[u64],
    recorded: &Responses,
    real: &Responses,
    ours: &Responses,
) -> BTreeMap<u64, String> {
    let compare_seed = |seed: &u64| {
        let (name, writes) = (name_of(grammar, *seed), writes_of(grammar.kind_of(*seed), *seed));
        let known = recorded.get(&name).filter(|_| *seed < RECORDED).map(|known| (known, &real[&name]));
        let pairs = known.into_iter().chain([(&real[&name], &ours[&name])]);
        let differences: Vec<String> =
            pairs.filter_map(|(expected, found)| first_difference(expected, found, &writes)).collect();
        (!differences.is_empty()).then(|| (*seed, format!("{name}: {}", differences.join("\n"))))
    };
    seeds.iter().filter_map(compare_seed).collect()
}

fn run_on_real(grammar: &Grammar, seeds: &[u64], kubeconfig: &Path) -> Responses {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = &Server::real(kubeconfig).await;
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        run_sequences(server, grammar, seeds, &format!("seq{:x}", since % 0x1000_0000)).await
    })
}

fn name_of(grammar: &Grammar, seed: u64) -> String {
    format!("{} {seed}", grammar.kind_of(seed).name)
}

async fn run_sequences(server: &Server, grammar: &Grammar, seeds: &[u64], run: &str) -> Responses {
    let topic = &Topic::of_setup(NAME, grammar.setup.clone());
    let variables = run::prepare(server, topic, run).await;
    let mut all = BTreeMap::new();
    for &seed in seeds {
        let variables = variables.clone().in_namespace(server, &format!("seq-{seed}")).await;
        all.insert(name_of(grammar, seed), run_sequence(server, grammar.kind_of(seed), seed, &variables).await);
        variables.clean_up(server).await;
    }
    run::clean_up(server, topic, &variables).await;
    all
}

/// Sends the writes of a seed and returns the responses. Edits read the object first.
async fn run_sequence(server: &Server, kind: &Kind, seed: u64, variables: &Variables) -> Vec<Value> {
    let mut session = run::Session::new(server, variables.clone());
    let mut responses = Vec::new();
    for (name, namespace) in [("OWNER", "$NS"), ("OTHER", "kube-system")] {
        let read = json!({ "do": format!("GET /api/v1/namespaces/{namespace}"), "save": { name: "/metadata/uid" } });
        session.send(&serde_json::from_value(read).expect("a step has these fields")).await;
    }
    for write in writes_of(kind, seed) {
        let step = match write {
            Write::Request(step) => step,
            Write::Edit(mut step) => {
                let read = json!({ "do": format!("GET {}", path_of(kind)), "save": { "LIVE": "" } });
                session.send(&serde_json::from_value(read).expect("a step has these fields")).await;
                let mut live: Value = serde_json::from_str(session.variable("LIVE")).expect("a response is JSON");
                merge_patch(&mut live, &step.body);
                step.body = live;
                step
            }
        };
        let mut response = session.send(&step).await;
        forget_ports(&mut response);
        let is_rejected = responses.is_empty() && response["code"] != 201;
        responses.push(response);
        if is_rejected {
            // The create failed, so the other writes have no object.
            return responses;
        }
    }
    let free = json!({ "do": format!("MERGE {}", path_of(kind)), "body": { "metadata": { "finalizers": null } } });
    session.send(&serde_json::from_value(free).expect("a step has these fields")).await;
    responses
}

/// Replaces node ports, which are allocated at random.
fn forget_ports(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(port) = fields.get_mut("nodePort").filter(|port| port.is_u64()) {
                *port = "PORT".into();
            }
            fields.values_mut().for_each(forget_ports);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_ports),
        _ => {}
    }
}

/// Applies a JSON merge patch (RFC 7396).
fn merge_patch(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return patch.clone_into(value) };
    if !value.is_object() {
        *value = json!({});
    }
    for (name, patch) in patch {
        if patch.is_null() {
            value.as_object_mut().map(|fields| fields.remove(name));
        } else {
            merge_patch(&mut value[name], patch);
        }
    }
}

/// Returns the first write whose responses differ. Later differences are only its consequences.
fn first_difference(expected: &[Value], found: &[Value], writes: &[Write]) -> Option<String> {
    let client = ClientStrings::collect(writes.iter().map(Write::step));
    let pairs = expected.iter().zip(found).zip(writes).enumerate();
    for (index, ((expected, found), write)) in pairs {
        let differences = tiers::compare(std::slice::from_ref(expected), std::slice::from_ref(found), &client).asserted;
        if !differences.is_empty() {
            let before: Vec<String> = writes[..index].iter().map(|write| format!("    {}", write.text())).collect();
            return Some(format!(
                "after\n{}\n  {}\n  gets another response:\n    {}",
                before.join("\n"),
                write.text(),
                differences.join("\n    ")
            ));
        }
    }
    (expected.len() != found.len()).then(|| format!("{} responses, not {}", found.len(), expected.len()))
}
