//! Intended differences from the real server: the part of the response, the embedded server's value and the reason.

use serde_json::Value;

use crate::case::Case;

/// A part of a response that differs.
pub(crate) struct Difference {
    /// The name of the case.
    pub(crate) case: &'static str,
    /// The `name` of the step in the case.
    pub(crate) step: &'static str,
    /// A JSON pointer into the response to the step: `/body` and so on; empty for the whole response.
    pub(crate) at: &'static str,
    /// The JSON value of the embedded server; empty if the field is missing.
    pub(crate) ours: &'static str,
    /// The reason why this response is better, or no worse.
    pub(crate) why: &'static str,
}

const PRIVILEGED: &str =
    "clusters let containers be privileged (`--allow-privileged`), which kube-apiserver by itself does not";
const TWICE: &str = "the last of two fields counts, as in JSON elsewhere; the warning is the same";

pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        case: "HorizontalPodAutoscaler applied in both versions by two managers",
        step: "read in v2 after a status in v1",
        at: "/body/status/currentMetrics/0/resource/current/averageValue",
        ours: r#""0""#,
        why: "version 1 cannot leave the amount out, and the writer of this status has written version 1",
    },
    Difference {
        case: "server version",
        step: "version",
        at: "/body/~1compiler",
        ours: r#""rustc""#,
        why: "it is true",
    },
    Difference {
        case: "Pod variants under enforce level baseline",
        step: "privileged container",
        at: "",
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
        case: "Pod variants under enforce level baseline",
        step: "host network on Windows",
        at: "",
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
    Difference {
        case: "duplicate fields in JSON body",
        step: "create with data twice",
        at: "/body/data",
        ours: r#"{ "c": "d" }"#,
        why: TWICE,
    },
    Difference {
        case: "duplicate fields in JSON body",
        step: "create with data twice",
        at: "/body/metadata/managedFields/0/fieldsV1",
        ours: r#"{ "f:data": { ".": {}, "f:c": {} } }"#,
        why: TWICE,
    },
];

/// Returns the responses expected of the embedded server: the recorded ones with the intended differences.
pub(crate) fn apply(case: &Case, recorded: &[Value]) -> Vec<Value> {
    let mut responses = recorded.to_vec();
    for difference in DIFFERENCES.iter().filter(|difference| difference.case == case.name) {
        let Difference { step, at, ours, why, .. } = difference;
        let place = format!("{}: {step} {at}", case.name);
        assert!(!why.is_empty(), "{place}: a difference needs a reason");
        let index = case.response_index(step).unwrap_or_else(|| panic!("{place}: no step of this name"));
        let response = responses.get_mut(index).unwrap_or_else(|| panic!("{place}: no recorded response"));
        let recorded = response.pointer(at).cloned().unwrap_or_default();
        let ours = if ours.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(ours).unwrap_or_else(|error| panic!("{place}: {error}"))
        };
        assert_ne!(recorded, ours, "{place}: this is no longer a difference");
        let Some((parent, key)) = at.rsplit_once('/') else {
            *response = ours;
            continue;
        };
        let parent = response.pointer_mut(parent).unwrap_or_else(|| panic!("{place}: nothing to change"));
        let key = &key.replace("~1", "/");
        match parent {
            Value::Array(items) => items[key.parse::<usize>().expect("an index")] = ours,
            Value::Object(map) if ours.is_null() => drop(map.remove(key.as_str())),
            parent => parent[key] = ours,
        }
    }
    responses
}
