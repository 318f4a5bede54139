//! Tests watches that end early.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use kube::client::Body;
use tower::{BoxError, service_fn};

use super::*;

/// Returns a client of the server on which the first `n` watches of Pods end at once, and the number of these watches.
fn ending(server: &ApiServer, n: usize) -> (Client, Arc<AtomicUsize>) {
    let (client, n_watches) = (Client::new(server.service(), "default"), Arc::<AtomicUsize>::default());
    let counted = n_watches.clone();
    let service = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let ends = is_watch && request.uri().path() == "/api/v1/pods" && counted.fetch_add(1, Ordering::Relaxed) < n;
        async move {
            if ends {
                return Ok::<_, BoxError>(Response::new(Body::from(Vec::<u8>::new())));
            }
            Ok(client.send(request).await?)
        }
    });
    (Client::new(service, "default"), n_watches)
}

/// Runs workloads on this client, deletes a Pod after ten seconds, and returns the number of live Pods five seconds
/// later.
async fn pods_after_deletion(server: &ApiServer, client: Client) -> usize {
    let workloads = Workloads::with_clock(client, Clock::Server(server.clone()));
    let (sets, pods) = {
        let client = Client::new(server.service(), "default");
        (Api::<ReplicaSet>::default_namespaced(client.clone()), Api::<Pod>::default_namespaced(client))
    };
    let kubelet = tokio::spawn(Kubelet::for_server(server).run());
    let running = tokio::spawn(workloads.run());
    create_set(&sets).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let name = pods.list(&ListParams::default()).await.unwrap().items[0].name_any();
    pods.delete(&name, &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let left = pods.list(&ListParams::default()).await.unwrap().items;
    for task in [kubelet, running] {
        task.abort();
    }
    left.iter().filter(|pod| is_alive(*pod)).count()
}

#[tokio::test(start_paused = true)]
async fn end_of_one_watch_hides_no_changes() {
    let server = ApiServer::new();
    let (client, n_watches) = ending(&server, 1);
    assert_eq!(pods_after_deletion(&server, client).await, 2, "the deleted Pod is replaced");
    assert_eq!(n_watches.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_paced() {
    let server = ApiServer::new();
    let (client, n_watches) = ending(&server, usize::MAX);
    assert_eq!(pods_after_deletion(&server, client).await, 2, "the deleted Pod is replaced");
    let n_watches = n_watches.load(Ordering::Relaxed);
    assert!((10..=20).contains(&n_watches), "{n_watches} watches in 15 seconds");
}
