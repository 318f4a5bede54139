//! `CustomResourceDefinition` of `apiextensions.k8s.io`: declares a kind of custom resources.
//!
//! This file connects the kind to the rules in `crd/`: defaults, validation and the names and conditions of the status.
//!
//! - A delete marks the object and adds the finalizer `customresourcecleanup.apiextensions.k8s.io`, which keeps it
//!   until its custom resources are gone.
//! - `status.storedVersions` grows by the storage version of the spec. A version leaves it only by a write of the
//!   status, after all objects have been migrated.
//! - The response has a warning for each unknown `format` in a schema that the stored object does not have.
//!
//! Upstream, in apiextensions-apiserver: `pkg/registry/customresourcedefinition/strategy.go` and
//! `pkg/apis/apiextensions/validation/validation.go`.

use std::sync::LazyLock;

use jiff::Timestamp;
use kctl_apimachinery::time;
use serde_json::Value;

use crate::{
    crd,
    deletion::{CUSTOM_RESOURCE_CLEANUP, Propagation},
    json_path::{entries, push_once},
    registry::kind::{Cell, Defaults, DeleteStrategy, Kind, Metadata, Strategy, Subresource, TableColumns, Validation},
    status::GroupResource,
    table::fields,
};

/// The resource `customresourcedefinitions`.
pub(crate) static DEFINITIONS: LazyLock<GroupResource> = LazyLock::new(|| KIND.group_resource());

pub(crate) static KIND: Kind = Kind {
    group: "apiextensions.k8s.io",
    resource: "customresourcedefinitions",
    kind: "CustomResourceDefinition",
    metadata: Metadata { finalizers_without_domain: true, ..Metadata::COUNTED },
    defaults: Defaults { set_rest: default_rest, ..Defaults::DEFAULT },
    strategy: Strategy {
        prepare_create: |_, object| crd::default_definition(object),
        prepare_update,
        ..Strategy::CONDITIONAL
    },
    validation: Validation {
        validate_create: |object, errors| errors.extend(crd::validate_definition(object)),
        validate_update: |old, new, errors| errors.extend(crd::validate_change_of_definition(old, new)),
        validate_status: |_, new, errors| errors.extend(crd::validate_definition_status(new)),
        warn,
        ..Validation::DEFAULT
    },
    delete: DeleteStrategy { mark: Some(mark), ..DeleteStrategy::DEFAULT },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Text("/spec/scope"),
        Cell::Computed(|definition, _| versions(definition).into()),
        Cell::Text("/metadata/creationTimestamp"),
        Cell::Text("/spec/group"),
        Cell::Text("/spec/names/kind"),
        Cell::Joined("/spec/names/shortNames", ""),
        Cell::Computed(|definition, _| fields::is_true(definition, "Established").into()),
    ]),
    ..Kind::DEFAULT
};

/// Returns the served versions in the order of their names. The storage version is marked.
fn versions(object: &Value) -> String {
    let label = |version: &Value| {
        let suffix = if version["storage"] == true { "(storage)" } else { "" };
        format!("{}{suffix}", fields::text(version, "/name"))
    };
    let served = fields::list(object, "/spec/versions").iter().filter(|version| version["served"] == true);
    let mut versions: Vec<String> = served.map(label).collect();
    versions.sort_unstable();
    versions.join(",")
}

/// Fills in the defaults of the new spec, and records its storage version in the status. Defaults come after decoding:
/// versions that an update adds need names and conversion settings as well.
fn prepare_update(_: Subresource, _: &Value, new: &mut Value) {
    crd::default_definition_spec(new);
    keep_stored_version(new);
}

/// Adds the storage version of the spec to `status.storedVersions`. Invariant: the list names every version in which
/// objects may still be stored. Nothing is ever removed here. A CRD without a status does not get one.
fn keep_stored_version(definition: &mut Value) {
    let stored = entries(&definition["spec"]["versions"]).find(|(_, version)| version["storage"] == true);
    if let Some(name) = stored.map(|(_, version)| version["name"].clone())
        && let Some(status) = definition.get_mut("status").filter(|status| status.is_object())
    {
        push_once(&mut status["storedVersions"], name.clone());
        debug_assert!(
            entries(&status["storedVersions"]).any(|(_, version)| *version == name),
            "new objects are stored in this version"
        );
    }
}

/// Marks a `CustomResourceDefinition` as being deleted, regardless of the options of the delete (`Delete` of
/// `apiextensions-apiserver/pkg/registry/customresourcedefinition/etcd.go`). The finalizer makes the CRD wait for the
/// controller that deletes the custom objects.
fn mark(definition: &mut Value, _: Propagation, now: Timestamp) {
    let now = time::seconds(now);
    crd::mark_deletion_pending(definition, &now);
    let meta = &mut definition["metadata"];
    meta["deletionTimestamp"] = now.into();
    push_once(&mut meta["finalizers"], CUSTOM_RESOURCE_CLEANUP.into());
}

/// Sets defaults in a `CustomResourceDefinition` without the schemas of its versions, which have separate code.
fn default_rest(object: &mut Value, default: &mut dyn FnMut(&mut Value)) {
    let versions = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut).into_iter().flatten();
    let schemas: Vec<Option<Value>> = versions.map(|version| version.get_mut("schema").map(Value::take)).collect();
    default(object);
    let versions = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for (version, schema) in versions.into_iter().flatten().zip(schemas) {
        if let (Some(version), Some(schema)) = (version.as_object_mut(), schema) {
            version.insert("schema".to_owned(), schema);
        }
    }
}

/// Warns about values of `format` in schemas that the server does not know and that the stored object does not have. An
/// unknown format is valid and has no effect. Known ones from earlier writes are not repeated with each update.
fn warn(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let before = old.map(crd::formats::unrecognized_formats).unwrap_or_default();
    let new = crd::formats::unrecognized_formats(object).into_iter().filter(|format| !before.contains(format));
    warnings.extend(new.map(|format| format!("unrecognized format {format:?}")));
}
