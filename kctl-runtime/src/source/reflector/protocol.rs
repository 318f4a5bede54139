//! The requests, inputs and effects of a reflector.

use std::{sync::Arc, time::Duration};

use crate::{object::Stored, store::Delta, transport::ApiError};

/// The next request to the API server.
///
/// The driver turns it into a URL. Selectors and namespace are the same for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A watch that begins with the complete, newest state (`sendInitialEvents=true`).
    Stream,
    /// The complete state in one list.
    Whole {
        /// The oldest acceptable version (`resourceVersionMatch=NotOlderThan`); `None` requests the newest state.
        version: Option<String>,
    },
    /// One page of a list.
    List {
        /// At least this version; `None` is the newest state.
        version: Option<String>,
        /// The `continue` token; `None` for the first page.
        token: Option<String>,
    },
    /// Watches for events.
    Watch {
        /// Events after this version.
        version: String,
    },
    /// A list with `limit=1` of the newest state. Its version shows if a server that did not answer has gone back to an
    /// earlier state.
    Probe,
}

/// A response or an event of the API server.
///
/// A driver reports every end of a request with one of `Page`, `Failed`, `ListInterrupted`, `WatchFailed` or `Closed`. The other inputs
/// are events of a watch that continues.
#[derive(Debug)]
pub enum Input {
    /// A list, or one page of it.
    Page {
        /// The objects of this page.
        objects: Vec<Arc<Stored>>,
        /// The version of the whole list.
        version: String,
        /// Set when there are more pages.
        token: Option<String>,
    },
    /// A watch event with an object that was added or modified.
    Applied(Arc<Stored>),
    /// A watch event with the last state of a deleted object.
    Deleted(Arc<Stored>),
    /// A bookmark: everything up to this version was sent.
    Bookmark(String),
    /// The bookmark that ends the initial state of a stream.
    Synced(String),
    /// The request failed before its response began.
    Failed(ApiError),
    /// The response of a list began and broke off.
    ListInterrupted(ApiError),
    /// The watch sent an `ERROR` event, or a line that cannot be read.
    WatchFailed {
        /// The error of the event, or of the decoder.
        error: ApiError,
        /// The time for which it was open.
        lasted: Duration,
    },
    /// The watch ended without an error, as watches do.
    Closed {
        /// Time for which it was open.
        lasted: Duration,
        /// Is `true` if it sent at least one event, or if the driver ended it.
        any: bool,
    },
}

/// An action that the caller performs before the next request.
///
/// Perform all of them in the order of the list. At most one of them is [`Wait`](Self::Wait) or [`Next`](Self::Next),
/// and it is the last.
#[derive(Debug)]
pub enum Effect {
    /// Send the delta to the store.
    Emit(Delta),
    /// End the present request and wait, then send [`Reflector::request`](super::Reflector::request). The driver adds jitter.
    Wait(Duration),
    /// End the present request, and send the next one at once.
    Next,
}
