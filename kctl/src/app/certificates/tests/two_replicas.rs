//! Tests certificates with two processes. The holder of the Lease is the leader: it creates them, and both serve them.

use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::jiff::SignedDuration;
use kctl_apiserver::ApiServer;
use kctl_runtime::manager::{ManagerError, lease::ElectionConfig};
use kctl_webhook::server::Pair;
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinHandle};

use super::*;
use crate::App;

/// Interval at which a process reads its Secret, in real time.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// After this many reads, a read that began before the clock was set has ended.
const LOOKS: u64 = 3;

/// A manager with the certificates of its webhooks.
struct Process {
    served: Arc<Served>,
    leadership: Leadership,
    stop: oneshot::Sender<()>,
    running: JoinHandle<std::result::Result<(), ManagerError>>,
}

/// Starts a process under a separate service account.
async fn start(server: &ApiServer, certificates: &Certificates, name: &str) -> Process {
    let client = Client::new(server.service_as(account(name)), "default");
    let manager = App::new("web").manager(client.clone()).await.unwrap();
    let mut manager = manager.elect(ElectionConfig::new("web", "default", name)).unwrap();
    let leadership = manager.view().leadership().cloned().unwrap();
    manager.background(certificates.clone().run(client, "default".into(), Leader::Elected(leadership.clone())));
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run(async move { drop(stopped.await) }));
    Process { served: certificates.served.clone(), leadership, stop, running }
}

impl Process {
    /// Waits until the process has read the Secret at the time that is set now.
    async fn wait_until_read(&self) {
        let (before, _) = self.served.reads();
        while self.served.reads().0 < before + LOOKS {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.running.await.unwrap().unwrap();
    }
}

/// Grants the same roles to two service accounts, so that the request log shows which one wrote.
async fn allow(server: &ApiServer, names: [&str; 2]) {
    let configuration = server.object("admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "web");
    let mut roles = roles(&configuration.unwrap());
    let subject = |name| json!({ "kind": "ServiceAccount", "name": name, "namespace": "default" });
    for binding in roles.iter_mut().filter(|object| object["kind"].as_str().unwrap().ends_with("Binding")) {
        binding["subjects"] = names.map(subject).into_iter().collect();
    }
    install(server, roles).await;
}

/// Returns the number of accepted writes of a process, without those to Leases.
fn n_writes(server: &ApiServer, name: &str) -> usize {
    let requests = server.requests().into_iter().filter(|request| request.user == account(name).name);
    requests.filter(|request| request.is_accepted_write() && request.resource != "leases").count()
}

fn in_secret(server: &ApiServer) -> Pair {
    let secret = server.object("", "secrets", "default", "web-webhook-tls").unwrap();
    let secret: Secret = serde_json::from_value(Value::clone(&secret)).unwrap();
    let fields = secret.data.unwrap().into_iter().map(|(name, ByteString(value))| (name, value)).collect();
    Stored::read(&fields).unwrap().pair().clone()
}

fn is_served(pair: &Pair, process: &Process) -> bool {
    !process.served.set(pair.clone()).unwrap()
}

/// Writes in a loop. The webhooks of both processes admit each write, with the certificates that
/// they serve at that moment.
fn writing(server: &ApiServer) -> (JoinHandle<()>, Arc<AtomicUsize>) {
    let (server, written) = (server.clone(), Arc::<AtomicUsize>::default());
    let counted = written.clone();
    let writing = tokio::spawn(async move {
        loop {
            write(&server).await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    (writing, written)
}

#[tokio::test]
async fn only_leader_rotates_certificates_and_standbys_serve_them() {
    let (server, [one, two]) = world([ElectionRole::Standby, ElectionRole::Standby]).await;
    allow(&server, ["web-a", "web-b"]).await;
    let now = Timestamp::now();
    let time = Arc::new(Mutex::new(now - DAY * 186));
    let clock: Clock = Arc::new({
        let time = time.clone();
        move || *time.lock()
    });
    let [first, second] = [one, two].map(|maintainer| Certificates {
        clock: clock.clone(),
        read_every: POLL_INTERVAL,
        ..maintainer.certificates
    });
    let a = start(&server, &first, "web-a").await;
    assert!(a.leadership.wait_until_leading().await);
    a.wait_until_read().await;
    let b = start(&server, &second, "web-b").await;
    // The authority is so old that its successor is due today. Certificates were renewed in the meantime.
    let mut last = in_secret(&server);
    for days in [125, 64, 3] {
        *time.lock() = now - DAY * days;
        a.wait_until_read().await;
        b.wait_until_read().await;
        let next = in_secret(&server);
        assert!(next != last && is_served(&next, &a) && is_served(&next, &b), "{days} days ago");
        last = next;
    }
    let (writing, written) = writing(&server);
    *time.lock() = now;
    a.wait_until_read().await;
    b.wait_until_read().await;
    // The pass after the one with the new authority records that each configuration trusts it.
    a.wait_until_read().await;
    assert_eq!((authorities(&server), n_writes(&server, "web-b")), (2, 0), "the standby has written nothing");

    // The webhooks of `a` still answer, with the last certificate that it read.
    a.stop().await;
    let n_before = n_writes(&server, "web-a");
    assert!(b.leadership.wait_until_leading().await);
    *time.lock() = now + SignedDuration::from_mins(11);
    b.wait_until_read().await;
    let signed = in_secret(&server);
    assert!(signed != last && is_served(&signed, &b), "the new authority signs");
    let n_written = written.load(Ordering::Relaxed);
    while written.load(Ordering::Relaxed) < n_written + 3 {
        assert!(!writing.is_finished(), "one of both was not trusted");
        tokio::time::sleep(POLL_INTERVAL).await;
    }

    let a = start(&server, &first, "web-a").await;
    a.wait_until_read().await;
    assert!(is_served(&signed, &a) && !a.leadership.is_leading());
    assert_eq!((authorities(&server), n_writes(&server, "web-a")), (2, n_before));
    assert!(n_writes(&server, "web-b") > 0 && !writing.is_finished());
    writing.abort();
    b.stop().await;
}
