//! A reconcile is one trace: its requests and log lines have the same trace ID.

use std::{
    io,
    sync::{Arc as Shared, Mutex},
};

use kctl::{
    kube::{Api, api::PostParams},
    prelude::*,
};
use kctl_runtime::trace::Trace;
use kctl_tests::{Fault, Faults, RequestSummary};

use crate::lease_candidates::{Contest, advance_seconds};

#[controller(owns = Secret(apply))]
async fn does(config: Arc<ConfigMap>, cx: Context<does>) -> Result<Action> {
    tracing::info!(current = %Trace::current().unwrap(), "looked");
    // An apply that changes nothing is not sent, so the annotation changes with the reason.
    let annotations = serde_json::json!({ "reason": cx.reason().to_string() });
    let secret = serde_json::json!({ "metadata": { "name": config.metadata.name, "annotations": annotations } });
    cx.owned::<Secret>().apply(secret).await?;
    Ok(Action::await_change())
}

/// The logged lines.
#[derive(Clone, Default)]
pub(crate) struct Lines(Shared<Mutex<Vec<u8>>>);

impl Lines {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Records the log of this thread as long as the guard is kept.
pub(crate) fn capture_log() -> (Lines, tracing::subscriber::DefaultGuard) {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    let guard = tracing::subscriber::set_default(log);
    // If another test uses a callsite for the first time while a subscriber starts, the subscriber can miss it:
    // tracing-core registers a callsite after asking the existing subscribers. So rebuild the cache.
    tracing::callsite::rebuild_interest_cache();
    (lines, guard)
}

/// Returns the `traceparent` headers of all applied Secrets, and the logged lines.
async fn run() -> (Vec<String>, String) {
    let (lines, _logged) = capture_log();
    let (contest, faults) = (Contest::new(), Faults::default());
    let traces: Shared<Mutex<Vec<String>>> = Shared::default();
    let noted = traces.clone();
    faults.add(Fault::Delay(std::time::Duration::ZERO), move |request: &RequestSummary| {
        // A test that starts at the same time may register the span of reconciles while `capture_log` rebuilds the cache.
        tracing::callsite::rebuild_interest_cache();
        if request.method == "PATCH" {
            noted.lock().unwrap().push(request.trace.clone());
        } else {
            assert!(!request.method.is_safe() || request.trace.is_empty(), "lists and watches are of no reconcile");
        }
        false
    });
    for name in ["a", "b"] {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.into());
        Api::default_namespaced(contest.client.clone()).create(&PostParams::default(), &object).await.unwrap();
    }
    let manager = App::new("does").controller::<does>().manager(faults.client(&contest.server)).await.unwrap();
    tokio::spawn(manager.run(std::future::pending()));
    advance_seconds(1).await;
    let traces = traces.lock().unwrap().clone();
    (traces, lines.text())
}

#[tokio::test(start_paused = true)]
async fn reconcile_requests_and_logs_share_trace_id() {
    let (traces, lines) = run().await;
    // Two reconciles follow the initial list, and two the events of the created Secrets.
    assert_eq!(traces.len(), 4, "{traces:?}");
    assert_eq!(traces.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "each has a separate trace");
    let reconciles = [("a", "initial list"), ("a", "Secret changed"), ("b", "initial list"), ("b", "Secret changed")];
    for (parent, (name, reason)) in traces.iter().zip(reconciles) {
        let parts: Vec<&str> = parent.split('-').collect();
        let [version, trace, span, flags] = parts[..] else { panic!("{parent}") };
        assert_eq!((version, trace.len(), span.len(), flags), ("00", 32, 16, "00"), "{parent}");
        let head =
            format!("reconcile{{controller=\"configmap\" key=default/{name} reason={reason} trace_id={trace}}}: ");
        let line = lines.lines().find(|line| line.contains(&head)).unwrap_or_else(|| panic!("no {head} in {lines}"));
        assert!(line.contains(&format!("looked current={trace}")), "{line}");
    }
}
