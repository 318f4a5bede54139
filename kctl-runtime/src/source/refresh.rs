//! Reads concurrently with the watch, after a write whose outcome is unknown.
//!
//! A write without a response may have happened. The watch would report it some time, but a reconcile that starts
//! before that might repeat it. It would create a second object, or count one too few. So the [worker](crate::worker)
//! reads here first, through `UncertainWrites::resolve`, and calls the reconcile function after the response. The
//! [writer](crate::writer) uses the same reads if the response to a write lacks the object.
//!
//! The response comes from the newest state, not from the watch cache of the API server. It enters the store as a delta
//! with versions, so an older event of the watch that arrives later changes nothing.

use std::{sync::Arc, time::Duration};

use super::{METADATA_LIST, Source, check::Arrival, reflector::Input};
use crate::{
    key::ObjectKey,
    object::{Uid, Version},
    store::{Delta, NamespaceScope},
    transport::{self, ApiError},
};

impl Source {
    /// Lists a namespace and applies the result. After that the cache contains the effect of every write that the API
    /// server has executed, also of one without a response.
    ///
    /// A source that follows all namespaces lists only the one of the write. With versions that are not numbers that is
    /// not safe, and the whole followed scope is listed. A namespace that is not followed needs no refresh.
    ///
    /// # Errors
    /// The list fails. The caller keeps its write as uncertain and tries again.
    pub(crate) async fn refresh(&self, scope: &NamespaceScope) -> Result<(), ApiError> {
        let followed = self.scopes();
        let Some(whole) = [scope, &None].into_iter().find(|scope| followed.has(scope)) else { return Ok(()) };
        let (objects, version) = match self.state(scope).await {
            // The optional kind is not served, so no object of it exists, whatever the write did.
            Err(error) if self.confirm_absence(scope, &error) => return Ok(()),
            state => state?,
        };
        if version.parse::<u64>().is_ok() {
            self.store().push_and_wait(Delta::ListDuringWatch(scope.clone(), objects, version)).await;
            return Ok(());
        }
        // Versions that are not numbers have no order, so the list replaces the whole scope, like a list of the reflector.
        let (objects, version) = if whole == scope { (objects, version) } else { self.state(whole).await? };
        self.store().push_and_wait(Delta::Replace(whole.clone(), objects, version)).await;
        Ok(())
    }

    /// Reads one object whose uid is known, and applies the result, like [`refresh`](Self::refresh).
    ///
    /// It is cheaper than `refresh`: one list with `metadata.name` as its field selector, which every API server
    /// supports. A list has a `resourceVersion` even if the object is gone; a GET with 404 has none.
    ///
    /// An object of the same name with another uid proves that this one is gone. With selectors the source
    /// can't tell "deleted" from "no longer selected", so it refreshes the namespace instead.
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh).
    pub(crate) async fn refresh_object(&self, namespace: Option<&str>, name: &str, uid: &str) -> Result<(), ApiError> {
        let scope = namespace.map(Arc::from);
        let is_selective = !self.config().labels.is_empty() || !self.config().fields.is_empty();
        if is_selective || self.filter().is_some() {
            return self.refresh(&scope).await;
        }
        let key = ObjectKey::new(namespace, name);
        let unreadable_before = self.unreadable(&key);
        let operation = self.config().operation("list");
        let path = transport::list_by_name(&self.config().kind.path(namespace), name);
        let response = match transport::list_few(self.client(), &operation, &path, self.accepts(METADATA_LIST)).await {
            Err(error) if self.confirm_absence(&scope, &error) => return Ok(()),
            response => response?,
        };
        let input = self.read_list(&operation, response, Arrival::ListedDuringWatch).await?;
        let Input::Page { objects, version, .. } = input else { return Ok(()) };
        let Ok(list) = version.parse::<u64>() else { return self.refresh(&scope).await };
        // An unreadable object is in the list, and not among the accepted ones. One that is later than the list still
        // existed after it.
        let is_unreadable = self.unreadable(&key).is_some_and(|one| {
            let was_in_list = unreadable_before.is_none_or(|before| !Arc::ptr_eq(&before, &one));
            let is_later = one.stored.meta().revision() > Some(list);
            (was_in_list || is_later) && one.stored.meta().uid == *uid
        });
        let exists = is_unreadable || objects.iter().any(|object| object.meta().uid == *uid);
        for object in objects {
            self.store().push_and_wait(Delta::Written(object)).await;
        }
        if !exists {
            self.store().push_and_wait(Delta::Gone(key, uid.into())).await;
        }
        Ok(())
    }

    /// Returns `true` if the watch delivers this version of an object, a later one, or its deletion before `within` has
    /// passed.
    pub(crate) async fn wait_for_version(
        &self,
        key: &ObjectKey,
        uid: &Uid,
        version: &Version,
        within: Duration,
    ) -> bool {
        tokio::time::timeout(within, self.store().wait_for(key, uid, version)).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use k8s_openapi::api::core::v1::Pod;
    use kube::{Client, client::Body};
    use tower::service_fn;

    use super::*;
    use crate::source::{Reflector, WatchConfig};

    fn json(version: u64, spec: &str) -> String {
        let meta = format!(r#"{{"name":"x","namespace":"a","uid":"1","resourceVersion":"{version}"}}"#);
        format!(r#"{{"metadata":{meta},"spec":{spec}}}"#)
    }

    #[tokio::test]
    async fn unreadable_object_later_than_list_is_not_gone() {
        let server = service_fn(|_request: http::Request<Body>| async {
            let list = format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":[{}]}}"#, json(9, "false"));
            Ok::<_, Infallible>(http::Response::new(Body::from(list.into_bytes())))
        });
        let source = Source::new(Client::new(server, "default"), WatchConfig::of::<Pod>(), Arc::default());
        let _readers = source.view::<Pod>();
        tokio::spawn(source.store().clone().write());
        source.store().push_and_wait(Delta::Replace(None, Vec::new(), "8".into())).await;
        let event = format!(r#"{{"type":"MODIFIED","object":{}}}"#, json(12, "false"));
        source.read_event(event.as_bytes(), &Reflector::new(None), &mut Vec::new()).unwrap();
        source.refresh_object(Some("a"), "x", "1").await.unwrap();
        let newest = source.newest(&ObjectKey::new(Some("a"), "x")).unwrap();
        assert_eq!(newest.meta().resource_version.to_string(), "12");
        let repaired = source.accept(&json(13, r#"{"containers":[]}"#)).unwrap();
        source.store().push_and_wait(Delta::Apply(repaired)).await;
        assert_eq!(source.store().len(), 1, "it was not taken for deleted");
    }

    #[tokio::test]
    async fn unreadable_object_that_is_read_is_not_gone() {
        let server = service_fn(|_request: http::Request<Body>| async {
            let list = format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":[{}]}}"#, json(9, "false"));
            Ok::<_, Infallible>(http::Response::new(Body::from(list.into_bytes())))
        });
        let source = Source::new(Client::new(server, "default"), WatchConfig::of::<Pod>(), Arc::default());
        let _readers = source.view::<Pod>();
        tokio::spawn(source.store().clone().write());
        source.store().push_and_wait(Delta::Replace(None, Vec::new(), "8".into())).await;
        source.refresh_object(Some("a"), "x", "1").await.unwrap();
        let repaired = source.accept(&json(12, r#"{"containers":[]}"#)).unwrap();
        source.store().push_and_wait(Delta::Apply(repaired)).await;
        assert_eq!(source.store().len(), 1);
    }

    #[tokio::test]
    async fn optional_kind_is_missing_once_reflector_agrees() {
        let starting = service_fn(|_request: http::Request<Body>| async {
            Ok::<_, Infallible>(http::Response::builder().status(404).body(Body::empty()).unwrap())
        });
        let config = WatchConfig::of::<Pod>().optional();
        let source = Source::new(Client::new(starting, "default"), config, Arc::default());
        tokio::spawn(source.store().clone().write());
        let empty = Delta::Replace(None, Vec::new(), "8".into());
        for (state, is_confirmed) in [(empty, false), (Delta::Absent(None), true)] {
            source.store().push_and_wait(state).await;
            assert_eq!(source.refresh(&Some("a".into())).await.is_ok(), is_confirmed);
            assert_eq!(source.refresh_object(Some("a"), "x", "1").await.is_ok(), is_confirmed);
        }
    }
}
