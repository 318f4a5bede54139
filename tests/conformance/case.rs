//! What is asked: reads files of cases, hands on their steps.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Groups that paths name by one word; all other paths are of the core, or begin with a slash.
const GROUPS: &[(&str, &str)] = &[
    ("apps", "apps/v1"),
    ("autoscaling", "autoscaling/v2"),
    ("batch", "batch/v1"),
    ("certificates", "certificates.k8s.io/v1"),
    ("coordination", "coordination.k8s.io/v1"),
    ("custom", "$GROUP/v1"),
    ("discovery", "discovery.k8s.io/v1"),
    ("newevents", "events.k8s.io/v1"),
    ("networking", "networking.k8s.io/v1"),
    ("policy", "policy/v1"),
    ("rbac", "rbac.authorization.k8s.io/v1"),
];

/// A file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topic {
    #[serde(skip)]
    pub(crate) name: String,
    /// Asked once before the cases, not compared.
    #[serde(default)]
    pub(crate) setup: Vec<Step>,
    pub(crate) cases: Vec<Case>,
}

impl Topic {
    pub(crate) fn read(name: &str, picked: &str) -> Self {
        let file = crate::folder().join(format!("cases/{name}.yaml"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        // Without them, a `y` is true.
        let options = serde_saphyr::options! { strict_booleans: true };
        let read = serde_saphyr::from_str_with_options(&text, options);
        let mut topic: Self = read.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        topic.name = name.into();
        topic.cases.retain(|case| case.name.contains(picked));
        topic
    }
}

/// Requests that belong together, in a namespace of their own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    #[serde(rename = "case")]
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// A request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Method and path: `POST apps/deployments`. Besides those of HTTP, the methods are `JSON`, `MERGE`, `STRATEGIC`
    /// and `APPLY` for patches, and `WATCH`. `SEEN reviews` is answered with the reviews that the webhook was sent.
    #[serde(rename = "do")]
    pub(crate) request: String,
    /// A text is sent as it is.
    #[serde(default)]
    pub(crate) body: Value,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// Names for values of the answer's body, by their pointers: `$name` stands for them in later steps.
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
    /// It is asked again until the answer has this status.
    #[serde(default)]
    pub(crate) until: Option<u16>,
    /// Only these parts of the body are compared, by their pointers.
    #[serde(default)]
    pub(crate) only: Vec<String>,
}

impl Step {
    pub(crate) fn is_watch(&self) -> bool {
        self.request.starts_with("WATCH ") || self.request.contains("watch=true") || self.request.contains("/watch/")
    }

    /// The HTTP method, the path with its query and the content type.
    pub(crate) fn request(&self) -> (&str, String, &'static str) {
        let (word, path) = self.request.split_once(' ').unwrap_or_else(|| panic!("{}: no path", self.request));
        let mut path = whole(path);
        let (method, media_type) = match word {
            "JSON" => ("PATCH", "application/json-patch+json"),
            "MERGE" => ("PATCH", "application/merge-patch+json"),
            "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            "WATCH" => ("GET", "application/json"),
            other => (other, "application/json"),
        };
        if word == "WATCH" {
            path += if path.contains('?') { "&" } else { "?" };
            path += "watch=true&timeoutSeconds=1";
        }
        (method, path, media_type)
    }
}

fn whole(path: &str) -> String {
    if path.starts_with('/') {
        return path.into();
    }
    let of_group = path.split_once('/').and_then(|(word, rest)| {
        let (_, group) = GROUPS.iter().find(|(known, _)| *known == word)?;
        Some(format!("/apis/{group}/namespaces/$NS/{rest}"))
    });
    of_group.unwrap_or_else(|| format!("/api/v1/namespaces/$NS/{path}"))
}
