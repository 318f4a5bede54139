//! Managers whose fields were named by an older schema: reads the live object, hands on the managers as the schema is now.
//!
//! Upstream: `reconcileManagedFieldsWithSchemaChanges` and `reconcile_schema.go` of structured-merge-diff. Who owned parts of what is one
//! value now owns all of it; what was one value and has parts now stays owned as it was.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Request, field_set::FieldSet, managed::Managed, shape::Position};

/// The managers of a live object, as the schemas of their versions are now.
///
/// # Errors
/// The object is not to be had in the version of one of them.
pub(super) fn fit(request: &Request<'_>, live: &Value, mut managed: Managed) -> Result<Managed, String> {
    if !request.versions.may_have_changed() {
        return Ok(managed);
    }
    let versions: BTreeSet<String> = managed.iter().map(|(_, owned)| owned.api_version.clone()).collect();
    for version in &versions {
        let live = request.read(live, version)?;
        let place = request.place_in(version, &live);
        managed.replace(version, |set| fitted(place, set));
    }
    Ok(managed)
}

/// A set of fields without parts of what is one value; nothing when it is the same.
fn fitted(place: Position<'_>, set: &FieldSet) -> Option<FieldSet> {
    let mut changed = None;
    for (element, below) in set.children() {
        let place = place.step(element);
        if place.is_one_value() {
            let fitted: &mut FieldSet = changed.get_or_insert_with(|| set.clone());
            fitted.replace_below(element, FieldSet::default());
            fitted.insert(std::slice::from_ref(element));
        } else if let Some(below) = fitted(place, below) {
            changed.get_or_insert_with(|| set.clone()).replace_below(element, below);
        }
    }
    changed
}
