//! Removes fields that a manager no longer applies, unless another manager owns them.
//!
//! Upstream: `prune`, `addBackOwnedItems` and `addBackDanglingItems` of `Updater` in structured-merge-diff,
//! `merge/update.go`.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;

use super::{
    Request,
    field_set::FieldSet,
    managed::{Managed, Owned},
    merge::{remove_items, with_named_fields},
    shape::Position,
    typed::field_set,
};

/// An object in one version, with its root position there.
struct Read<'o, 'a> {
    /// The object in the version.
    object: Cow<'o, Value>,
    /// Its root position. Positions belong to the schema of that version.
    position: Position<'a>,
}

impl<'o, 'a> Read<'o, 'a> {
    /// Converts an object to a version.
    fn convert(request: &Request<'a>, object: &'o Value, api_version: &str) -> Result<Self, String> {
        let object = request.read(object, api_version)?;
        let position = request.position_in(api_version, &object);
        Ok(Self { object, position })
    }

    /// Returns a set with the named fields on its paths as members (`EnsureNamedFieldsAreMembers` upstream).
    fn with_named_members(&self, set: &FieldSet) -> FieldSet {
        with_named_fields(self.position, set)
    }

    /// Returns the field set of the object.
    fn fields(&self) -> FieldSet {
        self.with_named_members(&field_set(self.position, &self.object))
    }

    /// Returns the object without the fields of a set. Removes items of lists by their elements.
    fn without(&self, set: &FieldSet) -> Value {
        remove_items(self.position, &self.object, set)
    }
}

/// Removes the fields that the manager applied last time, unless it or another manager owns them now (`Updater.prune`
/// upstream). The fields of each manager are looked up in the version in which it owns them. There are three steps. All
/// fields that the manager applied last are removed, the fields that other managers own are restored, and then children
/// that were removed only with their parent. The result is in the version of the request.
///
/// # Errors
/// Fails if the object cannot be converted to one of the versions.
pub(super) fn prune(request: &Request<'_>, merged: &Value, managed: &Managed, last: &Owned) -> Result<Value, String> {
    let version = last.api_version.as_str();
    let there = Read::convert(request, merged, version)?;
    let last = there.with_named_members(&last.set);
    let pruned = add_back_owned(request, &there.object, there.without(&last), managed, version)?;
    // Children of a removed field are kept if they were not applied.
    let pruned = Read::convert(request, &pruned, version)?;
    let gone = there.fields().difference(&pruned.fields()).intersection(&last);
    Ok(request.read(&there.without(&gone), request.api_version)?.into_owned())
}

/// Restores fields that other managers own. Starts with the version in which the fields were removed, since a converter
/// may need a removed field (`Updater.addBackOwnedItems` upstream). Sets of versions that name fields alike are united
/// first, so each version costs one conversion.
fn add_back_owned(
    request: &Request<'_>,
    merged: &Value,
    mut pruned: Value,
    managed: &Managed,
    first: &str,
) -> Result<Value, String> {
    // The manager's own version is always included, even if the manager no longer owns anything.
    let mut owned_in = BTreeMap::from([(request.api_version, FieldSet::default())]);
    for (_, owned) in managed.iter() {
        // Versions that do not differ are treated as one.
        let version =
            if request.differs(&owned.api_version) { owned.api_version.as_str() } else { request.api_version };
        let all = owned_in.entry(version).or_default();
        *all = all.union(&owned.set);
    }
    let first = if request.differs(first) { first } else { request.api_version };
    let begin = owned_in.remove_entry(first);
    for (version, owned) in begin.into_iter().chain(owned_in) {
        let merged = Read::convert(request, merged, version)?;
        let left = Read::convert(request, &pruned, version)?;
        let remaining = left.fields().union(&merged.with_named_members(&owned));
        pruned = merged.without(&merged.fields().difference(&remaining));
    }
    Ok(pruned)
}
