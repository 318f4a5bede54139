//! Defaulting: fills in the defaults of a structural schema.
//!
//! Defaults are filled in on each write, and again when an object is read from the store. The schema may have gained
//! new defaults since the object was stored. `validate` never sees a field whose default is missing.

use serde_json::Value;

use crate::{limits::BODY_LEN_MAX, schema::Schema};

/// Fills in the defaults of the schema: for missing fields, and for nulls that are not `nullable`. Fields of a
/// filled-in default get their own defaults. Then nulls are removed, except for those that are `nullable` or list
/// items.
///
/// Upstream: `algorithm.go` and `prunenulls.go` in `pkg/apiserver/schema/defaulting` of apiextensions-apiserver.
///
/// The schema must be structural: it has no defaults inside `anyOf` and the like. A root value that is not an object (a
/// scalar or `null`) is not changed.
pub(crate) fn default(schema: Schema, object: &mut Value) {
    apply_defaults(schema, object, &mut DefaultingState::new(NullHandling::Removed));
}

/// Fills in defaults like [`default`], and keeps nulls, because an applied object is validated with them.
///
/// Server-side apply keeps explicit nulls until the merged object has been validated.
pub(crate) fn default_with_nulls(schema: Schema, object: &mut Value) {
    apply_defaults(schema, object, &mut DefaultingState::new(NullHandling::Kept));
}

/// Maximum bytes of JSON that all defaults of one object add: a long default for each item of a list could exhaust
/// memory. Beyond it further defaults are left out, and the object is rejected for its size.
const FILLED_LEN_MAX: usize = 2 * BODY_LEN_MAX;

/// The state of defaulting one object.
struct DefaultingState {
    /// Fixed for the whole object.
    nulls: NullHandling,
    /// Bytes of JSON that further defaults may add; starts at [`FILLED_LEN_MAX`].
    left: usize,
}

impl DefaultingState {
    /// Creates the state with the full budget for defaults.
    fn new(nulls: NullHandling) -> Self {
        Self { nulls, left: FILLED_LEN_MAX }
    }

    /// Returns the default that the schema has for a value, while there is room for it.
    fn default_of(&mut self, schema: Schema<'_>) -> Option<Value> {
        let default = default_of(schema)?;
        if self.left == 0 {
            return None;
        }
        // The first default that does not fit uses up the rest, so no later default is measured.
        self.left = self.left.saturating_sub(default.to_string().len());
        (self.left > 0).then(|| default.clone())
    }
}

/// The treatment of nulls where the schema does not allow null and has no default.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NullHandling {
    /// Remove them, as kube-apiserver does after defaulting (`PruneNonNullableNullsWithoutDefaults`).
    Removed,
    /// Keep them for later validation, which reports them as values of the wrong type.
    Kept,
}

/// Fills in an object or a list. Defaults are inserted first, and then everything below is filled in, including those
/// defaults. A null that is not `nullable` counts as absent.
fn apply_defaults(schema: Schema, object: &mut Value, filling: &mut DefaultingState) {
    match object {
        Value::Object(fields) => {
            for (name, field) in schema.properties().filter(|(_, field)| default_of(*field).is_some()) {
                let is_absent = fields.get(name).is_none_or(|value| value.is_null() && !field.flag("nullable"));
                if is_absent && let Some(value) = filling.default_of(field) {
                    fields.insert(name.to_owned(), value);
                }
            }
            fields.retain(|name, value| {
                let Some(field) = schema.field(name) else { return true };
                entry(field, value, filling);
                filling.nulls == NullHandling::Kept || !value.is_null() || field.flag("nullable")
            });
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items() {
                for item in items {
                    entry(schema, item, filling);
                }
            }
        }
        _ => {}
    }
}

/// Fills in a map value or a list item. The entry exists, so only a null is replaced by the default itself.
fn entry(schema: Schema, value: &mut Value, filling: &mut DefaultingState) {
    if value.is_null()
        && !schema.flag("nullable")
        && let Some(replacement) = filling.default_of(schema)
    {
        *value = replacement;
    }
    apply_defaults(schema, value, filling);
}

/// Returns the default of a schema. A null default counts as absent, also for `nullable` schemas.
fn default_of(schema: Schema<'_>) -> Option<&Value> {
    schema.json().get("default").filter(|value| !value.is_null())
}
