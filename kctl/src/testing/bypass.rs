//! Detects clients that bypass the context. The role, the write permit and the embedded API server
//! know nothing of their requests.
//!
//! Such a client is kube's own, created from a `kube::Config`. It opens a `tracing` span for each
//! request, and logs an event when it finds no cluster. A subscriber on the thread of the test sees
//! both, and passes everything on to the subscriber that was set before.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use tracing::{
    Dispatch, Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::{DefaultGuard, Interest},
};

/// Target of the spans that kube opens for requests.
const REQUESTS: &str = "kube_client::client::builder";
/// Name of those spans.
const REQUEST: &str = "HTTP";
/// Target of the event that kube logs when it finds no cluster.
const CONFIGS: &str = "kube_client::config";
/// Maximum number of requests that a report names.
const SEEN_MAX: usize = 20;
/// Span id of all spans that the previous subscriber does not record.
const UNWANTED: u64 = u64::MAX;

/// Requests of other clients on this thread, recorded as long as the value lives.
pub(super) struct Bypasses {
    /// Lines about the requests, each once. Invariant: at most [`SEEN_MAX`].
    seen: Arc<Mutex<Vec<String>>>,
    _watched: DefaultGuard,
}

impl Bypasses {
    /// Starts recording on this thread.
    pub(super) fn watch() -> Self {
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let inner = tracing::dispatcher::get_default(Clone::clone);
        let watching = Dispatch::new(BypassSubscriber { inner, seen: seen.clone() });
        Self { seen, _watched: tracing::dispatcher::set_default(&watching) }
    }

    /// Returns the report for the author of the controller, or `None` if nothing was seen.
    pub(super) fn report(&self) -> Option<String> {
        let seen = self.seen.lock();
        if seen.is_empty() {
            return None;
        }
        Some(format!(
            "other clients, such as `kube::Client::try_default()`, sent requests that bypass the context:\n  {}\n\
             The role, the write permit and the simulator know nothing of it, and the cluster that it reaches is a real one.\n\
             help: declare the kind and use `cx`; for what has no declaration, `rbac(rule())` and `cx.client()`",
            seen.join("\n  ")
        ))
    }
}

/// Forwards everything to the previous subscriber, and records what [`Bypasses`] looks for.
struct BypassSubscriber {
    inner: Dispatch,
    seen: Arc<Mutex<Vec<String>>>,
}

impl BypassSubscriber {
    /// Adds a line to the report, unless it is there or [`SEEN_MAX`] is reached.
    fn note(&self, what: String) {
        let mut seen = self.seen.lock();
        if seen.len() < SEEN_MAX && !seen.contains(&what) {
            seen.push(what);
        }
        debug_assert!(seen.len() <= SEEN_MAX, "a report names no more");
    }
}

fn is_request(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.name() == REQUEST && metadata.target() == REQUESTS
}

/// Returns `true` for events about a kubeconfig.
fn is_kubeconfig_event(metadata: &Metadata<'_>) -> bool {
    metadata.is_event() && metadata.target() == CONFIGS
}

impl Subscriber for BypassSubscriber {
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        // Not cached: the previous subscriber's filter can change at any time.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_request(metadata) || is_kubeconfig_event(metadata) || self.inner.enabled(metadata)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        if is_request(span.metadata()) {
            let mut request = Fields::default();
            span.record(&mut request);
            self.note(format!("{} {}", request.method, request.url));
            if !self.inner.enabled(span.metadata()) {
                return Id::from_u64(UNWANTED);
            }
        }
        self.inner.new_span(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if span.into_u64() != UNWANTED {
            self.inner.record(span, values);
        }
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        if span.into_u64() != UNWANTED && follows.into_u64() != UNWANTED {
            self.inner.record_follows_from(span, follows);
        }
    }

    fn event(&self, event: &Event<'_>) {
        if is_kubeconfig_event(event.metadata()) {
            let mut fields = Fields::default();
            event.record(&mut fields);
            if fields.message.contains("no local config found") {
                self.note("nothing: it found no cluster in the environment".into());
            }
        }
        if self.inner.enabled(event.metadata()) {
            self.inner.event(event);
        }
    }

    fn enter(&self, span: &Id) {
        if span.into_u64() != UNWANTED {
            self.inner.enter(span);
        }
    }

    fn exit(&self, span: &Id) {
        if span.into_u64() != UNWANTED {
            self.inner.exit(span);
        }
    }

    fn clone_span(&self, id: &Id) -> Id {
        if id.into_u64() == UNWANTED { id.clone() } else { self.inner.clone_span(id) }
    }

    fn try_close(&self, id: Id) -> bool {
        id.into_u64() == UNWANTED || self.inner.try_close(id)
    }
}

/// The fields of a span or an event that a report needs.
#[derive(Default)]
struct Fields {
    method: String,
    url: String,
    message: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "http.method" => self.method = text,
            "http.url" => self.url = text.split('?').next().unwrap_or_default().into(),
            "message" => self.message = text,
            _ => {}
        }
    }
}
