//! Adds what the app logs with `tracing` to the timeline of a run.
//!
//! Only the run that a report shows does so. The lines are not compared between runs, and the subscriber of the test sees
//! the logs of all other runs.

use std::fmt::{self, Write as _};

use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span::{Attributes, Id, Record},
    subscriber::{DefaultGuard, Interest},
};

use super::progress;

/// Crates whose logs say what the timeline shows anyway.
const OF_FRAMEWORK: [&str; 9] =
    ["h2", "hyper", "kctl", "kctl_apiserver", "kctl_runtime", "kctl_webhook", "kctl_workloads", "kube_client", "tower"];

/// Adds the logs of this thread to its timeline as long as the guard lives.
pub(super) fn record() -> DefaultGuard {
    tracing::dispatcher::set_default(&Dispatch::new(TimelineSubscriber))
}

/// Writes events of level `INFO` and above to the timeline.
struct TimelineSubscriber;

impl Subscriber for TimelineSubscriber {
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        // Not cached: other threads have other subscribers.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let krate = metadata.target().split("::").next().unwrap_or_default();
        metadata.is_event() && *metadata.level() <= Level::INFO && !OF_FRAMEWORK.contains(&krate)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        // No span is enabled, so one id represents all.
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = LogFields::default();
        event.record(&mut fields);
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        progress::log_outside("app", format!("{level}: {}{}", fields.message, fields.others));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// The message of an event, and its other fields as ` name=value`.
#[derive(Default)]
struct LogFields {
    message: String,
    others: String,
}

impl Visit for LogFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.others, " {name}={value:?}"),
        };
    }
}
