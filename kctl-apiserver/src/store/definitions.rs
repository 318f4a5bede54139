//! Decides how a change of a CRD or an `APIService` changes the resources that are served.
//!
//! `Store::record_event` calls this module for each write of them. The two effects of a CRD are independent: one whose
//! labels change rebuilds the registry and ends no watch.
//!
//! The effects are applied inside the store, and not by a controller that the store announces the change to, as quotas
//! and roles are. Controllers observe a change only after the request or the pass that made it, which is too late for
//! each of these:
//!
//! - The registry has to be right before the next write and the next request. `Owners::update` looks up the kinds of
//!   owners in it at each write, one pass of a controller may write several CRDs, and each request is parsed with it.
//! - Stored objects are decoded again with the new schema before anyone reads them.
//! - Watches of the resource end at the revision of the write itself, so that a watch sends all events before it and
//!   none after it.

use serde_json::Value;

use super::{Event, Object};
use crate::{crd, status::GroupResource};

/// The effect of a change of a CRD.
#[derive(Default)]
pub(super) struct Redefinition {
    /// `true` if the resource is served now, or was served before: the registry has to be rebuilt.
    pub(super) is_served: bool,
    /// The resource, if its spec or its accepted names changed or it was deleted. All watches of it then end without an
    /// event, as upstream, where the storage of the old version is torn down (`customresource_handler.go`). Metadata
    /// and conditions do not count.
    pub(super) resource: Option<GroupResource>,
}

impl Redefinition {
    /// Compares the states of a CRD before and after an event. A new CRD ends no watches, since none can exist before
    /// it is served.
    pub(super) fn from_event(event: &Event) -> Self {
        let after = event.object.value();
        let Some(before) = event.before.as_ref().map(|before| before.value()) else {
            return Self { is_served: crd::is_established(&after), ..Self::default() };
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (spec, names) = (&before["spec"], "acceptedNames");
        let is_renamed = before["status"][names] != after["status"][names];
        let redefined = || GroupResource::new(&text(&spec["group"]), &text(&spec["names"]["plural"]));
        Self {
            is_served: crd::is_established(&before) || crd::is_established(&after),
            resource: (event.deleted || *spec != after["spec"] || is_renamed).then(redefined),
        }
    }
}

/// Returns `true` if the write of an `APIService` changes the groups that are served here. One with `spec.service` moves
/// its group to another server.
pub(super) fn changes_delegation(event: &Event) -> bool {
    let is_remote = |object: &Object| object.value()["spec"]["service"].is_object();
    is_remote(&event.object) || event.before.as_ref().is_some_and(|before| is_remote(before))
}
