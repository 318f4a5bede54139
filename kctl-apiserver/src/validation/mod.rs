//! Validation that several built-in kinds share. `kinds/` has the validation of one kind or group.
//!
//! [`declared`] applies the enums and tags of the API, then the functions of the kind run (`write/validate.rs`).
//!
//! Behaviour: the `validation.go` of each group in `k8s.io/kubernetes/pkg/apis`.
//!
//! A rule takes a [`Field`], which has a value, its path and the errors of the object. The path is the string that a
//! client sees in `details.causes[].field`, such as `spec.containers[0].ports[1].name`. Validation continues after an
//! error, so that a client gets all field errors of a request in one response. A rule stops early only where upstream
//! does.
//!
//! Objects arrive here after decoding, pruning and defaulting. Rules may therefore rely on the
//! types of fields (a string is a string, a number a number). They may not rely on the presence of a field. Reading an
//! absent field of a `Value` yields `null`, and each rule decides the meaning of `null`.
//!
//! | module | validates |
//! |---|---|
//! | `pod`, `container`, `probe`, `ports`, `environment`, `mounts` | Pods and Pod templates |
//! | `affinity`, `dns`, `security`, `windows`, `resources` | parts of a Pod spec |
//! | `volume`, `volume_source`, `volume_claim`, `paths`, `downward` | volumes and their sources |
//! | `selector`, `status`, `address` | parts that workloads and networks share |
//! | `signer` | signers of certificates |
//! | `config_key` | keys of `ConfigMap`s and Secrets |
//! | `declared`, `format` | enums and declarative tags of all kinds |
//! | `warnings` | accepted objects, for the `Warning` header of the response |

pub(crate) mod address;
pub(crate) mod affinity;
pub(crate) mod config_key;
pub(crate) mod container;
pub(crate) mod declared;
pub(crate) mod dns;
pub(crate) mod downward;
pub(crate) mod environment;
pub(crate) mod format;
pub(crate) mod mounts;
pub(crate) mod paths;
pub(crate) mod pod;
pub(crate) mod ports;
pub(crate) mod probe;
pub(crate) mod resources;
pub(crate) mod security;
pub(crate) mod selector;
pub(crate) mod signer;
pub(crate) mod status;
#[cfg(test)]
mod tests;
pub(crate) mod volume;
pub(crate) mod volume_claim;
pub(crate) mod volume_source;
pub(crate) mod warnings;
pub(crate) mod windows;

use serde_json::Value;

use crate::{
    field::Field,
    metadata::{validate_finalizer_domains, validate_metadata},
    registry::Resource,
};

pub(crate) use crate::field_errors::Errors;

/// Validates the metadata of an object.
///
/// The rule for names comes from the kind (`Metadata::names`), as does the scope: a cluster-scoped
/// object must not have a namespace. A few kinds accept finalizers without a domain
/// (`Metadata::finalizers_without_domain`).
pub(crate) fn metadata(resource: &Resource, object: &Value) -> Errors {
    let mut errors = validate_metadata(&object["metadata"], resource.listed.scope(), resource.kind.metadata.names);
    if !resource.kind.metadata.finalizers_without_domain {
        validate_finalizer_domains(&object["metadata"], &mut errors);
    }
    errors
}

/// Returns the errors of a domain-prefixed path, such as `example.com/name`.
///
/// Only for callers that validate one string outside an object, such as the extra keys of
/// impersonation. Rules of an object use the method of `Field` of the same name.
pub(crate) fn domain_prefixed(field: &str, path: &str) -> Errors {
    Errors::collect(|errors| Field::new(&path.into(), field, errors).domain_prefixed())
}

/// Iterates over init containers, containers and ephemeral containers of the spec of a Pod.
pub(crate) fn all_containers<'a>(spec: &Field<'a>) -> impl Iterator<Item = Field<'a>> + use<'a> {
    ["initContainers", "containers", "ephemeralContainers"].map(|list| spec.at(list).items()).into_iter().flatten()
}
