//! User code in `map` and `when`, between cache and queue: if it blocks or panics, only its own controller is delayed.

use std::{
    sync::{
        Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kctl::prelude::*;
use tokio::{runtime, time::timeout};

use crate::world::{Log, With, World, advance_seconds, app};

/// Blocks callers while it is shut, like a mapper that queries a database.
struct Gate {
    shut: Mutex<bool>,
    moved: Condvar,
    waits: AtomicU64,
}

static GATE: Gate = Gate { shut: Mutex::new(false), moved: Condvar::new(), waits: AtomicU64::new(0) };

impl Gate {
    fn set(&self, shut: bool) {
        *self.shut.lock().unwrap() = shut;
        self.moved.notify_all();
    }

    fn pass(&self) {
        self.waits.fetch_add(1, Ordering::SeqCst);
        drop(self.moved.wait_while(self.shut.lock().unwrap(), |shut| *shut).unwrap());
    }
}

fn through_the_gate(config: &ConfigMap, _secrets: &Store<Secret>) -> Vec<Key<Secret>> {
    GATE.pass();
    vec![Key::namespaced("default", &config.name_any())]
}

fn same_name(config: &ConfigMap, _services: &Store<Service>) -> Vec<Key<Service>> {
    vec![Key::namespaced("default", &config.name_any())]
}

fn when_the_gate_is_open(_change: &Change<ConfigMap>) -> bool {
    GATE.pass();
    true
}

static MAPPED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A controller with a slow mapper, on a kind that other controllers watch as well.
#[controller(name = "mapped", watches = ConfigMap(map = through_the_gate))]
async fn mapped(secret: Arc<Secret>, _cx: Context<mapped>) -> Result<Action> {
    MAPPED.lock().unwrap().push(secret.name_any());
    Ok(Action::await_change())
}

/// A controller with a slow predicate.
#[controller(name = "filtered", watches = ConfigMap(map = same_name, when = when_the_gate_is_open))]
async fn filtered(service: Arc<Service>, _cx: Context<filtered>) -> Result<Action> {
    MAPPED.lock().unwrap().push(service.name_any());
    Ok(Action::await_change())
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let polled = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), polled).await.unwrap_or_else(|_late| panic!("never: {what}"));
}

async fn handlers_that_block() {
    let log = Log::default();
    let notes = log.clone();
    let mut world = World::new();
    let app = app().controller::<mapped>().controller::<filtered>().configs(move |config, _cx| {
        notes.add(config.name_any());
        async { Ok(Action::await_change()) }
    });
    world.create_secret("late").await;
    world.create_service("late").await;
    let view = world.run(app).await;
    until("the start", || MAPPED.lock().unwrap().len() == 2).await;
    MAPPED.lock().unwrap().clear();
    GATE.set(true);
    let waits = GATE.waits.load(Ordering::SeqCst);
    world.set("late", "1").await;
    until("both block", || GATE.waits.load(Ordering::SeqCst) >= waits + 2).await;
    for n in 0..50 {
        world.set(&format!("quick-{n}"), "1").await;
    }
    let mut seen = Vec::new();
    until("another controller of the kind sees all of it", || {
        seen.extend(log.take());
        seen.len() > 50
    })
    .await;
    assert!(MAPPED.lock().unwrap().is_empty(), "the slow ones wait: {:?}", MAPPED.lock().unwrap());
    assert!(!view.is_idle(), "changes that a handler has not seen are pending work");
    GATE.set(false);
    until("the slow ones", || MAPPED.lock().unwrap().len() == 2).await;
    world.stop().await;
}

#[test]
fn blocking_mapper_or_predicate_delays_only_its_controllers() {
    for n_threads in [1, 2] {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(n_threads).enable_all().build().unwrap();
        MAPPED.lock().unwrap().clear();
        runtime.block_on(handlers_that_block());
    }
}

static ASKED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn panics_at_bad(config: &ConfigMap, _secrets: &Store<Secret>) -> Vec<Key<Secret>> {
    assert!(config.name_any() != "bad", "planted");
    vec![Key::namespaced("default", "one")]
}

/// A controller whose mapper panics.
#[controller(name = "panicking", watches = ConfigMap(map = panics_at_bad))]
async fn panicking(secret: Arc<Secret>, cx: Context<panicking>) -> Result<Action> {
    ASKED.lock().unwrap().push(format!("{} {}", secret.name_any(), cx.reason()));
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn panicking_mapper_misses_one_change_and_continues() {
    let log = Log::default();
    let notes = log.clone();
    let mut world = World::new();
    world.create_secret("one").await;
    let app = app().controller::<panicking>().configs(move |config, _cx| {
        notes.add(config.name_any());
        async { Ok(Action::await_change()) }
    });
    world.run(app).await;
    advance_seconds(1).await;
    let n_started = ASKED.lock().unwrap().len();
    for name in ["a", "bad", "b"] {
        world.set(name, "1").await;
        advance_seconds(1).await;
    }
    assert_eq!(ASKED.lock().unwrap().len(), n_started + 2, "{:?}", ASKED.lock().unwrap());
    assert_eq!(log.take(), ["a", "bad", "b"], "other handlers get each change");
}
