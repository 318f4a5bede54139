//! Parses an HTTP request into a [`RequestInfo`]: verb, resource, name, user and options.
//!
//! Upstream: `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`, and the routes of `endpoints/installer.go` and
//! of the handler of custom resources.
//!
//! Parsing needs the registry, because a path is valid only if its resource is served. Paths of
//! other forms, such as `/version` and `/openapi/v3`, are not requests for resources;
//! `nonresource/` serves them. `parse_path` and `requested_verb` classify a path without the registry: for the
//! time limit of a request, for faults, and for watches over `WebSocket`.

mod accept;
mod operation;
mod params;
mod path;
mod routing;
mod user;
mod verb;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, request::Parts};
use serde_json::Value;

pub use self::user::User;
pub(crate) use self::{
    accept::{Clause, clauses, errors_are_yaml},
    operation::Operation,
    params::{Params, decode},
    path::{ResourcePath, parse_path},
    user::{ADMINISTRATORS, ANONYMOUS, AUTHENTICATED, Caller, UNAUTHENTICATED},
    verb::{Verb, requested_verb},
};
use self::{
    path::{path_behind, segment_error},
    routing::{check_allowed, is_outside_scope},
    verb::performed_verb,
};

use crate::{
    registry::{
        Registry, Resource,
        kind::{RequestContext, Subresource},
    },
    stale::{FrequentBookmarks, Stale},
    status::StatusError,
    webhook_round::WebhookRound,
};

/// Maximum length of a field manager (`FieldManagerMaxLength`). `verbs/mod.rs` rejects a longer parameter.
pub(crate) const FIELD_MANAGER_LEN_MAX: usize = 128;

/// A parsed request for a resource. It is read-only from here on. After a webhook call, the request runs again from the
/// start with the replies in `round`, so the same value must give the same result.
pub(crate) struct RequestInfo {
    /// The verb that is performed; the resource supports it.
    pub(crate) verb: Verb,
    /// The resource in the version that the path names.
    pub(crate) resource: Arc<Resource>,
    /// The namespace; empty for a cluster-scoped resource and for all namespaces.
    pub(crate) namespace: String,
    /// The name; empty for a collection, and for a new object.
    pub(crate) name: String,
    /// The subresource, or the object itself.
    pub(crate) subresource: Subresource,
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

impl RequestContext for RequestInfo {
    fn user_info(&self) -> Value {
        self.caller.user_info()
    }

    fn warn(&self, warning: &str) {
        self.round.warn(warning);
    }
}

impl RequestInfo {
    /// Parses a request about a resource; `None` if the path is not about a resource. `Some(Err(…))` is the response to
    /// the client. With `None`, further handlers are tried, and the last of them returns 404. This is the case for a
    /// group or version that is not served, and for an unknown resource of a group that only CRDs have.
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
        let requested = performed_verb(&parts.method, &resource_path, &params, &resource);
        if resource.custom.is_some() && is_outside_scope(&resource, &resource_path, requested) {
            return None;
        }
        let verb = match check_allowed(&resource, &resource_path, requested) {
            Ok(verb) => verb,
            Err(rejection) => return Some(Err(rejection)),
        };
        // If there is a body, upstream reads it first; it contains the name as well.
        let is_by_name = matches!(verb, Verb::Get | Verb::Delete);
        if let Some(why) = segment_error(resource_path.name).filter(|_| is_by_name) {
            return Some(Err(StatusError::bad_request(format!("name {:?} {why}", resource_path.name))));
        }
        // Discovery lists the subresource, so it is known.
        let Some(subresource) = Subresource::from_name(resource_path.subresource) else {
            return Some(Err(StatusError::path_not_found()));
        };
        Some(Ok(Self {
            verb,
            namespace: resource_path.namespace.into(),
            name: resource_path.name.into(),
            subresource,
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

    /// Returns a header, or the empty string. A header with bytes that are not visible ASCII counts as absent. The
    /// first value of a repeated header is used.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the field manager: the parameter, or else the program in `User-Agent`, at most
    /// [`FIELD_MANAGER_LEN_MAX`] characters (`managerOrUserAgent`). A client without either is called `unknown`.
    pub(crate) fn field_manager(&self) -> String {
        match self.params.text("fieldManager") {
            "" => match self.header("user-agent").split('/').next() {
                None | Some("") => "unknown".into(),
                Some(program) => program.chars().take(FIELD_MANAGER_LEN_MAX).collect(),
            },
            named => named.into(),
        }
    }

    /// Returns `true` for server-side apply. Parameters behind the media type, such as a charset, are allowed.
    pub(crate) fn applies(&self) -> bool {
        self.header("content-type").starts_with("application/apply-patch+yaml")
    }

    /// Returns `true` if the query has `dryRun`. Its value is validated elsewhere: only `All` is allowed.
    pub(crate) fn dry_run(&self) -> bool {
        self.params.is_present("dryRun")
    }

    /// Returns namespace and name. For a collection the name is empty, and no object has this key.
    pub(crate) fn key(&self) -> crate::key::Key {
        (self.namespace.clone(), self.name.clone())
    }
}
