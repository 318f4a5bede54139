//! Records what was created on a real API server, so that a trial can delete it at its end.

use std::{sync::Arc, time::Duration};

use http::{Method, Request, Response, StatusCode};
use kctl_runtime::reconcile::{Error, Result, ResultExt};
use kube::{Client, client::Body, core::PartialObjectMeta};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::RwLock;
use tower::{BoxError, service_fn};

use super::cleanup;

/// Maximum number of objects that are recorded on a server. A scenario that creates more ends with
/// an error, because the later ones would remain in the cluster.
const CREATED_MAX: usize = 10_000;
/// Wait between two checks whether a deleted object is gone.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Wait for each further object after one was not removed: a cluster that removes nothing would delay the end for long.
const TIMEOUT_AFTER_STUCK_OBJECT: Duration = Duration::from_secs(1);

/// The paths of objects that some clients created, oldest first. Clones share one record.
#[derive(Clone, Default)]
pub(super) struct CreatedObjects(Arc<Record>);

/// The record that the clones share.
#[derive(Default)]
struct Record {
    paths: Mutex<Paths>,
    /// Read-locked by each write that is in flight. [`CreatedObjects::remove`] takes the write lock, so it
    /// misses none of them.
    in_flight: RwLock<()>,
}

/// The paths of created objects.
#[derive(Default)]
struct Paths {
    /// Oldest first. Invariant: at most [`CREATED_MAX`].
    recorded: Vec<String>,
    /// `true` if more objects were created: they remain in the cluster, because their paths are not recorded.
    is_incomplete: bool,
}

impl Paths {
    /// Records an object, unless [`CREATED_MAX`] others are recorded.
    fn add(&mut self, path: String) {
        if self.recorded.len() < CREATED_MAX {
            self.recorded.push(path);
        } else {
            self.is_incomplete = true;
        }
    }
}

impl CreatedObjects {
    /// Returns a client that records what it creates.
    ///
    /// Each write runs in a separate task. If the caller drops the request, the object may still be
    /// created, and is recorded.
    pub(super) fn recording(&self, client: Client) -> Client {
        let (made, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = service_fn(move |request: Request<Body>| {
            let (client, made) = (client.clone(), made.clone());
            async move {
                if ![Method::POST, Method::PATCH, Method::PUT].contains(request.method()) {
                    return Ok(client.send(request).await?);
                }
                tokio::spawn(async move { made.send_recorded(client, request).await }).await?
            }
        });
        Client::new(service, namespace)
    }

    async fn send_recorded(&self, client: Client, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let _in_flight = self.0.in_flight.read().await;
        let (posts, path) = (request.method() == Method::POST, request.uri().path().to_owned());
        let response = client.send(request).await?;
        if response.status() != StatusCode::CREATED {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let bytes = body.collect_bytes().await?;
        // Reviews and tokens are created by POST as well, but are never stored.
        if let Some(name) = name_of(&bytes) {
            self.0.paths.lock().add(if posts { format!("{path}/{name}") } else { path });
        }
        Ok(Response::from_parts(head, Body::from(bytes)))
    }

    /// Deletes what was recorded, the newest first, and waits up to `within` for each object to be
    /// gone. Finalizers are removed. After an error the other objects are deleted as well.
    ///
    /// # Errors
    /// An object is not removed, may not be deleted, or more than [`CREATED_MAX`] were created.
    pub(super) async fn remove(&self, client: &Client, within: Duration) -> Result<()> {
        let _nothing_in_flight = self.0.in_flight.write().await;
        let Paths { recorded: made, is_incomplete } = std::mem::take(&mut *self.0.paths.lock());
        let (mut ends, mut deleted, mut within) = (Vec::new(), Vec::new(), within);
        for path in made.iter().rev() {
            match delete(client, path).await {
                Ok(()) => deleted.push(path),
                failed => ends.push(failed.context(path)),
            }
        }
        for path in deleted.into_iter().rev() {
            let gone = wait_until_gone(client, path, within).await;
            if gone.is_err() {
                within = within.min(TIMEOUT_AFTER_STUCK_OBJECT);
            }
            ends.push(gone);
        }
        if is_incomplete {
            let help = "create fewer in one scenario, and delete the rest yourself";
            let what = format!("a trial records at most {CREATED_MAX} objects and deleted only these: {help}");
            ends.push(Err(Error::from(what)));
        }
        cleanup::combine(ends)
    }
}

async fn wait_until_gone(client: &Client, path: &str, within: Duration) -> Result<()> {
    let gone = async {
        while read(client, path).await?.is_some() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    };
    let late = |_elapsed| Err(Error::from(format!("{path} of a trial is not gone after {within:?}")));
    tokio::time::timeout(within, gone).await.unwrap_or_else(late)
}

/// Returns the name of a created object. Reviews and tokens have no uid, and yield `None`.
fn name_of(response: &[u8]) -> Option<String> {
    let object: PartialObjectMeta = serde_json::from_slice(response).ok()?;
    object.metadata.uid.and(object.metadata.name)
}

async fn read(client: &Client, path: &str) -> Result<Option<Value>> {
    send_request(client, Request::get(path).body(Vec::new())?).await
}

/// Deletes an object and, in the background, its dependents. API servers orphan the Pods of a Job
/// by default. A 404 counts as success.
async fn delete(client: &Client, path: &str) -> Result<()> {
    let at_once = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background",
    });
    let request = Request::delete(path).header("content-type", "application/json");
    send_request(client, request.body(serde_json::to_vec(&at_once)?)?).await?;
    let Some(left) = read(client, path).await? else { return Ok(()) };
    if left["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
        return Ok(());
    }
    let free = json!({ "metadata": { "finalizers": null } });
    let request = Request::patch(path).header("content-type", "application/merge-patch+json");
    send_request(client, request.body(serde_json::to_vec(&free)?)?).await.map(drop)
}

/// Sends a request and turns 404 into `None`.
async fn send_request(client: &Client, request: Request<Vec<u8>>) -> Result<Option<Value>> {
    match client.request(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        response => Ok(Some(response?)),
    }
}

#[cfg(test)]
mod tests {
    use kctl_apiserver::ApiServer;

    use super::*;

    #[test]
    fn only_objects_beyond_the_bound_are_missing() {
        for (n_created, is_incomplete) in [(CREATED_MAX - 1, false), (CREATED_MAX, false), (CREATED_MAX + 1, true)] {
            let mut paths = Paths::default();
            (0..n_created).for_each(|number| paths.add(number.to_string()));
            let recorded = (paths.recorded.len(), paths.is_incomplete);
            assert_eq!(recorded, (n_created.min(CREATED_MAX), is_incomplete), "{n_created} objects");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn incomplete_record_fails_the_end() {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let created = CreatedObjects::default();
        created.remove(&client, POLL_INTERVAL).await.unwrap();
        created.0.paths.lock().is_incomplete = true;
        let error = created.remove(&client, POLL_INTERVAL).await.unwrap_err().to_string();
        assert!(error.contains("a trial records at most 10000 objects and deleted only these"), "{error}");
    }
}
