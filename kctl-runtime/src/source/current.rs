//! Brings a cache that was filled long ago to the newest state: reads what is there now, hands on a list where they differ.

use std::{collections::HashMap, time::Duration};

use serde::Deserialize;

use super::{Effect, Input, Reflector, Request, Source, spread::Spread};
use crate::{
    effect::{ApiError, transport},
    key::ObjectKey,
    store::Scope,
};

/// Names and versions are enough to compare. A server that has no such form answers whole objects.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// First and longest wait after a failure.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Of versions that do not compare nobody knows which is the newer one: the watch gets so many of the longest waits to bring
/// what is there.
const OPAQUE_TRIES: u32 = 12;

#[derive(Deserialize)]
struct Listed {
    metadata: State,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: State,
}

/// What names a state: of an object, or of a list.
#[derive(Deserialize, Default)]
#[serde(default)]
struct State {
    namespace: Option<String>,
    name: String,
    uid: String,
    #[serde(rename = "resourceVersion")]
    version: String,
}

/// What is there now: uid and version of each object, and the version of the whole.
pub(crate) struct Present {
    pub(crate) objects: HashMap<ObjectKey, (String, String)>,
    pub(crate) version: Option<u64>,
}

impl Source {
    /// Returns once the store has everything that was there when this was first called, however many controllers call it: a
    /// process begins to lead once. One request when it has it already; it is repeated until it succeeds.
    pub(crate) async fn make_current(&self) {
        self.compared.get_or_init(|| self.compare()).await;
    }

    async fn compare(&self) {
        for scope in self.scopes() {
            let mut spread = Spread::of((self.identity(), &scope, "current"));
            let (mut wait, mut n_opaque) = (AGAIN.0, 0);
            loop {
                match self.catch_up(&scope, n_opaque < OPAQUE_TRIES).await {
                    Ok(true) => break,
                    Ok(false) => n_opaque += 1,
                    Err(error) => self.report(&error),
                }
                tokio::time::sleep(spread.wait(wait)).await;
                wait = (wait * 2).min(AGAIN.1);
            }
        }
    }

    /// Whether the store has what is there; `waits` leaves it to the watch where versions do not compare.
    async fn catch_up(&self, scope: &Scope, waits: bool) -> Result<bool, ApiError> {
        let operation = format!("list {}", self.identity().kind.plural);
        let body = transport::get_as(self.client(), &operation, &self.path(scope, ""), METADATA).await?;
        let unreadable =
            |error: serde_json::Error| ApiError::Unreadable { operation: operation.clone(), cause: error.to_string() };
        let Listed { metadata, items } = serde_json::from_str(&body).map_err(unreadable)?;
        let version = metadata.version.parse().ok();
        let objects = items.into_iter().map(|Item { metadata }| {
            let key = ObjectKey::new(metadata.namespace.as_deref(), &metadata.name);
            (key, (metadata.uid, metadata.version))
        });
        let present = Present { objects: objects.collect(), version };
        if self.store().has_all(scope, &present) {
            return Ok(true);
        }
        if present.version.is_none() && waits {
            return Ok(false);
        }
        self.list_anew(scope).await.map(|()| true)
    }

    /// Lists a scope beside its watch; what the watch brings of before changes nothing then.
    async fn list_anew(&self, scope: &Scope) -> Result<(), ApiError> {
        let mut reader = Reflector::lists(scope.clone());
        loop {
            let Request::List { token, .. } = reader.request().clone() else { return Ok(()) };
            let page = match self.ask_page(scope, None, token).await {
                Input::Failed(error) => return Err(error),
                page => page,
            };
            for effect in reader.on(page) {
                if let Effect::Emit(delta) = effect {
                    self.store().acknowledged(delta).await;
                }
            }
        }
    }
}
