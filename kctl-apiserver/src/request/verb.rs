//! The verb of a request, which depends on its method, its path and its options.

use http::Method;

use super::{Params, ResourcePath};
use crate::registry::Resource;

/// A verb, as RBAC names it. Reads of a subresource have the same verbs: `get` of `pods/log`, `create` of `pods/exec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Reads one object by name.
    Get,
    /// Reads a collection, in one namespace or in all.
    List,
    /// Follows a collection or, with a field selector for the name, one object.
    Watch,
    /// POST to a collection, or to a subresource such as `binding`.
    Create,
    /// PUT of a whole object. Where a kind allows it, it creates the object.
    Update,
    /// PATCH with any of the four patch types, server-side apply among them.
    Patch,
    /// DELETE of one object by name.
    Delete,
    /// DELETE of a collection, which the selectors of the query limit.
    DeleteCollection,
}

impl Verb {
    /// Returns the name in roles.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// Returns the verb that authorization checks; the resource need not exist. `None` for a method without a verb
/// (`k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`). It depends on the name, not on the method alone: GET of a
/// collection is a list or a watch, and DELETE of a collection deletes all of it.
pub(crate) fn requested_verb(method: &Method, resource_path: &ResourcePath<'_>, params: &Params) -> Option<Verb> {
    let many = resource_path.name.is_empty();
    match *method {
        // A deprecated watch path is a watch for every method.
        _ if resource_path.watches => Some(Verb::Watch),
        // With a name in the path, the request is about that object.
        Method::GET | Method::HEAD if many && params.flag("watch") => Some(Verb::Watch),
        Method::GET | Method::HEAD if many => Some(Verb::List),
        Method::GET | Method::HEAD => Some(Verb::Get),
        Method::POST => Some(Verb::Create),
        Method::PUT => Some(Verb::Update),
        Method::PATCH => Some(Verb::Patch),
        Method::DELETE if many => Some(Verb::DeleteCollection),
        Method::DELETE => Some(Verb::Delete),
        _ => None,
    }
}

/// Returns the verb that is performed. The handler of custom resources treats `HEAD` as a read; the router of built-in
/// kinds has no such route. Paths of deprecated watches have only the method GET.
pub(super) fn performed_verb(
    method: &Method,
    resource_path: &ResourcePath<'_>,
    params: &Params,
    resource: &Resource,
) -> Option<Verb> {
    let is_routed = match *method {
        Method::GET => true,
        Method::HEAD => resource.custom.is_some() && !resource_path.watches,
        _ => !resource_path.watches,
    };
    requested_verb(method, resource_path, params).filter(|_| is_routed)
}
