//! Events with a related object and an action.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;

use super::Env;
use crate::{
    object::Stored,
    writer::{EventRecord, EventType},
};

/// A builder of Events on the primary, from [`cx.events()`](super::Context::events), with more fields than
/// [`Context::event`](super::Context::event) has:
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kctl_runtime::{writer::EventType::Normal, reconcile::{Context, Owns, Result}};
///
/// async fn replace<C: Owns<Pod>>(cx: &Context<C>) -> Result<()> {
///     let pods = cx.owned::<Pod>();
///     for pod in pods.iter().take(1) {
///         pods.delete(&pod).await?;
///         cx.events().related(&*pod).action("Replace").record(Normal, "PodReplaced", "its image changed");
///     }
///     Ok(())
/// }
/// ```
#[must_use = "no event is recorded before `record` is called"]
pub struct Events {
    pub(super) env: Arc<Env>,
    pub(super) primary: Arc<Stored>,
    related: Option<ObjectReference>,
    action: Option<String>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events")
            .field("primary", self.primary.key())
            .field("related", &self.related)
            .field("action", &self.action)
            .finish_non_exhaustive()
    }
}

impl Events {
    pub(super) fn new(env: Arc<Env>, primary: Arc<Stored>) -> Self {
        Self { env, primary, related: None, action: None }
    }

    /// Sets the field `related`, a second object that the event is about: the Pod that was created, the Node that was
    /// chosen.
    pub fn related<K: Resource<DynamicType = ()>>(self, object: &K) -> Self {
        self.related_to(object.object_ref(&()))
    }

    /// Sets the field `related` by a reference, for kinds that are known at run time only, or for a part of an object
    /// (`field_path`).
    pub fn related_to(mut self, object: ObjectReference) -> Self {
        self.related = Some(object);
        self
    }

    /// Sets the field `action`: the action that was taken or failed, a word such as `Scale`, of at most 128 bytes. The
    /// default is `Reconcile`.
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// Records the event, like [`Context::event`](super::Context::event). Events with different related objects or
    /// actions are not aggregated.
    pub fn record(self, kind: EventType, reason: &str, note: impl Into<String>) {
        let action = self.action.unwrap_or_else(|| EventRecord::ACTION.into());
        let record = EventRecord { kind, reason: reason.into(), note: note.into(), action, related: self.related };
        self.env.recorder.record(&self.env.spec, &self.primary, record);
    }
}
