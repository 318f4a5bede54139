//! Parses an HTTP request into a [`RequestInfo`]: verb, resource, name, user and options.
//!
//! Upstream: `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`, and the routes of `endpoints/installer.go` and
//! of the handler of custom resources.
//!
//! Parsing needs the registry, because a path is valid only if its resource is served. Paths of
//! other forms, such as `/version` and `/openapi/v3`, are not requests for resources;
//! `nonresource/` serves them. `place` and `requested_verb` classify a path without the registry: for the
//! time limit of a request, for faults, and for watches over `WebSocket`.

mod accept;
mod operation;
mod params;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, request::Parts};
use serde_json::{Value, json};

pub(crate) use accept::{Clause, clauses, errors_are_yaml};
pub(crate) use operation::Operation;
pub(crate) use params::{Params, decode};

use crate::{
    registry::{Registry, Resource, kind::Requester},
    stale::{FrequentBookmarks, Stale},
    status::StatusError,
    webhook_round::WebhookRound,
};

/// The user of a request, as authentication identified it.
///
/// RBAC compares name and groups exactly. The server adds the group `system:authenticated`, so callers need not name
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct User {
    /// The name, such as `system:serviceaccount:default:podset`.
    pub name: String,
    /// The names of the user's groups.
    pub groups: Vec<String>,
}

impl User {
    /// Returns a user without groups, who may do what RBAC grants to the name.
    ///
    /// ```
    /// use kctl_apiserver::User;
    ///
    /// let user = User::new("jane").in_group("developers");
    /// assert_eq!(user.groups, ["developers"]);
    /// ```
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: Vec::new() }
    }

    /// Returns the user of a `ServiceAccount`, with the groups that kube-apiserver gives to one.
    ///
    /// ```
    /// use kctl_apiserver::User;
    ///
    /// let user = User::service_account("shop", "podset");
    /// assert_eq!(user.name, "system:serviceaccount:shop:podset");
    /// assert_eq!(user.groups[1], "system:serviceaccounts:shop");
    /// ```
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(format!("system:serviceaccount:{namespace}:{name}"))
            .in_group("system:serviceaccounts")
            .in_group(format!("system:serviceaccounts:{namespace}"))
            .in_group("system:authenticated")
    }

    /// Adds a group, whose permissions the user has as well.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Returns a user with all permissions.
    ///
    /// It is in `system:masters`, which the authorizer allows everything without rules.
    pub fn admin() -> Self {
        Self { name: "kubernetes-admin".into(), groups: vec!["system:masters".into(), "system:authenticated".into()] }
    }
}

/// A user with the further attributes that authentication found. These grant no permissions.
///
/// Reviews and webhooks get them as `userInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The name and groups, on which authorization decides.
    pub(crate) user: User,
    /// The uid of the user; empty for most.
    pub(crate) uid: String,
    /// Further values by key, such as `authentication.kubernetes.io/credential-id`; empty for most.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl From<User> for Caller {
    fn from(user: User) -> Self {
        Self { user, uid: String::new(), extra: BTreeMap::new() }
    }
}

impl Caller {
    /// Returns the user as reviews write it.
    ///
    /// Fields that are empty are left out, as in the JSON of `UserInfo` of `authentication.k8s.io`.
    pub(crate) fn user_info(&self) -> Value {
        let mut info = json!({ "username": self.user.name, "groups": self.user.groups });
        if !self.uid.is_empty() {
            info["uid"] = self.uid.clone().into();
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }
}

/// The name and group of requests without credentials.
const ANONYMOUS: (&str, &str) = ("system:anonymous", "system:unauthenticated");
/// The group of all other requests.
const AUTHENTICATED: &str = "system:authenticated";

impl User {
    /// Returns the user of requests without credentials.
    ///
    /// It is not in `system:authenticated`, so roles for all users with credentials do not apply to
    /// it.
    pub(crate) fn anonymous() -> Self {
        Self { name: ANONYMOUS.0.into(), groups: vec![ANONYMOUS.1.into()] }
    }

    /// Adds the group `system:authenticated`, unless the user is in it or is anonymous.
    ///
    /// Like upstream's `AuthenticatedGroupAdder` (`k8s.io/apiserver/pkg/authentication/group`).
    pub(crate) fn with_group(mut self) -> Self {
        if !self.groups.iter().any(|group| [AUTHENTICATED, ANONYMOUS.1].contains(&group.as_str())) {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }
}

/// A verb, as RBAC names it.
///
/// Reads of a subresource have the same verbs: `get` of `pods/log`, `create` of `pods/exec`.
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

/// A parsed request for a resource.
///
/// It is read-only from here on. After a webhook call, the request runs again from the start with the replies in
/// `round`, so the same value must give the same result.
pub(crate) struct RequestInfo {
    /// The verb that is performed; the resource supports it.
    pub(crate) verb: Verb,
    /// The resource in the version that the path names.
    pub(crate) resource: Arc<Resource>,
    /// The namespace; empty for a cluster-scoped resource and for all namespaces.
    pub(crate) namespace: String,
    /// The name; empty for a collection, and for a new object.
    pub(crate) name: String,
    /// The subresource; empty for the object itself.
    pub(crate) subresource: String,
    /// The path after `/proxy`; empty, or with a leading slash.
    pub(crate) path_behind: String,
    /// The options in the query. Options in the body of a delete are not in it.
    pub(crate) params: Params,
    /// All headers; `Accept`, `Content-Type` and `User-Agent` are used.
    pub(crate) headers: HeaderMap,
    /// The user, after impersonation.
    pub(crate) caller: Caller,
    /// The complete body, not decoded.
    pub(crate) body: Bytes,
    /// The injected fault, if any: an older state that reads return.
    pub(crate) stale: Option<Stale>,
    /// The injected fault, if any: a watch with many bookmarks.
    pub(crate) frequent_bookmarks: Option<FrequentBookmarks>,
    /// The webhook calls, shared by all runs of the request.
    pub(crate) round: Arc<WebhookRound>,
}

/// A path that has the form of a resource path. The resource need not exist.
///
/// The parts borrow from the decoded path. A part that the path does not have is empty.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct ResourcePath<'a> {
    /// The API group; empty for the core group.
    pub(crate) group: &'a str,
    /// The version, such as `v1`, which need not be served.
    version: &'a str,
    /// The namespace; empty for a Namespace itself, whose name is in `name`.
    pub(crate) namespace: &'a str,
    /// The plural in lower case, as the path has it.
    pub(crate) resource: &'a str,
    /// The name of the object; empty for a collection.
    pub(crate) name: &'a str,
    /// The subresource, such as `status`; empty for the object itself.
    pub(crate) subresource: &'a str,
    /// `true` for the deprecated paths of watches, which start with `watch`.
    pub(crate) watches: bool,
    /// `false` if further segments follow the subresource. A proxy may have any.
    is_whole: bool,
}

/// Splits the path of a resource: `/api/v1/…` or `/apis/GROUP/VERSION/…`. `None` for any other path.
///
/// A path below a namespace with `status` or `finalize` is about the Namespace itself.
///
/// | path | resource | namespace | name | subresource |
/// | --- | --- | --- | --- | --- |
/// | `/api/v1/nodes` | `nodes` | | | |
/// | `/api/v1/namespaces/a` | `namespaces` | | `a` | |
/// | `/api/v1/namespaces/a/status` | `namespaces` | | `a` | `status` |
/// | `/api/v1/namespaces/a/pods` | `pods` | `a` | | |
/// | `/apis/apps/v1/namespaces/a/deployments/b/scale` | `deployments` | `a` | `b` | `scale` |
/// | `/api/v1/watch/pods` | `pods` | | | |
///
/// A path that ends after the version is discovery, and not the path of a resource. A trailing
/// slash does not count.
pub(crate) fn parse_path(path: &str) -> Option<ResourcePath<'_>> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let mut parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let (group, version, skip) = match parts.as_slice() {
        ["api", version, _, ..] => ("", *version, 2),
        ["apis", "", ..] => return None,
        ["apis", group, version, _, ..] => (*group, *version, 3),
        _ => return None,
    };
    parts.drain(..skip);
    let watches = parts.first() == Some(&"watch");
    if watches {
        parts.remove(0);
    }
    let own_subresource = |name: &str| ["status", "finalize"].contains(&name);
    let namespace = match parts.as_slice() {
        ["namespaces", namespace, next, ..] if !own_subresource(next) => {
            let namespace = *namespace;
            parts.drain(..2);
            namespace
        }
        _ => "",
    };
    let segment = |index: usize| parts.get(index).copied().unwrap_or_default();
    let (resource, name, subresource) = (segment(0), segment(1), segment(2));
    let is_whole = parts.len() <= 3 || subresource == "proxy";
    Some(ResourcePath { group, version, namespace, resource, name, subresource, watches, is_whole })
}

/// Returns the path after `/proxy`, which the proxied endpoint gets; empty for other requests.
fn path_behind(path: &str, resource_path: &ResourcePath<'_>) -> String {
    if resource_path.subresource != "proxy" {
        return String::new();
    }
    let proxy = format!("/{}/{}/proxy", resource_path.resource, resource_path.name);
    path.split_once(&proxy).map_or_else(String::new, |(_, behind)| behind.to_owned())
}

/// Returns the verb that authorization checks; the resource need not exist. `None` for a method without a verb
/// (`k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`).
///
/// It depends on the name, not on the method alone: GET of a collection is a list or a watch, and DELETE of a
/// collection deletes all of it.
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
/// kinds has no such route.
///
/// Paths of deprecated watches have only the method GET.
fn verb(method: &Method, resource_path: &ResourcePath<'_>, params: &Params, is_custom: bool) -> Option<Verb> {
    let is_routed = match *method {
        Method::GET => true,
        Method::HEAD => is_custom && !resource_path.watches,
        _ => !resource_path.watches,
    };
    requested_verb(method, resource_path, params).filter(|_| is_routed)
}

/// Returns `true` if the handler of custom resources delegates a request, which then gets 404: only reads may span all
/// namespaces.
///
/// A cluster-scoped resource below a namespace gets 404, too.
fn is_elsewhere(resource: &Resource, resource_path: &ResourcePath<'_>, verb: Option<Verb>) -> bool {
    let namespaced = !resource_path.namespace.is_empty();
    if resource.listed.namespaced { !namespaced && !matches!(verb, Some(Verb::List | Verb::Watch)) } else { namespaced }
}

/// Checks that a path exists and supports the verb.
///
/// The two handlers upstream answer differently, and clients see this in the message and the
/// reason:
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
fn allowed(
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
    let is_too_long = !resource_path.is_whole && !is_custom;
    let is_nowhere = is_too_long || (everywhere && !many) || (everywhere && !resource.allows("", "list"));
    if namespaced_wrongly || lacks_subresource || is_nowhere {
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

/// Returns the reason why a name cannot be a path segment (`IsValidPathSegmentName`); `None` if it can.
///
/// Upstream also rejects slashes; the path is decoded before it is split here, so none can be left. Upstream:
/// `k8s.io/apimachinery/pkg/api/validation/path`.
fn wrong_segment(name: &str) -> Option<&'static str> {
    (["..", "."].contains(&name) || name.contains('%')).then_some("must not be '.' or '..' or contain '%'")
}

impl Requester for RequestInfo {
    fn user_info(&self) -> Value {
        self.caller.user_info()
    }

    fn warn(&self, warning: &str) {
        self.round.warn(warning);
    }
}

impl RequestInfo {
    /// Parses a request about a resource; `None` if the path is not about a resource.
    ///
    /// `Some(Err(…))` is the response to the client. With `None`, further handlers are tried, and the last of them
    /// returns 404. This is the case for a group or version that is not served, and for an unknown resource of a group
    /// that only CRDs have.
    pub(crate) fn parse(
        registry: &Registry,
        caller: Caller,
        parts: &Parts,
        body: Bytes,
        round: &Arc<WebhookRound>,
    ) -> Option<Result<Self, StatusError>> {
        let path = decode(parts.uri.path());
        let resource_path = parse_path(&path)?;
        if !registry.serves(resource_path.group, resource_path.version) {
            return None;
        }
        let Some(resource) = registry.get(resource_path.group, resource_path.version, resource_path.resource) else {
            // A group of CRDs has no handler that reports unknown resources.
            return registry.is_built_in(resource_path.group).then(|| Err(StatusError::path_not_found()));
        };
        let params = Params::parse(parts.uri.query().unwrap_or_default());
        let requested = verb(&parts.method, &resource_path, &params, resource.custom.is_some());
        if resource.custom.is_some() && is_elsewhere(&resource, &resource_path, requested) {
            return None;
        }
        let verb = match allowed(&resource, &resource_path, requested) {
            Ok(verb) => verb,
            Err(refusal) => return Some(Err(refusal)),
        };
        // If there is a body, upstream reads it first; it contains the name as well.
        let is_by_name = matches!(verb, Verb::Get | Verb::Delete);
        if let Some(why) = wrong_segment(resource_path.name).filter(|_| is_by_name) {
            return Some(Err(StatusError::bad_request(format!("name {:?} {why}", resource_path.name))));
        }
        Some(Ok(Self {
            verb,
            namespace: resource_path.namespace.into(),
            name: resource_path.name.into(),
            subresource: resource_path.subresource.into(),
            path_behind: path_behind(&path, &resource_path),
            resource,
            params,
            headers: parts.headers.clone(),
            caller,
            body,
            stale: parts.extensions.get().copied(),
            frequent_bookmarks: parts.extensions.get().copied(),
            round: round.clone(),
        }))
    }

    /// Returns a header, or the empty string.
    ///
    /// A header with bytes that are not visible ASCII counts as absent. The first value of a repeated header is used.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the field manager: the parameter, or else the program in `User-Agent`, at most 128 characters
    /// (`managerOrUserAgent`).
    ///
    /// A client without either is called `unknown`. The limit of 128 is that of `fieldManager`,
    /// which is validated elsewhere.
    pub(crate) fn field_manager(&self) -> String {
        match self.params.text("fieldManager") {
            "" => match self.header("user-agent").split('/').next() {
                None | Some("") => "unknown".into(),
                Some(program) => program.chars().take(128).collect(),
            },
            named => named.into(),
        }
    }

    /// Returns `true` for server-side apply.
    ///
    /// Parameters behind the media type, such as a charset, are allowed.
    pub(crate) fn applies(&self) -> bool {
        self.header("content-type").starts_with("application/apply-patch+yaml")
    }

    /// Returns `true` if the query has `dryRun`.
    ///
    /// Its value is validated elsewhere: only `All` is allowed.
    pub(crate) fn dry_run(&self) -> bool {
        self.params.given("dryRun")
    }

    /// Returns namespace and name.
    ///
    /// For a collection the name is empty, and no object has this key.
    pub(crate) fn key(&self) -> crate::key::Key {
        (self.namespace.clone(), self.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: [&str; 6]) {
        let [group, version, namespace, resource, name, subresource] = expected;
        assert_eq!(
            parse_path(path),
            Some(ResourcePath {
                group,
                version,
                namespace,
                resource,
                name,
                subresource,
                watches: false,
                is_whole: true
            }),
            "{path}"
        );
    }

    #[test]
    fn paths_name_resources() {
        check("/api/v1/pods", ["", "v1", "", "pods", "", ""]);
        check("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]);
        check("/api/v1/namespaces/a", ["", "v1", "", "namespaces", "a", ""]);
        check("/api/v1/namespaces/a/status", ["", "v1", "", "namespaces", "a", "status"]);
        check("/api/v1/namespaces/a/pods/b/log", ["", "v1", "a", "pods", "b", "log"]);
        check("/apis/apps/v1/namespaces/a/deployments/b", ["apps", "v1", "a", "deployments", "b", ""]);
        assert_eq!(parse_path("/api/v1"), None);
        assert_eq!(parse_path("//api/v1/pods"), None);
        assert_eq!(parse_path("/apis//v1/pods"), None);
        assert!(!parse_path("/api/v1/namespaces/a/pods/b/log/c").unwrap().is_whole);
        assert_eq!(parse_path("/apis/apps/v1"), None);
    }
}
