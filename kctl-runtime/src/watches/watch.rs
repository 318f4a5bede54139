//! One watch as its user sees it: a stream of changes, and the objects that are there now.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::Stream;

use super::{Held, Projection, projection::Reader};
use crate::{
    handler::mailbox::{Inlet, Mailbox},
    key::ObjectKey,
    source::{Health, Identity},
    store::{Change, Handler},
};

/// A watch that was opened at run time: a stream of changes, and reads of its cache. Dropping it ends the watch, unless others share it.
///
/// A slow user delays no one else: beyond [`CHANGES_WAITING_MAX`](super::CHANGES_WAITING_MAX) waiting changes, those of one object are merged
/// into one, from the last delivered state to the newest.
pub struct Watch<T> {
    held: Held,
    mailbox: Arc<Mailbox>,
    reader: Reader<T>,
    /// The store drops its end of the mailbox once this is gone.
    _alive: Arc<()>,
}

impl<T: Projection> Watch<T> {
    pub(super) async fn open(held: Held) -> Self {
        let mailbox = Arc::new(Mailbox::default());
        held.informers().note(&mailbox);
        let inlet = Inlet::new(mailbox.clone());
        let handler: Handler = Arc::new(move |change, initial| inlet.put(change, initial));
        let alive = Arc::new(());
        let _told = held.source().store().subscribe_while(handler, Arc::downgrade(&alive)).await;
        Self { held, mailbox, reader: Reader::new(), _alive: alive }
    }

    /// The next change; `None` once the manager has ended.
    ///
    /// # Cancel safety
    /// A future that is dropped has taken nothing.
    pub async fn next(&mut self) -> Option<Change<T>> {
        std::future::poll_fn(|context| self.poll_change(context)).await
    }

    fn poll_change(&mut self, context: &mut Context<'_>) -> Poll<Option<Change<T>>> {
        loop {
            let Some(letter) = ready!(self.mailbox.poll_take(context)) else { return Poll::Ready(None) };
            if letter.unseen {
                continue;
            }
            if let Some(change) = self.reader.read(&letter.change) {
                return Poll::Ready(Some(change));
            }
        }
    }

    /// Waits until everything that was there when the watch began can be read; `false` when the manager ended before.
    pub async fn synced(&self) -> bool {
        tokio::select! {
            biased;
            () = self.held.source().store().wait_until_synced() => true,
            () = self.held.informers().closed() => false,
        }
    }

    /// Returns `true` if the initial list is complete and the kind is still served. Otherwise reads may lack objects.
    pub fn is_synced(&self) -> bool {
        self.held.source().store().is_synced()
    }

    /// The object of that key, as it is now: changes that lead to it may still wait to be taken.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.held.source().store().get(key).and_then(|object| T::project(&object).ok())
    }

    /// All objects as they are now, by namespace and name. One that does not fit the type is left out.
    pub fn objects(&self) -> Vec<Arc<T>> {
        let mut objects = self.held.source().store().all();
        objects.sort_by(|a, b| a.key().cmp(b.key()));
        objects.iter().filter_map(|object| T::project(object).ok()).collect()
    }

    /// Changes that wait to be taken.
    pub fn waiting(&self) -> usize {
        self.mailbox.len()
    }

    /// Returns the kind, namespaces and selectors of the watch.
    pub fn identity(&self) -> &Identity {
        self.held.source().identity()
    }

    /// How list and watch are doing: a kind that is not there, or that the role lacks.
    pub fn health(&self) -> Health {
        self.held.source().health()
    }
}

impl<T: Projection> Stream for Watch<T> {
    type Item = Change<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_change(context)
    }
}
