//! Recognizes requests with an endless response by their URL.

use http::Uri;

/// Returns `true` for requests with an endless response: a watch, or a followed log.
///
/// They have no duration and no timeout, and occupy their connection. A layer that measures or limits
/// requests should leave them out.
///
/// ```
/// use kctl_runtime::connection::is_streaming;
///
/// let watch = "/api/v1/pods?watch=1".parse()?;
/// assert!(is_streaming(&watch));
/// let pods = "/api/v1/pods".parse()?;
/// assert!(!is_streaming(&pods));
/// # Ok::<_, http::uri::InvalidUri>(())
/// ```
pub fn is_streaming(uri: &Uri) -> bool {
    // kube-rs and client-go send `true` or `1`; kube-apiserver accepts both.
    let is_set = |pair: &str| matches!(pair.split_once('='), Some(("watch" | "follow", "true" | "1")));
    uri.query().is_some_and(|query| query.split('&').any(is_set))
}
