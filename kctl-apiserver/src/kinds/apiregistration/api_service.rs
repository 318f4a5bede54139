//! `APIService` of `apiregistration.k8s.io`: a group and version that another API server may serve.
//!
//! - The name is `<version>.<group>`, such as `v1beta1.metrics.k8s.io`; that of the core group is
//!   `v1.`.
//! - Without `spec.service` the version is served locally. The embedded server forwards no
//!   requests: the paths of another version return 503, and its condition `Available` is `False`.
//! - A write of `status` leaves spec and metadata as they are.
//! - `kubectl get` prints name, Service (or `Local`), availability and age.
//!
//! Upstream, in kube-aggregator: `pkg/registry/apiservice/strategy.go` and
//! `pkg/apis/apiregistration/validation/validation.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    defaulting::{add, part},
    field_errors::{Errors, text},
    names::NameRule,
    registry::kind::{Defaults, Kind, Metadata, Strategy, TableColumns, Validation},
    table::{
        age::age,
        fields::{self, condition, name, value_at},
    },
    validation::entries,
};

pub(crate) static KIND: Kind = Kind {
    group: "apiregistration.k8s.io",
    resource: "apiservices",
    kind: "APIService",
    metadata: Metadata { finalizers_without_domain: true, ..Metadata::DEFAULT },
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy {
        allows_unconditional_update: false,
        kept_by_status: Kind::CLIENT_METADATA,
        ..Strategy::DEFAULT
    },
    validation: Validation {
        validate,
        validate_status: |_, new, errors| validate_status(new, errors),
        ..Validation::DEFAULT
    },
    table: TableColumns::printer(cells),
    ..Kind::DEFAULT
};

/// Returns name, Service, availability and age (`ConvertToTable` in
/// `kube-aggregator/pkg/registry/apiservice/etcd`).
///
/// The Service is `namespace/name`, or `Local`. The third cell is the status of the condition
/// `Available`; any status but `True` is followed by the reason, as in `False (MissingEndpoints)`.
/// Without the condition it is `Unknown`.
fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let service = value_at(object, "/spec/service");
    let service = if service.is_object() {
        format!("{}/{}", fields::text(service, "/namespace"), fields::text(service, "/name"))
    } else {
        "Local".to_owned()
    };
    let available = condition(object, "Available").map_or_else(
        || "Unknown".to_owned(),
        |available| match fields::text(available, "/status") {
            "True" => "True".to_owned(),
            status => format!("{status} ({})", fields::text(available, "/reason")),
        },
    );
    vec![json!(name(object)), json!(service), json!(available), json!(age(object, now))]
}

/// Maximum of `spec.groupPriorityMinimum`. Groups with a higher number come first in discovery.
const GROUP_PRIORITY_MAX: i64 = 20_000;
/// Maximum of `spec.versionPriority`, which orders the versions of one group in discovery.
const VERSION_PRIORITY_MAX: i64 = 1_000;

/// Validates an `APIService` (`ValidateAPIService` of kube-aggregator).
///
/// | field | rule |
/// |---|---|
/// | `metadata.name` | `spec.version`, a dot and `spec.group` |
/// | `spec.group` | empty for `v1` only; otherwise a DNS subdomain |
/// | `spec.version` | DNS label that begins with a letter |
/// | `spec.groupPriorityMinimum` | 1 to 20,000 |
/// | `spec.versionPriority` | 1 to 1,000 |
/// | `spec.service` | see `service` |
fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let (group, version) = (text(&spec["group"]), text(&spec["version"]));
    let wanted = format!("{version}.{group}");
    let name = text(&object["metadata"]["name"]);
    if !name.is_empty() && name != wanted {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        errors.invalid("metadata.name", &name.into(), &detail);
    }
    if group.is_empty() && version != "v1" {
        errors.required("spec.group", "only v1 may have an empty group and it better be legacy kube");
    }
    if !group.is_empty() {
        errors.name("spec.group", &spec["group"], NameRule::Subdomain);
    }
    errors.name("spec.version", &version.into(), NameRule::Label1035);
    for (field, most) in [("groupPriorityMinimum", GROUP_PRIORITY_MAX), ("versionPriority", VERSION_PRIORITY_MAX)] {
        if !spec[field].as_i64().is_some_and(|priority| (1..=most).contains(&priority)) {
            let detail = format!("must be positive and less than {most}");
            errors.invalid(&format!("spec.{field}"), &spec[field], &detail);
        }
    }
    service(spec, errors);
}

/// Validates the Service that serves the version. Without one, kube-apiserver serves the version
/// itself.
///
/// A local version may not have TLS settings. A remote version needs name and namespace of the Service and a port, and
/// either a `caBundle` or `insecureSkipTLSVerify`, not both: skipping the verification would ignore the bundle.
fn service(spec: &Value, errors: &mut Errors) {
    let (service, trusted) = (&spec["service"], text(&spec["caBundle"]));
    let skips = (&spec["insecureSkipTLSVerify"], "spec.insecureSkipTLSVerify");
    if service.is_null() {
        if !trusted.is_empty() {
            // Four base64 characters encode three bytes.
            let len = trusted.len() / 4 * 3 - trusted.bytes().rev().take_while(|byte| *byte == b'=').count();
            let shown = format!("{len} bytes").into();
            errors.invalid("spec.caBundle", &shown, "local APIServices may not have a caBundle");
        }
        if *skips.0 == true {
            errors.invalid(skips.1, skips.0, "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    for field in ["namespace", "name"].iter().filter(|field| text(&service[**field]).is_empty()) {
        errors.required(&format!("spec.service.{field}"), "");
    }
    let port = &service["port"];
    if !port.as_i64().is_some_and(|port| (1..=65_535).contains(&port)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid("spec.service.port", port, detail);
    }
    if *skips.0 == true && !trusted.is_empty() {
        errors.invalid(skips.1, skips.0, "may not be true if caBundle is present");
    }
}

/// Validates that each condition has the status `True`, `False` or `Unknown`. An absent status is
/// reported, too.
fn validate_status(object: &Value, errors: &mut Errors) {
    for (index, condition) in entries(&object["status"]["conditions"]) {
        let path = format!("status.conditions[{index}].status");
        errors.always_one_of(&path, &text(&condition["status"]).into(), &["True", "False", "Unknown"]);
    }
}

/// Fills in port 443 of `spec.service`, if a Service is named.
fn default(object: &mut Value) {
    let service = part(object, "spec").get_mut("service").filter(|service| service.is_object());
    if let Some(service) = service {
        add(service, "port", 443);
    }
}
