//! The client of `cx.client()`, for requests that [`Context`](crate::reconcile::Context) has no method for: the
//! process's own, with the permit before each write.
//!
//! Its answers do not go through a cache, so a reconcile function does not see them in its next read until the
//! watch delivers them. A request that ends without a response, or with a 5xx, keeps the Lease from being released early.
//!
//! The wrapper is an ordinary `kube::Client`, so `kube::Api` and every helper crate work with it. The generated role
//! has the rules of `rbac(…)` for its requests, and the API server rejects others.

use http::{Method, Request};
use kube::{Client, client::Body};
use tower::{BoxError, service_fn};

use super::{Operation, WritePermit};
use crate::transport;

/// Returns a client whose writes acquire the permit first and get its timeout. Reads pass unchanged.
///
/// A write that is not answered in time fails with [`ApiError::NoResponse`](super::ApiError::NoResponse), and its entry
/// in the permit is kept until its time is over. `exec` and `port-forward` are GET requests and pass, although they can
/// change a lot.
pub(crate) fn guard_writes(client: &Client, permit: &WritePermit) -> Client {
    let (namespace, client, permit) = (client.default_namespace().to_owned(), client.clone(), permit.clone());
    let guarded = service_fn(move |request: Request<Body>| {
        let (client, permit) = (client.clone(), permit.clone());
        async move {
            if is_read(request.method()) {
                return client.send(request).await.map_err(BoxError::from);
            }
            let operation = Operation::from(format!("{} {}", request.method(), request.uri().path()));
            let guard = permit.acquire(&operation).await?;
            let deadline = guard.deadline();
            match transport::in_time(deadline.at(), client.send(request)).await {
                Some(response) => {
                    let response = response.map_err(BoxError::from)?;
                    // A proxy that gives up answers while the API server may still be at work.
                    if !response.status().is_server_error() {
                        guard.resolve();
                    }
                    Ok(response)
                }
                None => Err(BoxError::from(transport::timeout_error(&operation, deadline.timeout()))),
            }
        }
    });
    Client::new(guarded, namespace)
}

/// Returns `true` for methods without an effect on the API server (RFC 9110, "safe" methods).
fn is_read(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
        time::Duration,
    };

    use http::Response;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{
        Api,
        api::{DeleteParams, PostParams},
    };
    use tokio::sync::watch;

    use super::*;
    use crate::writer::{ApiError, LeaseState};

    /// A client that counts what is sent, and answers with an empty object.
    fn counting() -> (Client, Arc<AtomicU32>) {
        let sent = Arc::new(AtomicU32::new(0));
        let counted = sent.clone();
        let service = service_fn(move |_request: Request<Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            let object = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
            async move { Ok::<_, Infallible>(Response::new(Body::from(object.as_bytes().to_vec()))) }
        });
        (Client::new(service, "default"), sent)
    }

    #[tokio::test(start_paused = true)]
    async fn server_error_keeps_the_write_unresolved() {
        let client_responding = |code: u16| {
            let service = service_fn(move |_request: Request<Body>| async move {
                Ok::<_, Infallible>(Response::builder().status(code).body(Body::from(b"{}".to_vec())).unwrap())
            });
            Client::new(service, "default")
        };
        for (code, is_unresolved) in [(409, false), (504, true)] {
            let until = tokio::time::Instant::now() + Duration::from_secs(60);
            let (_permission, lease) = watch::channel(LeaseState::HeldUntil(until));
            let permit = WritePermit::from_lease(lease, Duration::from_secs(5), Duration::from_secs(1));
            let configs = Api::<ConfigMap>::default_namespaced(guard_writes(&client_responding(code), &permit));
            assert!(configs.create(&PostParams::default(), &ConfigMap::default()).await.is_err());
            assert_eq!(permit.unresolved_until().is_some(), is_unresolved, "{code}");
        }
    }

    /// A process that is stopped between the permit and the request has no time left when it continues.
    #[tokio::test(start_paused = true)]
    async fn write_permitted_before_a_freeze_is_not_sent() {
        let (client, sent) = counting();
        let until = tokio::time::Instant::now() + Duration::from_secs(60);
        let (_permission, lease) = watch::channel(LeaseState::HeldUntil(until));
        let permit = WritePermit::from_lease(lease, Duration::from_secs(8), Duration::from_secs(1));
        let operation = Operation::from("patch");
        for (frozen, n_sent) in [(7, 1), (8, 0)] {
            sent.store(0, Ordering::Relaxed);
            let guard = permit.acquire(&operation).await.unwrap();
            tokio::time::advance(Duration::from_secs(frozen)).await;
            let response =
                transport::send_within(&client, &operation, Method::PATCH, "/", None, guard.deadline()).await;
            assert_eq!((response.is_ok(), sent.load(Ordering::Relaxed)), (n_sent == 1, n_sent), "{frozen} s");
            tokio::time::advance(Duration::from_secs(8 - frozen)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_leader_sends_writes() {
        let (client, sent) = counting();
        let (permission, lease) =
            watch::channel(LeaseState::HeldUntil(tokio::time::Instant::now() + Duration::from_secs(60)));
        let permit = WritePermit::from_lease(lease, Duration::from_secs(5), Duration::from_secs(1));
        let configs = Api::<ConfigMap>::default_namespaced(guard_writes(&client, &permit));
        configs.get("a").await.unwrap();
        configs.create(&PostParams::default(), &ConfigMap::default()).await.unwrap();
        assert_eq!(sent.load(Ordering::Relaxed), 2);
        permission.send(LeaseState::Lost).unwrap();
        configs.get("a").await.unwrap();
        assert_eq!(sent.load(Ordering::Relaxed), 3);
        let rejected = configs.delete("a", &DeleteParams::default()).await.unwrap_err();
        let kube::Error::Service(cause) = rejected else { panic!("{rejected}") };
        assert!(matches!(cause.downcast_ref(), Some(ApiError::NotLeading { .. })), "{cause}");
        assert_eq!(sent.load(Ordering::Relaxed), 3, "nothing was sent");
    }
}
