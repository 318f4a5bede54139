//! The reasons for a reconcile, for logs: the tags that the key collected in the queue, and the names of the kinds.

use std::{fmt, sync::Arc};

use super::Env;
use crate::{
    handler::{RELATION_TAGS, TAG_INITIAL, TAG_RESYNC, TAG_TRIGGERED, relation_tag},
    object::Kind,
    queue::{TAG_CONFLICTED, TAG_REQUEUED, TAG_RETRIED},
};

/// Everything that enqueued a key since its last reconcile, from [`Context::reason`](super::Context::reason).
///
/// Use it for logs and metrics, never for decisions. Reasons merge while a key waits, and after a restart the only
/// reason is the initial list. [`Display`](fmt::Display) writes for example `Pod changed, retry`.
#[derive(Clone)]
pub struct ReconcileReason {
    pub(super) env: Arc<Env>,
    pub(super) tags: u32,
}

impl ReconcileReason {
    pub(crate) fn new(env: Arc<Env>, tags: u32) -> Self {
        Self { env, tags }
    }

    pub(crate) fn tags(&self) -> u32 {
        self.tags
    }

    /// Returns `true` if the object was in the initial list, or if this replica has gained the slot of the key.
    pub fn is_initial(&self) -> bool {
        self.tags & TAG_INITIAL != 0
    }

    /// Returns `true` if the key has waited for its retry after a failed reconcile. If a change came before the end of
    /// the wait, the reason is that change; [`Context::attempt`](super::Context::attempt) counts the failures.
    pub fn is_retry(&self) -> bool {
        self.tags & TAG_RETRIED != 0
    }

    /// Returns `true` if the last reconcile of the key asked for this one with
    /// [`Action::requeue`](super::Action::requeue).
    pub fn is_requeue(&self) -> bool {
        self.tags & TAG_REQUEUED != 0
    }

    /// Returns `true` if the last reconcile of the key met a conflict (409) and nothing changed since.
    ///
    /// Usually the newer state arrives first. Then the reason is the changed kind.
    pub fn is_conflict(&self) -> bool {
        self.tags & TAG_CONFLICTED != 0
    }

    /// Returns `true` if all keys were enqueued: the period of `resync` has passed, or a slow `map` or `when` has not
    /// seen every state.
    pub fn is_resync(&self) -> bool {
        self.tags & TAG_RESYNC != 0
    }

    /// Returns `true` if the key was enqueued from outside with `App::trigger`.
    pub fn is_triggered(&self) -> bool {
        self.tags & TAG_TRIGGERED != 0
    }

    /// Iterates over the kinds whose objects changed: the primary first, then in the order of the declaration.
    pub fn changed_kinds(&self) -> impl Iterator<Item = &Kind> {
        let primary = std::iter::once(&self.env.spec.primary.kind);
        let related = self.env.sources.iter().map(|(relation, _)| &relation.kind);
        let mut tagged = primary.chain(related).enumerate();
        std::iter::from_fn(move || {
            tagged.find(|(index, _)| self.tags & relation_tag(*index) != 0).map(|(_, kind)| kind)
        })
    }
}

/// Writes the reasons as a list, such as `Pod changed, retry`.
impl fmt::Display for ReconcileReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut causes: Vec<String> = Vec::new();
        if self.tags & RELATION_TAGS != 0 {
            causes.extend(self.changed_kinds().map(|kind| format!("{} changed", kind.kind)));
        }
        let others = [
            (self.is_initial(), "initial list"),
            (self.is_requeue(), "requeue"),
            (self.is_conflict(), "conflict"),
            (self.is_retry(), "retry"),
            (self.is_resync(), "resync"),
            (self.is_triggered(), "trigger"),
        ];
        causes.extend(others.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.to_owned()));
        f.write_str(&causes.join(", "))
    }
}

impl fmt::Debug for ReconcileReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReconcileReason({self})")
    }
}
