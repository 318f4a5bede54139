//! An HTTP/1.1 connection that is polled by the task that waits for its response.
//!
//! A separate task per connection would be woken for each piece of a list, then wake the waiting task, and
//! with it other threads of the runtime.
//!
//! hyper splits a connection into a sender, which a caller awaits, and a future that moves bytes. The usual way
//! is to spawn the future. [`H1Connection`] keeps both and polls them in turns: first the response, then the connection,
//! until neither makes progress. The price is that no task polls an idle connection. [`H1Connection::is_free`] does it
//! once before each reuse, which is how a connection that the server closed in the meantime is found.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::task::AtomicWaker;
use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1},
};
use kube::client::Body;

use super::connector::Stream;

/// Maximum number of turns of a connection and its waiting task before other tasks run.
const TURNS_MAX: usize = 16;

/// An HTTP/1.1 connection without its own task.
pub(super) struct H1Connection {
    /// Queues one request; hyper has no pipelining.
    sender: http1::SendRequest<Body>,
    /// `None` once it has ended. Boxed, because each response has room for one and watches use none.
    connection: Option<Box<http1::Connection<Stream, Body>>>,
    /// The waker that hyper gets instead of the task's.
    signal: Arc<Signal>,
}

impl H1Connection {
    /// Prepares a connection for HTTP/1.1. No bytes are sent.
    pub(super) async fn handshake(stream: Stream) -> hyper::Result<Self> {
        let (sender, connection) = http1::handshake(stream).await?;
        Ok(Self { sender, connection: Some(Box::new(connection)), signal: Arc::default() })
    }

    /// Sends a request. The error contains the request if nothing of it was sent.
    ///
    /// # Cancel safety
    /// Not safe: a request whose future is dropped may have been sent in part. Drop the connection then too.
    pub(super) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Body>>> {
        let mut response = pin!(self.sender.try_send_request(request));
        poll_fn(|context| self.poll(context, |context| response.as_mut().poll(context))).await
    }

    /// Polls a response and, as long as it makes progress, the connection below it.
    ///
    /// `what` reads from the sender or the body. It is called again after each turn in which the connection moved
    /// bytes, so it must be prepared for spurious polls.
    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        mut what: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.signal.enter(context.waker());
        let waker = Waker::from(self.signal.clone());
        let polled = self.poll_alternately(&mut Context::from_waker(&waker), &mut what);
        match polled {
            Poll::Ready(_) => self.signal.leave(),
            Poll::Pending => self.signal.leave_waiting(),
        }
        polled
    }

    /// Alternates between response and connection until one of them is done, or both wait.
    ///
    /// A wake-up that arrives during a turn sets `woken` and causes one more turn, without going through the
    /// runtime. After [`TURNS_MAX`] turns the task yields, so a long list does not starve its neighbours.
    fn poll_alternately<T>(
        &mut self,
        context: &mut Context<'_>,
        what: &mut impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        for _ in 0..TURNS_MAX {
            self.signal.woken.store(false, Ordering::SeqCst);
            let polled = what(context);
            if polled.is_ready() {
                return polled;
            }
            let connection = self.connection.as_mut();
            if connection.is_some_and(|connection| Pin::new(connection).poll(context).is_ready()) {
                // The sender and the body return the error of a connection that has ended.
                self.connection = None;
            } else if !self.signal.woken.load(Ordering::SeqCst) {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Returns `true` if another request can be sent. Call it only when no response is pending.
    pub(super) fn is_free(&mut self) -> bool {
        let _pending = self.poll(&mut Context::from_waker(Waker::noop()), |_| Poll::<()>::Pending);
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// Wakes the task that polls the connection, unless it is doing so already.
///
/// A wake-up stores `woken` and then reads `is_inside`; the end of a poll stores `is_inside` and then reads `woken`.
/// With a weaker order than `SeqCst` each could miss the other, and the wake-up would be lost.
#[derive(Default)]
struct Signal {
    driver: AtomicWaker,
    is_inside: AtomicBool,
    woken: AtomicBool,
}

impl Signal {
    fn enter(&self, driver: &Waker) {
        self.driver.register(driver);
        self.is_inside.store(true, Ordering::SeqCst);
    }

    /// Ends a poll that returned a value. No wake-up is needed, because the task polls again by itself.
    fn leave(&self) {
        self.is_inside.store(false, Ordering::SeqCst);
        drop(self.driver.take());
    }

    /// Ends a poll that returned `Pending`. Passes on a wake-up that arrived during the poll and would be lost
    /// otherwise.
    fn leave_waiting(&self) {
        self.is_inside.store(false, Ordering::SeqCst);
        if self.woken.load(Ordering::SeqCst) {
            self.driver.wake();
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if !self.is_inside.load(Ordering::SeqCst) {
            self.driver.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn driver_is_woken_only_while_it_waits() {
        let (signal, count) = (Arc::new(Signal::default()), Arc::new(Count::default()));
        let (wakes, driver) = (Waker::from(signal.clone()), Waker::from(count.clone()));
        let n_woken = || count.0.swap(0, Ordering::SeqCst);
        signal.enter(&driver);
        wakes.wake_by_ref();
        assert_eq!(n_woken(), 0, "it is about to look anyway");
        signal.leave_waiting();
        assert_eq!(n_woken(), 1, "what came after it looked");
        signal.enter(&driver);
        signal.woken.store(false, Ordering::SeqCst);
        signal.leave_waiting();
        assert_eq!(n_woken(), 0);
        wakes.wake_by_ref();
        assert_eq!(n_woken(), 1);
        signal.enter(&driver);
        signal.leave();
        wakes.wake_by_ref();
        assert_eq!(n_woken(), 0, "it has what it waited for");
    }
}
