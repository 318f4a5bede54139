//! Differential tests of the embedded API server: compares the responses with a real server's.
//!
//! Responses must agree in meaning. Differences in wording are printed, and written to `target/tmp/wording` (`tiers`).
//!
//! `cargo test -p kctl-tests --test conformance` compares with `recorded/` and needs no cluster. With `REAL_SERVER` the
//! requests are also sent to that server, whose responses must match the recorded ones; with `RECORD=1` they are
//! recorded. Recorded responses that agree in meaning are kept, so that the diff only shows changes that matter to
//! clients. `CASE=substring` selects the cases whose names contain it, and `EMBEDDED=0` leaves the embedded server out.
//! `KEEP_NAMESPACES=1` leaves the namespaces of successful cases on a real server that is discarded afterwards.
//! Deleting one takes its controllers over 100 requests, and cases that wait for a deletion would wait for all others.
//! The real server needs the feature gate `ShardedListAndWatch`: `KUBE_APISERVER_FLAGS=--feature-gates=ShardedListAndWatch=true`
//! for `cargo xtask server up`.

mod case;
mod combinators;
mod differences;
mod digest;
mod headers;
mod hook;
mod isolation;
mod normal;
mod recorded;
mod rng;
mod run;
mod sequences;
mod server;
mod tiers;
mod webhooks;

use std::{collections::BTreeMap, env, path::Path, time::Duration};

use serde_json::Value;

use self::{
    case::{Case, Topic},
    differences::DIFFERENCES,
    server::Server,
    tiers::{ClientStrings, Differences},
};

/// Number of cases that run concurrently on a real server.
const AT_A_TIME_MAX: usize = 8;
/// Attempts for a case whose responses differ from the recorded ones. The real server reads policies, roles and CRDs
/// from caches, which lag on a busy machine.
const TRIES_MAX: usize = 3;
/// Pauses after the first and the second attempt. Another case may interfere, for example by a default `StorageClass`,
/// and should have ended by then.
const PAUSES: [Duration; TRIES_MAX - 1] = [Duration::from_secs(3), Duration::from_secs(20)];

macro_rules! topics {
    ($($topic:ident),* $(,)?) => {
        const TOPICS: &[&str] = &[$(stringify!($topic)),*];

        mod matches_real_server {
            $(#[test] fn $topic() { super::check(stringify!($topic)); })*
        }
    };
}

topics! {
    access_review_admission,
    admission,
    apply_duplicate_items,
    autoscaler_versions,
    bootstrap_objects,
    cel_constants,
    cel_expressions,
    cel_libraries,
    cel_limits,
    cel_negation,
    cel_overloads,
    cluster_trust_bundles,
    complete_objects,
    connect_admission,
    container_status_changes,
    conversion_webhooks,
    crd_names,
    crd_rule_compilation,
    crd_rule_costs,
    crd_schema_changes,
    crd_schema_roots,
    crd_schemas,
    crd_status,
    crd_writes,
    create,
    csr_signers,
    custom_object_numbers,
    custom_object_values,
    custom_object_versions,
    custom_objects,
    default_classes_admission,
    defaulting,
    delete_admission,
    delete_and_gc,
    delete_collection,
    delete_options,
    deletion_metadata_updates,
    device_selectors,
    device_taint_rules,
    discovery,
    dynamic_resource_allocation,
    embedded_resources,
    endpoints_deletion,
    events_and_csrs,
    evictions,
    field_error_order,
    field_validation,
    forbidden_before_not_found,
    garbage_collection,
    generation_and_status,
    go_zero_values,
    health_checks,
    immutable_fields,
    impersonation,
    job_and_pdb_status,
    json_patch_copy_limit,
    kubectl_requests,
    label_and_field_selectors,
    leases_and_events,
    limit_ranger,
    list_options,
    list_pagination,
    managed_fields_versions,
    mutating_policies,
    mutating_policy_json_patch,
    mutating_policy_values,
    mutating_webhook_patches,
    mutating_webhook_requests,
    namespace_deletion,
    namespaces,
    null_values,
    openapi,
    patch,
    patch_edge_cases,
    paths_and_media_types,
    pod_certificate_requests,
    pod_graceful_deletion,
    pod_security,
    policy_cel_costs,
    policy_cel_types,
    policy_validation,
    ratcheting_validation,
    rbac,
    rbac_escalation,
    request_parsing,
    reset_fields,
    resize_and_templates,
    resource_quotas,
    server_side_apply,
    service_account_tokens,
    service_ip_families,
    services_and_volumes,
    sharded_lists,
    status_validation,
    storage_version_migrations,
    subresource_admission,
    subresource_metadata,
    subresources,
    table_printers,
    tables_and_partial_metadata,
    terminating_namespaces,
    timeouts_and_content_types,
    times_and_quantities,
    token_and_access_reviews,
    token_edge_cases,
    type_errors,
    update,
    update_by_kind,
    update_rules_by_kind,
    validating_policies,
    validation_by_kind,
    validation_cluster_kinds,
    validation_config,
    validation_objects,
    validation_of_all_fields,
    validation_pods,
    validation_updates,
    validation_workloads,
    volume_sources,
    warnings_and_scales,
    watch,
    watch_options,
    workload_lifecycles,
    yaml_and_json,
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/conformance"))
}

fn check(topic: &str) {
    let topic = Topic::read(topic, &env::var("CASE").unwrap_or_default());
    if let Some(kubeconfig) = kctl_tests::real_server() {
        let is_recording = env::var("RECORD").is_ok_and(|value| value == "1");
        let purpose = if is_recording { Purpose::Record } else { Purpose::Compare };
        let responses = run_on_real(&topic, &kubeconfig, &recorded::read(&topic.name), purpose);
        if is_recording {
            recorded::write(&topic, &responses);
        }
        let recorded = recorded::read(&topic.name);
        report(
            &topic,
            &responses,
            |case| recorded.get(&case.name).cloned(),
            "the real server no longer responds as recorded",
        );
        // The gate has already compared the embedded server.
        if env::var("EMBEDDED").is_ok_and(|value| value == "0") {
            return;
        }
    }
    let recorded = recorded::read(&topic.name);
    let expected = |case: &Case| recorded.get(&case.name).map(|responses| differences::apply(case, responses));
    report(&topic, &run_on_embedded(&topic), expected, "the embedded server responds differently from the real one");
}

fn run_on_embedded(topic: &Topic) -> BTreeMap<String, Vec<Value>> {
    // The server uses tokio's paused clock, so watches time out at once.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut responses = BTreeMap::new();
        for case in &topic.cases {
            let server = Server::embedded();
            let variables = run::prepare(&server, topic, "embedded0").await;
            responses.insert(case.name.clone(), run::run_case(&server, case, variables).await);
        }
        responses
    })
}

/// The reason for sending cases to the real server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Compare,
    Record,
}

fn run_on_real(
    topic: &Topic,
    kubeconfig: &Path,
    known: &BTreeMap<String, Vec<Value>>,
    purpose: Purpose,
) -> BTreeMap<String, Vec<Value>> {
    use futures::StreamExt;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = &Server::real(kubeconfig).await;
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        let run = format!("{}{:x}", topic.name.replace('_', ""), since % 0x1000_0000);
        let variables = &run::prepare(server, topic, &run).await;
        let keeps_namespaces = env::var("KEEP_NAMESPACES").is_ok_and(|value| value == "1");
        let cases = futures::stream::iter(topic.cases.iter().enumerate()).map(|(index, case)| async move {
            let mut responses = Vec::new();
            let client = ClientStrings::collect(&case.steps);
            let agree = |one: &[Value], other: &[Value]| tiers::compare(one, other, &client).asserted.is_empty();
            for attempt in 1..=TRIES_MAX {
                let variables = variables.clone().for_attempt(attempt);
                let variables = variables.in_namespace(server, &format!("conf-{index}-{attempt}")).await;
                let before = std::mem::replace(&mut responses, run::run_case(server, case, variables.clone()).await);
                let is_as_known = known.get(&case.name).is_some_and(|known| agree(known, &responses));
                if !(is_as_known && keeps_namespaces) {
                    variables.clean_up(server).await;
                }
                match known.get(&case.name) {
                    None => break,
                    Some(known) if is_as_known => {
                        if purpose == Purpose::Record {
                            responses.clone_from(known);
                        }
                        break;
                    }
                    // Two equal attempts show the server's real response, not the response of a lagging cache.
                    Some(_) if purpose == Purpose::Record && agree(&before, &responses) => break,
                    Some(_) => {}
                }
                eprintln!("{}: attempt {attempt} of {TRIES_MAX} got another response", case.name);
                if let Some(pause) = PAUSES.get(attempt - 1) {
                    tokio::time::sleep(*pause).await;
                }
            }
            (case.name.clone(), responses)
        });
        let responses = cases.buffer_unordered(AT_A_TIME_MAX).collect().await;
        run::clean_up(server, topic, variables).await;
        responses
    })
}

fn report(
    topic: &Topic,
    responses: &BTreeMap<String, Vec<Value>>,
    expected: impl Fn(&Case) -> Option<Vec<Value>>,
    what: &str,
) {
    let (mut failures, mut wording) = (Vec::new(), Vec::new());
    for case in &topic.cases {
        let Some(expected) = expected(case) else {
            failures.push(format!("{}: it is not recorded; run with REAL_SERVER and RECORD=1", case.name));
            continue;
        };
        let client = ClientStrings::collect(&case.steps);
        let Differences { asserted, wording: words } = tiers::compare(&expected, &responses[&case.name], &client);
        for (differences, all) in [(asserted, &mut failures), (words, &mut wording)] {
            if !differences.is_empty() {
                all.push(format!("{}:\n    {}", case.name, differences.join("\n    ")));
            }
        }
    }
    tiers::report(&topic.name, &wording);
    assert!(failures.is_empty(), "{what} in {} cases of {}:\n  {}", failures.len(), topic.name, failures.join("\n  "));
}

#[test]
fn every_case_has_one_recording() {
    let mut names = Vec::new();
    let mut files: Vec<String> = std::fs::read_dir(folder().join("cases"))
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let mut topics: Vec<String> = TOPICS.iter().map(ToString::to_string).collect();
    topics.sort();
    assert_eq!(files, topics);
    for topic in &topics {
        let cases: Vec<String> = Topic::read(topic, "").cases.into_iter().map(|case| case.name).collect();
        let recorded: Vec<String> = recorded::read(topic).into_keys().collect();
        let mut sorted = cases.clone();
        sorted.sort();
        assert_eq!(sorted, recorded, "{topic}");
        names.extend(cases);
    }
    let n_names = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), n_names, "two cases have one name");
    for difference in DIFFERENCES {
        assert!(names.iter().any(|name| name == difference.case), "there is no case {:?}", difference.case);
    }
}

/// Returns the ports behind `nodePort` in the requests of cases, in YAML and in JSON.
fn node_ports(cases: &str) -> Vec<u16> {
    let values = cases.split("nodePort").skip(1).map(|rest| rest.trim_start_matches(['"', ':', ' ']));
    values.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).collect()
}

/// The server allocates ports from 30086 up first (upstream's `calculateRangeOffset` in
/// `pkg/registry/core/service/portallocator/allocator.go`), so a Service of another case may hold any of those.
#[test]
fn requested_node_ports_are_below_the_allocated_ones() {
    assert_eq!(node_ports(r#"{port: 80, nodePort: 30777}, {"nodePort": 80}"#), [30777, 80]);
    let mut n_ports = 0;
    for topic in TOPICS {
        let cases = std::fs::read_to_string(folder().join(format!("cases/{topic}.yaml"))).unwrap();
        for port in node_ports(&cases) {
            assert!(!(30086..=32767).contains(&port), "{topic}: use a node port from 30000 to 30085 instead of {port}");
            n_ports += 1;
        }
    }
    assert!(n_ports > 10, "the cases write node ports in another form: follow it");
}

#[test]
fn readme_lists_each_topic() {
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let (by_rule, by_kind) = readme.split_once("## By kind").expect("the index by kind comes last");
    let mut listed: Vec<&str> = Vec::new();
    for row in by_rule.lines().filter_map(|line| line.strip_prefix("| [`")) {
        let (topic, rest) = row.split_once('`').expect("a topic between backticks");
        assert!(rest.starts_with(&format!("](cases/{topic}.yaml) |")), "{topic} links to another file");
        listed.push(topic);
    }
    listed.sort_unstable();
    let mut topics = TOPICS.to_vec();
    topics.sort_unstable();
    assert_eq!(listed, topics, "the index by rule lists each topic once");
    for topic in by_kind.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
        assert!(TOPICS.contains(&topic), "the index by kind names {topic:?}, which is not a topic");
    }
}

/// Returns the built-in kinds that have no row in the index by kind.
fn kinds_without_row<'a>(by_kind: &str, resources: &'a Value) -> Vec<&'a str> {
    let groups = resources.as_array().into_iter().flatten();
    let listed = groups.flat_map(|group| group["resources"].as_array().into_iter().flatten());
    let is_subresource = |resource: &Value| resource["name"].as_str().is_some_and(|name| name.contains('/'));
    let kinds = listed.filter(|resource| !is_subresource(resource)).filter_map(|resource| resource["kind"].as_str());
    kinds.filter(|kind| !by_kind.lines().any(|line| line.starts_with(&format!("| {kind} | ")))).collect()
}

#[test]
fn readme_lists_each_built_in_kind() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kctl-apiserver/data/resources.json");
    let resources: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let (by_rule, by_kind) = readme.split_once("## By kind").expect("the index by kind comes last");
    assert!(kinds_without_row(by_rule, &resources).len() > 60, "resources.json has another form: follow it");
    let missing = kinds_without_row(by_kind, &resources);
    assert!(missing.is_empty(), "write a row with the topics of the kind, or that it has none: {missing:?}");
}
