//! Reviews: requests the user of a token, and the permissions of a user, from the API server.
//!
//! Both are POST requests that store nothing, so they need neither a permit nor a cache.
//!
//! The metrics server uses them, as controller-runtime's `WithAuthenticationAndAuthorization` filter
//! does: `TokenReview` for the bearer token, then `SubjectAccessReview` for the path. The `ClusterRole`
//! `system:auth-delegator` allows both.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use kube::Client;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::transport::{self, ApiError, Deadline, Operation, RequestBody};

/// Longest wait for a response (controller-runtime, `pkg/metrics/filters`).
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A user as the API server authenticated it (`authentication.k8s.io/v1`, `UserInfo`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(default)]
pub(crate) struct UserInfo {
    pub(crate) username: String,
    pub(crate) uid: String,
    /// Groups, such as `system:serviceaccounts`. RBAC bindings may name them instead of the user.
    pub(crate) groups: Vec<String>,
    /// Further facts from the authenticator, which have to be passed on to the authorizer unchanged.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

/// The part of a review that the API server fills in.
#[derive(Deserialize)]
struct Review<T> {
    status: T,
}

/// Returns the user of a token (`TokenReview`), or `None` for an unknown or anonymous one.
///
/// # Errors
/// The request fails, which says nothing about the token, so callers reject with 5xx instead of 401.
pub(crate) async fn token(client: &Client, token: &str) -> Result<Option<UserInfo>, ApiError> {
    #[derive(Deserialize)]
    struct TokenReviewStatus {
        #[serde(default)]
        authenticated: bool,
        #[serde(default)]
        user: UserInfo,
    }
    let (group, kind) = ("authentication.k8s.io", "TokenReview");
    let TokenReviewStatus { authenticated, user } =
        create_review(client, group, kind, json!({ "token": token })).await?;
    Ok(authenticated.then_some(user).filter(|user| user.username != "system:anonymous"))
}

/// Returns `true` if a user may `get` this non-resource path (`SubjectAccessReview`).
///
/// The authorizers of the API server decide, so Node and webhook authorizers count like RBAC. `denied` is an explicit
/// "no" and wins over `allowed`.
///
/// # Errors
/// The request fails, for example because this process may not create reviews.
pub(crate) async fn access(client: &Client, user: &UserInfo, path: &str) -> Result<bool, ApiError> {
    #[derive(Deserialize)]
    struct SubjectAccessReviewStatus {
        #[serde(default)]
        allowed: bool,
        #[serde(default)]
        denied: bool,
    }
    let spec = json!({
        "user": user.username,
        "uid": user.uid,
        "groups": user.groups,
        "extra": user.extra,
        "nonResourceAttributes": { "path": path, "verb": "get" },
    });
    let SubjectAccessReviewStatus { allowed, denied } =
        create_review(client, "authorization.k8s.io", "SubjectAccessReview", spec).await?;
    Ok(allowed && !denied)
}

async fn create_review<T: DeserializeOwned>(
    client: &Client,
    group: &str,
    kind: &str,
    spec: Value,
) -> Result<T, ApiError> {
    let operation = Operation::from(format!("create {kind}"));
    let review = json!({ "apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec });
    let path = format!("/apis/{group}/v1/{}s", kind.to_lowercase());
    let sent = Some(RequestBody::json(review.to_string().into_bytes()));
    let deadline = Deadline::from_now(RESPONSE_TIMEOUT);
    let response = transport::send_within(client, &operation, Method::POST, &path, sent, deadline).await?;
    let review: Result<Review<T>, _> = serde_json::from_str(&response);
    review.map(|review| review.status).map_err(|error| ApiError::Unreadable { operation, cause: error.to_string() })
}
