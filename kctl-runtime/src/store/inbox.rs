//! What waits for the writer of a store: bounded, in the order of coming. A quiet one keeps no place for messages, where channels
//! keep 32 of them.

use std::{
    collections::VecDeque,
    mem,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore, TryAcquireError},
    time::Instant,
};

use crate::turns::Mutex;

/// Messages that wait at most.
pub(super) struct Inbox<M> {
    room: Semaphore,
    n_max: usize,
    messages: Mutex<Messages<M>>,
    comes: Notify,
    is_open: AtomicBool,
}

struct Messages<M> {
    waiting: VecDeque<(Instant, M)>,
    /// Since when the one has waited that is being dealt with.
    current: Option<Instant>,
    /// Nobody will read any more.
    is_over: bool,
}

/// Room for a message.
pub(super) struct Place<'a, M> {
    inbox: &'a Inbox<M>,
    /// Since when somebody wants it.
    since: Instant,
}

/// The one reader of an inbox; nothing is taken any more once it is dropped.
pub(super) struct Reader<'a, M>(&'a Inbox<M>);

impl<M> Inbox<M> {
    pub(super) fn new(n_max: usize) -> Self {
        Self {
            room: Semaphore::new(n_max),
            n_max,
            messages: Mutex::new(Messages { waiting: VecDeque::new(), current: None, is_over: false }),
            comes: Notify::new(),
            is_open: AtomicBool::new(false),
        }
    }

    /// The first call alone gets it.
    pub(super) fn open(&self) -> Option<Reader<'_, M>> {
        (!self.is_open.swap(true, Ordering::AcqRel)).then(|| Reader(self))
    }

    /// Room, if there is some now.
    pub(super) fn try_reserve(&self) -> Option<Place<'_, M>> {
        match self.room.try_acquire() {
            Ok(room) => room.forget(),
            Err(TryAcquireError::NoPermits) => return None,
            Err(TryAcquireError::Closed) => {}
        }
        Some(Place { inbox: self, since: Instant::now() })
    }

    /// Puts a message in as soon as there is room.
    pub(super) async fn send(&self, message: M) {
        let since = Instant::now();
        if let Ok(room) = self.room.acquire().await {
            room.forget();
        }
        Place { inbox: self, since }.put(message);
    }

    /// Messages that wait or are being dealt with.
    pub(super) fn len(&self) -> usize {
        if self.room.is_closed() { 0 } else { self.n_max - self.room.available_permits() }
    }

    /// How long the message has waited that comes next or is being dealt with.
    pub(super) fn lag(&self) -> Duration {
        let messages = self.messages.lock();
        let first = messages.current.or_else(|| messages.waiting.front().map(|(since, _)| *since));
        first.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl<M> Place<'_, M> {
    /// Puts the message in; one that nobody will read is dropped.
    pub(super) fn put(self, message: M) {
        let mut messages = self.inbox.messages.lock();
        if messages.is_over {
            // Not under the lock: it may wake whoever waits for its end.
            drop(messages);
            return drop(message);
        }
        messages.waiting.push_back((self.since, message));
        drop(messages);
        self.inbox.comes.notify_one();
    }
}

impl<M> Reader<'_, M> {
    /// The next message.
    pub(super) async fn next(&mut self) -> M {
        loop {
            if let Some(message) = self.take() {
                return message;
            }
            self.0.comes.notified().await;
        }
    }

    fn take(&mut self) -> Option<M> {
        let mut messages = self.0.messages.lock();
        let (since, message) = messages.waiting.pop_front()?;
        messages.current = Some(since);
        if messages.waiting.is_empty() {
            messages.waiting = VecDeque::new();
        }
        Some(message)
    }

    /// Says that the message that was read last has been dealt with: there is room for another.
    pub(super) fn done(&mut self) {
        self.0.messages.lock().current = None;
        self.0.room.add_permits(1);
    }
}

impl<M> Drop for Reader<'_, M> {
    fn drop(&mut self) {
        self.0.room.close();
        let left = {
            let mut messages = self.0.messages.lock();
            messages.is_over = true;
            messages.current = None;
            mem::take(&mut messages.waiting)
        };
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_message_takes_room_until_it_was_dealt_with() {
        let inbox = Inbox::new(2);
        let mut reader = inbox.open().unwrap();
        inbox.send(1).await;
        inbox.send(2).await;
        assert!(inbox.try_reserve().is_none() && inbox.len() == 2);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(reader.next().await, 1);
        assert!(inbox.try_reserve().is_none(), "it is being dealt with");
        assert_eq!(inbox.lag(), Duration::from_secs(3));
        reader.done();
        inbox.try_reserve().unwrap().put(3);
        assert_eq!((reader.next().await, inbox.len()), (2, 2));
    }

    #[tokio::test]
    async fn what_nobody_reads_any_more_is_dropped_and_holds_up_nobody() {
        let inbox = Inbox::new(1);
        let told = std::sync::Arc::new(());
        let reader = inbox.open().unwrap();
        assert!(inbox.open().is_none(), "there is one reader");
        let place = inbox.try_reserve().unwrap();
        drop(reader);
        place.put(told.clone());
        inbox.send(told.clone()).await;
        inbox.try_reserve().unwrap().put(told.clone());
        assert_eq!((std::sync::Arc::strong_count(&told), inbox.len(), inbox.lag()), (1, 0, Duration::ZERO));
    }
}
