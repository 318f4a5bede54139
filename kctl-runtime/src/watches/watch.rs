//! One watch as its user sees it: a stream of changes, and reads of its cache.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::Stream;

use super::{InformerHandle, Projection, projection::Reader};
use crate::{
    handler::mailbox::{Mailbox, MailboxSender},
    key::ObjectKey,
    source::{Health, WatchConfig},
    store::{Change, Handler},
};

/// A watch that was opened at run time, from [`Watches::watch`](super::Watches::watch). Dropping it ends the watch,
/// unless others share it.
///
/// It is a [`Stream`] of [`Change`]s that never fails: lists and watches are retried, and a gap shows as the changes
/// that it hid. The same objects can be read at any time by [`get`](Self::get) and [`objects`](Self::objects).
///
/// A slow user delays no one else. Beyond [`CHANGES_WAITING_MAX`](super::CHANGES_WAITING_MAX) waiting changes, the
/// changes of one object are merged into one, from the last delivered state to the newest.
///
/// ```
/// use k8s_openapi::api::core::v1::Node;
/// use kctl_runtime::{source::WatchConfig, watches::{WatchError, Watches}};
///
/// /// Returns the number of Nodes once the initial list is complete.
/// async fn count_nodes(watches: &Watches) -> Result<usize, WatchError> {
///     let nodes = watches.watch::<Node>(WatchConfig::of::<Node>()).await?;
///     if !nodes.wait_until_synced().await {
///         return Err(WatchError::Closed);
///     }
///     Ok(nodes.objects().len())
/// }
/// ```
pub struct Watch<T> {
    handle: InformerHandle,
    mailbox: Arc<Mailbox>,
    reader: Reader<T>,
    /// The store drops its end of the mailbox once this is gone.
    _alive: Arc<()>,
}

impl<T> std::fmt::Debug for Watch<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("config", self.handle.source().config()).finish_non_exhaustive()
    }
}

impl<T: Projection> Watch<T> {
    pub(super) async fn open(handle: InformerHandle) -> Self {
        let mailbox = Arc::new(Mailbox::default());
        handle.informers().add_mailbox(&mailbox);
        let sender = MailboxSender::new(mailbox.clone());
        let handler: Handler = Arc::new(move |change, origin| sender.put(change, origin));
        let alive = Arc::new(());
        let _subscribed = handle.source().store().subscribe_while(handler, Arc::downgrade(&alive)).await;
        Self { handle, mailbox, reader: Reader::new(), _alive: alive }
    }

    /// Waits for the next change. Returns `None` once the manager has ended.
    ///
    /// # Cancel safety
    /// A dropped future has taken no change.
    pub async fn next(&mut self) -> Option<Change<T>> {
        std::future::poll_fn(|context| self.poll_change(context)).await
    }

    fn poll_change(&mut self, context: &mut Context<'_>) -> Poll<Option<Change<T>>> {
        loop {
            let Some(queued) = ready!(self.mailbox.poll_recv(context)) else { return Poll::Ready(None) };
            if queued.unseen {
                continue;
            }
            if let Some(change) = self.reader.read(&queued.change) {
                return Poll::Ready(Some(change));
            }
        }
    }

    /// Waits until the initial list can be read. Returns `false` if the manager ends first.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn wait_until_synced(&self) -> bool {
        tokio::select! {
            biased;
            () = self.handle.source().store().wait_until_synced() => true,
            () = self.handle.informers().wait_until_closed() => false,
        }
    }

    /// Returns `true` if the initial list is complete and the kind is still served. Otherwise reads may lack objects.
    pub fn is_synced(&self) -> bool {
        self.handle.source().store().is_synced()
    }

    /// Returns the newest cached state of an object, or `None` if it is missing or does not fit `T`. Changes that lead
    /// to this state may still wait in the stream.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.handle.source().store().get(key).and_then(|object| T::project(&object).ok())
    }

    /// Returns the newest cached state of all objects, sorted by namespace and name. Objects that do not fit `T` are
    /// left out.
    pub fn objects(&self) -> Vec<Arc<T>> {
        let mut objects = self.handle.source().store().all();
        objects.sort_by(|a, b| a.key().cmp(b.key()));
        objects.iter().filter_map(|object| T::project(object).ok()).collect()
    }

    /// Returns the number of changes that wait to be taken from the stream.
    pub fn waiting(&self) -> usize {
        self.mailbox.len()
    }

    /// Returns the kind, namespaces and selectors of the watch.
    pub fn config(&self) -> &WatchConfig {
        self.handle.source().config()
    }

    /// Returns the state of list and watch, for example the error for a kind that is not served or that the role lacks.
    pub fn health(&self) -> Health {
        self.handle.source().health()
    }
}

impl<T: Projection> Stream for Watch<T> {
    type Item = Change<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_change(context)
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending};

    use futures::FutureExt;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Client, client::Body};

    use super::*;
    use crate::watches::{CloseOnDrop, Informers};

    #[tokio::test]
    async fn watch_of_a_manager_that_never_ran_ends() {
        let silent =
            tower::service_fn(|_request: http::Request<Body>| pending::<Result<http::Response<Body>, Infallible>>());
        let client = Client::new(silent, "default");
        for is_begun in [false, true] {
            let informers = Informers::new();
            let handle = informers.acquire(WatchConfig::of::<ConfigMap>(), &client).unwrap();
            let mut watch = Watch::<ConfigMap>::open(handle).await;
            if is_begun {
                // Its tasks are spawned, and end before their first poll.
                informers.begin();
            }
            drop(CloseOnDrop(informers));
            assert!(matches!(watch.next().now_or_never(), Some(None)), "{is_begun}");
        }
    }
}
