//! `Namespace` of the core group: a scope for names, quotas and policies.
//!
//! The server adds the finalizer `kubernetes`, which keeps a deleted namespace until its content is gone, the label
//! `kubernetes.io/metadata.name` and the phase. Only the subresource `finalize` writes `spec.finalizers`.
//!
//! Upstream: `pkg/registry/core/namespace/strategy.go` and `pkg/apis/core/validation/validation.go`.

use jiff::Timestamp;
use kctl_apimachinery::time;
use serde_json::{Value, json};

use crate::{
    defaulting::{fill, part},
    deletion::{FOREGROUND, Propagation, is_being_deleted, own_finalizer, set_finalizers},
    field::Field,
    field_errors::Errors,
    json_path::{push_once, set},
    metadata::{DOMAIN_RULE, has_domain},
    names::{NameRule, check_label_value},
    registry::kind::{
        Cell, Defaults, DeleteResponse, DeleteStrategy, Environment, Kind, ManagedFields, Metadata, OwnedState, Part,
        Plugin, Requests, Strategy, Subresource, TableColumns, Validation,
    },
};

pub(crate) static KIND: Kind = Kind {
    resource: "namespaces",
    kind: "Namespace",
    metadata: Metadata { names: NameRule::Label, has_defaults: true, ..Metadata::DEFAULT },
    requests: Requests { selectable_fields: &["status.phase"], is_own_namespace: true, ..Requests::DEFAULT },
    admission: &[Plugin::PodSecurityForNamespaces],
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy {
        prepare_create,
        parts: &[Part {
            subresource: Subresource::Finalize,
            kept_metadata: &[],
            owned_state: OwnedState::Stored,
            with: with_finalizers,
            validate: validate_finalizers,
        }],
        prepare_update,
        set_generated_name,
        ..Strategy::DEFAULT
    },
    validation: Validation { validates_subresources: true, validate, ..Validation::DEFAULT },
    managed_fields: ManagedFields {
        reset_fields: &[(Subresource::Finalize, &[&["status"]])],
        filled_in: &["/spec"],
        ..ManagedFields::DEFAULT
    },
    delete: DeleteStrategy {
        mark: Some(mark),
        undeletable,
        has_own_finalizers: |object| object["spec"]["finalizers"].as_array().is_some_and(|all| !all.is_empty()),
        response: DeleteResponse::UndocumentedObject,
        ..DeleteStrategy::DEFAULT
    },
    table: TableColumns::cells(&[Cell::Name, Cell::Text("/status/phase"), Cell::Age]),
    ..Kind::DEFAULT
};

/// The label that repeats the name, for selectors. A client cannot remove or change it: each write sets it again.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Adds the finalizer of the namespace controller, which deletes the content first. Upstream:
/// `namespaceStrategy.PrepareForCreate` in `pkg/registry/core/namespace/strategy.go`. A status that was sent is
/// replaced by the phase `Active`.
fn prepare_create(_: &mut dyn Environment, object: &mut Value) {
    object["status"] = json!({ "phase": "Active" });
    push_once(&mut object["spec"]["finalizers"], "kubernetes".into());
    let name = object["metadata"]["name"].clone();
    if name.as_str().is_some_and(|name| !name.is_empty()) {
        object["metadata"]["labels"][NAME_LABEL] = name;
    }
}

/// Sets the label with the name. An invalid name gets no label: kube-apiserver sets the label after validation
/// (`namespaceStrategy.Canonicalize` in `pkg/registry/core/namespace/strategy.go`), so only the name is reported.
fn set_generated_name(_: &Value, object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    if check_label_value(name.as_str().unwrap_or_default()).is_none() {
        object["metadata"]["labels"][NAME_LABEL] = name;
    }
}

/// Keeps `spec.finalizers`, which only the subresource `finalize` writes. An update of the object keeps the stored
/// finalizers without an error. So `kubectl apply` of an older manifest cannot free a namespace before its content is
/// gone.
fn prepare_update(subresource: Subresource, old: &Value, new: &mut Value) {
    if subresource.is_main() {
        set(&mut new["spec"], "finalizers", old["spec"].get("finalizers").cloned());
    }
}

/// Returns the reason why a namespace of the system may not be deleted (`NamespaceLifecycle`), for all users.
fn undeletable(name: &str) -> Option<&'static str> {
    ["default", "kube-public", "kube-system"].contains(&name).then_some("this namespace may not be deleted")
}

/// Marks a Namespace as being deleted (`pkg/registry/core/namespace/storage/storage.go`). `spec.finalizers` has
/// `kubernetes` from the creation on. It holds the Namespace until its contents are deleted, so no finalizer in
/// `metadata` is needed. A delete without a policy keeps what earlier ones have set.
fn mark(namespace: &mut Value, propagation: Propagation, now: Timestamp) {
    let finalizer = match propagation {
        Propagation::NoOrphans => Some(FOREGROUND),
        Propagation::Default => own_finalizer(namespace),
        other => other.finalizer(),
    };
    set_finalizers(namespace, finalizer);
    namespace["metadata"]["deletionTimestamp"] = time::seconds(now).into();
    namespace["status"]["phase"] = "Terminating".into();
}

/// Returns the old namespace with the finalizers and the metadata that a client sent to `finalize`. The namespace
/// controller removes its finalizer this way, which ends the deletion. Metadata that only the server sets is taken from
/// the old namespace. Upstream: `namespaceFinalizeStrategy`.
fn with_finalizers(old: &Value, new: &Value) -> Value {
    let mut namespace = old.clone();
    namespace["spec"] = match &new["spec"]["finalizers"] {
        Value::Array(list) if !list.is_empty() => json!({ "finalizers": list }),
        _ => json!({}),
    };
    for field in Kind::CLIENT_METADATA.iter().chain(&["managedFields"]) {
        set(&mut namespace["metadata"], field, new["metadata"].get(*field).cloned());
    }
    namespace
}

/// Validates the finalizers and that the phase fits `deletionTimestamp`. Errors about the phase are at `status.Phase`,
/// as in kube-apiserver.
fn validate(object: &Value, errors: &mut Errors) {
    let namespace = Field::new(object, "", errors);
    let finalizers = namespace.at("spec").at("finalizers");
    finalizers.items().for_each(|name| validate_finalizer(&finalizers.with(&name)));
    let is_deleted = is_being_deleted(object);
    let (phase, wanted) = (&object["status"]["phase"], if is_deleted { "Terminating" } else { "Active" });
    let detail = "must be 'Terminating' if `deletionTimestamp` is set, and 'Active' otherwise";
    namespace.at("status").at_with("Phase", phase).invalid_if(*phase != wanted, detail);
}

/// Validates the finalizers that were sent to `finalize` (`ValidateNamespaceFinalizeUpdate`). Each error has the index
/// of its finalizer; errors of other writes name only the list.
fn validate_finalizers(_: &Value, new: &Value, errors: &mut Errors) {
    let finalizers = Field::new(&new["spec"]["finalizers"], "spec.finalizers", errors);
    finalizers.items().for_each(|name| validate_finalizer(&name));
}

/// Validates a finalizer: a qualified name, with a domain unless it is a standard one.
fn validate_finalizer(name: &Field<'_>) {
    name.qualified_name();
    name.invalid_if(!has_domain(name.text()), DOMAIN_RULE);
}

/// Fills in the name label and the phase `Active`.
///
/// The label is overwritten, not only added. Only `prepare_create` adds the finalizer: a write of `finalize` without
/// finalizers is how the namespace controller ends the deletion.
fn default(object: &mut Value) {
    let meta = part(object, "metadata");
    if let Some(name) = meta.get("name").filter(|name| **name != "").cloned() {
        set(part(meta, "labels"), NAME_LABEL, Some(name));
    }
    fill(part(object, "status"), "phase", "Active");
}
