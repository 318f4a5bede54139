//! A request in progress, shared by the code that answers it and the code that gives it up at the timeout.

use std::sync::Arc;

use tokio::{sync::OwnedSemaphorePermit, task::JoinError};

use super::{memory::HeldMemory, running::Description};
use crate::blocking::in_own_task;

/// The phase of a request, for the error of one that took too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It waits for other requests.
    #[default]
    Queued,
    /// Its body is being read.
    Receiving,
    /// It was read, and is among the running requests.
    Running,
}

/// The permit of a running request, and the bytes of its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestResources {
    /// The permit to run; `None` while it waits.
    pub(crate) permit: Option<Arc<OwnedSemaphorePermit>>,
    /// The bytes of the body; `None` until it is read. The response keeps them until it is sent.
    pub(crate) memory: Option<Arc<HeldMemory>>,
}

/// A request in progress.
#[derive(Debug)]
pub struct RequestState<M> {
    /// The measurement of the request.
    pub measurement: M,
    /// The uid of the review, once it is read. Callers ignore a response without it.
    pub uid: String,
    /// A description of the running function and its object, for the message of a timeout.
    pub running: Description,
    /// The resources of the request. Its functions keep them until they end.
    pub(crate) resources: RequestResources,
    /// The phase of the request, for the message of a timeout.
    pub(crate) progress: Progress,
}

impl<M> RequestState<M> {
    /// Creates the state of a request that waits to be read.
    pub(crate) fn new(measurement: M) -> Self {
        Self {
            measurement,
            uid: String::new(),
            running: Arc::default(),
            resources: RequestResources::default(),
            progress: Progress::default(),
        }
    }

    /// Runs a function in a separate task.
    ///
    /// A function that blocks its thread keeps its permit until it ends. On a multi-threaded runtime, it delays neither
    /// the timeout of its request nor other requests. Any other function is dropped when the request is given up.
    ///
    /// # Errors
    /// The task panicked, or the process ends.
    pub async fn in_own_task<T>(&self, function: impl Future<Output = T> + Send + 'static) -> Result<T, JoinError>
    where
        T: Send + 'static,
    {
        let resources = self.resources.clone();
        in_own_task(async move {
            let response = function.await;
            drop(resources);
            response
        })
        .await
    }
}
