//! A timeout around each request of a kubelet or of workload controllers.
//!
//! Both send one request after the other. Without a timeout, one that is never answered would stop them indefinitely.

use std::time::Duration;

use http::{Request, Response};
use kube::{Client, client::Body};
use tokio::time::timeout;
use tower::BoxError;

/// Longest wait for the complete response to a request, and for the head of a watch's.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a client whose requests fail if their responses take longer than [`RESPONSE_TIMEOUT`].
///
/// The body of a watch lasts as long as its server wants.
pub(crate) fn with_timeout(client: Client) -> Client {
    let (namespace, valid_until) = (client.default_namespace().to_owned(), *client.valid_until());
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let late =
                |_elapsed| BoxError::from(format!("no response from the API server within {RESPONSE_TIMEOUT:?}"));
            timeout(RESPONSE_TIMEOUT, send(client, request)).await.map_err(late)?
        }
    });
    Client::new(service, namespace).with_valid_until(valid_until)
}

/// Sends a request, and reads the whole body unless it is a watch.
async fn send(client: Client, request: Request<Body>) -> Result<Response<Body>, BoxError> {
    let is_watch = request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"));
    let response = client.send(request).await?;
    if is_watch {
        return Ok(response);
    }
    let (head, body) = response.into_parts();
    Ok(Response::from_parts(head, Body::from(body.collect_bytes().await?)))
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use super::*;
    use crate::{Kubelet, Workloads};

    /// Returns a client that never gets a response, and the number of its requests.
    fn unanswered() -> (Client, Arc<AtomicUsize>) {
        let n_requests = Arc::<AtomicUsize>::default();
        let counted = n_requests.clone();
        let service = tower::service_fn(move |_request: Request<Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Result<Response<Body>, Infallible>>()
        });
        (Client::new(service, "default"), n_requests)
    }

    #[tokio::test(start_paused = true)]
    async fn kubelet_repeats_a_request_without_response() {
        let (client, n_requests) = unanswered();
        let _runs = timeout(Duration::from_secs(100), Kubelet::new(client, "node").run()).await;
        assert_eq!(n_requests.load(Ordering::Relaxed), 4, "every 31 s");
    }

    #[tokio::test(start_paused = true)]
    async fn workloads_repeat_a_request_without_response() {
        let (client, n_requests) = unanswered();
        let _runs = timeout(Duration::from_secs(100), Workloads::new(client).run()).await;
        assert_eq!(n_requests.load(Ordering::Relaxed), 4, "every 31 s");
    }
}
