//! Checks that the path of a resource exists and supports the verb, as the two handlers of kube-apiserver do.

use super::{ResourcePath, Verb};
use crate::{registry::Resource, status::StatusError};

/// Returns `true` if the handler of custom resources delegates a request, which then gets 404: only reads may span all
/// namespaces. A cluster-scoped resource below a namespace gets 404, too.
pub(super) fn is_outside_scope(resource: &Resource, resource_path: &ResourcePath<'_>, verb: Option<Verb>) -> bool {
    let namespaced = !resource_path.namespace.is_empty();
    if resource.listed.namespaced { !namespaced && !matches!(verb, Some(Verb::List | Verb::Watch)) } else { namespaced }
}

/// Checks that a path exists and supports the verb. The two handlers upstream answer differently, and clients see this
/// in the message and the reason:
///
/// | request | built-in kind | custom resource |
/// | --- | --- | --- |
/// | unknown subresource | 404 for the path | 404 for the object |
/// | verb that is not supported | 405 of the router | 405 of the handler, which names the verb |
/// | PUT or PATCH without a name | 405 | 400, a name must be provided |
/// | POST with a name | 405 | the name is ignored |
///
/// # Errors
/// `NotFound` for the path, or `MethodNotAllowed` for the verb.
pub(super) fn check_allowed(
    resource: &Resource,
    resource_path: &ResourcePath<'_>,
    requested: Option<Verb>,
) -> Result<Verb, StatusError> {
    let (many, is_custom) = (resource_path.name.is_empty(), resource.custom.is_some());
    let everywhere = resource.listed.namespaced && resource_path.namespace.is_empty();
    let lacks_namespace = everywhere && !matches!(requested, Some(Verb::List | Verb::Watch));
    let lacks_subresource =
        !resource_path.subresource.is_empty() && resource.subresource(resource_path.subresource).is_none();
    if lacks_subresource && is_custom {
        return Err(StatusError::not_found(&resource.id, resource_path.name));
    }
    let namespaced_wrongly = !resource_path.namespace.is_empty() && !resource.listed.namespaced;
    // Only collections exist across all namespaces. The handler of custom resources ignores further path segments.
    let is_too_long = !resource_path.has_valid_length && !is_custom;
    let is_unroutable = is_too_long || (everywhere && !many) || (everywhere && !resource.allows("", "list"));
    if namespaced_wrongly || lacks_subresource || is_unroutable {
        return Err(StatusError::path_not_found());
    }
    // A create has no name in its path, updates and patches have one. Subresources are created by name.
    let is_named = match requested {
        // For custom resources, a create ignores the name in the path.
        Some(Verb::Create) if is_custom => resource_path.subresource.is_empty(),
        Some(Verb::Create) => many == resource_path.subresource.is_empty(),
        Some(Verb::Update | Verb::Patch) => !many,
        _ => true,
    };
    let verb = requested.filter(|verb| resource.allows(resource_path.subresource, verb.name()));
    match verb {
        Some(verb) if is_named && !lacks_namespace => Ok(verb),
        Some(Verb::Update | Verb::Patch) if is_custom && !is_named => {
            Err(StatusError::bad_request("name must be provided"))
        }
        _ if is_custom => Err(StatusError::not_supported(&resource.id, requested.map_or("", Verb::name))),
        _ => Err(StatusError::method_not_allowed()),
    }
}
