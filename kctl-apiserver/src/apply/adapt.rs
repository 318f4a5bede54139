//! Adapts managers to a changed schema: their field sets were computed with an older one.
//!
//! Upstream: `reconcileManagedFieldsWithSchemaChanges` and `reconcile_schema.go` of structured-merge-diff. A manager of
//! parts of a value that is atomic now owns all of it. A manager of an atomic value that has parts now keeps owning the
//! value.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Request, field_set::FieldSet, managed::Managed, shape::Position};

/// Returns the managers of a live object, adapted to the present schemas of their versions. Built-in schemas never
/// change within a version, so the work is skipped for them. It runs before each apply and update of a custom object.
///
/// # Errors
/// Fails if the object cannot be converted to the version of a manager.
pub(super) fn adapt_managers(request: &Request<'_>, live: &Value, mut managed: Managed) -> Result<Managed, String> {
    if !request.versions.may_have_changed() {
        return Ok(managed);
    }
    let versions: BTreeSet<String> = managed.iter().map(|(_, owned)| owned.api_version.clone()).collect();
    for version in &versions {
        let live = request.read(live, version)?;
        let position = request.position_in(version, &live);
        managed.replace(version, |set| fit_set(position, set));
    }
    Ok(managed)
}

/// Returns a set without paths below atomic values, or `None` if there are no such paths. The paths below an atomic
/// value are replaced by the value itself, once.
fn fit_set(position: Position<'_>, set: &FieldSet) -> Option<FieldSet> {
    let mut changed = None;
    for (element, below) in set.children() {
        let position = position.step(element);
        if position.is_one_value() {
            let fitted: &mut FieldSet = changed.get_or_insert_with(|| set.clone());
            fitted.replace_below(element, FieldSet::default());
            fitted.insert(std::slice::from_ref(element));
        } else if let Some(below) = fit_set(position, below) {
            changed.get_or_insert_with(|| set.clone()).replace_below(element, below);
        }
    }
    changed
}
