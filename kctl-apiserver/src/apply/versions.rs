//! Who owns fields by another version of a kind: what changed is judged in that version.

use serde_json::Value;

use super::{
    Request,
    field_set::FieldSet,
    managed::{Managed, Manager},
    shape::Place,
    typed::{Comparison, compare},
};
use crate::{autoscaling, schema::Schema};

/// What differs between two states of an object, in the versions of those who own fields of it.
pub(super) struct Changes {
    /// In the version of the request.
    pub(super) here: Comparison,
    /// Added or changed in that version.
    pub(super) set: FieldSet,
    /// The same in another version.
    there: Option<(&'static str, Comparison, FieldSet)>,
}

impl Changes {
    pub(super) fn between(request: &Request<'_>, old: &Value, new: &Value, managed: &Managed) -> Self {
        let written = |compared: Comparison| Comparison {
            added: request.resets.left_of(compared.added),
            modified: request.resets.left_of(compared.modified),
            removed: request.resets.left_of(compared.removed),
        };
        let here = written(compare(request.place(), old, new));
        let set = here.modified.union(&here.added);
        let other = other_version(request.api_version);
        let other = other.filter(|other| managed.iter().any(|(_, owned)| owned.api_version == *other));
        let there = other.and_then(|version| {
            let schema = Schema::built_in(version, new.get("kind")?.as_str()?)?;
            let [old, new] = [old, new].map(|object| autoscaling::converted(version, object));
            let there = written(compare(Place::root(Some(schema)), &old, &new));
            let set = there.modified.union(&there.added);
            Some((version, there, set))
        });
        Self { here, set, there }
    }

    /// What was added or changed, in the words of a version.
    pub(super) fn set_in(&self, api_version: &str) -> &FieldSet {
        match &self.there {
            Some((version, _, set)) if *version == api_version => set,
            _ => &self.set,
        }
    }

    /// Takes what changed from every manager but one.
    pub(super) fn take_from_others(&self, managed: &mut Managed, manager: Option<&Manager>) {
        let elsewhere = self.there.as_ref().map(|(version, ..)| *version);
        let is_here = |version: &str| elsewhere != Some(version);
        for fields in [&self.set, &self.here.removed] {
            managed.take_from_others(fields, manager, is_here);
        }
        if let Some((_, there, set)) = &self.there {
            for fields in [set, &there.removed] {
                managed.take_from_others(fields, manager, |version| !is_here(version));
            }
        }
    }
}

/// The other version of the built-in kind that has two which differ.
fn other_version(api_version: &str) -> Option<&'static str> {
    match api_version {
        autoscaling::FIRST => Some(autoscaling::SECOND),
        autoscaling::SECOND => Some(autoscaling::FIRST),
        _ => None,
    }
}
