//! A key to add, with the cause of the add.

use std::time::Duration;

use super::state::{BackoffEffect, KeyEvent};

/// A key to [add](super::WorkQueue::add) to a queue. A key alone is an add of [`Cause::Request`] with the normal
/// priority.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use kctl_runtime::queue::{Add, Cause, QueueConfig, WorkQueue};
///
/// const POD_CHANGED: u32 = 1 << 8;
/// const NODE_CHANGED: u32 = 1 << 9;
/// let queue = WorkQueue::<&str>::new(QueueConfig::default());
/// queue.add(Add::new("from the initial list").priority(-100));
/// queue.add(Add::new("web").tags(POD_CHANGED));
/// queue.add(Add::new("web").tags(NODE_CHANGED).cause(Cause::Unchanged));
/// let first = queue.get().await.unwrap();
/// assert_eq!((first.key, first.tags), ("web", POD_CHANGED | NODE_CHANGED));
/// # });
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until a queue adds it"]
pub struct Add<K> {
    pub(super) key: K,
    pub(super) priority: i32,
    pub(super) tags: u32,
    pub(super) cause: Cause,
    pub(super) event: Option<KeyEvent>,
}

/// The cause of an add, which decides when the key becomes ready and what becomes of its failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Cause {
    /// A request by a user, a mapper or a timer, or a change of the object's metadata. The key is ready at once, also
    /// during a backoff.
    #[default]
    Request,
    /// The spec of the object changed, its deletion began, or its name has another uid; also a new or a deleted object.
    /// The key is ready at once. Its failures and conflicts are reset: they belong to the state before the change.
    Changed,
    /// An event that probably changes nothing: a change of a status or of an owned object, or a resync. The key is ready
    /// at once, except during the backoff of a failure. A key that was given up has no backoff.
    ///
    /// Otherwise a controller that writes and then fails would run in a hot loop on its own events. The key is not lost:
    /// the next retry sees the state of the event.
    Unchanged,
    /// The run succeeded and requests another run. The key is ready after this wait, at most
    /// [`WAIT_MAX`](super::WAIT_MAX). Failures are kept: a worker calls [`forget`](super::WorkQueue::forget) first.
    Requeue(Duration),
    /// The run failed. The failure is counted, and the key is ready after the wait of the
    /// [`Backoff`](super::Backoff).
    Failure,
    /// The run failed with an error that names the wait, such as a `Retry-After`. The failure is counted.
    FailureAfter(Duration),
    /// The run was based on an old state. The conflict is counted, and the key is ready after this wait or after the
    /// backoff for as many conflicts, whichever is longer. Every other add makes it ready at once, because it may bring
    /// the newer state.
    ///
    /// Up to [`CONFLICTS_BEFORE_WARNING`](super::CONFLICTS_BEFORE_WARNING) conflicts in a row are normal with concurrent writers; a key
    /// with more counts as [failing](super::WorkQueue::failing).
    Conflict(Duration),
}

impl Cause {
    /// Returns `true` for the end of a run that did not succeed. It is counted, also after a shutdown.
    pub(super) fn is_counted(self) -> bool {
        matches!(self, Self::Failure | Self::FailureAfter(_) | Self::Conflict(_))
    }
}

impl<K> Add<K> {
    /// Returns an add of this key, for [`Cause::Request`], with priority 0 and without tags.
    pub fn new(key: K) -> Self {
        Self { key, priority: 0, tags: 0, cause: Cause::default(), event: None }
    }

    /// Sets the priority; keys with a higher one are taken first. The normal priority is 0.
    ///
    /// A key that waits for a time after its run keeps the priority with which it was taken.
    pub fn priority(self, priority: i32) -> Self {
        Self { priority, ..self }
    }

    /// Sets tags that say why the key is added.
    ///
    /// Tags are bits. The queue sets [`TAG_REQUEUED`](super::TAG_REQUEUED), [`TAG_RETRIED`](super::TAG_RETRIED) and
    /// [`TAG_CONFLICTED`](super::TAG_CONFLICTED) itself; the caller gives the other ones a meaning.
    /// [`Item::tags`](super::Item::tags) has the tags of all adds since the key was last taken.
    pub fn tags(self, tags: u32) -> Self {
        Self { tags, ..self }
    }

    /// Sets the cause, which decides when the key is ready and if its failures are kept, counted or reset.
    pub fn cause(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// Sets the event that is the cause. It does not make the key ready if the last run of the key failed and
    /// [wrote](super::WorkQueue::ignore_own_writes) the version itself.
    pub(crate) fn event(self, event: KeyEvent) -> Self {
        let cause = match event.change.effect {
            BackoffEffect::Keep => Cause::Unchanged,
            BackoffEffect::End => Cause::Request,
            BackoffEffect::Reset => Cause::Changed,
        };
        Self { cause, event: Some(event), ..self }
    }
}

impl<K> From<K> for Add<K> {
    fn from(key: K) -> Self {
        Self::new(key)
    }
}
