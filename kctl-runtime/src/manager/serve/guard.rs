//! Authorizes requests: the API server returns the user of a token, and decides if that user may get the path.
//!
//! This is how Kubernetes components protect their own `/metrics`.
//!
//! 1. `TokenReview` turns the bearer token into a user. Unknown and anonymous ones get 401.
//! 2. `SubjectAccessReview` decides if the user may `get` the path. If not, the response is 403 and names the user.
//! 3. An API server that does not answer leads to 500, and a wait of 30 s for other reviews to 504. Neither "yes" nor
//!    "no" would be true.
//!
//! Reviews are cached: a scraper costs one `TokenReview` a minute and one `SubjectAccessReview` in five minutes. These
//! times also bound how long a withdrawn permission continues to work.
//!
//! Anyone who reaches the port can send tokens. So few reviews are sent at a time, and rejections are cached too. The
//! response to a client without a valid token has no error text of the API server.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use http::{Request, StatusCode, header};
use kube::Client;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::Instant};

use super::{Page, text};
use crate::writer::{ApiError, UserInfo, access, token};

/// Lifetime of an authenticated token (controller-runtime, `pkg/metrics/filters`, as the next two).
const TOKEN_TTL: Duration = Duration::from_secs(60);
/// Lifetime of a permission.
const ALLOW_TTL: Duration = Duration::from_secs(300);
/// Lifetime of a denial.
const DENY_TTL: Duration = Duration::from_secs(30);
/// Lifetime of the rejection of a token. It is short, because a token that is rejected may become valid a moment later,
/// when the API server has read a new service account.
const REJECTED_TOKEN_TTL: Duration = Duration::from_secs(5);
/// Time in which an error of the same text is logged once: anyone can cause errors.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of reviews that wait for their responses; others wait for them.
const REVIEWS_MAX: usize = 4;
/// Maximum number of cached reviews of one kind. At the bound expired ones are removed, then all.
const CACHED_REVIEWS_MAX: usize = 1_000;

/// The response to a client without a token.
const NO_TOKEN: &str = "send the token of a service account: `Authorization: Bearer …`\n";
/// The response to a client whose token belongs to no user.
const REJECTED_TOKEN: &str = "the API server does not accept this token: it is invalid or has expired\n";

/// Admits requests with a token whose user may `get` the path.
pub(crate) struct Guard {
    client: Client,
    hasher: RandomState,
    /// Users by a keyed hash of their token; the token itself is not kept.
    users: Mutex<CachedReviews<u64, UserInfo>>,
    /// Rejected tokens, by the same hash.
    rejected: Mutex<CachedReviews<u64, ()>>,
    /// Permits of reviews: [`REVIEWS_MAX`].
    reviews: Semaphore,
    /// Decisions by user and path.
    allowed: Mutex<CachedReviews<(UserInfo, String), bool>>,
    /// The messages of the errors that were logged just now.
    logged: Mutex<CachedReviews<String, ()>>,
}

/// Results of reviews with the time at which they expire.
///
/// Expired ones are removed only at [`CACHED_REVIEWS_MAX`]. Clearing a full map costs some requests, and keeps a flood
/// of tokens from using memory.
struct CachedReviews<K, V>(HashMap<K, (V, Instant)>);

impl<K: std::hash::Hash + Eq, V: Clone> CachedReviews<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key).filter(|(_, until)| Instant::now() < *until).map(|(result, _)| result.clone())
    }

    fn put(&mut self, key: K, result: V, lifetime: Duration) {
        let now = Instant::now();
        if self.0.len() >= CACHED_REVIEWS_MAX {
            self.0.retain(|_, (_, until)| now < *until);
        }
        if self.0.len() >= CACHED_REVIEWS_MAX {
            self.0.clear();
        }
        self.0.insert(key, (result, now + lifetime));
    }
}

enum TokenReviewResult {
    Of(UserInfo),
    Rejected,
}

impl TokenReviewResult {
    /// Returns the user; `None` for a rejected token.
    fn user(self) -> Option<UserInfo> {
        match self {
            Self::Of(user) => Some(user),
            Self::Rejected => None,
        }
    }
}

impl Guard {
    /// Creates a guard without cached reviews.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            hasher: RandomState::new(),
            users: Mutex::new(CachedReviews(HashMap::new())),
            rejected: Mutex::new(CachedReviews(HashMap::new())),
            reviews: Semaphore::new(REVIEWS_MAX),
            allowed: Mutex::new(CachedReviews(HashMap::new())),
            logged: Mutex::new(CachedReviews(HashMap::new())),
        }
    }

    /// Returns `Ok` if the request may pass, or the response to send instead: 401, 403, or 500.
    pub(crate) async fn admit(&self, request: &Request<()>) -> Result<(), Page> {
        let bearer = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.split_once(' '));
        let secret = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let Some(secret) = secret.filter(|secret| !secret.is_empty()) else { return Err(unauthorized_page(NO_TOKEN)) };
        let user = self.user(secret).await.map_err(|error| self.internal_error(&error))?;
        let Some(user) = user else { return Err(unauthorized_page(REJECTED_TOKEN)) };
        let path = request.uri().path();
        if self.allows(&user, path).await.map_err(|error| self.internal_error(&error))? {
            return Ok(());
        }
        let who = &user.username;
        let help = "a ClusterRole with this path in `nonResourceURLs` allows it";
        Err(text(StatusCode::FORBIDDEN, format!("{who} may not get {path}; {help}\n")))
    }

    /// Returns the user of a token, from the cache or by a `TokenReview`.
    async fn user(&self, secret: &str) -> Result<Option<UserInfo>, ApiError> {
        let key = self.hasher.hash_one(secret);
        if let Some(result) = self.cached_result(key) {
            return Ok(result.user());
        }
        // The semaphore is never closed.
        let _permit = self.reviews.acquire().await;
        // Another request with the token may have got the answer in the meantime.
        if let Some(result) = self.cached_result(key) {
            return Ok(result.user());
        }
        let user = token(&self.client, secret).await?;
        match &user {
            Some(user) => self.users.lock().put(key, user.clone(), TOKEN_TTL),
            None => self.rejected.lock().put(key, (), REJECTED_TOKEN_TTL),
        }
        Ok(user)
    }

    fn cached_result(&self, key: u64) -> Option<TokenReviewResult> {
        let user = self.users.lock().get(&key);
        user.map(TokenReviewResult::Of).or_else(|| self.rejected.lock().get(&key).map(|()| TokenReviewResult::Rejected))
    }

    /// Returns `true` if the user may `get` the path, from the cache or by a `SubjectAccessReview`.
    async fn allows(&self, user: &UserInfo, path: &str) -> Result<bool, ApiError> {
        // The whole user is reviewed: two tokens of one name may differ in groups, or in scopes of `extra`.
        let key = (user.clone(), path.to_owned());
        let cached = || self.allowed.lock().get(&key);
        if let Some(allowed) = cached() {
            return Ok(allowed);
        }
        // The semaphore is never closed.
        let _permit = self.reviews.acquire().await;
        // As for tokens, another request may have got the answer.
        if let Some(allowed) = cached() {
            return Ok(allowed);
        }
        let allowed = access(&self.client, user, path).await?;
        self.allowed.lock().put(key, allowed, if allowed { ALLOW_TTL } else { DENY_TTL });
        Ok(allowed)
    }

    /// Returns 500, and logs why the decision could not be made. The client may be anyone, so it does not get the reason.
    fn internal_error(&self, error: &ApiError) -> Page {
        if self.is_due_for_log(&error.to_string()) {
            tracing::warn!(%error, "failed to authorize a client of /metrics");
        }
        text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the API server could not authorize the request; the log has the reason\n",
        )
    }

    /// Returns `true` unless the same text was logged within [`LOG_INTERVAL`].
    fn is_due_for_log(&self, text: &str) -> bool {
        let mut logged = self.logged.lock();
        let is_due = logged.get(&text.to_owned()).is_none();
        if is_due {
            logged.put(text.to_owned(), (), LOG_INTERVAL);
        }
        is_due
    }
}

/// Returns 401 with the header that tells a client to send a bearer token.
fn unauthorized_page(why: &'static str) -> Page {
    let mut page = text(StatusCode::UNAUTHORIZED, why);
    page.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    page
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::Response;
    use http_body_util::BodyExt;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// Returns an API server with the valid tokens `good`, `scoped` and `idle`, and the record of its requests.
    fn cluster() -> (Client, Arc<Mutex<Vec<String>>>) {
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = requests.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let noted = noted.clone();
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect().await?.to_bytes();
                let spec = serde_json::from_slice::<Value>(&body)?["spec"].clone();
                let status = if path == "/apis/authentication.k8s.io/v1/tokenreviews" {
                    noted.lock().push(format!("whose is {}", spec["token"].as_str().unwrap_or_default()));
                    match spec["token"].as_str() {
                        Some("good") => {
                            json!({ "authenticated": true, "user": { "username": "prometheus", "groups": ["monitoring"] } })
                        }
                        Some("scoped") => {
                            let extra = json!({ "scopes": ["logs"] });
                            let user = json!({ "username": "prometheus", "groups": ["monitoring"], "extra": extra });
                            json!({ "authenticated": true, "user": user })
                        }
                        Some("idle") => json!({ "authenticated": true, "user": { "username": "idle" } }),
                        Some("anonymous") => {
                            json!({ "authenticated": true, "user": { "username": "system:anonymous" } })
                        }
                        Some("broken") => return Err("the connection to 10.0.0.1 broke".into()),
                        Some(token) if token.starts_with("silent") => std::future::pending().await,
                        _ => json!({ "error": "no" }),
                    }
                } else {
                    assert_eq!(path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
                    assert_eq!(spec["nonResourceAttributes"], json!({ "path": "/metrics", "verb": "get" }));
                    noted.lock().push(format!("may {}", spec["user"].as_str().unwrap_or_default()));
                    json!({ "allowed": spec["groups"] == json!(["monitoring"]) && spec["extra"] == json!({}) })
                };
                let response = json!({ "status": status }).to_string();
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Response::new(Body::from(response.into_bytes())))
            }
        });
        (Client::new(service, "default"), requests)
    }

    /// Returns the status of the response, or 200 if the guard lets the request pass.
    async fn status(guard: &Guard, authorization: Option<&str>) -> u16 {
        let mut request = Request::builder().uri("/metrics");
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        guard.admit(&request.body(()).unwrap()).await.map_or_else(|page| page.status().as_u16(), |()| 200)
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_known_and_allowed_token_passes() {
        let guard = Guard::new(cluster().0);
        let cases = [
            (None, 401),
            (Some("Bearer"), 401),
            (Some("Bearer "), 401),
            (Some("Basic good"), 401),
            (Some("Bearer unknown"), 401),
            (Some("Bearer anonymous"), 401),
            (Some("Bearer idle"), 403),
            (Some("Bearer broken"), 500),
            (Some("Bearer good"), 200),
            (Some("bearer good"), 200),
        ];
        for (authorization, expected) in cases {
            assert_eq!(status(&guard, authorization).await, expected, "{authorization:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn permission_of_one_token_does_not_widen_another() {
        let guard = Guard::new(cluster().0);
        for (authorization, expected) in [("Bearer good", 200), ("Bearer scoped", 403), ("Bearer good", 200)] {
            assert_eq!(status(&guard, Some(authorization)).await, expected, "{authorization}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reviews_are_cached_as_in_controller_runtime() {
        let (client, requests) = cluster();
        let guard = Guard::new(client);
        let mut passed = Duration::ZERO;
        let cases = [
            (0, vec!["whose is good", "may prometheus", "whose is idle", "may idle"]),
            (29, vec![]),
            (31, vec!["may idle"]),
            (59, vec![]),
            (61, vec!["whose is good", "whose is idle", "may idle"]),
            (299, vec!["whose is good", "whose is idle", "may idle"]),
            (301, vec!["may prometheus"]),
        ];
        for (second, expected) in cases {
            let until = Duration::from_secs(second);
            tokio::time::sleep(until.saturating_sub(passed)).await;
            passed = until;
            assert_eq!(status(&guard, Some("Bearer good")).await, 200);
            assert_eq!(status(&guard, Some("Bearer idle")).await, 403);
            assert_eq!(std::mem::take(&mut *requests.lock()), expected, "after {second} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rejected_token_costs_one_review_in_five_seconds() {
        let (client, requests) = cluster();
        let guard = Guard::new(client);
        for (wait, n_reviews) in [(0, 1), (0, 1), (4, 1), (2, 2), (0, 2)] {
            tokio::time::sleep(Duration::from_secs(wait)).await;
            assert_eq!(status(&guard, Some("Bearer unknown")).await, 401);
            assert_eq!(requests.lock().len(), n_reviews, "after {wait} s more");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn few_reviews_are_sent_at_a_time() {
        let (client, requests) = cluster();
        let guard = Arc::new(Guard::new(client));
        for n in 0..100 {
            let guard = guard.clone();
            tokio::spawn(async move { status(&guard, Some(&format!("Bearer silent{n}"))).await });
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(requests.lock().len(), REVIEWS_MAX);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(requests.lock().len(), 2 * REVIEWS_MAX, "the first ones have timed out");
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_requests_share_cached_reviews() {
        let (client, requests) = cluster();
        let guard = Guard::new(client);
        let statuses = futures::future::join_all((0..100).map(|_| status(&guard, Some("Bearer good")))).await;
        assert_eq!(statuses, [200; 100]);
        for review in ["whose is good", "may prometheus"] {
            let n_sent = requests.lock().iter().filter(|request| request.as_str() == review).count();
            assert!((1..=REVIEWS_MAX).contains(&n_sent), "{review}: {n_sent}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn error_of_the_api_server_is_not_shown() {
        let guard = Guard::new(cluster().0);
        let request = Request::builder().uri("/metrics").header("authorization", "Bearer broken").body(()).unwrap();
        let page = guard.admit(&request).await.unwrap_err();
        assert_eq!(page.body(), "the API server could not authorize the request; the log has the reason\n");
    }

    #[tokio::test(start_paused = true)]
    async fn rejected_token_differs_from_a_missing_one() {
        let guard = Guard::new(cluster().0);
        for (token, expected) in [("", NO_TOKEN), ("unknown", REJECTED_TOKEN), ("anonymous", REJECTED_TOKEN)] {
            let request = Request::builder().uri("/metrics").header("authorization", format!("Bearer {token}"));
            let page = guard.admit(&request.body(()).unwrap()).await.unwrap_err();
            assert_eq!((page.status().as_u16(), page.body().as_str()), (401, expected), "{token:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn repeated_error_is_logged_once_in_ten_seconds() {
        let guard = Guard::new(cluster().0);
        for (wait, text, expected) in
            [(0, "a", true), (0, "a", false), (0, "b", true), (9, "a", false), (2, "a", true), (0, "a", false)]
        {
            tokio::time::sleep(Duration::from_secs(wait)).await;
            assert_eq!(guard.is_due_for_log(text), expected, "{text} after {wait} s more");
        }
        // Each request with another token fails in the same way.
        for _ in 0..3 {
            assert_eq!(status(&guard, Some("Bearer broken")).await, 500);
        }
        assert_eq!(guard.logged.lock().0.len(), 3, "`a`, `b` and the error of the connection");
    }

    #[tokio::test(start_paused = true)]
    async fn cached_reviews_are_bounded() {
        let mut reviews = CachedReviews(HashMap::new());
        reviews.put(0, 0, DENY_TTL);
        for n in 1..CACHED_REVIEWS_MAX {
            reviews.put(n, n, TOKEN_TTL);
        }
        assert_eq!(reviews.0.len(), CACHED_REVIEWS_MAX);
        tokio::time::sleep(Duration::from_secs(31)).await;
        reviews.put(CACHED_REVIEWS_MAX, 1, TOKEN_TTL);
        assert_eq!((reviews.0.len(), reviews.get(&0)), (CACHED_REVIEWS_MAX, None), "the old one made place");
        reviews.put(CACHED_REVIEWS_MAX + 1, 2, TOKEN_TTL);
        assert_eq!((reviews.0.len(), reviews.get(&(CACHED_REVIEWS_MAX + 1))), (1, Some(2)), "none was old");
    }
}
