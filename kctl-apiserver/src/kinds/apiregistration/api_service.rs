//! `APIService` of `apiregistration.k8s.io`: a group and version that another API server may serve.
//!
//! - The name is `<version>.<group>`, such as `v1beta1.metrics.k8s.io`; for the core group it is `v1.`.
//! - Without `spec.service` the version is served locally. The embedded server forwards no requests: the paths of
//!   another version return 503, and its condition `Available` is `False`.
//!
//! Upstream, in kube-aggregator: `pkg/registry/apiservice/strategy.go` and
//! `pkg/apis/apiregistration/validation/validation.go`.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    defaulting::{add, part},
    field::Field,
    field_errors::Errors,
    names::NameRule,
    registry::kind::{Defaults, Kind, Metadata, Strategy, TableColumns, Validation},
    status::GroupResource,
    table::{
        age::age,
        fields::{self, condition, name, value_at},
    },
};

/// The resource `apiservices`, whose objects may forward a group to another server.
pub(crate) static API_SERVICES: LazyLock<GroupResource> = LazyLock::new(|| KIND.group_resource());

pub(crate) static KIND: Kind = Kind {
    group: "apiregistration.k8s.io",
    resource: "apiservices",
    kind: "APIService",
    metadata: Metadata { finalizers_without_domain: true, ..Metadata::DEFAULT },
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { kept_by_status: Kind::CLIENT_METADATA, ..Strategy::CONDITIONAL },
    validation: Validation {
        validate,
        validate_status: |_, new, errors| validate_status(new, errors),
        ..Validation::DEFAULT
    },
    table: TableColumns::printer(cells),
    ..Kind::DEFAULT
};

/// Returns name, Service, availability and age (`ConvertToTable` in `kube-aggregator/pkg/registry/apiservice/etcd`).
/// The Service is `namespace/name`, or `Local`. The third cell is the status of the condition `Available`; any status
/// but `True` is followed by the reason, as in `False (MissingEndpoints)`. Without the condition it is `Unknown`.
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
fn validate(object: &Value, errors: &mut Errors) {
    let registration = Field::new(object, "", errors);
    let (spec, name) = (registration.at("spec"), registration.at("metadata").at("name"));
    let (group, version) = (spec.at("group"), spec.at("version"));
    let wanted = format!("{}.{}", version.text(), group.text());
    let is_other = !name.is_empty() && name.text() != wanted;
    name.invalid_if(is_other, format_args!("must be `spec.version+\".\"+spec.group`: {wanted:?}"));
    // Only version v1 may have the empty group, the core group.
    group.required_with_if(group.is_empty() && version.text() != "v1", "only version v1 may have the empty group");
    group.name_if_set(NameRule::Subdomain);
    version.name(NameRule::Label1035);
    validate_number(&spec.at("groupPriorityMinimum"), GROUP_PRIORITY_MAX);
    validate_number(&spec.at("versionPriority"), VERSION_PRIORITY_MAX);
    validate_service(&spec);
}

/// Validates a number from 1 to `most`, which may not be absent.
fn validate_number(number: &Field<'_>, most: i64) {
    number.invalid_if(number.is_null(), "must be set");
    number.in_range(1, most);
}

/// Validates the Service that serves the version. Without one, kube-apiserver serves the version itself. A local
/// version may not have TLS settings. A remote version needs name and namespace of the Service and a port, and either a
/// `caBundle` or `insecureSkipTLSVerify`, not both. Skipping the verification would ignore the bundle.
fn validate_service(spec: &Field<'_>) {
    let [service, bundle, skips] = ["service", "caBundle", "insecureSkipTLSVerify"].map(|name| spec.at(name));
    let is_skipped = *skips == true;
    if service.is_null() {
        bundle.invalid_without_value_if(!bundle.is_empty(), "local APIServices may not have a caBundle");
        skips.invalid_if(is_skipped, "local APIServices may not have insecureSkipTLSVerify");
        return;
    }
    service.require_children(&["namespace", "name"]);
    validate_number(&service.at("port"), 65_535);
    skips.invalid_if(is_skipped && !bundle.is_empty(), "may not be true if caBundle is present");
}

/// Validates that each condition has the status `True`, `False` or `Unknown`. An absent status is
/// reported, too.
fn validate_status(object: &Value, errors: &mut Errors) {
    for condition in Field::new(&object["status"]["conditions"], "status.conditions", errors).items() {
        condition.at("status").always_one_of(&["True", "False", "Unknown"]);
    }
}

/// Fills in port 443 of `spec.service`, if a Service is named.
fn default(object: &mut Value) {
    let service = part(object, "spec").get_mut("service").filter(|service| service.is_object());
    if let Some(service) = service {
        add(service, "port", 443);
    }
}
