//! Checks that lists of allowed values in `kctl-apiserver` are not copies of enums in `data/types.json`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{modules::code, tidy::sources};

/// The lists of allowed values that are written in code: the file below `kctl-apiserver/src`, the values, and the type
/// with its field. The test fails if the `OpenAPI` document has an enum with these values for the field: then
/// `declared::values` returns it.
const BY_HAND: &[(&str, &[&str], &str, &str)] = &[
    // The document has another enum: the rule accepts only some of its values.
    (ADMISSION_POLICIES, &["*", "CONNECT", "CREATE", "UPDATE"], "v1.NamedRuleWithOperations", "operations"),
    (WEBHOOKS, &["None", "NoneOnDryRun"], "admissionregistration.v1.ValidatingWebhook", "sideEffects"),
    (QUOTA, &["In", "NotIn"], "core.v1.ScopedResourceSelectorRequirement", "operator"),
    ("kinds/storage/storage_class.rs", &["Delete", "Retain"], "storage.v1.StorageClass", "reclaimPolicy"),
    ("validation/affinity.rs", &["In", "NotIn"], "core.v1.NodeSelectorRequirement", "operator"),
    ("validation/affinity.rs", &["Equal", "Exists"], "core.v1.Toleration", "operator"),
    // The document has no enum: the Go type of the field is a string, or has no marker `+enum`.
    (ADMISSION_POLICIES, &["Allow", "Deny"], "admissionregistration.v1.ParamRef", "parameterNotFoundAction"),
    ("kinds/apiregistration/api_service.rs", STATUSES, "apiregistration.v1.APIServiceCondition", "status"),
    (SETS, &["Delete", "Retain"], "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy", "whenDeleted"),
    (AUTOSCALER, &["Disabled", "Max", "Min"], "autoscaling.v2.HPAScalingRules", "selectPolicy"),
    (AUTOSCALER, &["Percent", "Pods"], "autoscaling.v2.HPAScalingPolicy", "type"),
    ("crd/definition_rules.rs", &["Cluster", "Namespaced"], "v1.CustomResourceDefinitionSpec", "scope"),
    ("crd/definition_rules.rs", &["None", "Webhook"], "v1.CustomResourceConversion", "strategy"),
    ("crd/keywords.rs", &["atomic", "granular"], "v1.JSONSchemaProps", "x-kubernetes-map-type"),
    ("crd/keywords.rs", &["atomic", "map", "set"], "v1.JSONSchemaProps", "x-kubernetes-list-type"),
    (JOB, STATUSES, "batch.v1.PodFailurePolicyOnPodConditionsPattern", "status"),
    (SIGNING_REQUEST, STATUSES, "certificates.v1.CertificateSigningRequestCondition", "status"),
    ("kinds/core/pod/status.rs", &["Healthy", "Unhealthy", "Unknown"], "core.v1.ResourceHealth", "health"),
    (SERVICE, &["PreferClose", "PreferSameNode", "PreferSameZone"], "core.v1.ServiceSpec", "trafficDistribution"),
    (SERVICE, &["Proxy", "VIP"], "core.v1.LoadBalancerIngress", "ipMode"),
    (FLOW_CONTROL, &["ByNamespace", "ByUser"], "flowcontrol.v1.FlowDistinguisherMethod", "type"),
    (FLOW_CONTROL, &["Exempt", "Limited"], "flowcontrol.v1.PriorityLevelConfigurationSpec", "type"),
    (FLOW_CONTROL, &["Queue", "Reject"], "flowcontrol.v1.LimitResponse", "type"),
    (INGRESS, &["Cluster", "Namespace"], "networking.v1.IngressClassParametersReference", "scope"),
    ("kinds/rbac/validation.rs", &["Group", "ServiceAccount", "User"], "rbac.v1.Subject", "kind"),
    (CSI_DRIVER, &["File", "None", "ReadWriteOnceWithFSType"], "storage.v1.CSIDriverSpec", "fsGroupPolicy"),
    (CSI_DRIVER, &["Ephemeral", "Persistent"], "storage.v1.CSIDriverSpec", "volumeLifecycleModes"),
    ("metadata.rs", &["Apply", "Update"], "meta.v1.ManagedFieldsEntry", "operation"),
    // The same policies as of a Pod, but of another Go type, `ContainerRestartPolicy`.
    (CONTAINER, &["Always", "Never", "OnFailure"], "core.v1.Container", "restartPolicy"),
    (CONTAINER, &["Restart", "RestartAllContainers"], "core.v1.ContainerRestartRule", "action"),
    (CONTAINER, &["In", "NotIn"], "core.v1.ContainerRestartRuleOnExitCodes", "operator"),
    (CONTAINER, &["NotRequired", "RestartContainer"], "core.v1.ContainerResizePolicy", "restartPolicy"),
    ("validation/mounts.rs", &["Disabled", "Enabled", "IfPossible"], "core.v1.VolumeMount", "recursiveReadOnly"),
    ("validation/security.rs", &["MountOption", "Recursive"], "core.v1.PodSecurityContext", "seLinuxChangePolicy"),
    ("validation/security.rs", &["linux", "windows"], "core.v1.PodOS", "name"),
    ("validation/status.rs", STATUSES, "meta.v1.Condition", "status"),
    // The values are names of resources, or a boolean.
    (CONTAINER, &["cpu", "memory"], "core.v1.ContainerResizePolicy", "resourceName"),
    ("validation/resources.rs", &["cpu", "hugepages-", "memory"], "core.v1.ResourceRequirements", "limits"),
    ("kinds/batch/cron_job.rs", &["false", "nil"], "batch.v1.JobSpec", "manualSelector"),
];

const ADMISSION_POLICIES: &str = "kinds/admissionregistration/policies.rs";
const AUTOSCALER: &str = "kinds/autoscaling/horizontal_pod_autoscaler/validation.rs";
const CONTAINER: &str = "validation/container.rs";
const CSI_DRIVER: &str = "kinds/storage/csi_driver.rs";
const FLOW_CONTROL: &str = "kinds/flowcontrol/validation.rs";
const INGRESS: &str = "kinds/networking/ingress/validation.rs";
const JOB: &str = "kinds/batch/job/validation.rs";
const QUOTA: &str = "kinds/core/resource_quota/validation.rs";
const SERVICE: &str = "kinds/core/service/validation.rs";
const SETS: &str = "kinds/apps/stateful_set/validation.rs";
const SIGNING_REQUEST: &str = "kinds/certificates/certificate_signing_request/validation.rs";
const WEBHOOKS: &str = "kinds/admissionregistration/webhooks.rs";

/// The values of a condition's `status`.
const STATUSES: &[&str] = &["False", "True", "Unknown"];

/// A list of at least two string literals in code.
struct List<'a> {
    /// The name of the function or macro that has the list as an argument; empty without one.
    callee: &'a str,
    /// The strings, sorted.
    values: Vec<&'a str>,
}

impl List<'_> {
    /// Returns `true` if the list is an argument of a rule that rejects other values, such as `one_of`.
    fn is_rule(&self) -> bool {
        self.callee.ends_with("one_of") || self.callee.starts_with("unsupported")
    }
}

/// Returns the lists of string literals in code without comments. Lists in `json!` are values, not rules.
fn lists(code: &str) -> Vec<List<'_>> {
    let all = code.match_indices('[').filter_map(|(at, _)| {
        let mut values = strings(&code[at + 1..])?;
        values.sort_unstable();
        Some(List { callee: callee(&code[..at]), values })
    });
    all.filter(|list| list.values.len() > 1 && list.callee != "json!").collect()
}

/// Returns the string literals up to the next `]`; `None` if something else comes before it.
fn strings(code: &str) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(literal) = rest.strip_prefix('"') {
        let (value, after) = literal.split_once('"')?;
        found.push(value);
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    rest.starts_with(']').then_some(found)
}

/// Returns the name before the last parenthesis that is open at the end of the code.
fn callee(before: &str) -> &str {
    let mut depth = 0_usize;
    for (at, one) in before.char_indices().rev() {
        match one {
            ')' | ']' | '}' => depth += 1,
            '(' if depth == 0 => {
                let is_name = |one: char| one.is_ascii_alphanumeric() || "_!".contains(one);
                let name = before[..at].trim_end_matches(is_name).len();
                return &before[name..at];
            }
            '(' | '[' | '{' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    ""
}

/// Returns the enum of a field or of its items, sorted; empty without an enum. The empty string is left out.
fn enum_of(property: &Value) -> Vec<&str> {
    let schemas = [property, &property["items"], &property["additionalProperties"]];
    let values = schemas.into_iter().find_map(|schema| schema["enum"].as_array()).into_iter().flatten();
    let mut values: Vec<&str> = values.filter_map(Value::as_str).filter(|value| !value.is_empty()).collect();
    values.sort_unstable();
    values
}

#[test]
fn literal_lists_differ_from_declared_enums() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../kctl-apiserver/data/types.json");
    let types: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let properties = types.iter().filter_map(|one| one["type"]["properties"].as_object());
    let enums: BTreeSet<Vec<&str>> = properties.flat_map(|all| all.values()).map(enum_of).collect();

    for (file, values, type_name, field) in BY_HAND {
        let suffix = format!(".{type_name}");
        let named = types.iter().find(|one| one["name"].as_str().is_some_and(|name| name.ends_with(&suffix)));
        let property = named.and_then(|one| one["type"]["properties"].get(*field));
        let property = property.unwrap_or_else(|| panic!("{file}: {type_name} has no field {field}"));
        assert_ne!(enum_of(property), *values, "{file}: use `declared::values` for {type_name}.{field}");
    }

    let is_listed = |file: &str, list: &List<'_>| BY_HAND.iter().any(|row| row.0 == file && row.1 == list.values);
    let (mut unlisted, mut n_listed) = (Vec::new(), 0);
    for (path, text) in sources("kctl-apiserver/src") {
        let file = &path["kctl-apiserver/src/".len()..];
        // Verbs validate the parameters of requests, which are in no type.
        if file.contains("tests") || file.starts_with("verbs/") {
            continue;
        }
        let code = code(&text);
        for list in lists(&code).iter().filter(|list| list.is_rule() || enums.contains(&list.values)) {
            if is_listed(file, list) {
                n_listed += 1;
            } else {
                unlisted.push(format!("{file}: {:?}", list.values));
            }
        }
    }
    assert!(unlisted.is_empty(), "use `declared::values`, or add a row with a reason to `BY_HAND`: {unlisted:#?}");
    assert_eq!(n_listed, BY_HAND.len(), "a list is gone or a copy was added: each row is one list in the code");
}

#[test]
fn lists_in_code_are_found_with_callee() {
    let found = |code: &'static str| -> Vec<(&str, Vec<&str>)> {
        lists(code).into_iter().map(|list| (list.callee, list.values)).collect()
    };
    assert_eq!(found("field.one_of(&[\"b\", \"a\"]);"), [("one_of", vec!["a", "b"])]);
    assert_eq!(found("required_one_of(if x(1) { &[\"c\"] } else { &[\"a\", \"b\",] })").len(), 1);
    assert_eq!(found("required_one_of(if x(1) { &[\"c\"] } else { &[\"a\", \"b\"] })")[0].0, "required_one_of");
    assert_eq!(found("policy.unsupported_if(*policy == \"c\", &[\"a\", \"b\"])")[0].0, "unsupported_if");
    assert_eq!(found("const NAMES: [&str; 2] = [\"a\", \"b\"];"), [("", vec!["a", "b"])]);
    assert_eq!(found("json!([\"a\", \"b\"]); [\"a\", b]; [1, 2]; all[0]; [\"a\"]"), []);
}
