//! When an app is idle: a key that failed is not done, however long it waits for its next try.

use std::sync::atomic::{AtomicU32, Ordering};

use kctl::{
    kube::{Api, api::PostParams},
    prelude::*,
    testing::TestServer,
};

struct Failing {
    /// What the error asks for.
    retry_after: Option<Duration>,
    attempts: Arc<AtomicU32>,
}

#[controller(of = ConfigMap, name = "failing", retries = 4)]
struct DroppedAfterFive(Failing);

#[controller(of = ConfigMap, name = "failing")]
struct NeverDropped(Failing);

impl Failing {
    fn fail(&self, attempt: u32) -> Result<Action> {
        assert_eq!(self.attempts.fetch_add(1, Ordering::Relaxed), attempt, "attempts are counted");
        let failed: Result<Action> = Err("no".into());
        match self.retry_after {
            Some(wait) => failed.retry_after(wait),
            None => failed,
        }
    }
}

impl Reconcile for DroppedAfterFive {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        self.0.fail(cx.attempt())
    }
}

impl Reconcile for NeverDropped {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        self.0.fail(cx.attempt())
    }
}

/// What an app with one object says to `idle`, and how often it was reconciled.
async fn idle<C: Reconcile>(make: fn(Failing) -> C, retry_after: Option<Duration>) -> (Result<()>, u32) {
    let attempts = Arc::new(AtomicU32::new(0));
    let counted = attempts.clone();
    let app = App::new("failing").controller_with(move |_env| {
        let failing = Failing { retry_after, attempts: attempts.clone() };
        async move { Ok(make(failing)) }
    });
    let server = TestServer::start(app).await.unwrap();
    let metadata = ObjectMeta { name: Some("one".into()), ..ObjectMeta::default() };
    let object = ConfigMap { metadata, ..ConfigMap::default() };
    Api::default_namespaced(server.client()).create(&PostParams::default(), &object).await.unwrap();
    (server.idle().await, counted.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn key_that_keeps_failing_is_named_also_when_it_waits_long() {
    for retry_after in [None, Some(Duration::from_secs(20))] {
        let (idle, _attempts) = idle(NeverDropped, retry_after).await;
        let text = idle.unwrap_err().to_string();
        assert!(text.contains("failing default/one: failed"), "{text}");
    }
}

#[controller(of = ConfigMap)]
struct Hanging;

impl Reconcile for Hanging {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        std::future::pending().await
    }
}

#[controller(name = "restless")]
async fn restless(_config: Arc<ConfigMap>, _cx: Context<restless>) -> Result<Action> {
    Ok(Action::requeue(Duration::from_millis(1_700)))
}

#[tokio::test(start_paused = true)]
async fn what_is_left_to_do_is_said_also_when_nothing_fails() {
    for (app, left) in [
        (
            App::new("left").controller_with(|_env| async { Ok(Hanging) }),
            "configmap default/one: its reconcile has been running",
        ),
        (App::new("left").controller::<restless>(), "restless: keys that asked to be reconciled again within 5s: 1"),
    ] {
        let server = TestServer::start(app).await.unwrap();
        let metadata = ObjectMeta { name: Some("one".into()), ..ObjectMeta::default() };
        let object = ConfigMap { metadata, ..ConfigMap::default() };
        Api::default_namespaced(server.client()).create(&PostParams::default(), &object).await.unwrap();
        let text = server.idle().await.unwrap_err().to_string();
        assert!(text.contains(left), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn key_that_is_dropped_is_done_also_when_its_errors_ask_for_a_time() {
    for retry_after in [None, Some(Duration::from_secs(2))] {
        let (idle, attempts) = idle(DroppedAfterFive, retry_after).await;
        idle.unwrap();
        assert_eq!(attempts, 5);
    }
}
