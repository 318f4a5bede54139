//! Tables of built-in kinds in `kctl-runtime` match the data of the embedded API server.
//!
//! `python3 kctl-apiserver/data/tables.py` writes them. The CRD of a kind that embeds built-in types is accepted.

use std::collections::{BTreeMap, BTreeSet};

use kctl::{Json, k8s::api::apps::v1::DeploymentStatus, prelude::*};

const MERGING: &str = include_str!("../../kctl-runtime/src/manifest/crd/merging.txt");
const RESOURCES: &str = include_str!("../../kctl-runtime/src/manifest/rbac/resources.txt");
const REMEDY: &str = "run `python3 kctl-apiserver/data/tables.py`";

fn rows(table: &str) -> BTreeSet<&str> {
    table.lines().filter(|line| !line.starts_with('#')).collect()
}

/// Compares a table with the rows that the data has.
fn check(table: &str, expected: &BTreeSet<String>) {
    let (found, expected) = (rows(table), expected.iter().map(String::as_str).collect());
    let missing: Vec<_> = found.symmetric_difference(&expected).collect();
    assert!(missing.is_empty(), "{REMEDY}; rows in one of both: {missing:#?}");
    assert!(found.len() > 50, "{}", found.len());
}

/// Returns the strategy of a field or type, unless the keys of a list are neither required nor have a default: API
/// servers reject a CRD with such a list.
fn strategy(types: &BTreeMap<&str, &Json>, schema: &Json) -> Option<String> {
    match schema["type"].as_str() {
        None | Some("object") => schema["x-kubernetes-map-type"].as_str().map(str::to_owned),
        Some("array") => {
            let items = schema["items"]["$ref"].as_str().map_or(&schema["items"], |name| types[name]);
            let is_required = |key: &&Json| items["required"].as_array().is_some_and(|fields| fields.contains(key));
            let mut strategy = schema["x-kubernetes-list-type"].as_str()?.to_owned();
            for key in schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten() {
                strategy = format!("{strategy} {}", key.as_str()?);
                if !is_required(&key) {
                    strategy = format!("{strategy}={}", items["properties"][key.as_str()?]["default"].as_str()?);
                }
            }
            Some(strategy)
        }
        Some(_) => None,
    }
}

#[test]
fn merge_strategies_match_the_built_in_types() {
    let types = include_str!("../../kctl-apiserver/data/types.json");
    let types: Vec<Json> = serde_json::from_str(types).unwrap();
    let types: BTreeMap<&str, &Json> =
        types.iter().map(|entry| (entry["name"].as_str().unwrap(), &entry["type"])).collect();
    let mut expected = BTreeSet::new();
    for (name, schema) in &types {
        let fields = schema["properties"].as_object().into_iter().flatten();
        for (field, schema) in fields.map(|(field, schema)| (field.as_str(), schema)).chain([("*", *schema)]) {
            expected.extend(strategy(&types, schema).map(|strategy| format!("{name} {field} {strategy}")));
        }
    }
    check(MERGING, &expected);
}

#[test]
fn resources_match_discovery() {
    let groups: Vec<Json> = serde_json::from_str(include_str!("../../kctl-apiserver/data/resources.json")).unwrap();
    let mut found: BTreeMap<String, (&str, BTreeSet<&str>)> = BTreeMap::new();
    for group in &groups {
        let (name, version) = group["groupVersion"].as_str().unwrap().rsplit_once('/').unwrap_or(("", "v1"));
        if version.contains("alpha") || version.contains("beta") {
            continue;
        }
        for resource in group["resources"].as_array().unwrap() {
            let plural = resource["name"].as_str().unwrap();
            let (plural, subresource) = plural.split_once('/').map_or((plural, None), |(one, sub)| (one, Some(sub)));
            let entry = found.entry(format!("{plural}.{name}").trim_end_matches('.').to_owned()).or_default();
            entry.0 = if resource["namespaced"] == true { "namespaced" } else { "cluster" };
            entry.1.extend(subresource);
        }
    }
    let row = |(name, (scope, subresources)): (String, (&str, BTreeSet<&str>))| {
        [name.as_str(), scope].into_iter().chain(subresources).collect::<Vec<_>>().join(" ")
    };
    check(RESOURCES, &found.into_iter().map(row).collect());
}

#[resource(group = "example.com", version = "v1", kind = "Rollout", namespaced)]
pub(crate) struct RolloutSpec {
    last: DeploymentStatus,
}

/// `type` of a Deployment's condition is a key of the list, and optional since 1.37.
#[tokio::test]
async fn optional_key_of_a_list_has_its_default() {
    use kctl::{
        apiserver::ApiServer,
        k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
        kube::{Api, Client, api::PostParams},
        manifest::{Descriptions, KindSpec, definitions},
    };
    let server = ApiServer::new();
    let crds = Api::<CustomResourceDefinition>::all(Client::new(server.service(), "default"));
    for crd in definitions(&[KindSpec::of::<Rollout>()], Descriptions::Own).unwrap() {
        crds.create(&PostParams::default(), &crd).await.unwrap();
    }
}
