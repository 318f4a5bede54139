//! What a change of a definition means for what is served. Reads the event, and hands on what has to follow.

use std::{collections::BTreeSet, sync::LazyLock};

use serde_json::Value;

use super::{Event, Table};
use crate::{crd, status::GroupResource};

/// The resource whose objects define others.
pub(crate) static DEFINITIONS: LazyLock<GroupResource> =
    LazyLock::new(|| GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions"));

/// What follows from a change of a definition.
#[derive(Default)]
pub(super) struct Redefinition {
    /// The resource is served, or was so until now.
    pub(super) is_served: bool,
    /// The resource that is no longer served as it was: then the real server ends all watches of it, without a word
    /// (upstream, `customresource_handler.go`). Metadata and conditions do not count.
    pub(super) anew: Option<GroupResource>,
    /// The group in which names may have become free.
    pub(super) frees_names_in: Option<String>,
}

impl Redefinition {
    pub(super) fn by(event: &Event) -> Self {
        let after = event.object.value();
        let Some(before) = event.before.as_ref().map(|before| before.value()) else {
            return Self { is_served: crd::is_established(&after), ..Self::default() };
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (spec, names) = (&before["spec"], "acceptedNames");
        let is_renamed = before["status"][names] != after["status"][names];
        let of = || GroupResource::new(&text(&spec["group"]), &text(&spec["names"]["plural"]));
        Self {
            is_served: crd::is_established(&before) || crd::is_established(&after),
            anew: (event.deleted || *spec != after["spec"] || is_renamed).then(of),
            frees_names_in: (event.deleted || is_renamed).then(|| text(&spec["group"])),
        }
    }
}

/// The groups of definitions that wait for their names.
pub(super) fn groups_that_wait(definitions: &Table) -> BTreeSet<String> {
    let waiting = definitions.values(None).filter(|(_, definition)| !crd::has_its_names(definition));
    waiting.filter_map(|(_, definition)| definition["spec"]["group"].as_str().map(str::to_owned)).collect()
}
