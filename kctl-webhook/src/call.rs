//! Calls of user code: a panic is an answer, not the end of a connection.

use std::{any::Any, future::poll_fn, panic::AssertUnwindSafe, pin::Pin, sync::Arc, task::Poll};

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    giving_way::in_own_task,
    metrics::{Asked, Running},
    server::body::Progress,
};

/// What a function returns once it is called.
pub(crate) type Called<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Which function it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    file: &'static str,
    line: u32,
}

impl About {
    /// Says which function it is, and where it stands.
    pub fn new(name: &'static str, file: &'static str, line: u32) -> Self {
        Self { name, file, line }
    }

    /// Returns the file and the line.
    pub fn location(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// `` `name` (file:line) ``, for messages.
    pub(crate) fn place(&self) -> String {
        format!("`{}` ({})", self.name, self.location())
    }
}

/// A request that has its turn, for who answers it and for who gives it up.
pub(crate) struct Turn {
    pub(crate) asked: Asked,
    /// Its uid, once it is read: an answer without it is none for API servers.
    pub(crate) uid: String,
    /// What runs: the function, and the object that it was asked about.
    pub(crate) running: Arc<Mutex<Option<String>>>,
    /// Its place among those that run at a time; none before it has one. Its functions keep it until they end.
    pub(crate) permit: Option<Arc<OwnedSemaphorePermit>>,
    /// How far it has come.
    pub(crate) progress: Progress,
}

impl Turn {
    /// Calls functions in a task of their own. Those that block their thread hold back neither the timeout of their request nor
    /// other requests, and keep their place among those that run; any other ends where the request is given up.
    ///
    /// # Errors
    /// The process ends: a panic of a function is [`unwound`].
    pub(crate) async fn call<T, Fut>(&self, call: impl FnOnce(Running) -> Fut) -> Result<T, String>
    where
        T: Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
    {
        let permit = self.permit.clone();
        let called = call(self.asked.running());
        let called = async move {
            let answer = called.await;
            drop(permit);
            answer
        };
        in_own_task(called).await.map_err(|error| error.to_string())
    }
}

/// Waits for what `call` begins.
///
/// # Errors
/// It panicked: with what, in words.
pub(crate) async fn unwound<T>(about: About, call: impl FnOnce() -> Called<T>) -> Result<T, String> {
    let failed = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = format!("panic in {}: {}", about.place(), text.unwrap_or("without a text"));
        tracing::error!("{text}");
        text
    };
    let mut called = std::panic::catch_unwind(AssertUnwindSafe(call)).map_err(failed)?;
    let polled = poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| called.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    });
    polled.await.map_err(failed)
}
