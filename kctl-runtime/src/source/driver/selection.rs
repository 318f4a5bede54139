//! The objects that a source of a sharded program keeps: the objects of this replica's slots.

use std::sync::Arc;

use super::Source;
use crate::{
    object::Stored,
    source::filter::{Filter, ObjectHead},
    store::{Delta, Part},
    transport::ApiError,
};

impl Source {
    /// Keeps only the objects that a filter selects. Call it before [`run`](Self::run).
    ///
    /// It has no effect after [`disable_filter`](Self::disable_filter).
    pub(crate) fn select(&self, filter: Filter) {
        let _all = self.filter.set(Some(Box::new(filter)));
    }

    /// Keeps the objects of all slots, for readers that need them.
    pub(crate) fn disable_filter(&self) {
        let _selected = self.filter.set(None);
    }

    /// Notes that the labels of the watch config select the objects of this replica, so that a read beyond them fails.
    pub(crate) fn selects_part(&self, part: Part) {
        let _first = self.labelled.set(part);
    }

    /// Returns the part of the kind that the cache has, `None` if it has all objects.
    pub(crate) fn part(&self) -> Option<Part> {
        self.filter().map(|filter| filter.part(&self.listed_gains)).or_else(|| self.labelled.get().cloned())
    }

    pub(in crate::source) fn filter(&self) -> Option<&Filter> {
        self.filter.get()?.as_deref()
    }

    /// Returns the metadata of an object that the filter does not select.
    pub(in crate::source) fn not_selected<'a>(&self, json: &'a str) -> Option<ObjectHead<'a>> {
        self.filter()?.not_selected(json)
    }

    /// Returns how many slots were gained so far.
    pub(in crate::source) fn n_gained(&self) -> u64 {
        self.filter().map_or(0, Filter::n_gained)
    }

    /// Returns how often a slot was gained or lost so far.
    pub(in crate::source) fn n_moves(&self) -> u64 {
        self.filter().map_or(0, Filter::n_moves)
    }

    /// Returns the error of a list during which a slot was gained: the list may lack some of its objects.
    pub(super) fn slot_gained(&self) -> ApiError {
        self.expired_error("this replica gained a slot during the list")
    }

    /// Returns the error of a list that came too late: another list of the scope was applied, or there were too many
    /// deletes.
    pub(in crate::source) fn list_overtaken(&self) -> ApiError {
        self.expired_error("the cache was listed in the meantime, or too many objects were deleted")
    }

    fn expired_error(&self, message: &str) -> ApiError {
        ApiError::Rejected {
            operation: self.config.operation("list"),
            code: 410,
            reason: "Expired".into(),
            message: message.into(),
            details: Box::default(),
            retry_after: None,
        }
    }

    /// Drops the objects of slots that were lost since they were read.
    pub(super) fn retain_selected(&self, objects: &mut Vec<Arc<Stored>>) {
        if let Some(filter) = self.filter() {
            objects.retain(|object| filter.has(object));
        }
    }

    /// Drops the objects of slots that this replica has lost.
    ///
    /// Call it only after the reconciles of those slots have ended. Objects of a slot that is gained in between come
    /// back with the list of [`compare_since`](Self::compare_since), which waits for this.
    pub(crate) async fn drop_lost(&self) {
        let Some(filter) = self.filter() else { return };
        let _one_at_a_time = self.moving.lock().await;
        // Their events need not be sent any more.
        self.reopen_outdated_watches();
        // Events that were selected before the loss may still wait for the store.
        self.store.flush().await;
        for object in self.store.all() {
            if !filter.has(&object) {
                self.store.push(Delta::Drop(object)).await;
            }
        }
        for one in self.unreadable.all() {
            if !filter.has(&one.stored) {
                self.unreadable.remove(one.stored.key());
            }
        }
    }
}
