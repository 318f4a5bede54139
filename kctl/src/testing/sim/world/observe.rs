//! Connects the checkers and the timeline of a run with its servers and faults.

use std::sync::Arc;

use kctl_apiserver::{ApiServer, Change, faults::Seen};

use super::{
    Shared,
    describe::{author, change_verb, describe_target, of_lease},
};
use crate::testing::sim::{
    checks::{index_of, is_app, is_bookkeeping},
    normal, plan, progress,
    snapshot::Id,
    trace::Line,
};

impl Shared {
    /// Connects the checkers and the timeline with the servers and with the fault injector.
    ///
    /// The observers hold weak references: the servers are a part of this state.
    pub(super) fn observe(self: &Arc<Self>) {
        self.observe_server("", &self.server);
        for (cluster, other) in &self.others {
            self.observe_server(cluster, other);
        }
        let shared = Arc::downgrade(self);
        self.faults.observe(move |seen| {
            let Some(shared) = shared.upgrade() else { return };
            shared.record(seen);
        });
    }

    /// Reports each change and each request of one server to the checkers, and logs what concerns the app.
    fn observe_server(self: &Arc<Self>, cluster: &str, server: &ApiServer) {
        let (shared, name) = (Arc::downgrade(self), cluster.to_owned());
        server.observe_changes(move |change| {
            let Some(shared) = shared.upgrade() else { return };
            if !is_bookkeeping(&change.group, &change.resource) {
                let id = Id::for_change(&name, change);
                let what = format!("{id} {} at revision {}", change_verb(change), change.revision);
                let (who, details, object) = (author(change).into(), shared.details(change), change.after.clone());
                let resource = change.resource.clone();
                shared.trace.lock().add_line(Line { who, what, details, object, resource, ..Line::default() });
            } else if let Some(what) = shared.of_app_lease(&name, change) {
                shared.log(author(change), what);
            }
            shared.check(|checks, now| checks.change(&name, change, now));
        });
        let (shared, name) = (Arc::downgrade(self), cluster.to_owned());
        server.observe(move |request| {
            progress::tick();
            let Some(shared) = shared.upgrade() else { return };
            let Some(client) = request.client.as_deref().filter(|client| is_app(client)) else { return };
            if request.code >= 400 {
                let what = describe_target(request.verb, &request.resource, &request.namespace, &request.name, &name);
                shared.log(client, format!("{what} is answered {}", request.code));
            }
            let mut noop_write = None;
            shared.check(|checks, now| noop_write = checks.check_request(&name, request, now));
            if let Some(noop_write) = noop_write {
                shared.log(client, noop_write);
            }
        });
    }

    /// Describes the field that changes, and the reconcile that does it.
    fn details(&self, change: &Change) -> String {
        let objects = change.before.as_deref().zip(change.after.as_deref());
        let field = objects.and_then(|(before, after)| normal::changed_field(before, after));
        let author = is_app(&change.by).then(|| self.checks.lock().authors.author(&change.by, &change.trace));
        let reconcile = author.as_deref().and_then(|author| author.split_once(", ")).map(|(_process, by)| by);
        let parts = [field.map(|field| format!(": {field}")), reconcile.map(|by| format!(", by {by}"))];
        parts.into_iter().flatten().collect()
    }

    /// Describes a change of the holder of a Lease of the app's processes, which are on the app's own cluster.
    fn of_app_lease(&self, cluster: &str, change: &Change) -> Option<&'static str> {
        let is_app_lease = cluster.is_empty() && self.checks.lock().owners.lease(change).is_some();
        is_app_lease.then(|| of_lease(change)).flatten()
    }

    /// Records where a later run can inject a fault, and logs a fault that was injected now.
    fn record(&self, seen: Seen<'_>) {
        if let Seen::Request(request) = seen {
            let mut points = self.points.lock();
            let here = points.histories.iter_mut().filter(|history| *history.cluster == *request.server);
            here.for_each(|history| history.reads_may_be_cached |= request.may_be_cached);
        }
        match seen {
            Seen::Request(request) if is_bookkeeping(&request.group, &request.resource) => {}
            Seen::Request(request) if request.is_write() => {
                let revisions = self.checks.lock().revisions.clone();
                let now = self.simulated_time();
                let mut points = self.points.lock();
                points.n_writes += 1;
                points.write_times.push(now);
                points.writers.push(index_of(&request.client).unwrap_or_default());
                for history in &mut points.histories {
                    let newest = revisions.get(&*history.cluster).copied().unwrap_or_default();
                    history.before.push(newest.max(history.first));
                }
            }
            Seen::Request(request) => self.points.lock().reads.push(request.verb),
            Seen::Event(event) if !is_bookkeeping(&event.group, &event.resource) => {
                self.points.lock().events.push(event.clone());
            }
            Seen::InRequest(request, fault) => {
                let what = describe_target(
                    request.verb,
                    &request.resource,
                    &request.namespace,
                    &request.name,
                    &request.server,
                );
                self.fault_targets.record(&what);
                let what = format!("{what} of {}", request.client);
                let kctl_apiserver::faults::Fault::Request(fault) = fault else { return };
                self.log("fault", format!("{what}: {}", plan::request(fault)));
            }
            Seen::AtEvent(event, fault) => {
                let what = describe_target(&event.kind, &event.resource, &event.namespace, &event.name, &event.server);
                self.fault_targets.record(&what);
                let kctl_apiserver::faults::Fault::Event(fault) = fault else { return };
                self.log("fault", format!("event {what} to {}: {}", event.client, plan::event(fault)));
            }
            _ => {}
        }
    }
}
