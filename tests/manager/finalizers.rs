//! Two controllers with a finalizer each on one kind: neither removes the other's, and none is lost by a crash.

use kctl::{
    kube::{
        Api,
        api::{DeleteParams, PostParams},
    },
    prelude::*,
    testing::TestServer,
};
use kctl_tests::{Fault, Faults, RequestSummary};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::lease_candidates::{Contest, advance_seconds};

/// Names of the controllers that cleaned up, in order.
type Log = Arc<Mutex<Vec<&'static str>>>;

#[controller(of = ConfigMap, finalizer = "example.com/disk", name = "disk")]
struct Disk(Log);

#[controller(of = ConfigMap, finalizer = "example.com/name", name = "name")]
struct Name(Log);

impl Reconcile for Disk {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

impl Finalize for Disk {
    async fn finalize(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<()> {
        self.0.lock().push("disk");
        Ok(())
    }
}

impl Reconcile for Name {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

impl Finalize for Name {
    async fn finalize(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<()> {
        self.0.lock().push("name");
        Ok(())
    }
}

async fn start(contest: &Contest, faults: &Faults, log: &Log) -> JoinHandle<()> {
    let (disk, name) = (log.clone(), log.clone());
    let app = App::new("cleaners")
        .controller_with(move |_env| std::future::ready(Ok(Disk(disk.clone()))))
        .controller_with(move |_env| std::future::ready(Ok(Name(name.clone()))));
    let manager = app.manager(faults.client(&contest.server)).await.unwrap();
    tokio::spawn(async move { manager.run(std::future::pending()).await.unwrap() })
}

async fn finalizers(api: &Api<ConfigMap>) -> Option<Vec<String>> {
    let mut finalizers = api.get_opt("a").await.unwrap()?.finalizers().to_vec();
    finalizers.sort();
    Some(finalizers)
}

/// Returns the cleanups that ran before and after a restart, with this fault on the first finalizer removal.
async fn crash(fault: Fault) -> Vec<&'static str> {
    let (contest, faults, log) = (Contest::new(), Faults::default(), Log::default());
    let api: Api<ConfigMap> = Api::default_namespaced(contest.client.clone());
    let metadata = ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() };
    api.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
    let process = start(&contest, &faults, &log).await;
    advance_seconds(5).await;
    let both = Some(vec!["example.com/disk".to_owned(), "example.com/name".to_owned()]);
    assert_eq!(finalizers(&api).await, both, "both are there, though both were added at once");
    faults.add(fault, |request: &RequestSummary| request.method == "PATCH");
    api.delete("a", &DeleteParams::default()).await.unwrap();
    advance_seconds(1).await;
    process.abort();
    assert!(log.lock().contains(&"disk") && log.lock().contains(&"name"), "{:?}", log.lock());
    let left = finalizers(&api).await;
    if fault == Fault::Break {
        assert_eq!(left, both, "nothing was taken away");
    }
    let _next = start(&contest, &Faults::default(), &log).await;
    advance_seconds(10).await;
    assert_eq!(finalizers(&api).await, None, "the next process cleans up, and lets it go");
    std::mem::take(&mut log.lock())
}

#[tokio::test(start_paused = true)]
async fn lost_finalizer_removal_is_repeated_after_a_crash() {
    let cleaned = crash(Fault::Break).await;
    for name in ["disk", "name"] {
        assert!(cleaned.iter().filter(|of| **of == name).count() >= 2, "{cleaned:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn finalizer_removal_with_lost_answer_is_not_undone() {
    let cleaned = crash(Fault::LoseResponse).await;
    assert!(cleaned.contains(&"disk") && cleaned.contains(&"name"), "{cleaned:?}");
}

/// A kind whose objects have the finalizer of an operator that kctl replaces.
#[resource(group = "finalizers.example.com", version = "v1", kind = "Old", namespaced)]
pub(crate) struct OldSpec {}

#[controller(of = Old, finalizer = "old-cleanup")]
struct Taker(Log);

impl Reconcile for Taker {
    async fn reconcile(&self, _old: Arc<Old>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

impl Finalize for Taker {
    async fn finalize(&self, _old: Arc<Old>, _cx: Context<Self>) -> Result<()> {
        self.0.lock().push("old");
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn finalizer_without_a_domain_is_taken_over() -> Result<()> {
    let log = Log::default();
    let taker = log.clone();
    let app = App::new("taker").controller_with(move |_env| std::future::ready(Ok(Taker(taker.clone()))));
    let server = TestServer::start(app).await?;
    let olds = Api::<Old>::default_namespaced(server.client());
    let mut old = Old::new("a", OldSpec {});
    old.metadata.finalizers = Some(vec!["old-cleanup".into()]);
    olds.create(&PostParams::default(), &old).await?;
    olds.create(&PostParams::default(), &Old::new("b", OldSpec {})).await?;
    server.idle().await?;
    assert_eq!(olds.get("b").await?.finalizers(), ["old-cleanup"], "a new object gets it as well");
    for name in ["a", "b"] {
        olds.delete(name, &DeleteParams::default()).await?;
    }
    server.idle().await?;
    assert_eq!(log.lock().len(), 2);
    assert!(olds.get_opt("a").await?.is_none() && olds.get_opt("b").await?.is_none());
    Ok(())
}

const TOO_LONG: &str = "example.com/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[controller(of = ConfigMap, finalizer = TOO_LONG)]
struct Long;

#[controller(of = ConfigMap, finalizer = "old-cleanup")]
struct Plain;

macro_rules! does_nothing {
    ($($name:ident)*) => { $(
        impl Reconcile for $name {
            async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
                Ok(Action::await_change())
            }
        }

        impl Finalize for $name {
            async fn finalize(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<()> {
                Ok(())
            }
        }
    )* };
}
does_nothing!(Long Plain);

#[tokio::test(start_paused = true)]
async fn app_with_an_invalid_finalizer_does_not_start() {
    let long = App::new("a").controller_with(|_env| std::future::ready(Ok(Long)));
    let plain = App::new("a").controller_with(|_env| std::future::ready(Ok(Plain)));
    for (app, expected) in [
        (long, "is not a valid finalizer name: "),
        (
            plain,
            "API servers reject the finalizer `old-cleanup` on a ConfigMap: it has no domain\nhelp: write `finalizer = ",
        ),
    ] {
        let error = TestServer::start(app).await.expect_err("it starts").to_string();
        assert!(error.contains(expected) && error.contains("finalizers.rs:"), "{error}");
    }
}
