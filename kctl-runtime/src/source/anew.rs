//! Reads beside the watch, after a write whose outcome is unknown.

use std::{sync::Arc, time::Duration};

use super::{METADATA_LIST, Source, reflector::Input};
use crate::{
    key::ObjectKey,
    object::{Uid, Version},
    store::{Delta, Scope},
    transport::{self, ApiError},
};

impl Source {
    /// Lists a namespace and applies the result. After that the cache contains the effect of every earlier write, also
    /// of one without a response.
    pub(crate) async fn refresh(&self, scope: &Scope) -> Result<(), ApiError> {
        let followed = self.scopes();
        let Some(whole) = [scope, &None].into_iter().find(|scope| followed.has(scope)) else { return Ok(()) };
        let (objects, version) = match self.state(scope).await {
            // Nothing of the kind is left, whatever a write has done.
            Err(error) if self.lacks_optional(&error) => return Ok(()),
            state => state?,
        };
        if version.parse::<u64>().is_ok() {
            self.store().acknowledged(Delta::Present(scope.clone(), objects, version)).await;
            return Ok(());
        }
        // Of versions that do not compare nobody knows which is the newer one: it is taken as the watch would.
        let (objects, version) = if whole == scope { (objects, version) } else { self.state(whole).await? };
        self.store().acknowledged(Delta::Replace(whole.clone(), objects, version)).await;
        Ok(())
    }

    /// Reads one object whose uid is known, and applies the result, like [`refresh`](Self::refresh).
    pub(crate) async fn look(&self, namespace: Option<&str>, name: &str, uid: &str) -> Result<(), ApiError> {
        let scope = namespace.map(Arc::from);
        if !self.identity().labels.is_empty() || !self.identity().fields.is_empty() {
            return self.refresh(&scope).await;
        }
        let operation = format!("list {}", self.identity().kind.plural);
        let selector = transport::escape(&format!("metadata.name={name}"));
        let path = format!("{}?fieldSelector={selector}", self.identity().kind.path(namespace));
        let answer = match transport::list_few(self.client(), &operation, &path, self.accepts(METADATA_LIST)).await {
            Err(error) if self.lacks_optional(&error) => return Ok(()),
            answer => answer?,
        };
        let Input::Page { objects, version, .. } = self.read_list(&operation, answer).await? else { return Ok(()) };
        if version.parse::<u64>().is_err() {
            return self.refresh(&scope).await;
        }
        let is_there = objects.iter().any(|object| object.meta().uid == *uid);
        for object in objects {
            self.store().acknowledged(Delta::Written(object)).await;
        }
        if !is_there {
            self.store().acknowledged(Delta::Gone(ObjectKey::new(namespace, name), uid.into())).await;
        }
        Ok(())
    }

    /// Returns `true` if the watch brings this state of an object, a later one, or its end, within this time.
    pub(crate) async fn arrives(&self, key: &ObjectKey, uid: &Uid, version: &Version, within: Duration) -> bool {
        tokio::time::timeout(within, self.store().wait_for(key, uid, version)).await.is_ok()
    }
}
