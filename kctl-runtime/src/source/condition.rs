//! The health of a source, for callers and for the log.
//!
//! A source has up to two activities per scope, and each may fail on its own: RBAC may allow one namespace and not
//! another. Failures are kept until a request of the same activity succeeds. Readiness, `/debug/state` and the log read
//! the same record, so they never disagree.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::WatchConfig;
use crate::{store::NamespaceScope, transport::ApiError};

/// An unchanged failure is logged once in this time. A different error is logged at once.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Longest `Retry-After` of a first error that is not logged. A longer wait leaves the cache stale for up to a minute.
const QUIET_RETRY_AFTER_MAX: Duration = Duration::from_secs(5);
/// Maximum number of unknown event types of a source that are logged, one line each. Further ones are ignored silently.
const UNKNOWN_EVENTS_MAX: usize = 8;

/// The health of a source, from [`Source::health`](super::Source::health). A failure remains until the failing request
/// succeeds, or is no longer sent.
///
/// With several namespaces it shows the failure that has lasted longest.
///
/// ```
/// use kctl_runtime::source::Health;
///
/// let health = Health::default();
/// assert!(health.failure.is_none() && health.undecodable == 0);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Health {
    /// The present failure, with verb and resource. `None` if list and watch work.
    pub failure: Option<ApiError>,
    /// Number of received states that could not be decoded, since the start.
    ///
    /// It counts states, not objects: one broken object that changes ten times counts ten times, and each list counts
    /// it again.
    pub undecodable: u64,
}

/// The record behind [`Health`], written by the source and read by everyone.
#[derive(Default)]
pub(super) struct Condition {
    /// The failures, oldest first; most sources have none. Invariant: at most one per scope and activity, so that a
    /// success ends it.
    failures: Mutex<Vec<Failure>>,
    undecodable: AtomicU64,
    /// The unknown types of events that were logged. Invariant: at most [`UNKNOWN_EVENTS_MAX`]. Boxed, because nearly no
    /// source has any.
    unknown_events: OnceLock<Box<Mutex<Vec<String>>>>,
    /// Is `true` if the API server does not serve the kind, which is optional.
    absent: AtomicBool,
    /// The moment at which the API server last sent anything.
    last_received: Mutex<Option<Instant>>,
    /// The options of `generate-rbac` that print the role of this source, such as ` --shards 24`. Unset for kinds of
    /// controllers, which need none.
    role: OnceLock<String>,
}

/// The activities of a source that fail and recover independently of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// The lists and watches that keep the cache up to date.
    Follow,
    /// The comparison of the cache with the newest state when this process becomes the leader.
    Compare,
}

/// A failure that lasts.
struct Failure {
    /// The namespace whose requests fail.
    scope: NamespaceScope,
    activity: Activity,
    /// The newest error. Older ones are in the log.
    error: ApiError,
    /// The last logged failure with this text and its time, which may be of another namespace; `None` before the first.
    reported: Option<(String, Instant)>,
}

impl Condition {
    /// Sets the options of `generate-rbac` that print the role, for the log.
    pub(super) fn set_role(&self, options: &str) {
        let _is_first = self.role.set(options.into());
    }

    /// Returns the oldest failure and the counter.
    pub(super) fn health(&self) -> Health {
        let failure = self.failures.lock().first().map(|failure| failure.error.clone());
        Health { failure, undecodable: self.undecodable.load(Ordering::Relaxed) }
    }

    /// Returns the time since the API server last sent anything.
    pub(super) fn time_since_message(&self) -> Option<Duration> {
        self.last_received.lock().map(|last_received| last_received.elapsed())
    }

    /// Records that the API server sent something.
    pub(super) fn record_response(&self) {
        *self.last_received.lock() = Some(Instant::now());
    }

    /// Counts a received state that could not be decoded.
    pub(super) fn count_undecodable(&self) {
        self.undecodable.fetch_add(1, Ordering::Relaxed);
    }

    /// Logs an ignored event of an unknown type, once per type.
    pub(super) fn record_unknown_event(&self, config: &WatchConfig, event: &str) {
        let mut known = self.unknown_events.get_or_init(Box::default).lock();
        if known.len() < UNKNOWN_EVENTS_MAX && !known.iter().any(|known| known == event) {
            known.push(event.to_owned());
            debug_assert!(known.len() <= UNKNOWN_EVENTS_MAX, "further types are not logged");
            let resource = &config.kind.plural;
            tracing::warn!(event, resource, "ignored a watch event of an unknown type; further ones are not logged");
        }
    }

    /// Records a failure, and logs it from time to time instead of at each retry.
    ///
    /// Errors of a server that is down differ in nothing, neither between retries nor between namespaces. So an hour of
    /// downtime is 60 lines per source.
    ///
    /// A first error with a `Retry-After` of up to [`QUIET_RETRY_AFTER_MAX`] is not logged: API servers send it for a
    /// moment after each change of a CRD.
    pub(super) fn record_failure(
        &self,
        config: &WatchConfig,
        scope: &NamespaceScope,
        activity: Activity,
        error: &ApiError,
    ) {
        let mut failures = self.failures.lock();
        let text = format!("{error}{}", advice(config, error, self.role()));
        let is_recent = |(reported, when): &&(String, Instant)| *reported == text && when.elapsed() < LOG_INTERVAL;
        let recent = failures.iter().filter_map(|failure| failure.reported.as_ref()).find(is_recent).cloned();
        let existing = failures.iter_mut().find(|failure| failure.is_of(scope, activity));
        let reported = match &existing {
            None if error.retry_after().is_some_and(|wait| wait <= QUIET_RETRY_AFTER_MAX) => {
                tracing::debug!("{error}");
                None
            }
            _ => Some(recent.unwrap_or_else(|| {
                tracing::warn!("{text}; the cache is not updated until this works again");
                (text, Instant::now())
            })),
        };
        match existing {
            Some(existing) => (existing.error, existing.reported) = (error.clone(), reported),
            None => failures.push(Failure { scope: scope.clone(), activity, error: error.clone(), reported }),
        }
        debug_assert!(
            failures.iter().filter(|failure| failure.is_of(scope, activity)).count() == 1,
            "a repeated failure replaces the earlier error in its place"
        );
    }

    fn role(&self) -> &str {
        self.role.get().map_or("", String::as_str)
    }

    /// Records that the API server does not serve an optional kind, which is not a failure.
    pub(super) fn record_absent(&self, config: &WatchConfig, scope: &NamespaceScope) {
        self.record_response();
        self.forget_scope(scope);
        if !self.absent.swap(true, Ordering::Relaxed) {
            let kind = &config.kind;
            tracing::info!(
                "the API server does not serve {}.{}, which is optional; it is watched when it appears",
                kind.plural,
                kind.api_version()
            );
        }
    }

    /// Returns `true` from a 404 for an optional kind until the next successful request.
    pub(super) fn is_absent(&self) -> bool {
        self.absent.load(Ordering::Relaxed)
    }

    /// Records that a list or a probe succeeded.
    ///
    /// It does not end the failure of a watch. With an API server that serves only lists, each retry would log
    /// `works again`, and then the failure again.
    pub(super) fn record_list(&self, config: &WatchConfig, scope: &NamespaceScope) {
        let is_watch_failure = |failure: &Failure| {
            failure.is_of(scope, Activity::Follow) && *failure.error.operation() == config.operation("watch")
        };
        if self.failures.lock().iter().any(is_watch_failure) {
            return self.record_served(config);
        }
        self.record_success(config, scope, Activity::Follow);
    }

    /// Records that the API server sent something, and that it serves the kind.
    fn record_served(&self, config: &WatchConfig) {
        self.record_response();
        if self.absent.swap(false, Ordering::Relaxed) {
            tracing::info!("the API server serves {}.{} now", config.kind.plural, config.kind.api_version());
        }
    }

    /// Records that an activity works.
    ///
    /// An activity that failed before logs `works again`, if its failure was logged and no other namespace still has the
    /// same one.
    pub(super) fn record_success(&self, config: &WatchConfig, scope: &NamespaceScope, activity: Activity) {
        self.record_served(config);
        let mut failures = self.failures.lock();
        let Some(index) = failures.iter().position(|failure| failure.is_of(scope, activity)) else { return };
        let Some((text, _when)) = failures.remove(index).reported else { return };
        let has_text = |failure: &Failure| failure.reported.as_ref().is_some_and(|(other, _when)| *other == text);
        if !failures.iter().any(has_text) {
            tracing::info!("{}: works again", config.operation("watch"));
        }
    }

    /// Forgets the failures of a scope that is no longer followed.
    pub(super) fn forget_scope(&self, scope: &NamespaceScope) {
        self.failures.lock().retain(|failure| failure.scope != *scope);
    }
}

impl Failure {
    fn is_of(&self, scope: &NamespaceScope, activity: Activity) -> bool {
        self.scope == *scope && self.activity == activity
    }
}

/// Returns the action that a user can take against a failure. `role` has the options of `generate-rbac`.
///
/// The text names a command that can be copied. It is chosen by the status code, never by the message. For another
/// cluster the command needs the context of that cluster, whose name in a kubeconfig is not known.
fn advice(config: &WatchConfig, error: &ApiError, role: &str) -> String {
    let WatchConfig { kind, cluster, .. } = config;
    let (place, context, there) = if cluster.is_empty() {
        (String::new(), "", String::new())
    } else {
        (format!(" in the cluster `{cluster}`"), " with its context", format!(" --cluster {cluster}"))
    };
    match error.code() {
        // An unknown group and an unknown resource of a known group both return 404.
        Some(404) => format!(
            "; the API server has no {}.{}: install its CRD{place}{context} (`cargo run -- generate-crds | kubectl apply --server-side -f -`)",
            kind.plural,
            kind.api_version()
        ),
        Some(403) => {
            format!("; apply the role{place}{context} (`cargo run -- generate-rbac{role}{there} | kubectl apply -f -`)")
        }
        Some(401) if cluster.is_empty() => "; the credentials of the kubeconfig are not accepted".into(),
        Some(401) => format!("; the credentials of the kubeconfig for the cluster `{cluster}` are not accepted"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn advice_names_the_other_cluster() {
        let (here, edge) = (WatchConfig::of::<Pod>(), WatchConfig::of::<Pod>().on("edge"));
        let advice_on = |config: &WatchConfig, code| {
            advice(config, &ApiError::rejected(config.operation("list"), code, None, "{}"), "")
        };
        let role = |config: &WatchConfig| advice_on(config, 403);
        assert_eq!(role(&here), "; apply the role (`cargo run -- generate-rbac | kubectl apply -f -`)");
        let on_edge = "; apply the role in the cluster `edge` with its context (`cargo run -- generate-rbac --cluster edge | \
                       kubectl apply -f -`)";
        assert_eq!(role(&edge), on_edge);
        for code in [401, 403, 404] {
            assert!(advice_on(&edge, code).contains("the cluster `edge`"), "{code}");
            assert!(!advice_on(&here, code).contains("cluster"), "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn equal_failures_of_namespaces_share_a_report() {
        let (condition, config) = (Condition::default(), WatchConfig::of::<Pod>());
        let failure = |cause: &str| ApiError::NoResponse { operation: config.operation("list"), cause: cause.into() };
        let begin = Instant::now();
        // A failure that is not logged again has the time of the report before it.
        for (seconds, namespace, cause, reported_at) in [
            (0, "a", "refused", 0),
            (1, "b", "refused", 0),
            (59, "a", "refused", 0),
            (60, "b", "refused", 60),
            (61, "a", "refused", 60),
            (62, "b", "reset", 62),
        ] {
            tokio::time::advance(begin + Duration::from_secs(seconds) - Instant::now()).await;
            let scope: NamespaceScope = Some(namespace.into());
            condition.record_failure(&config, &scope, Activity::Follow, &failure(cause));
            let failures = condition.failures.lock();
            let found = failures.iter().find(|failure| failure.is_of(&scope, Activity::Follow)).unwrap();
            let (_text, when) = found.reported.clone().unwrap();
            assert_eq!(when - begin, Duration::from_secs(reported_at), "{namespace} at {seconds} s");
        }
    }

    #[test]
    fn unknown_event_types_are_logged_once_each() {
        let (condition, config) = (Condition::default(), WatchConfig::of::<Pod>());
        let event = |n: usize| format!("NEWS-{n}");
        for n in 0..=UNKNOWN_EVENTS_MAX {
            condition.record_unknown_event(&config, &event(n));
            condition.record_unknown_event(&config, &event(n));
        }
        let logged: Vec<String> = (0..UNKNOWN_EVENTS_MAX).map(event).collect();
        assert_eq!(*condition.unknown_events.get().unwrap().lock(), logged);
    }
}
