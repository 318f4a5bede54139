//! Writes of the leader: none is sent after its time, and one with a response does not delay the release of the Lease.

use std::{
    future::Future,
    pin::{Pin, pin},
};

use http::Response;
use kube::client::Body;
use tokio::{sync::oneshot, task::JoinHandle, time::sleep};

use super::*;

type Respond = Pin<Box<dyn Future<Output = std::result::Result<Response<Body>, Infallible>> + Send>>;

/// A program that leads, and whose certificates are kept over a client of the test.
struct Leading {
    maintainer: CertificateMaintainer,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

/// Starts a program and waits until it leads. `respond` answers the requests about its certificates.
async fn leading(respond: impl Fn() -> Respond + Clone + Send + 'static) -> Leading {
    let server = ApiServer::new();
    let client = Client::new(server.service(), "default");
    let manager = App::new("web").manager(client).await.unwrap();
    let manager = manager.elect(ElectionConfig::new("web", "default", "a")).unwrap();
    let view = manager.view();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move { manager.run(async move { drop(stopped.await) }).await.unwrap() });
    assert!(view.leadership().unwrap().wait_until_leading().await);
    let (mut maintainer, _reached) = start_replica(&server, ElectionRole::Leader).await;
    let service = tower::service_fn(move |_request: Request<Body>| respond());
    (maintainer.client, maintainer.leader) = (Client::new(service, "default"), Leader::of(&view));
    Leading { maintainer, stop, running }
}

impl Leading {
    async fn patch(&self) -> Result<Value> {
        let authority = self.maintainer.leader.authority();
        self.maintainer.patch(PATH, "application/json-patch+json", &json!([]), &authority).await
    }
}

#[tokio::test(start_paused = true)]
async fn only_undecided_write_delays_release_of_lease() {
    for (code, is_delayed) in [(200, false), (409, false), (422, false), (500, true), (504, true)] {
        let leading = leading(move || {
            let status =
                json!({ "kind": "Status", "status": "Failure", "code": code, "reason": "Any", "message": "any" });
            let response = Response::builder().status(code).body(Body::from(status.to_string().into_bytes()));
            Box::pin(async move { Ok(response.unwrap()) })
        });
        let leading = leading.await;
        let patched = leading.patch().await;
        assert_eq!(patched.is_ok(), code == 200, "{code}: {patched:?}");
        let stopped_at = Instant::now();
        leading.stop.send(()).unwrap();
        leading.running.await.unwrap();
        let took = stopped_at.elapsed();
        assert_eq!(took > Duration::from_secs(5), is_delayed, "{code}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn write_delayed_by_a_freeze_is_not_sent() {
    let n_sent = Arc::new(AtomicUsize::new(0));
    let counted = n_sent.clone();
    let leading = leading(move || {
        let counted = counted.clone();
        Box::pin(async move {
            // It waits for a connection.
            sleep(Duration::from_secs(2)).await;
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(Response::new(Body::from(b"{}".to_vec())))
        })
    });
    let leading = leading.await;
    let mut write = pin!(leading.patch());
    for _ in 0..100 {
        assert!(futures::poll!(&mut write).is_pending(), "it waits for the connection");
        tokio::task::yield_now().await;
    }
    // SIGSTOP for 20 s, then SIGCONT.
    tokio::time::advance(Duration::from_secs(20)).await;
    let late = write.await.unwrap_err().to_string();
    assert!(late.contains("no response within"), "{late}");
    assert_eq!(n_sent.load(Ordering::Relaxed), 0);
}
