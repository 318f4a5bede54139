//! Where the embedded server answers otherwise on purpose: each place with its answer and the reason.

use serde_json::Value;

/// A part of an answer that differs.
pub(crate) struct Difference {
    /// The name of the case.
    pub(crate) case: &'static str,
    /// A pointer into the answers of the case: the index of the step, then `body` and so on.
    pub(crate) at: &'static str,
    /// What the embedded server says there, as JSON; empty for nothing.
    pub(crate) ours: &'static str,
    /// Why this is better, or no worse.
    pub(crate) why: &'static str,
}

const PRIVILEGED: &str =
    "clusters let containers be privileged (`--allow-privileged`), which kube-apiserver by itself does not";
const TWICE: &str = "the last of two fields counts, as in JSON elsewhere; the warning is the same";

pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        case: "autoscalers are applied in both versions",
        at: "/6/body/status/currentMetrics/0/resource/current/averageValue",
        ours: r#""0""#,
        why: "version 1 cannot leave the amount out, and the writer of this status has written version 1",
    },
    Difference { case: "the version", at: "/0/body/~1compiler", ours: r#""rustc""#, why: "it is true" },
    Difference {
        case: "a namespace that is baseline",
        at: "/7",
        ours: r#"{
            "code": 403,
            "body": {
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "pods \"a\" is forbidden: violates PodSecurity \"baseline:latest\": privileged (container \"c\" must not set securityContext.privileged=true)",
                "reason": "Forbidden",
                "code": 403,
                "details": { "kind": "pods", "name": "a" }
            }
        }"#,
        why: PRIVILEGED,
    },
    Difference {
        case: "a namespace that is baseline",
        at: "/24",
        ours: r#"{
            "code": 403,
            "body": {
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "pods \"a\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true), hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
                "reason": "Forbidden",
                "code": 403,
                "details": { "kind": "pods", "name": "a" }
            }
        }"#,
        why: PRIVILEGED,
    },
    Difference { case: "fields that come twice", at: "/0/body/data", ours: r#"{ "c": "d" }"#, why: TWICE },
    Difference {
        case: "fields that come twice",
        at: "/0/body/metadata/managedFields/0/fieldsV1",
        ours: r#"{ "f:data": { ".": {}, "f:c": {} } }"#,
        why: TWICE,
    },
];

/// The answers that the embedded server is expected to give.
pub(crate) fn apply(case: &str, recorded: &[Value]) -> Vec<Value> {
    let mut answers = Value::Array(recorded.to_vec());
    for difference in DIFFERENCES.iter().filter(|difference| difference.case == case) {
        let Difference { at, ours, why, .. } = difference;
        assert!(!why.is_empty(), "{case} {at}: a difference has a reason");
        let (parent, key) = at.rsplit_once('/').expect("a pointer begins with a slash");
        let parent = answers.pointer_mut(parent).unwrap_or_else(|| panic!("{case}: nothing is at {at}"));
        let key = &key.replace("~1", "/");
        let recorded = parent.get(key).or_else(|| parent.get(key.parse::<usize>().ok()?)).cloned().unwrap_or_default();
        let ours = if ours.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(ours).unwrap_or_else(|error| panic!("{case} {at}: {error}"))
        };
        assert_ne!(recorded, ours, "{case} {at}: this is no longer a difference");
        match parent {
            Value::Array(items) => items[key.parse::<usize>().expect("an index")] = ours,
            Value::Object(map) if ours.is_null() => drop(map.remove(key.as_str())),
            parent => parent[key] = ours,
        }
    }
    match answers {
        Value::Array(answers) => answers,
        _ => Vec::new(),
    }
}
