//! The bounded queue of messages for the writer of a store. An idle one keeps no buffer, where a channel keeps one for
//! 32 messages: a process may have thousands of idle stores.

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

use crate::sync::Mutex;

/// A bounded queue with many senders and one reader.
pub(super) struct Inbox<M> {
    room: Semaphore,
    n_max: usize,
    messages: Mutex<Messages<M>>,
    /// Notified of each message, for the reader.
    arrived: Notify,
    is_open: AtomicBool,
}

struct Messages<M> {
    waiting: VecDeque<(Instant, M)>,
    /// The moment at which the message that is being handled was sent.
    current: Option<Instant>,
    /// Is `true` once the reader is gone.
    is_over: bool,
}

/// Room for one message. [`put`](Self::put) has to follow: a reservation that is dropped does not give its room back.
pub(super) struct Reservation<'a, M> {
    inbox: &'a Inbox<M>,
    /// The moment at which the sender asked for room.
    since: Instant,
}

/// The only reader of an inbox. Messages are dropped once it is gone.
pub(super) struct Reader<'a, M>(&'a Inbox<M>);

impl<M> Inbox<M> {
    pub(super) fn new(n_max: usize) -> Self {
        Self {
            room: Semaphore::new(n_max),
            n_max,
            messages: Mutex::new(Messages { waiting: VecDeque::new(), current: None, is_over: false }),
            arrived: Notify::new(),
            is_open: AtomicBool::new(false),
        }
    }

    /// Returns the reader on the first call, and `None` on later ones.
    pub(super) fn open(&self) -> Option<Reader<'_, M>> {
        (!self.is_open.swap(true, Ordering::AcqRel)).then(|| Reader(self))
    }

    /// Returns room for a message if there is any now.
    pub(super) fn try_reserve(&self) -> Option<Reservation<'_, M>> {
        match self.room.try_acquire() {
            Ok(room) => room.forget(),
            Err(TryAcquireError::NoPermits) => return None,
            Err(TryAcquireError::Closed) => {}
        }
        Some(Reservation { inbox: self, since: Instant::now() })
    }

    /// Puts a message into the queue as soon as there is room.
    pub(super) async fn send(&self, message: M) {
        let since = Instant::now();
        if let Ok(room) = self.room.acquire().await {
            room.forget();
        }
        Reservation { inbox: self, since }.put(message);
    }

    /// Returns the number of messages that wait or are being handled.
    pub(super) fn len(&self) -> usize {
        if self.room.is_closed() { 0 } else { self.n_max - self.room.available_permits() }
    }

    /// Returns `true` if the reader waits for a message.
    pub(super) fn is_idle(&self) -> bool {
        let messages = self.messages.lock();
        self.is_open.load(Ordering::Acquire)
            && !messages.is_over
            && messages.waiting.is_empty()
            && messages.current.is_none()
    }

    /// Returns how long the message that is handled now, or next, has waited.
    pub(super) fn lag(&self) -> Duration {
        let messages = self.messages.lock();
        let first = messages.current.or_else(|| messages.waiting.front().map(|(since, _)| *since));
        first.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl<M> Reservation<'_, M> {
    /// Puts the message into the queue; it is dropped if the reader is gone.
    pub(super) fn put(self, message: M) {
        let mut messages = self.inbox.messages.lock();
        if messages.is_over {
            // Dropped without the lock: the drop may wake a task that waits for the message.
            drop(messages);
            return drop(message);
        }
        messages.waiting.push_back((self.since, message));
        drop(messages);
        self.inbox.arrived.notify_one();
    }
}

impl<M> Reader<'_, M> {
    pub(super) async fn next(&mut self) -> M {
        loop {
            if let Some(message) = self.take() {
                return message;
            }
            self.0.arrived.notified().await;
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

    /// Marks the last message as handled, which makes room for the next message.
    pub(super) fn mark_handled(&mut self) {
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
    use std::pin::pin;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn message_occupies_room_until_it_was_handled() {
        let inbox = Inbox::new(2);
        let mut reader = inbox.open().unwrap();
        inbox.send(1).await;
        inbox.send(2).await;
        assert!(inbox.try_reserve().is_none() && inbox.len() == 2);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(reader.next().await, 1);
        assert!(inbox.try_reserve().is_none(), "it is being dealt with");
        assert_eq!(inbox.lag(), Duration::from_secs(3));
        reader.mark_handled();
        inbox.try_reserve().unwrap().put(3);
        assert_eq!((reader.next().await, inbox.len()), (2, 2));
    }

    #[tokio::test]
    async fn sender_that_waits_returns_when_the_reader_ends() {
        let inbox = Inbox::new(1);
        let reader = inbox.open().unwrap();
        inbox.send(1).await;
        let mut waiting = pin!(inbox.send(2));
        assert!(futures::poll!(&mut waiting).is_pending(), "there is no room");
        drop(reader);
        assert!(futures::poll!(&mut waiting).is_ready());
        assert_eq!(inbox.len(), 0);
    }

    #[tokio::test]
    async fn messages_without_a_reader_are_dropped() {
        let inbox = Inbox::new(1);
        let message = std::sync::Arc::new(());
        let reader = inbox.open().unwrap();
        assert!(inbox.open().is_none(), "there is one reader");
        let slot = inbox.try_reserve().unwrap();
        drop(reader);
        slot.put(message.clone());
        inbox.send(message.clone()).await;
        inbox.try_reserve().unwrap().put(message.clone());
        assert_eq!((std::sync::Arc::strong_count(&message), inbox.len(), inbox.lag()), (1, 0, Duration::ZERO));
    }
}
