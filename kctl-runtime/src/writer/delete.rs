//! Deletes objects and collections.

use std::sync::Arc;

use http::Method;
use kctl_apimachinery::url;
use serde_json::json;

use super::{
    Writer,
    deletion::{Deletion, Stage},
    propagation::Propagation,
    response::store_written,
    send::{SentWrite, encode},
    target::Target,
};
use crate::{
    own_writes,
    queue::BackoffEffect,
    store::Delta,
    transport::{ApiError, RequestBody},
};

impl Writer {
    /// Deletes the object with this uid, and no later object of the same name.
    ///
    /// Succeeds if the object is gone already. `policy` is the propagation policy, `None` leaves it to the
    /// server. The store drops the object at once unless a finalizer or a grace period holds it. A Namespace is held until
    /// it is empty.
    ///
    /// # Errors
    /// 409 if another object has the name now: the uid is a precondition. A 404 that names the object is success; a 404
    /// for the whole kind is not, because then nothing is known about the object.
    pub(crate) async fn delete(
        &self,
        target: &Target<'_>,
        uid: &str,
        policy: Option<Propagation>,
    ) -> Result<(), ApiError> {
        let operation = target.operation("delete");
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
        if let Some(policy) = policy {
            options["propagationPolicy"] = policy.name().into();
        }
        let body = encode(&operation, &options)?;
        let path = self.path(target, &operation, "", "")?;
        let response = self.send(target, &operation, Method::DELETE, &path, Some(RequestBody::json(body))).await;
        let gone = || Delta::Gone(target.key(), uid.into());
        let store = target.source.store();
        match response {
            // The response is a `Status` if the object is gone. Otherwise it is the object, which may be terminating or gone.
            Ok(SentWrite { text, uncertain }) => {
                let deletion = Deletion::from_response(target.kind(), &text).filter(|deletion| deletion.uid == *uid);
                if deletion.is_none_or(|deletion| deletion.stage == Stage::Ended) {
                    store.push_and_wait(gone()).await;
                    uncertain.mark_resolved();
                } else if let Ok(object) = target.source.accept(&text) {
                    store_written(target, &operation, object, uncertain, BackoffEffect::End).await;
                } else {
                    // It exists and can't be decoded, so the cache keeps its last readable state until the watch reports its end.
                    uncertain.mark_resolved();
                }
                own_writes::record_delete(&uid.into());
                Ok(())
            }
            // The object is gone already. A 404 for the kind itself, for example of a CRD that is not installed yet, proves
            // nothing about the object.
            Err(error) if error.is_object_missing() => {
                store.push_and_wait(gone()).await;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes all objects of a namespace that match a label selector, then lists the namespace.
    ///
    /// The response does not name the deleted objects, so a list brings the cache up to date.
    ///
    /// Objects that were created between the decision and the request are deleted too: the request names no uid.
    pub(crate) async fn delete_collection(
        &self,
        target: &Target<'_>,
        labels: &str,
        policy: Option<Propagation>,
    ) -> Result<(), ApiError> {
        let operation = target.operation("deletecollection");
        let labels = url::escape(labels);
        let policy = policy.map_or(String::new(), |policy| format!("&propagationPolicy={}", policy.name()));
        let path = format!("{}?labelSelector={labels}{policy}", target.kind().path(target.namespace));
        let done = self.send(target, &operation, Method::DELETE, &path, None).await?;
        match target.source.refresh(&target.namespace.map(Arc::from)).await {
            Ok(()) => done.uncertain.mark_resolved(),
            Err(error) => {
                tracing::debug!(
                    %operation,
                    %error,
                    "failed to list the namespace after this write; it is listed before the next reconcile"
                );
            }
        }
        Ok(())
    }
}
