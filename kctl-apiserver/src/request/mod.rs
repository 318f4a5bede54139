//! Parses an HTTP request into a [`RequestInfo`]: verb, resource, name, user and options.
//!
//! Upstream: `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`, and the routes of `endpoints/installer.go` and
//! of the handler of custom resources.

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
    registry::{Registry, Resource},
    stale::Stale,
    status::StatusError,
    webhook_round::WebhookRound,
};

/// The user of a request, as authentication identified it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct User {
    /// The name, such as `system:serviceaccount:default:podset`.
    pub name: String,
    /// The names of the user's groups.
    pub groups: Vec<String>,
}

impl User {
    /// Returns a user with all permissions.
    pub fn admin() -> Self {
        Self { name: "kubernetes-admin".into(), groups: vec!["system:masters".into(), "system:authenticated".into()] }
    }
}

/// A user with what authentication knows of it besides: nothing is allowed by that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) user: User,
    /// The uid of the user; empty for most.
    pub(crate) uid: String,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl From<User> for Caller {
    fn from(user: User) -> Self {
        Self { user, uid: String::new(), extra: BTreeMap::new() }
    }
}

impl Caller {
    /// Returns the user as reviews write it.
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
    pub(crate) fn anonymous() -> Self {
        Self { name: ANONYMOUS.0.into(), groups: vec![ANONYMOUS.1.into()] }
    }

    /// Adds the group `system:authenticated`, unless the user is in it or is anonymous.
    pub(crate) fn with_group(mut self) -> Self {
        if !self.groups.iter().any(|group| [AUTHENTICATED, ANONYMOUS.1].contains(&group.as_str())) {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }
}

/// A verb, as RBAC names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
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
pub(crate) struct RequestInfo {
    pub(crate) verb: Verb,
    pub(crate) resource: Arc<Resource>,
    /// Empty for a cluster-scoped resource and for all namespaces.
    pub(crate) namespace: String,
    /// Empty for a collection, and for a new object.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
    /// The path after `/proxy`; empty, or with a leading slash.
    pub(crate) path_behind: String,
    pub(crate) params: Params,
    pub(crate) headers: HeaderMap,
    pub(crate) caller: Caller,
    pub(crate) body: Bytes,
    /// A fault on purpose: what a list shows.
    pub(crate) stale: Option<Stale>,
    /// The webhook calls, shared by all runs of the request.
    pub(crate) round: Arc<WebhookRound>,
}

/// A path of the form of a resource, whether or not that exists.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct ResourcePath<'a> {
    pub(crate) group: &'a str,
    version: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) name: &'a str,
    pub(crate) subresource: &'a str,
    /// `true` for the deprecated paths of watches, which start with `watch`.
    pub(crate) watches: bool,
    /// `false` if something follows the subresource. Everything may follow a proxy.
    is_whole: bool,
}

/// Splits the path of a resource: `/api/v1/…` or `/apis/GROUP/VERSION/…`. `None` for any other path.
///
/// A path below a namespace with `status` or `finalize` is about the Namespace itself.
pub(crate) fn place(path: &str) -> Option<ResourcePath<'_>> {
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
    let at = |index: usize| parts.get(index).copied().unwrap_or_default();
    let (resource, name, subresource) = (at(0), at(1), at(2));
    let is_whole = parts.len() <= 3 || subresource == "proxy";
    Some(ResourcePath { group, version, namespace, resource, name, subresource, watches, is_whole })
}

/// Returns the path behind `/proxy`, which the proxied endpoint gets; empty for other requests.
fn path_behind(path: &str, place: &ResourcePath<'_>) -> String {
    if place.subresource != "proxy" {
        return String::new();
    }
    let proxy = format!("/{}/{}/proxy", place.resource, place.name);
    path.split_once(&proxy).map_or_else(String::new, |(_, behind)| behind.to_owned())
}

/// Returns the verb that a request has for authorization, whether or not the resource exists. `None` for a method
/// that has no verb (`k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`).
pub(crate) fn asked(method: &Method, place: &ResourcePath<'_>, params: &Params) -> Option<Verb> {
    let many = place.name.is_empty();
    match *method {
        // A deprecated watch path is a watch, whatever the method is.
        _ if place.watches => Some(Verb::Watch),
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

/// Returns the verb that is performed. The handler of custom resources takes `HEAD` as a read; the router of built-in
/// kinds has no such route.
fn verb(method: &Method, place: &ResourcePath<'_>, params: &Params, is_custom: bool) -> Option<Verb> {
    let is_routed = match *method {
        Method::GET => true,
        Method::HEAD => is_custom && !place.watches,
        _ => !place.watches,
    };
    asked(method, place, params).filter(|_| is_routed)
}

/// Returns `true` if the handler of custom resources delegates a request, which then ends as not found: only reads
/// may span all namespaces.
fn is_elsewhere(resource: &Resource, place: &ResourcePath<'_>, asked: Option<Verb>) -> bool {
    let namespaced = !place.namespace.is_empty();
    if resource.listed.namespaced {
        !namespaced && !matches!(asked, Some(Verb::List | Verb::Watch))
    } else {
        namespaced
    }
}

/// Checks that a path exists and supports the verb.
///
/// # Errors
/// `NotFound` for the path, or `MethodNotAllowed` for the verb.
fn allowed(resource: &Resource, place: &ResourcePath<'_>, asked: Option<Verb>) -> Result<Verb, StatusError> {
    let (many, is_custom) = (place.name.is_empty(), resource.custom.is_some());
    let everywhere = resource.listed.namespaced && place.namespace.is_empty();
    let lacks_namespace = everywhere && !matches!(asked, Some(Verb::List | Verb::Watch));
    let lacks_subresource = !place.subresource.is_empty() && resource.subresource(place.subresource).is_none();
    if lacks_subresource && is_custom {
        return Err(StatusError::not_found(&resource.of, place.name));
    }
    let namespaced_wrongly = !place.namespace.is_empty() && !resource.listed.namespaced;
    // Only collections exist across all namespaces. The handler of custom resources ignores further path segments.
    let is_too_long = !place.is_whole && !is_custom;
    let is_nowhere = is_too_long || (everywhere && !many) || (everywhere && !resource.allows("", "list"));
    if namespaced_wrongly || lacks_subresource || is_nowhere {
        return Err(StatusError::path_not_found());
    }
    // A create has no name in its path, updates and patches have one. Subresources are created by name.
    let is_named = match asked {
        // For custom resources, a create ignores the name in the path.
        Some(Verb::Create) if is_custom => place.subresource.is_empty(),
        Some(Verb::Create) => many == place.subresource.is_empty(),
        Some(Verb::Update | Verb::Patch) => !many,
        _ => true,
    };
    let verb = asked.filter(|verb| resource.allows(place.subresource, verb.name()));
    match verb {
        Some(verb) if is_named && !lacks_namespace => Ok(verb),
        Some(Verb::Update | Verb::Patch) if is_custom && !is_named => {
            Err(StatusError::bad_request("name must be provided"))
        }
        _ if is_custom => Err(StatusError::not_supported(&resource.of, asked.map_or("", Verb::name))),
        _ => Err(StatusError::method_not_allowed()),
    }
}

/// Returns why a name cannot be a path segment (`IsValidPathSegmentName`); `None` if it can.
fn wrong_segment(name: &str) -> Option<&'static str> {
    (["..", "."].contains(&name) || name.contains('%')).then_some("must not be '.' or '..' or contain '%'")
}

impl RequestInfo {
    /// Reads a request about a resource; `None` when the path is about something else.
    pub(crate) fn parse(
        registry: &Registry,
        caller: Caller,
        parts: &Parts,
        body: Bytes,
        round: &Arc<WebhookRound>,
    ) -> Option<Result<Self, StatusError>> {
        let path = decode(parts.uri.path());
        let place = place(&path)?;
        if !registry.serves(place.group, place.version) {
            return None;
        }
        let Some(resource) = registry.get(place.group, place.version, place.resource) else {
            // A group of CRDs has no handler that reports unknown resources.
            return registry.is_built_in(place.group).then(|| Err(StatusError::path_not_found()));
        };
        let params = Params::parse(parts.uri.query().unwrap_or_default());
        let asked = verb(&parts.method, &place, &params, resource.custom.is_some());
        if resource.custom.is_some() && is_elsewhere(&resource, &place, asked) {
            return None;
        }
        let verb = match allowed(&resource, &place, asked) {
            Ok(verb) => verb,
            Err(refusal) => return Some(Err(refusal)),
        };
        // With a body, upstream reads the body first, which also has the name.
        let is_by_name = matches!(verb, Verb::Get | Verb::Delete);
        if let Some(why) = wrong_segment(place.name).filter(|_| is_by_name) {
            return Some(Err(StatusError::bad_request(format!("name {:?} {why}", place.name))));
        }
        Some(Ok(Self {
            verb,
            namespace: place.namespace.into(),
            name: place.name.into(),
            subresource: place.subresource.into(),
            path_behind: path_behind(&path, &place),
            resource,
            params,
            headers: parts.headers.clone(),
            caller,
            body,
            stale: parts.extensions.get().copied(),
            round: round.clone(),
        }))
    }

    /// Returns a header, or the empty string.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the field manager: the parameter, or else the program in `User-Agent`, at most 128 characters
    /// (`managerOrUserAgent`).
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
    pub(crate) fn applies(&self) -> bool {
        self.header("content-type").starts_with("application/apply-patch+yaml")
    }

    /// Returns `true` if the query has `dryRun`.
    pub(crate) fn dry_run(&self) -> bool {
        self.params.given("dryRun")
    }

    /// Returns namespace and name.
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
            place(path),
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
        assert_eq!(place("/api/v1"), None);
        assert_eq!(place("//api/v1/pods"), None);
        assert_eq!(place("/apis//v1/pods"), None);
        assert!(!place("/api/v1/namespaces/a/pods/b/log/c").unwrap().is_whole);
        assert_eq!(place("/apis/apps/v1"), None);
    }
}
