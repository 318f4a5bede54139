//! Functions that block more threads than the runtime has: other requests are answered without delay.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use kctl::{Json, json, prelude::*};
use kctl_runtime::manager::metrics::prometheus_client::{encoding::text::encode, registry::Registry};
use kctl_webhook::Metrics;
use tokio::time::timeout;

use crate::{
    kinds,
    protocol::{RULES, conversion, review, send_review, site},
};

mod v1alpha1 {
    use kctl::prelude::*;

    #[resource(group = "blocked.example.com", version = "v1alpha1", kind = "Door", namespaced, storage = false)]
    pub(crate) struct DoorSpec {
        pub width: String,
    }
}

#[resource(group = "blocked.example.com", version = "v1", kind = "Door", namespaced)]
pub(crate) struct DoorSpec {
    pub width: String,
}

/// Number of blocked requests per function. Together they exceed the runtime's threads, but not the concurrency limit.
const N_EACH: usize = 2;
/// Longest time for which a function blocks, so that a failing test ends. Functions block two at a time.
const BLOCKED_AT_MOST: Duration = Duration::from_secs(20);
/// Time limit for requests that do not wait for blocked functions, also on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(15);

static IS_OVER: Mutex<bool> = Mutex::new(false);
static OVER: Condvar = Condvar::new();

fn block() {
    let is_over = IS_OVER.lock().unwrap_or_else(PoisonError::into_inner);
    drop(OVER.wait_timeout_while(is_over, BLOCKED_AT_MOST, |is_over| !*is_over));
}

/// Releases the blocked functions when the test ends, even if it fails.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        *IS_OVER.lock().unwrap_or_else(PoisonError::into_inner) = true;
        OVER.notify_all();
    }
}

#[admission(validate)]
fn validates(_pod: &Pod) -> Result<()> {
    block();
    Ok(())
}

#[admission(mutate)]
async fn mutates(_pod: &mut Pod) {
    block();
}

#[conversion]
fn converts(old: v1alpha1::Door) -> Result<Door> {
    block();
    Ok(Door::new("", DoorSpec { width: old.spec.width }))
}

#[conversion]
fn back(new: Door) -> Result<v1alpha1::Door> {
    Ok(v1alpha1::Door::new("", v1alpha1::DoorSpec { width: new.spec.width }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocking_functions_delay_no_request_and_time_out() {
    let _release = Release;
    let metrics = Metrics::default();
    let app = kinds::app().admission::<(validates, mutates)>().conversion::<(converts, back)>();
    let router = app.webhook_routes(&metrics).unwrap().router;
    let pod =
        review("CREATE", &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" } }), &Json::Null);
    let old = json!({ "apiVersion": "blocked.example.com/v1alpha1", "kind": "Door",
        "metadata": { "name": "web", "namespace": "here" }, "spec": { "width": "1 m" } });
    let old = conversion("blocked.example.com/v1", &json!([old]));
    let requests = [
        (
            "/validate--v1-pod?timeout=2s",
            &pod,
            ("`validates` (tests/webhooks/blocked.rs:", "for Pod default/web takes longer"),
        ),
        (
            "/mutate--v1-pod?timeout=2s",
            &pod,
            ("`mutates` (tests/webhooks/blocked.rs:", "for Pod default/web takes longer"),
        ),
        ("/convert?timeout=2s", &old, ("`converts` (tests/webhooks/blocked.rs:", "for Door here/web takes longer")),
    ];
    let blocked: Vec<_> = requests.iter().cycle().take(requests.len() * N_EACH).collect();
    let asking = blocked.iter().map(|(path, body, _)| {
        let (router, path, body) = (router.clone(), (*path).to_owned(), (*body).clone());
        tokio::spawn(async move { send_review(&router, &path, "application/json", body).await })
    });
    let responses = timeout(TIMEOUT, join_all(asking)).await.expect("answers within the timeouts of the requests");
    for (response, (path, _, (called, why))) in responses.into_iter().zip(blocked) {
        let response = response.unwrap();
        let message = response["status"]["message"].as_str().or(response["result"]["message"].as_str());
        let message = message.and_then(|text| text.strip_prefix("no response within 2s: "));
        assert!(message.is_some_and(|text| text.starts_with(called) && text.ends_with(why)), "{path}: {response}");
        assert_eq!(response["uid"], "u1", "{path}");
    }

    // Spawned, because the thread of the test must not be blocked.
    let others = tokio::spawn(async move {
        let good = review("CREATE", &site(json!({ "hosts": ["a"] })), &Json::Null);
        send_review(&router, RULES, "application/json", good).await
    });
    let response = timeout(TIMEOUT, others).await.expect("a response while other handlers block").unwrap();
    assert_eq!(response["allowed"], true);
    assert_eq!(metrics.n_running(), requests.len() * N_EACH);
    let (mut registry, mut text) = (Registry::default(), String::new());
    metrics.register(&mut registry);
    encode(&mut text, &registry).unwrap();
    for path in ["/validate--v1-pod", "/mutate--v1-pod", "/convert"] {
        for line in [
            format!("controller_runtime_webhook_requests_total{{webhook=\"{path}\",code=\"504\"}} {N_EACH}\n"),
            format!("controller_runtime_webhook_requests_in_flight{{webhook=\"{path}\"}} {N_EACH}\n"),
        ] {
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
