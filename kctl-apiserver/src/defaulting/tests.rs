//! Compares defaulted objects with those of kube-apiserver. `answers.json` has each object as sent and as stored,
//! without the parts that the caller of `default_object` sets.
//!
//! A new default needs a case in `tests/conformance/cases/defaulting.yaml`, which compares the whole response. The tests
//! here call `default_object` alone, because a request cannot show that a second call changes nothing and that
//! malformed objects do not panic.
//!
//! `kctl-apiserver/data/answers.py` records `stored` of each entry again, and `cargo xtask kubernetes` runs it. A new
//! entry needs `apiVersion`, `kind`, `sent`, and its name in `answers!`.

use std::sync::LazyLock;

use super::*;

static ANSWERS: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("answers.json")).unwrap());

/// Sets the defaults by the rules of the kind.
fn default_object(api_version: &str, kind: &str, object: &mut Value, stored: Option<&Value>) {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let found = crate::kinds::ALL.iter().find(|found| (found.group, found.kind) == (group, kind));
    super::default_object(
        Type { api_version, kind_name: kind, kind: found.unwrap_or(&&Kind::DEFAULT) },
        object,
        stored,
    );
}

#[track_caller]
fn check(name: &str) {
    let answer = &ANSWERS[name];
    let text = |key: &str| answer[key].as_str().unwrap();
    let (mut object, stored) = (answer["sent"].clone(), &answer["stored"]);
    if text("kind") == "Pod" {
        // The caller sets this phase for new Pods only: a status write without a phase removes the phase.
        object["status"]["phase"] = "Pending".into();
    }
    default_object(text("apiVersion"), text("kind"), &mut object, None);
    assert_eq!(&object, stored);
    default_object(text("apiVersion"), text("kind"), &mut object, None);
    assert_eq!(&object, stored, "the second time changes nothing");
}

/// Generates one test per recorded object, named after the behaviour that it checks.
macro_rules! answers {
    ($($name:ident,)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        #[test]
        fn every_answer_is_a_test() {
            assert_eq!(ANSWERS.as_object().unwrap().len(), [$(stringify!($name)),*].len());
        }
    };
}

answers! {
    a_pod_gets_policies_and_tolerations,
    pull_policy_goes_by_the_tag,
    probes_and_hooks_get_timings_and_paths,
    zero_timings_of_probes_count_as_left_out,
    environment_and_ports_get_versions_and_protocols,
    ports_on_the_network_of_the_host_are_ports_of_the_host,
    requests_are_copied_from_limits,
    quantities_get_their_canonical_form,
    a_pod_with_equal_limits_in_other_words_is_guaranteed,
    a_claim_gets_a_canonical_size,
    a_quota_gets_canonical_amounts,
    a_pod_with_equal_limits_is_guaranteed,
    requests_of_nothing_are_best_effort,
    the_service_account_and_its_alias_follow_each_other,
    the_alias_of_the_service_account_gives_its_name,
    volumes_get_modes_and_an_empty_directory,
    volumes_of_storage_systems_get_their_defaults,
    a_toleration_of_everything_is_enough,
    a_toleration_of_one_node_state_is_completed,
    a_toleration_without_effect_tolerates_every_effect,
    nulls_and_empty_lists_and_maps_go_away,
    a_service_gets_families_policies_and_target_ports,
    a_load_balancer_gets_traffic_policies_and_affinity,
    a_node_port_keeps_named_target_ports,
    an_external_name_gets_no_families,
    a_headless_service_is_of_one_family,
    a_headless_service_without_selector_is_of_both_families,
    a_headless_service_of_a_single_stack_is_of_one_family,
    external_addresses_get_a_traffic_policy,
    a_deployment_gets_a_rolling_update,
    a_deployment_that_recreates_gets_no_rolling_update,
    a_rolling_update_is_completed,
    a_template_gets_fewer_defaults_than_a_pod,
    a_replica_set_has_one_replica,
    a_stateful_set_gets_policies,
    claims_of_a_stateful_set_get_kinds_and_phases,
    a_daemon_set_gets_a_rolling_update,
    a_daemon_set_on_delete_gets_no_rolling_update,
    a_replication_controller_takes_the_labels_of_its_template,
    a_template_of_pods_gets_their_defaults,
    a_job_completes_once,
    a_parallel_job_gets_no_completions,
    a_job_with_completions_runs_one_pod,
    a_limit_for_each_index_lifts_that_of_the_job,
    a_policy_of_failures_replaces_failed_pods,
    the_job_in_a_cron_job_gets_no_defaults,
    null_in_a_map_of_texts_is_the_empty_text,
    empty_data_goes_away,
    texts_of_a_secret_override_its_data,
    a_secret_is_opaque,
    a_namespace_is_active_and_named_by_a_label,
    a_claim_is_pending,
    a_volume_is_retained,
    a_volume_gets_the_defaults_of_its_source,
    an_ingress_gets_a_status_alone,
    an_autoscaler_watches_the_processor,
    an_autoscaler_without_metrics_watches_the_processor,
    behavior_of_an_autoscaler_is_completed,
    empty_behavior_is_completed,
    a_disruption_budget_begins_at_zero,
    a_service_account_stays_as_it_is,
    rules_of_a_role_may_be_null,
    empty_rules_of_a_role_are_null,
    aggregated_rules_are_null,
    subjects_of_a_binding_get_groups,
    subjects_of_a_cluster_binding_get_groups,
    ports_of_a_slice_get_names_and_protocols,
    lists_of_an_empty_slice_are_null,
    ports_of_endpoints_get_protocols,
    a_network_policy_is_for_ingress,
    a_network_policy_with_egress_is_for_both,
    empty_egress_is_no_egress,
    a_storage_class_deletes_at_once,
    a_lease_gets_an_empty_spec,
    an_event_has_null_times,
    a_priority_class_preempts,
    limits_of_containers_default_to_the_maximum,
    a_quota_gets_a_status,
    a_storage_driver_attaches,
    validating_webhooks_fail_closed,
    mutating_webhooks_fail_closed,
}

#[test]
fn bad_input_stays_without_a_panic() {
    let kinds = ANSWERS.as_object().unwrap().values();
    for answer in kinds {
        let (api_version, kind) = (answer["apiVersion"].as_str().unwrap(), answer["kind"].as_str().unwrap());
        for object in [json!(null), json!([]), json!("x"), json!({"spec": 5, "metadata": {"name": 5, "labels": "x"}})] {
            default_object(api_version, kind, &mut object.clone(), None);
        }
        let fields = answer["stored"].as_object().unwrap().keys();
        for wrong in [json!(1), json!("x"), json!([1, "x", null, {}, []]), json!({"a": 1})] {
            let mut object: Value = fields.clone().map(|name| (name.clone(), wrong.clone())).collect();
            default_object(api_version, kind, &mut object, None);
            let spec = answer["stored"]["spec"].as_object().into_iter().flatten();
            let spec: Value = spec.map(|(name, _)| (name.clone(), wrong.clone())).collect();
            default_object(api_version, kind, &mut json!({ "spec": spec }), None);
        }
    }
}

#[test]
fn other_kinds_stay_as_they_are() {
    let mut object = json!({"spec": {"a": null, "l": []}});
    default_object("example.com/v1", "Pod", &mut object, None);
    assert_eq!(object, json!({"spec": {"a": null, "l": []}}));
}

#[test]
fn namespace_gets_no_default_finalizers() {
    let mut object = json!({"metadata": {"name": "x"}, "spec": {}});
    default_object("v1", "Namespace", &mut object, None);
    assert_eq!(object["spec"], json!({}));
}

#[test]
fn defaulting_with_stored_object_equals_full_defaulting() {
    let pods = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "a" }] } });
    for (api_version, kind, object, change) in [
        ("v1", "Pod", json!({ "spec": { "containers": [{ "name": "a", "image": "i" }] } }), "/spec/containers/0/image"),
        ("v1", "Pod", json!({ "spec": { "containers": [{ "name": "a", "image": "i" }] } }), "/metadata/labels"),
        ("v1", "Namespace", json!({}), "/metadata/labels"),
        ("v1", "ReplicationController", json!({ "spec": { "template": pods } }), "/metadata/labels"),
        ("apps/v1", "DaemonSet", json!({ "spec": { "template": pods } }), "/metadata/annotations"),
        ("apps/v1", "Deployment", json!({ "spec": { "template": pods } }), "/spec/replicas"),
        ("v1", "Service", json!({ "spec": { "ports": [{ "port": 1 }, { "port": 2 }] } }), "/spec/ports/1/targetPort"),
    ] {
        let mut stored = object;
        stored["metadata"] = json!({ "name": "x", "labels": { "c": "" }, "annotations": { "c": "d" } });
        default_object(api_version, kind, &mut stored, None);
        let mut changed = stored.clone();
        *changed.pointer_mut(change).unwrap() = Value::Null;
        let mut alone = changed.clone();
        default_object(api_version, kind, &mut changed, Some(&stored));
        default_object(api_version, kind, &mut alone, None);
        assert_eq!(changed, alone, "{kind} {change}");
    }
}

/// kube-apiserver 1.37.2 accepts these fields and drops them.
#[test]
fn fields_of_features_that_are_off_go() {
    let mut pod = json!({
        "spec": {
            "schedulingGroup": { "podGroupName": "g" },
            "containers": [
                { "name": "a", "lifecycle": { "stopSignal": "SIGTERM" } },
                { "name": "b", "lifecycle": { "stopSignal": "no", "preStop": { "sleep": { "seconds": 1 } } } },
            ],
            "volumes": [{ "name": "v", "emptyDir": { "medium": "Memory", "mode": 511 } }],
        },
    });
    default_object("v1", "Pod", &mut pod, None);
    let spec = &pod["spec"];
    assert!(spec.get("schedulingGroup").is_none());
    assert!(spec["containers"][0].get("lifecycle").is_none());
    assert_eq!(spec["containers"][1]["lifecycle"], json!({ "preStop": { "sleep": { "seconds": 1 } } }));
    assert_eq!(spec["volumes"][0]["emptyDir"], json!({ "medium": "Memory" }));
}

#[test]
fn times_are_stored_in_utc_at_type_precision() {
    let mut node = json!({ "spec": { "taints": [{ "key": "a", "effect": "NoExecute", "timeAdded": "2020-01-01T01:00:00.5+01:00" }] } });
    default_object("v1", "Node", &mut node, None);
    assert_eq!(node["spec"]["taints"][0]["timeAdded"], "2020-01-01T00:00:00Z");
    let mut lease = json!({ "spec": { "renewTime": "2020-01-01T01:00:00.000001+01:00", "acquireTime": "soon" } });
    default_object("coordination.k8s.io/v1", "Lease", &mut lease, None);
    assert_eq!(lease["spec"], json!({ "renewTime": "2020-01-01T00:00:00.000001Z", "acquireTime": "soon" }));
}
