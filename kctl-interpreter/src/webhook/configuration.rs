//! `ResourceInterpreterWebhookConfiguration`: the object that registers the webhook in a control
//! plane, and Karmada's validation of it.

use std::collections::{BTreeMap, BTreeSet};

use kctl_apimachinery::{
    url::Url,
    validation::{is_dns1035_label, is_dns1123_subdomain},
};
use kctl_webhook::server::ClientConfig;
use serde_json::{Value, json};

use super::wire::API_VERSION;
use crate::{function::Rule, operation::Operation};

/// The minimum and the maximum of `timeoutSeconds`.
pub const TIMEOUT_SECONDS: (u32, u32) = (1, 30);
/// `kind` of the object.
const KIND: &str = "ResourceInterpreterWebhookConfiguration";

/// The parameters of a `ResourceInterpreterWebhookConfiguration`; [`Configuration::object`] makes
/// the object.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kctl_interpreter::function::{FunctionInfo, IntoHealth, Rule};
/// use kctl_interpreter::operation::Operation;
/// use kctl_interpreter::webhook::{ClientConfig, Configuration};
///
/// let about = FunctionInfo::new(Operation::InterpretHealth, "is_healthy", file!(), line!());
/// let rules = [Rule::read(about, |_: Deployment| async { true.into_result() })];
/// let configuration = Configuration {
///     name: "workloads",
///     client: ClientConfig::Url("https://interpreter.example.com".into()),
///     authority: None,
///     timeout_seconds: 5,
/// };
/// let object = configuration.object(&rules)?;
/// let webhook = &object["webhooks"][0];
/// assert_eq!(webhook["name"], "deployment.apps");
/// assert_eq!(webhook["clientConfig"]["url"], "https://interpreter.example.com/interpreter-deployment");
/// assert_eq!(webhook["rules"][0]["operations"][0], "InterpretHealth");
/// # Ok::<_, kctl_interpreter::webhook::ConfigurationError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Configuration<'a> {
    /// `metadata.name` of the object.
    pub name: &'a str,
    /// The address of the webhook server.
    pub client: ClientConfig,
    /// The certificate authority that Karmada must trust, as PEM; `None` for the system's.
    pub authority: Option<&'a str>,
    /// The time that Karmada waits for a response, in seconds: 1 to 30 ([`TIMEOUT_SECONDS`]).
    pub timeout_seconds: u32,
}

/// Returns the path of a kind, such as `/interpreter-workload`. Kinds of different groups with the
/// same name share it.
pub(super) fn path_of(kind: &str) -> String {
    format!("/interpreter-{}", kind.to_ascii_lowercase())
}

impl Configuration<'_> {
    /// Creates the object: one webhook for each kind, with one rule for each of its versions.
    ///
    /// The name of a webhook is `<kind>.<group>` in lower case, with `core` for the core group.
    ///
    /// # Errors
    /// [`ConfigurationError`] if Karmada would reject the object, with its message for each
    /// field.
    pub fn object(&self, rules: &[Rule]) -> Result<Value, ConfigurationError> {
        let mut kinds: BTreeMap<(&str, &str), BTreeMap<&str, BTreeSet<usize>>> = BTreeMap::new();
        for rule in rules {
            let kind = rule.kind();
            let versions = kinds.entry((&kind.group, &kind.kind)).or_default();
            let order = Operation::ALL.iter().position(|operation| *operation == rule.function_info().operation);
            versions.entry(&kind.version).or_default().extend(order);
        }
        let webhooks: Vec<Value> =
            kinds.into_iter().map(|((group, kind), versions)| self.webhook(group, kind, &versions)).collect();
        let object = json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": { "name": self.name },
            "webhooks": webhooks,
        });
        validate(&object)?;
        Ok(object)
    }

    fn webhook(&self, group: &str, kind: &str, versions: &BTreeMap<&str, BTreeSet<usize>>) -> Value {
        let rules = versions.iter().map(|(version, operations)| {
            let operations: Vec<_> = operations.iter().map(|idx| Operation::ALL[*idx].name()).collect();
            json!({ "operations": operations, "apiGroups": [group], "apiVersions": [version], "kinds": [kind] })
        });
        let rules: Vec<Value> = rules.collect();
        // Karmada requires a domain as webhook name (`validateWebhook` in `pkg/webhook/configuration/validating.go`), and the
        // core group is empty.
        let domain = if group.is_empty() { "core" } else { group };
        json!({
            "name": format!("{}.{domain}", kind.to_ascii_lowercase()),
            "clientConfig": self.client.config(&path_of(kind), self.authority),
            "rules": rules,
            "timeoutSeconds": self.timeout_seconds,
            "interpreterContextVersions": ["v1alpha1"],
        })
    }
}

/// A webhook configuration that Karmada would reject. The message has all problems.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{KIND} invalid: {}", problems.join("; "))]
#[non_exhaustive]
pub struct ConfigurationError {
    /// One problem per field, with the path of the field.
    pub problems: Vec<String>,
}

/// Checks an object by the rules of Karmada's validating webhook
/// (`validateWebhook` in `pkg/webhook/configuration/validating.go`), and the rules of Kubernetes that it uses
/// (`apiserver/pkg/util/webhook/validation.go`).
///
/// Call it in a test of a hand-written configuration. [`Configuration::object`] calls it itself.
///
/// ```
/// use kctl_interpreter::webhook::validate;
/// use serde_json::json;
///
/// let object = json!({ "webhooks": [{
///     "name": "workloads.example.com",
///     "clientConfig": { "url": "http://interpreter.example.com" },
///     "rules": [{ "operations": ["Prune"], "apiGroups": [""], "apiVersions": ["v1"], "kinds": ["Workload"] }],
///     "interpreterContextVersions": ["v1alpha1"],
/// }] });
/// let problems = validate(&object).err().map(|error| error.problems).unwrap_or_default();
/// assert_eq!(problems.len(), 2, "the scheme and the operation: {problems:?}");
/// assert!(problems[0].contains("'https' is the only allowed URL scheme"));
/// ```
///
/// # Errors
/// [`ConfigurationError`] with a message for each invalid field.
pub fn validate(object: &Value) -> Result<(), ConfigurationError> {
    let mut problems = Vec::new();
    let empty = Vec::new();
    let webhooks = object["webhooks"].as_array().unwrap_or(&empty);
    let mut names = BTreeSet::new();
    for (idx, webhook) in webhooks.iter().enumerate() {
        let mut fields = Fields { path: format!("webhooks[{idx}]"), problems: &mut problems };
        let name = webhook["name"].as_str().unwrap_or_default();
        let labels = name.strip_suffix('.').unwrap_or(name);
        if !labels.contains('.') || !is_dns1123_subdomain(labels) {
            fields.add_problem("name", name, "should be a domain with at least two segments separated by dots");
        }
        if !names.insert(name) {
            fields.add_problem("name", name, "is the name of another webhook");
        }
        fields.client_config(&webhook["clientConfig"]);
        for (idx, rule) in webhook["rules"].as_array().into_iter().flatten().enumerate() {
            fields.rule(idx, rule);
        }
        if let Some(seconds) = webhook["timeoutSeconds"].as_i64()
            && !(i64::from(TIMEOUT_SECONDS.0)..=i64::from(TIMEOUT_SECONDS.1)).contains(&seconds)
        {
            fields.add_problem(
                "timeoutSeconds",
                &seconds.to_string(),
                "the timeout value must be between 1 and 30 seconds",
            );
        }
        fields.versions(&webhook["interpreterContextVersions"]);
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigurationError { problems }) }
}

/// One webhook under validation: collects its problems.
struct Fields<'a> {
    /// The path of the webhook, such as `webhooks[0]`.
    path: String,
    /// The problems of all webhooks so far.
    problems: &'a mut Vec<String>,
}

impl Fields<'_> {
    /// Adds a problem, in the format of a Kubernetes field error.
    fn add_problem(&mut self, field: &str, value: &str, what: &str) {
        self.problems.push(format!("{}.{field}: Invalid value: {value:?}: {what}", self.path));
    }

    /// Checks that exactly one of URL and Service is given, and then that one.
    fn client_config(&mut self, config: &Value) {
        match (config["url"].as_str(), config.get("service").filter(|service| !service.is_null())) {
            (Some(url), None) => self.url(url),
            (None, Some(service)) => self.service(service),
            _ => self.add_problem("clientConfig", "", "exactly one of url or service is required"),
        }
    }

    /// Checks an https URL with a host, and without user, fragment or query.
    fn url(&mut self, url: &str) {
        let field = "clientConfig.url";
        let Some(parsed) = Url::parse(url) else {
            return self.add_problem(field, url, "must be a URL such as https://host/path");
        };
        for (_, why) in parsed.webhook_problems() {
            self.add_problem(field, url, why);
        }
    }

    /// Checks the reference to a Service: names, port and path.
    fn service(&mut self, service: &Value) {
        for field in ["namespace", "name"] {
            if service[field].as_str().is_none_or(str::is_empty) {
                self.add_problem(&format!("clientConfig.service.{field}"), "", "is required");
            }
        }
        if let Some(port) = service.get("port").filter(|port| !port.is_null())
            && port.as_u64().is_none_or(|port| !(1..=65535).contains(&port))
        {
            self.add_problem("clientConfig.service.port", &port.to_string(), "must be between 1 and 65535, inclusive");
        }
        let path = service["path"].as_str().unwrap_or("/");
        let segments = path.strip_prefix('/').map(|path| path.strip_suffix('/').unwrap_or(path));
        let is_right =
            matches!(path, "" | "/") || segments.is_some_and(|segments| segments.split('/').all(is_dns1123_subdomain));
        if !is_right {
            self.add_problem("clientConfig.service.path", path, "must start with a '/' and have DNS-1123 segments");
        }
    }

    /// Checks the four lists of a rule. `*` must be alone, and only the core group may be an empty
    /// string.
    fn rule(&mut self, idx: usize, rule: &Value) {
        let lists = [
            ("operations", "operations", false),
            ("apiGroups", "API groups", true),
            ("apiVersions", "API versions", false),
            ("kinds", "kinds", false),
        ];
        for (field, plural, may_be_empty) in lists {
            let path = format!("rules[{idx}].{field}");
            let items: Vec<_> = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            if items.is_empty() {
                self.add_problem(&path, "", "is required");
            }
            if items.len() > 1 && items.contains(&"*") {
                self.add_problem(&path, "*", &format!("if '*' is present, must not specify other {plural}"));
            }
            for item in items.iter().filter(|item| item.is_empty() && !may_be_empty) {
                self.add_problem(&path, item, "is required");
            }
            if field == "operations" {
                for item in items {
                    let is_listed = item == "*" || item.parse::<Operation>().is_ok_and(Operation::has_webhook);
                    if !is_listed {
                        self.add_problem(&path, item, "is not an operation that webhooks are asked for");
                    }
                }
            }
        }
    }

    /// Checks `interpreterContextVersions`: unique labels, with `v1alpha1` among them.
    fn versions(&mut self, versions: &Value) {
        let field = "interpreterContextVersions";
        let versions: Vec<_> = versions.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if versions.is_empty() {
            self.add_problem(field, "", "must specify one of v1alpha1");
        } else if !versions.contains(&"v1alpha1") {
            self.add_problem(field, &versions.join(","), "must include at least one of v1alpha1");
        }
        for (idx, version) in versions.iter().enumerate() {
            if versions[..idx].contains(version) {
                self.add_problem(field, version, "duplicate version");
            }
            if !is_dns1035_label(version) {
                self.add_problem(field, version, "must be a DNS-1035 label");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid() -> Value {
        json!({ "webhooks": [{
            "name": "workloads.example.com",
            "clientConfig": { "url": "https://127.0.0.1:9443/interpreter-workload" },
            "rules": [{ "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "kinds": ["Workload"] }],
            "timeoutSeconds": 3,
            "interpreterContextVersions": ["v1alpha1"],
        }]})
    }

    #[test]
    fn karmadas_rules_reject_fields_in_karmadas_words() {
        assert_eq!(validate(&valid()), Ok(()));
        let service = |key: &str, value: Value| {
            let mut service = json!({ "service": { "namespace": "n", "name": "s", "port": 443, "path": "/a" } });
            service["service"][key] = value;
            service
        };
        let cases = [
            ("/name", json!("workloads"), "should be a domain with at least two segments separated by dots"),
            ("/name", json!("Work.loads"), "should be a domain with at least two segments separated by dots"),
            (
                "/name",
                json!(vec!["a.b"; 64].join(".")),
                "should be a domain with at least two segments separated by dots",
            ),
            ("/clientConfig", json!({}), "exactly one of url or service is required"),
            (
                "/clientConfig",
                json!({ "url": "https://a", "service": {} }),
                "exactly one of url or service is required",
            ),
            ("/clientConfig/url", json!("http://a/b"), "'https' is the only allowed URL scheme"),
            ("/clientConfig/url", json!("https:///b"), "host must be specified"),
            ("/clientConfig/url", json!("https://u@a/b"), "user information is not permitted in the URL"),
            ("/clientConfig/url", json!("https://a/b#c"), "fragments are not permitted in the URL"),
            ("/clientConfig/url", json!("https://a/b?c"), "query parameters are not permitted in the URL"),
            (
                "/clientConfig",
                service("name", json!("")),
                "clientConfig.service.name: Invalid value: \"\": is required",
            ),
            ("/clientConfig", service("port", json!(0)), "must be between 1 and 65535, inclusive"),
            ("/clientConfig", service("port", json!(65536)), "must be between 1 and 65535, inclusive"),
            ("/clientConfig", service("path", json!("a")), "must start with a '/'"),
            ("/clientConfig", service("path", json!("/A")), "DNS-1123 segments"),
            ("/clientConfig", service("path", json!("//")), "DNS-1123 segments"),
            ("/clientConfig", service("path", json!("/a//b")), "DNS-1123 segments"),
            ("/rules/0/operations", json!([]), "is required"),
            ("/rules/0/operations", json!(["Prune"]), "is not an operation that webhooks are asked for"),
            ("/rules/0/operations", json!(["*", "Retain"]), "if '*' is present, must not specify other operations"),
            ("/rules/0/apiGroups", json!(["*", ""]), "if '*' is present, must not specify other API groups"),
            ("/rules/0/apiVersions", json!([""]), "is required"),
            ("/rules/0/kinds", json!(["*", "A"]), "if '*' is present, must not specify other kinds"),
            ("/timeoutSeconds", json!(0), "the timeout value must be between 1 and 30 seconds"),
            ("/timeoutSeconds", json!(-1), "the timeout value must be between 1 and 30 seconds"),
            ("/timeoutSeconds", json!(31), "the timeout value must be between 1 and 30 seconds"),
            ("/interpreterContextVersions", json!([]), "must specify one of v1alpha1"),
            ("/interpreterContextVersions", json!(["v1"]), "must include at least one of v1alpha1"),
            ("/interpreterContextVersions", json!(["v1alpha1", "v1alpha1"]), "duplicate version"),
            ("/interpreterContextVersions", json!(["v1alpha1", "1"]), "must be a DNS-1035 label"),
        ];
        for (field, value, expected) in cases {
            let mut object = valid();
            *object.pointer_mut(&format!("/webhooks/0{field}")).unwrap() = value;
            let error = validate(&object).unwrap_err().to_string();
            assert!(error.contains(expected), "{field}: {error}");
        }
    }

    #[test]
    fn configurations_valid_for_karmada_are_accepted() {
        let service = |path: &str| json!({ "service": { "namespace": "n", "name": "s", "path": path } });
        for (field, value) in [
            ("/name", json!("a.b.")),
            ("/clientConfig", service("")),
            ("/clientConfig", service("/")),
            ("/clientConfig", service("/a/b.c/")),
            ("/rules", json!([])),
            ("/rules/0/apiGroups", json!(["*"])),
            ("/timeoutSeconds", json!(30)),
        ] {
            let mut object = valid();
            *object.pointer_mut(&format!("/webhooks/0{field}")).unwrap() = value;
            assert_eq!(validate(&object), Ok(()), "{field}");
        }
    }

    #[test]
    fn two_webhooks_of_one_name_are_rejected() {
        let mut object = valid();
        let webhook = object["webhooks"][0].clone();
        object["webhooks"].as_array_mut().unwrap().push(webhook);
        assert_eq!(validate(&object).unwrap_err().problems.len(), 1);
    }
}
