//! Field ownership of all writes (`update`), and server-side apply (`apply`). Takes objects and their
//! schema, returns objects with `metadata.managedFields`; does no I/O.
//!
//! | Module | Does |
//! |---|---|
//! | `shape` | the merge behaviour of each position: scalar, list, map, atomic |
//! | `field_set` | sets of field paths in `FieldsV1` form |
//! | `typed` | the field set of a value, and the comparison of two values |
//! | `managed` | the entries of `managedFields` |
//! | `validate` | the types of values |
//! | `merge`, `prune` | the applied object into the live one, and removed fields out of it |
//! | `versions`, `adapt` | managers of other versions and of older schemas |
//! | `last_applied` | kubectl's migration from client-side apply |
//!
//! Upstream: `sigs.k8s.io/structured-merge-diff` and `k8s.io/apimachinery/pkg/util/managedfields/internal`.
//!
//! Terms of structured-merge-diff and of this module: a typed value is a value with a `Position`. A path is a list of
//! `PathElement`s, and a set is a `FieldSet`. Ownership is decided on sets alone, so the order of map fields and of
//! most lists does not matter.
//!
//! Rules that hold throughout:
//!
//! - An apply owns the fields that it sends, even if their values are unchanged; an update owns the fields that it
//!   changes.
//! - A conflict is a field that another manager owns and whose value would change.
//! - A field that a manager stops applying is removed, if no other manager owns it.

mod adapt;
pub(crate) mod field_set;
mod last_applied;
pub(crate) mod managed;
pub(crate) mod merge;
mod prune;
mod resets;
pub(crate) mod shape;
pub(crate) mod typed;
pub(crate) mod validate;
mod versions;
mod zero;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use self::{
    adapt::adapt_managers,
    field_set::{FieldSet, path_text},
    managed::{Managed, Manager, Operation, Owned, stripped_fields},
    merge::merge_into,
    prune::prune,
    shape::Position,
    typed::{field_set, is_equal},
    validate::{Duplicates, validate},
    versions::Changes,
    zero::{is_built_in, zero},
};
pub(crate) use self::{
    resets::Resets,
    versions::{ONE_FORM, Versions},
};

use crate::{json_path::value_at, registry::kind::Subresource, schema::Schema};

/// The manager of fields that existed before the first apply, if the object had no managers (`NewSkipNonAppliedManager`
/// upstream).
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The bytes of the paths in a conflict error. Beyond them, no further conflict is reported: a path repeats the keys
/// above it, so the paths of a small object could take gigabytes.
const CONFLICT_PATHS_SIZE_MAX: usize = 1024 * 1024;

/// A write of an object and its field manager.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The schema of the kind. Without one, objects are merged by field, and a list is one value.
    pub schema: Option<Schema<'a>>,
    /// The name of the field manager.
    pub manager: &'a str,
    /// The subresource of the request.
    pub subresource: Subresource,
    /// The `apiVersion` of the request.
    pub api_version: &'a str,
    /// The other versions of the kind, in which managers may own fields.
    pub versions: &'a dyn Versions,
    /// The current time: RFC 3339, in whole seconds.
    pub now: &'a str,
    /// `true` if `status` is only writable through its subresource.
    pub has_status: bool,
    /// The fields that the write resets, because they are not writable through this endpoint.
    pub resets: Resets,
    /// `true` to take over fields of other managers that are applied with different values (`force=true`).
    pub force: bool,
}

impl<'a> Request<'a> {
    /// Returns the root position of the object.
    fn position(&self) -> Position<'a> {
        Position::root(self.schema)
    }

    /// Returns `true` if objects may differ between a version and the version of the request.
    fn differs(&self, api_version: &str) -> bool {
        api_version != self.api_version && self.versions.differ(api_version, self.api_version)
    }
}

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The manager that owns the field.
    pub manager: Manager,
    /// The path of the field, such as `.data.a`.
    pub field: String,
}

impl Conflict {
    /// Returns the message of the `details.causes` entry with the reason `FieldManagerConflict`.
    pub(crate) fn message(&self) -> String {
        let Manager { name, subresource, .. } = &self.manager;
        let through = if subresource.is_empty() { String::new() } else { format!(" with subresource {subresource:?}") };
        format!("conflict with {name:?}{through}")
    }
}

/// The reason why an apply failed. The object is unchanged.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum ApplyError {
    /// Other managers own fields with other values; the client may force the apply. Clients see 409 `Conflict`. Only
    /// the first conflicts are reported if there are many with long paths.
    #[error("{}", conflict_text(.0))]
    Conflicts(Vec<Conflict>),
    /// The applied object has `metadata.managedFields`. Clients see 400 `BadRequest`.
    #[error("metadata.managedFields: must not be applied")]
    ManagedFieldsApplied,
    /// The applied object has another `apiVersion` than the request. Clients see 400 `BadRequest`.
    #[error("apiVersion: must be the version in the URL")]
    IncorrectVersion,
    /// The object can't be converted to the version of another manager. Clients see an internal error.
    #[error("{0}")]
    Unconverted(String),
    /// A value of the applied or live object does not match the schema of its type. Clients see an internal error.
    #[error("the {role} object does not fit its schema: {reason}")]
    Untyped {
        /// `patch` or `live`.
        role: &'static str,
        /// The error, with the path of the value.
        reason: String,
    },
}

/// Returns the message of a conflict error: each field with its owner.
fn conflict_text(conflicts: &[Conflict]) -> String {
    let each = conflicts.iter().map(|conflict| format!("{}: {}", conflict.field, conflict.message()));
    format!("Apply failed with conflicts: {}", each.collect::<Vec<_>>().join(", "))
}

/// Applies an object. Returns the live object with the applied fields and with `metadata.managedFields`. Fields that
/// the manager no longer applies, and that no other manager owns, are removed. The fields of managers that wrote
/// another version are compared in that version.
///
/// # Errors
/// Returns an [`ApplyError`]; the live object is unchanged.
pub(crate) fn apply(request: &Request<'_>, live: Option<&Value>, applied: &Value) -> Result<Value, ApplyError> {
    let version = applied.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if version != request.api_version {
        return Err(ApplyError::IncorrectVersion);
    }
    if value_at(applied, ["metadata", "managedFields"]).is_some_and(validate::is_list_of_objects) {
        return Err(ApplyError::ManagedFieldsApplied);
    }
    let mut managed = live.map(Managed::from_object).unwrap_or_default();
    let nothing = Value::Object(Map::new());
    let live = live.unwrap_or(&nothing);
    if managed.is_empty() && live.as_object().is_some_and(|live| !live.is_empty()) {
        let before = Request { manager: BEFORE_FIRST_APPLY, ..*request };
        let written = written_part(request, live);
        managed = own_changes(&before, &zero(request.schema, &written), &written, managed)
            .map_err(ApplyError::Unconverted)?;
    }
    validate_types(request, "patch", applied, None, Duplicates::Rejected)?;
    validate_types(request, "live", live, Some(applied), Duplicates::Allowed)?;
    let managed = adapt_managers(request, live, managed).map_err(ApplyError::Unconverted)?;
    let (mut object, managed) = apply_typed(request, live, applied, managed)?;
    last_applied::refresh(request, &mut object, applied);
    managed.write(&mut object);
    Ok(object)
}

/// Returns the part of the object that the request writes: the status through its subresource, or everything else.
fn written_part(request: &Request<'_>, live: &Value) -> Value {
    let Value::Object(fields) = live else { return live.clone() };
    let is_status = request.subresource.is_status();
    let is_written = |name: &str| match name {
        "status" => is_status || !request.has_status,
        "metadata" => !is_status || is_built_in(request.schema, live),
        "apiVersion" | "kind" => true,
        _ => !is_status,
    };
    let written = fields.iter().filter(|(name, _)| is_written(name));
    Value::Object(written.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Validates the types of an object. Parts that are equal to an object that was validated before are skipped.
fn validate_types(
    request: &Request<'_>,
    role: &'static str,
    object: &Value,
    checked: Option<&Value>,
    duplicates: Duplicates,
) -> Result<(), ApplyError> {
    validate(request.position(), object, checked, duplicates).map_err(|reason| ApplyError::Untyped { role, reason })
}

/// Returns a copy without `metadata.managedFields`, which is often larger than the rest of an object.
pub(crate) fn without_managed_fields(object: &Value) -> Value {
    let bare = |metadata: &Value| match metadata {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "managedFields");
            Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        other => other.clone(),
    };
    let Value::Object(fields) = object else { return object.clone() };
    let copied =
        |(name, value): (&String, &Value)| (name.clone(), if name == "metadata" { bare(value) } else { value.clone() });
    Value::Object(fields.iter().map(copied).collect())
}

/// Applies an object (`Updater.Apply` upstream, structured-merge-diff, `merge/update.go`).
///
/// 1. Merges the applied object into the live one.
/// 2. Removes fields that the manager applied last time and no longer applies, unless another manager owns them.
/// 3. Compares the result with the live object: a changed field of another manager is a conflict. Exceptions are a
///    forced apply, and a live value that kubectl has applied on the client side.
/// 4. Takes the changed fields from all other managers.
fn apply_typed(
    request: &Request<'_>,
    live: &Value,
    applied: &Value,
    mut managed: Managed,
) -> Result<(Value, Managed), ApplyError> {
    let position = request.position();
    let manager = Manager::applier(request.manager, request.subresource.as_str());
    let mut merged = without_managed_fields(live);
    merge_into(position, &mut merged, applied);
    let last = managed.get(&manager).cloned().unwrap_or_default();
    let set = request.resets.without_reset_fields(field_set(position, applied));
    let mut owned = Owned { set, api_version: request.api_version.to_owned(), time: last.time.clone() };
    let is_one_version = !managed.iter().any(|(_, owned)| request.differs(&owned.api_version));
    managed.insert(manager.clone(), owned.clone());
    // A manager that still applies all of its fields removes nothing.
    let removes_nothing = is_one_version && last.set.is_subset(&owned.set);
    let object = if removes_nothing || last.set.is_empty() {
        merged
    } else {
        prune(request, &merged, &managed, &last)
            .map_err(|why| ApplyError::Unconverted(format!("failed to prune fields: {why}")))?
    };
    let changes =
        Changes::between(request, live, &object, &managed, Some(&manager)).map_err(ApplyError::Unconverted)?;
    if !request.force {
        let conflicts = last_applied::without_allowed(request, live, conflicts(&managed, &manager, &changes));
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(reported_conflicts(&conflicts)));
        }
    }
    changes.take_from_others(&mut managed, Some(&manager));
    owned.set = owned.set.difference(stripped_fields());
    // A manager that gains fields without a change of the object keeps its time, or gets none.
    if !is_equal_but_managers(live, &object) {
        owned.time = Some(request.now.to_owned());
    }
    managed.insert(manager, owned);
    Ok((object, managed))
}

/// Returns `true` if an object without managers equals the live object without its managers. A copy of the live object
/// without them would cost as much as the merge.
fn is_equal_but_managers(live: &Value, object: &Value) -> bool {
    let (Value::Object(live), Value::Object(object)) = (live, object) else { return live == object };
    let is_same = |(name, before): (&String, &Value)| {
        object.get(name).is_some_and(|after| match (before, after) {
            (Value::Object(before), Value::Object(after)) if name == "metadata" => {
                let mut fields = before.iter().filter(|(name, _)| *name != "managedFields");
                fields.clone().count() == after.len()
                    && fields.all(|(name, before)| after.get(name).is_some_and(|after| is_equal(before, after)))
            }
            _ => is_equal(before, after),
        })
    };
    live.len() == object.len() && live.iter().all(is_same)
}

/// Returns the fields of each other manager that have changed.
fn conflicts<'m>(managed: &'m Managed, manager: &Manager, changes: &Changes) -> Vec<(&'m Manager, FieldSet)> {
    let others = managed.iter().filter(|(other, _)| *other != manager);
    let sets = others.map(|(other, owned)| (other, owned.set.intersection(changes.set_in(&owned.api_version))));
    sets.filter(|(_, set)| !set.is_empty()).collect()
}

/// Returns the conflicts that an error reports: all, until their paths have more than [`CONFLICT_PATHS_SIZE_MAX`] bytes
/// together.
fn reported_conflicts(conflicts: &[(&Manager, FieldSet)]) -> Vec<Conflict> {
    let all = conflicts.iter().flat_map(|(manager, set)| set.paths().into_iter().map(move |path| (*manager, path)));
    let reported = all.map(|(manager, path)| Conflict { manager: manager.clone(), field: path_text(&path) });
    let mut size = 0;
    reported
        .take_while(|conflict| {
            let fits = size <= CONFLICT_PATHS_SIZE_MAX;
            size += conflict.field.len();
            fits
        })
        .collect()
}

/// Updates `metadata.managedFields` after a create, update or patch: the manager takes over the changed fields, and
/// removed fields have no owner. If nothing has changed, nothing is written, not even the time.
///
/// Entries sent by the client replace the entries of the live object. An empty list, or a list with one empty entry,
/// removes all managers. Malformed entries, and entries sent to a subresource, are ignored. The live entries
/// are kept unchanged if an object can't be converted to the version of a manager, or does not fit its schema
/// (`UpdateNoErrors`).
pub(crate) fn update(request: &Request<'_>, live: Option<&Value>, new: &mut Value) {
    let sent = value_at(new, ["metadata", "managedFields"]).filter(|sent| !sent.is_null());
    let live_managed = || live.map(Managed::from_object).unwrap_or_default();
    let managed = match sent {
        Some(_) if !request.subresource.is_main() => live_managed(),
        Some(Value::Array(entries)) if removes_managers(entries) => Managed::default(),
        Some(sent) => Managed::decode(sent).unwrap_or_else(live_managed),
        None => live_managed(),
    };
    if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    // Objects without managers remain without managers until an apply.
    let is_untracked = live.is_some() && managed.is_empty();
    let managed = match live {
        _ if is_untracked => Ok(managed),
        Some(live) => own_changes(request, live, new, managed),
        None => own_changes(request, &zero(request.schema, new), new, managed),
    };
    managed.unwrap_or_else(|_why| live_managed()).write(new);
}

/// Returns `true` if the sent entries remove all managers: an empty list, or one empty entry.
fn removes_managers(entries: &[Value]) -> bool {
    match entries {
        [] => true,
        // Go omits empty fields of the entry.
        [Value::Object(entry)] => entry.values().all(|value| value.is_null() || value == ""),
        _ => false,
    }
}

/// Makes the manager the owner of the changed fields (`Updater.Update` upstream, structured-merge-diff,
/// `merge/update.go`). Changed and removed fields are taken from all managers, then the changed ones are added to this
/// manager. If there are too many managers, the oldest are merged ([`Managed::cap_updaters`]). Fails if an object
/// cannot be converted to the version of a manager, or does not fit its schema.
fn own_changes(request: &Request<'_>, old: &Value, new: &Value, managed: Managed) -> Result<Managed, String> {
    let position = request.position();
    validate(position, new, None, Duplicates::Allowed)?;
    validate(position, old, Some(new), Duplicates::Allowed)?;
    let mut managed = adapt_managers(request, old, managed)?;
    let changes = Changes::between(request, old, new, &managed, None)?;
    changes.take_from_others(&mut managed, None);

    let taken = changes.changed_fields().difference(stripped_fields());
    if !taken.is_empty() {
        let manager = Manager::updater(request.manager, request.api_version, request.subresource.as_str());
        let set = managed.get(&manager).map_or_else(|| taken.clone(), |before| before.set.union(&taken));
        let set = request.resets.without_reset_fields(set);
        let (api_version, time) = (request.api_version.to_owned(), Some(request.now.to_owned()));
        debug_assert_eq!(manager.operation, Operation::Update, "only appliers own without a change");
        managed.insert(manager, Owned { set, api_version, time });
    }
    managed.cap_updaters();
    Ok(managed)
}
