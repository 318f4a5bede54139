//! Generated schemas with keywords below `anyOf`, `oneOf`, `allOf` and `not`: both servers must accept the same values,
//! store them alike and reject the same CRDs.
//!
//! The verdicts of the real server on the first seeds are recorded. With `REAL_SERVER`, the schemas of `SEEDS` (by
//! default the recorded ones) are sent to both servers; `RECORD=1` records the first ones again. Field errors are not
//! compared: if several branches fail, the servers may report different ones.

mod schema;

use std::{collections::BTreeMap, env, time::Duration};

use http::{Method, Request};
use serde_json::{Value, json};

use self::schema::{schema, value};
use crate::{
    recorded,
    rng::{Rng, seeds},
    server::Server,
};

/// Number of seeds whose verdicts are recorded.
const RECORDED: u64 = 60;
/// Number of values that are written for each schema.
const VALUES: usize = 8;
const NAME: &str = "combinators";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Attempts and pause until a real server serves a new CRD.
const TRIES_MAX: usize = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// The verdicts on a CRD and on its values, by seed.
type Verdicts = BTreeMap<String, Vec<Value>>;

#[test]
fn keywords_below_combinators_judge_as_the_real_server() {
    let kubeconfig = kctl_tests::real_server();
    let seeds: Vec<u64> = if kubeconfig.is_none() { 0..RECORDED } else { seeds(0..RECORDED) }.collect();
    let runtime = |is_paused| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(is_paused).build().expect("a runtime starts")
    };
    let ours = runtime(true).block_on(async { verdicts(&Server::embedded(), &seeds).await });
    let mut expected = recorded::read(NAME);
    if let Some(kubeconfig) = kubeconfig {
        let real = runtime(false).block_on(async { verdicts(&Server::real(&kubeconfig).await, &seeds).await });
        if env::var("RECORD").is_ok_and(|value| value == "1") {
            let first = real.iter().filter(|(seed, _)| seed.parse().is_ok_and(|seed: u64| seed < RECORDED));
            recorded::write_all(NAME, &first.map(|(seed, verdicts)| (seed.clone(), verdicts.clone())).collect());
        } else {
            let old: Vec<&String> =
                real.iter().filter(|(seed, _)| expected.contains_key(*seed)).map(|(s, _)| s).collect();
            let changed: Vec<_> = old.into_iter().filter(|seed| expected[*seed] != real[*seed]).collect();
            assert!(changed.is_empty(), "the real server no longer judges these seeds as recorded: {changed:?}");
        }
        expected = real;
    }
    let differences: Vec<String> = seeds
        .iter()
        .filter_map(|seed| difference(*seed, &expected[&seed.to_string()], &ours[&seed.to_string()]))
        .collect();
    assert!(differences.is_empty(), "{} seeds differ:\n{}", differences.len(), differences.join("\n"));
}

/// Returns the first verdict of a seed that differs, with its schema and value.
fn difference(seed: u64, expected: &[Value], found: &[Value]) -> Option<String> {
    let at = (0..expected.len().max(found.len())).find(|at| expected.get(*at) != found.get(*at))?;
    let mut rng = Rng::new(seed);
    let schema = schema(&mut rng);
    let value = (0..at).map(|_| value(&mut rng, &schema)).last();
    Some(format!("seed {seed}: {schema}\n  {value:?}\n  {:?}, expected {:?}", found.get(at), expected.get(at)))
}

async fn verdicts(server: &Server, seeds: &[u64]) -> Verdicts {
    let mut all = Verdicts::new();
    for seed in seeds {
        all.insert(seed.to_string(), verdicts_of(server, *seed).await);
    }
    all
}

/// Returns the verdict on the CRD of a seed; if it is accepted, also those on its values.
async fn verdicts_of(server: &Server, seed: u64) -> Vec<Value> {
    let mut rng = Rng::new(seed);
    let schema = schema(&mut rng);
    let plural = format!("combined{seed}s");
    let definition = definition(&plural, &schema);
    let (code, response) = send(server, Method::POST, DEFINITIONS, &definition).await;
    if code >= 400 {
        return vec![json!([code, response["reason"]])];
    }
    let path = format!("/apis/combinators.example.com/v1/{plural}");
    until_served(server, &path).await;
    let mut all = vec![json!([code])];
    for _ in 0..VALUES {
        let object = json!({
            "apiVersion": "combinators.example.com/v1",
            "kind": definition["spec"]["names"]["kind"],
            "metadata": { "name": "a" },
            "v": value(&mut rng, &schema),
        });
        let (code, response) = send(server, Method::POST, &format!("{path}?dryRun=All"), &object).await;
        all.push(if code < 400 { json!([code, response["v"]]) } else { json!([code, response["reason"]]) });
    }
    send(server, Method::DELETE, &format!("{DEFINITIONS}/{plural}.combinators.example.com"), &Value::Null).await;
    all
}

fn definition(plural: &str, schema: &Value) -> Value {
    let kind = format!("C{}", &plural[1..plural.len() - 1]);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.combinators.example.com") },
        "spec": {
            "group": "combinators.example.com",
            "scope": "Cluster",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "v": schema } } },
            }],
        },
    })
}

/// Waits until lists and creates of a new kind succeed.
async fn until_served(server: &Server, path: &str) {
    for _ in 0..TRIES_MAX {
        let (listed, _) = send(server, Method::GET, path, &Value::Null).await;
        let (created, _) = send(server, Method::POST, &format!("{path}?dryRun=All"), &json!({})).await;
        if listed == 200 && ![404, 405].contains(&created) {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("{path} is not served after {TRIES_MAX} tries");
}

async fn send(server: &Server, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json").body(body);
    let (code, _, bytes) = server.send(request.expect("the request is valid")).await;
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}
