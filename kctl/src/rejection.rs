//! A client layer that records the requests which an API server rejects because the role does not
//! allow them.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Method, Request, Response, StatusCode};
use kctl_runtime::manifest::{Permission, PermissionScope, PermissionTarget};
use tokio::sync::watch;

/// The permissions that rejected requests would have needed. Clones share one record.
#[derive(Clone)]
pub(crate) struct Rejections {
    /// The role of the client. A 403 on something that it allows has another reason, such as a
    /// quota.
    permissions: Arc<Vec<Permission>>,
    /// The last missing permission. A watch channel, because a trial waits for the first one.
    seen: Arc<watch::Sender<Option<Permission>>>,
}

impl Rejections {
    /// Creates a record for a client with these permissions.
    pub(crate) fn new(permissions: Vec<Permission>) -> Self {
        Self { permissions: Arc::new(permissions), seen: Arc::new(watch::Sender::new(None)) }
    }

    /// Returns the permission that the last rejected request lacked.
    pub(crate) fn last(&self) -> Option<Permission> {
        self.seen.borrow().clone()
    }

    /// Waits for the first rejected request.
    pub(crate) async fn wait_for_rejection(&self) {
        let mut seen = self.seen.subscribe();
        // The sender is a field of `self`, so it outlives this wait.
        let _gone = seen.wait_for(Option::is_some).await;
    }
}

impl<S> tower::Layer<S> for Rejections {
    type Service = RecordingService<S>;

    fn layer(&self, inner: S) -> RecordingService<S> {
        RecordingService { inner, rejections: self.clone() }
    }
}

/// The service of a client whose rejected requests are recorded.
#[derive(Clone)]
pub(crate) struct RecordingService<S> {
    inner: S,
    rejections: Rejections,
}

impl<S, A, B> tower::Service<Request<A>> for RecordingService<S>
where
    S: tower::Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let needed = needed_permissions(&request);
        let rejections = self.rejections.clone();
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            if response.status() == StatusCode::FORBIDDEN {
                // A quota or a terminating namespace also answers 403: those requests are within the role.
                let beyond = needed
                    .into_iter()
                    .find(|permission| !rejections.permissions.iter().any(|granted| granted.covers(permission)));
                if beyond.is_some() {
                    rejections.seen.send_replace(beyond);
                }
            }
            Ok(response)
        })
    }
}

/// Returns the permissions that a request needs, derived from its method and URL as
/// `requestinfo.go` of Kubernetes does.
///
/// An apply needs two: `patch`, and `create` for the case that the object does not exist. Requests
/// outside `/api` and `/apis` need none here; they are about no object.
fn needed_permissions<A>(request: &Request<A>) -> Vec<Permission> {
    let query = request.uri().query().unwrap_or_default();
    let mut parts: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    let group = match parts.as_slice() {
        ["api", _, ..] => String::new(),
        ["apis", group, ..] => (*group).to_owned(),
        _ => return Vec::new(),
    };
    parts.drain(..(if group.is_empty() { 2 } else { 3 }).min(parts.len()));
    let scope = match parts.as_slice() {
        // Subresources of the namespace itself. Upstream: `namespaceSubresources` in `pkg/endpoints/request/requestinfo.go`.
        ["namespaces", _, "status" | "finalize"] => PermissionScope::Everywhere,
        ["namespaces", namespace, _, ..] => PermissionScope::Namespace((*namespace).to_owned()),
        _ => PermissionScope::Everywhere,
    };
    if scope != PermissionScope::Everywhere {
        parts.drain(..2);
    }
    let Some(plural) = parts.first() else { return Vec::new() };
    let resource = parts.get(2).map_or_else(|| (*plural).to_owned(), |subresource| format!("{plural}/{subresource}"));
    let selected = query.split('&').find_map(|part| part.strip_prefix("fieldSelector=metadata.name%3D"));
    let name = parts.get(1).copied().or(selected).unwrap_or_default().to_owned();
    let one = parts.len() > 1;
    let applies =
        request.headers().get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"application/apply"));
    let verbs: &[&str] = match *request.method() {
        Method::POST => &["create"],
        Method::PUT => &["update"],
        // An apply creates the object if it does not exist.
        Method::PATCH if applies => &["patch", "create"],
        Method::PATCH => &["patch"],
        Method::DELETE if one => &["delete"],
        Method::DELETE => &["deletecollection"],
        _ if query.contains("watch=") => &["watch"],
        _ if one => &["get"],
        _ => &["list"],
    };
    let target = PermissionTarget::Resource { group, resource, name };
    let permission = |verb: &&str| Permission {
        scope: scope.clone(),
        target: target.clone(),
        verb: (*verb).to_owned(),
        because: std::collections::BTreeSet::new(),
        framework: false,
    };
    verbs.iter().map(permission).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_permissions() {
        let cases = [
            ("GET", "/api/v1/pods?watch=1", "watch pods"),
            ("GET", "/api/v1/pods?limit=5", "list pods"),
            ("GET", "/api/v1/namespaces/a", "get namespaces a"),
            ("GET", "/api/v1/namespaces/a/pods/b", "get pods b in namespace a"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Db", "list pods b"),
            ("POST", "/api/v1/namespaces/a/pods", "create pods in namespace a"),
            ("POST", "/api/v1/namespaces/a/pods/b/eviction", "create pods/eviction b in namespace a"),
            ("PUT", "/apis/apps/v1/namespaces/a/deployments/b", "update deployments.apps b in namespace a"),
            ("PATCH", "/apis/x.io/v1/sets/b/status", "patch sets/status.x.io b"),
            ("PATCH", "/api/v1/namespaces/a/status", "patch namespaces/status a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update namespaces/finalize a"),
            ("DELETE", "/api/v1/nodes/n", "delete nodes n"),
            ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection pods in namespace a"),
        ];
        for (method, path, expected) in cases {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            let found: Vec<_> = needed_permissions(&request).iter().map(ToString::to_string).collect();
            assert_eq!(found, [expected], "{method} {path}");
        }
    }

    #[test]
    fn apply_asks_for_patch_and_create() {
        let request =
            Request::patch("/api/v1/namespaces/a/pods/b").header("content-type", "application/apply-patch+yaml");
        let found: Vec<_> =
            needed_permissions(&request.body(()).unwrap()).into_iter().map(|permission| permission.verb).collect();
        assert_eq!(found, ["patch", "create"]);
    }

    #[test]
    fn paths_without_a_resource_need_no_permissions() {
        for path in ["/version", "/api", "/apis/apps/v1", "/api/v1", "/"] {
            assert_eq!(needed_permissions(&Request::get(path).body(()).unwrap()), [], "{path}");
        }
    }
}
