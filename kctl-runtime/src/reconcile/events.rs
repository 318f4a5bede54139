//! What an event says beside its note: which other object has to do with it, and what was done.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;

use super::Env;
use crate::{
    effect::{EventType, Happening},
    object::Stored,
};

/// Tells of the primary, with more than [`Context::event`](super::Context::event) takes:
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kctl_runtime::{effect::EventType::Normal, reconcile::{Context, Owns, Result}};
///
/// async fn replace<C: Owns<Pod>>(cx: &Context<C>) -> Result<()> {
///     let pods = cx.owned::<Pod>();
///     for pod in pods.iter().take(1) {
///         pods.delete(&pod).await?;
///         cx.events().related(&*pod).action("Replace").record(Normal, "PodReplaced", "its image is another one");
///     }
///     Ok(())
/// }
/// ```
#[must_use = "nothing is told before `record`"]
pub struct Events {
    pub(super) env: Arc<Env>,
    pub(super) primary: Arc<Stored>,
    related: Option<ObjectReference>,
    action: Option<String>,
}

impl Events {
    pub(super) fn new(env: Arc<Env>, primary: Arc<Stored>) -> Self {
        Self { env, primary, related: None, action: None }
    }

    /// Names a second object that has to do with it, in the field `related`: the pod that was made, the node that was chosen.
    pub fn related<K: Resource<DynamicType = ()>>(self, object: &K) -> Self {
        self.related_to(object.object_ref(&()))
    }

    /// As [`related`](Self::related), by a reference: of kinds that are known at run time only, or of a part of an object
    /// (`field_path`).
    pub fn related_to(mut self, object: ObjectReference) -> Self {
        self.related = Some(object);
        self
    }

    /// Says what was done, or failed, in the field `action`: a word such as `Scale`, of at most 128 bytes. Without it the action is
    /// `Reconcile`.
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// Records the event, like [`Context::event`](super::Context::event). Events with different related objects or actions are not
    /// aggregated.
    pub fn record(self, kind: EventType, reason: &str, note: impl Into<String>) {
        let action = self.action.unwrap_or_else(|| Happening::ACTION.into());
        let happening = Happening { kind, reason: reason.into(), note: note.into(), action, related: self.related };
        self.env.recorder.record(&self.env.spec, &self.primary, happening);
    }
}
