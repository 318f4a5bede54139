//! `idle`: an app with a failed key is not idle, however long the key waits for its retry.

use std::sync::atomic::{AtomicU32, Ordering};

use kctl::{
    kube::{Api, api::PostParams},
    prelude::*,
    testing::TestServer,
};

struct Failing {
    /// Delay for `retry_after` on the error; `None` for the usual backoff.
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

/// Returns the result of `idle` for an app with one object, and the number of its reconciles.
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
async fn long_waiting_failing_key_is_named() {
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
async fn unfinished_work_is_listed_without_failures() {
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
async fn dropped_key_is_done_despite_requested_retry_times() {
    for retry_after in [None, Some(Duration::from_secs(2))] {
        let (idle, attempts) = idle(DroppedAfterFive, retry_after).await;
        idle.unwrap();
        assert_eq!(attempts, 5);
    }
}

/// Fails with an error that asks for an immediate retry.
#[controller(name = "impatient")]
async fn impatient(_config: Arc<ConfigMap>, _cx: Context<impatient>) -> Result<Action> {
    let failed: Result<Action> = Err("not yet".into());
    failed.retry_after(Duration::ZERO)
}

/// Requests an immediate requeue in every reconcile.
#[controller(name = "restarts")]
async fn restarts(_config: Arc<ConfigMap>, _cx: Context<restarts>) -> Result<Action> {
    Ok(Action::requeue(Duration::ZERO))
}

/// Deletes its child and creates it again, so that the child's events trigger the next reconcile.
#[controller(name = "recreates", owns = Secret(create, delete))]
async fn recreates(config: Arc<ConfigMap>, cx: Context<recreates>) -> Result<Action> {
    let secrets = cx.owned::<Secret>();
    if let Some(secret) = secrets.iter().next() {
        secrets.delete(&secret).await?;
    }
    let metadata = ObjectMeta { generate_name: Some(format!("{}-", config.name_any())), ..ObjectMeta::default() };
    secrets.create(Secret { metadata, ..Secret::default() }).await?;
    Ok(Action::await_change())
}

/// Returns the patch of one of two controllers that disagree about a label; `None` if the label is set.
fn label(value: &str, config: &ConfigMap) -> Option<kctl::Json> {
    let is_set = config.labels().get("color").is_some_and(|color| color == value);
    (!is_set).then(|| kctl::json!({ "metadata": { "labels": { "color": value } } }))
}

#[controller(name = "red", primary(patch))]
async fn red(config: Arc<ConfigMap>, cx: Context<red>) -> Result<Action> {
    if let Some(patch) = label("red", &config) {
        cx.patch(patch).await?;
    }
    Ok(Action::await_change())
}

#[controller(name = "blue", primary(patch))]
async fn blue(config: Arc<ConfigMap>, cx: Context<blue>) -> Result<Action> {
    if let Some(patch) = label("blue", &config) {
        cx.patch(patch).await?;
    }
    Ok(Action::await_change())
}

/// Writes the time of each reconcile, so that each write triggers the next one.
#[controller(name = "stamps", primary(patch))]
async fn stamps(_config: Arc<ConfigMap>, cx: Context<stamps>) -> Result<Action> {
    cx.patch(kctl::json!({ "metadata": { "annotations": { "at": cx.now().to_string() } } })).await?;
    Ok(Action::await_change())
}

/// Reads its object in an endless loop within one reconcile.
#[controller(name = "rereads", primary(get))]
async fn rereads(_config: Arc<ConfigMap>, cx: Context<rereads>) -> Result<Action> {
    loop {
        cx.get().await?;
    }
}

async fn create_one(server: &TestServer) {
    let metadata = ObjectMeta { name: Some("one".into()), ..ObjectMeta::default() };
    let object = ConfigMap { metadata, ..ConfigMap::default() };
    Api::default_namespaced(server.client()).create(&PostParams::default(), &object).await.unwrap();
}

/// Returns apps with a hot loop that never lets simulated time advance, each with parts of the expected error.
fn hot_loops() -> Vec<(App, [&'static str; 2])> {
    let app = || App::new("hot");
    let endless = |_env| futures::stream::repeat(Key::namespaced("default", "one"));
    vec![
        (app().controller::<restarts>(), ["`restarts` reconciled default/one 1000 times", "requeue after 0ns"]),
        (app().controller::<impatient>(), ["`impatient` reconciled default/one 1000 times", "failed: not yet"]),
        (app().controller::<recreates>(), ["`recreates` reconciled default/one 1000 times", "delete secrets default/"]),
        (
            app().controller::<red>().controller::<blue>(),
            ["`red` reconciled default/one ", "`blue` reconciled default/one "],
        ),
        (app().controller::<stamps>(), ["`stamps` reconciled default/one 1000 times", "patch configmaps default/one"]),
        (app().controller::<rereads>(), ["`rereads` sent 10000 requests", "get configmaps default/one"]),
        (
            app().controller::<counting>().trigger_on::<counting, _, _>(endless),
            ["`counting` reconciled default/one 1000 times", "trigger"],
        ),
    ]
}

#[controller(name = "counting")]
async fn counting(_config: Arc<ConfigMap>, _cx: Context<counting>) -> Result<Action> {
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn hot_loop_fails_idle_with_key_and_writes() {
    for (app, parts) in hot_loops() {
        let server = TestServer::start(app).await.unwrap();
        create_one(&server).await;
        let text = server.idle().await.unwrap_err().to_string();
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
        // The app was stopped, so time advances again. The error is returned again.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(server.idle().await.unwrap_err().to_string(), text);
    }
}

/// Requests one immediate requeue less than the limit of a hot loop.
#[controller(of = ConfigMap, name = "settles")]
struct Settles(AtomicU32);

impl Reconcile for Settles {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        let n = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(if n < 999 { Action::requeue(Duration::ZERO) } else { Action::await_change() })
    }
}

#[tokio::test(start_paused = true)]
async fn idle_succeeds_just_below_hot_loop_limit() {
    let app = App::new("settles").controller_with(|_env| async { Ok(Settles(AtomicU32::new(0))) });
    let server = TestServer::start(app).await.unwrap();
    create_one(&server).await;
    server.idle().await.unwrap();
}

#[cfg(feature = "dev")]
#[tokio::test(start_paused = true)]
async fn rejected_pod_of_a_set_is_named() {
    let quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {pods: '0'}}}";
    let server = TestServer::start_with(App::new("nothing"), quota).await.unwrap();
    server.simulate_workloads();
    server.idle().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let set = kctl::json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "nginx" }] },
            },
        },
    });
    let set: k8s_openapi::api::apps::v1::ReplicaSet = kctl::from_json(set).unwrap();
    Api::default_namespaced(server.client()).create(&PostParams::default(), &set).await.unwrap();
    let error = server.idle().await.unwrap_err().to_string();
    assert!(error.starts_with("not idle after 60s\n  ReplicaSet default/web: "), "{error}");
    assert!(error.contains("exceeded quota"), "{error}");
}
