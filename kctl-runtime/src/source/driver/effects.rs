//! Passes inputs to the reflector and performs its effects: deltas for the store, waits and the condition of the source.

use std::time::Duration;

use futures::future::BoxFuture;

use super::Source;
use crate::{
    source::{
        Presence,
        condition::Activity,
        reflector::{Effect, Input, Reflector},
    },
    store::{Delta, NamespaceScope},
    transport::ApiError,
};

impl Source {
    /// Applies an input, and returns the wait before the next request.
    ///
    /// The reflector has moved on before the returned future is polled. Only the push into a full store waits.
    pub(super) fn perform(
        &self,
        reflector: &mut Reflector,
        input: Input,
    ) -> impl Future<Output = Option<Duration>> + Send {
        let (deltas, wait) = self.apply_input(reflector, input);
        let rest = self.push_deltas(deltas);
        async move {
            if let Some(rest) = rest {
                rest.await;
            }
            wait
        }
    }

    /// Passes an input to the reflector, and records the health that follows from it. Returns the deltas in order, and
    /// the wait if the request is over.
    pub(super) fn apply_input(&self, reflector: &mut Reflector, input: Input) -> (Vec<Delta>, Option<Duration>) {
        if let Input::Failed(error) | Input::ListInterrupted(error) | Input::WatchFailed { error, .. } = &input {
            if self.is_optional_kind_missing(error) {
                self.condition.record_absent(&self.config, reflector.scope());
            } else if !error.is_expired() {
                self.condition.record_failure(&self.config, reflector.scope(), Activity::Follow, error);
            }
        } else if matches!(input, Input::Page { .. }) {
            self.condition.record_list(&self.config, reflector.scope());
        }
        let (mut deltas, mut wait) = (Vec::new(), None);
        let effects = reflector.handle(input);
        if reflector.has_short_watches() {
            let cause = "the API server ends the watch at once, without an event".into();
            let error = ApiError::Unreadable { operation: self.watching(), cause };
            self.condition.record_failure(&self.config, reflector.scope(), Activity::Follow, &error);
        }
        for effect in effects {
            match effect {
                Effect::Emit(mut delta) => {
                    self.prepare_delta(&mut delta);
                    deltas.push(delta);
                }
                Effect::Wait(duration) => wait = Some(duration),
                Effect::Next => {}
            }
        }
        (deltas, wait)
    }

    /// Removes the objects of a list that are not selected. Forgets the unreadable objects of a scope that is emptied.
    fn prepare_delta(&self, delta: &mut Delta) {
        match delta {
            Delta::Replace(_, objects, _) => self.retain_selected(objects),
            Delta::Restore(_, objects, version) => {
                self.retain_selected(objects);
                let (kind, version, n_objects) = (&self.config.kind.plural, version.as_str(), objects.len());
                tracing::warn!(
                    kind,
                    version,
                    n_objects,
                    "the API server returned an older state (restored from a backup?): the cache follows it"
                );
            }
            Delta::Clear(scope) | Delta::Absent(scope) => self.unreadable.clear(scope),
            _ => {}
        }
    }

    /// Sends deltas to the store: at once where there is room, so that an idle informer keeps no buffer for them.
    pub(super) fn push_deltas(&self, deltas: Vec<Delta>) -> Option<BoxFuture<'_, ()>> {
        let mut deltas = deltas.into_iter();
        let first = deltas.find_map(|delta| self.store.try_push(delta).err())?;
        Some(Box::pin(async move {
            self.store.push(first).await;
            for delta in deltas {
                self.store.push(delta).await;
            }
        }))
    }

    /// Returns `true` if the error of a read says that the API server does not serve an optional kind, and the reflector has
    /// found the same.
    ///
    /// One 404 proves nothing, because an API server that has not read its CRDs yet answers in the same way. If the
    /// reflector has not found the kind missing, its watch is requested again, so that it counts the 404s.
    pub(in crate::source) fn confirm_absence(&self, scope: &NamespaceScope, error: &ApiError) -> bool {
        if !self.is_optional_kind_missing(error) {
            return false;
        }
        let followed = [scope, &None].into_iter().find(|scope| self.scopes().has(scope));
        let is_absent = followed.is_none_or(|scope| self.store.is_absent(scope));
        if !is_absent {
            self.check_served();
        }
        is_absent
    }

    /// Returns `true` if the error says that the API server does not serve a kind that is optional.
    pub(in crate::source) fn is_optional_kind_missing(&self, error: &ApiError) -> bool {
        self.config.presence == Presence::Optional && error.is_not_found()
    }
}
