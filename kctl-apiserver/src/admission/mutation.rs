//! `MutatingAdmissionPolicies`: evaluates their expressions, and changes the object.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating`.
//!
//! Each mutation is a CEL expression that returns either a part of the object to apply, or JSON patch operations. The
//! result is decoded again after each mutation, so the next one sees defaults and no unknown fields.

use base64::{Engine, engine::general_purpose::STANDARD};
use kube_cel::cel::objects::Key;
use serde_json::{Map, Value, json};

use super::{
    Attributes, Pass,
    patch::{self, PatchError},
    policy::{PolicyBinding, PolicyScope, matching_bindings, parameters},
    redecode,
};
use crate::{
    apply::{
        merge::merge,
        shape::{Position, Shape},
        validate::{Duplicates, validate},
    },
    cel::conditions::{Cel, MatchResult, fits},
    evaluate::{as_text, type_name, value_size},
    schema::ListType,
    status::StatusError,
    store::Store,
};

/// The reason why a policy does not change an object.
enum MutationFailure {
    /// An error that `failurePolicy` decides about.
    Fails(String),
    /// The result is not an object of the kind. The request always fails with this decoding error.
    Untyped(StatusError),
}

/// Runs all policies, which may change the object, or in the second pass those with `reinvocationPolicy: IfNeeded`.
/// Returns `true` if one did.
///
/// `false` for deletes, which have no object. Parameters are collected per binding; the policy runs once for each.
///
/// # Errors
/// Fails if a policy fails and its `failurePolicy` is not `Ignore`.
pub(super) fn run(store: &Store, attributes: &mut Attributes<'_>, pass: Pass) -> Result<bool, StatusError> {
    let mut any = false;
    if attributes.object.is_none() {
        return Ok(any);
    }
    for bound in matching_bindings(store, attributes.info, "mutating") {
        let (policy, binding) = (&bound.policy["spec"], &bound.binding["spec"]);
        let is_left_out = pass == Pass::Reinvocation && policy["reinvocationPolicy"] != "IfNeeded";
        if is_left_out || !bound.fits(store, attributes) {
            continue;
        }
        let ignores = policy["failurePolicy"] == "Ignore";
        let all = match parameters(store, policy, binding, attributes) {
            Ok(all) => all,
            Err(_) if ignores => continue,
            Err(why) => {
                return Err(rejection_error(attributes, &bound.policy_and_binding("policy"), &why, "Forbidden"));
            }
        };
        for params in &all {
            any |= change(store, &bound, params.as_deref(), attributes)?;
        }
    }
    Ok(any)
}

/// Applies all mutations of one policy, each to the result of those before it. Match conditions are evaluated once,
/// before them.
fn change(
    store: &Store,
    bound: &PolicyBinding,
    params: Option<&Value>,
    attributes: &mut Attributes<'_>,
) -> Result<bool, StatusError> {
    let policy = &bound.policy["spec"];
    let ignores = policy["failurePolicy"] == "Ignore";
    match fits(&policy["matchConditions"], || PolicyScope::new(store, policy, params, attributes).scope) {
        MatchResult::Matches => {}
        MatchResult::DoesNotMatch => return Ok(false),
        MatchResult::Failed(_) if ignores => return Ok(false),
        MatchResult::Failed(why) => {
            return Err(rejection_error(attributes, &bound.policy_and_binding("policy"), &why, "Invalid"));
        }
    }
    let mut any = false;
    for mutation in policy["mutations"].as_array().into_iter().flatten() {
        let mut scope = PolicyScope::new(store, policy, params, attributes);
        let changed = match evaluate_mutation(mutation, &mut scope, attributes) {
            Ok(changed) => changed,
            Err(MutationFailure::Fails(_)) if ignores => continue,
            Err(MutationFailure::Fails(why)) => {
                return Err(rejection_error(attributes, &bound.policy_and_binding("policy"), &why, "Invalid"));
            }
            Err(MutationFailure::Untyped(status_error)) => return Err(status_error),
        };
        any |= attributes.object.as_ref() != Some(&changed);
        attributes.object = Some(changed);
    }
    Ok(any)
}

/// Returns the object after one mutation.
fn evaluate_mutation(
    mutation: &Value,
    scope: &mut PolicyScope,
    attributes: &Attributes<'_>,
) -> Result<Value, MutationFailure> {
    let object = attributes.object.clone().unwrap_or_default();
    let field = if mutation["patchType"] == "JSONPatch" { "jsonPatch" } else { "applyConfiguration" };
    let expression = mutation[field]["expression"].as_str().unwrap_or_default();
    let failed = |why: String| MutationFailure::Fails(format!("expression {expression:?}: {why}"));
    let result = scope.evaluate(expression).map_err(|failure| failed(failure.to_string()))?;
    let mut changed = if field == "jsonPatch" {
        apply_json_patch(object, &to_json(&result).map_err(MutationFailure::Fails)?)?
    } else {
        apply_configuration(object, &to_json(&result).map_err(failed)?, attributes)?
    };
    redecode(attributes, &mut changed).map_err(MutationFailure::Untyped)?;
    Ok(changed)
}

/// Returns the object after a JSON patch. If a `test` operation fails, which is how a patch expresses a condition, the
/// object is unchanged.
fn apply_json_patch(object: Value, patch: &Value) -> Result<Value, MutationFailure> {
    let mut patched = object.clone();
    match patch::apply(&mut patched, patch.to_string().as_bytes()) {
        Ok(()) => Ok(patched),
        Err(PatchError::TestFailed(_)) => Ok(object),
        Err(PatchError::Inapplicable(why) | PatchError::Undecodable(why)) => {
            Err(MutationFailure::Fails(format!("JSON Patch: {why}")))
        }
    }
}

/// Returns the object after an `ApplyConfiguration`, merged as server-side apply merges. Values that an apply can only
/// replace as a whole are rejected, since an expression would silently drop the fields that others have set.
fn apply_configuration(object: Value, part: &Value, attributes: &Attributes<'_>) -> Result<Value, MutationFailure> {
    let position = Position::root(attributes.info.resource.schema());
    // Upstream sets the type of the object and ignores the type that the expression returns.
    let mut part = part.clone();
    if let Some(fields) = part.as_object_mut() {
        fields.retain(|field, _| field != "kind" && field != "apiVersion");
    }
    validate(position, &part, None, Duplicates::Rejected).map_err(MutationFailure::Fails)?;
    let mut whole = Vec::new();
    atomic(position, &part, "", &mut whole);
    if !whole.is_empty() {
        let why = format!("an apply configuration must not set parts of one value: {}", whole.join(", "));
        return Err(MutationFailure::Fails(why));
    }
    Ok(merge(position, Some(&object), Some(&part)).unwrap_or(object))
}

/// Collects the paths, with a leading dot, of values that an apply could only replace as a whole.
fn atomic(position: Position<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    match (position.shape(value), value) {
        (Shape::List(ListType::Atomic), Value::Array(_)) | (Shape::Map { is_atomic: true }, Value::Object(_)) => {
            found.push(path.into());
        }
        (Shape::List(_), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                atomic(position.items(), item, &format!("{path}[{index}]"), found);
            }
        }
        (_, Value::Object(fields)) => {
            for (name, value) in fields {
                atomic(position.field_position(name), value, &format!("{path}.{name}"), found);
            }
        }
        _ => {}
    }
}

/// Returns the value of an expression as JSON. The size is checked first: a value with shared parts can be huge as
/// JSON.
///
/// # Errors
/// Fails if the value is too large, or if JSON has no such value.
fn to_json(value: &Cel) -> Result<Value, String> {
    value_size::check([value]).map_err(|error| error.to_string())?;
    to_json_unchecked(value)
}

/// Converts a CEL value to JSON. Types and library values have no JSON form.
fn to_json_unchecked(value: &Cel) -> Result<Value, String> {
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(value) => (*value).into(),
        Cel::Int(number) => (*number).into(),
        Cel::UInt(number) => (*number).into(),
        Cel::Float(number) => (*number).into(),
        Cel::String(text) => text.as_str().into(),
        Cel::Bytes(bytes) => STANDARD.encode(bytes.as_slice()).into(),
        Cel::Duration(_) | Cel::Timestamp(_) => as_text(value).into(),
        Cel::List(items) => Value::Array(items.iter().map(to_json_unchecked).collect::<Result<_, _>>()?),
        // A type is a map with one key that is not a string. Its error must not be about that key.
        Cel::Map(_) if type_name(value) == "type" => {
            return Err("no field can be a CEL type; use a string instead".into());
        }
        Cel::Map(map) => {
            let fields = map.map.iter().map(|(key, value)| match key {
                Key::String(name) => Ok((name.to_string(), to_json_unchecked(value)?)),
                Key::Int(_) | Key::Uint(_) | Key::Bool(_) => Err(format!("keys must be strings, found {key}")),
            });
            Value::Object(fields.collect::<Result<Map<_, _>, String>>()?)
        }
        other => return Err(format!("no field can be {other:?}")),
    })
}

/// Returns the error of a policy that fails, with a message that does not name the resource, unlike `Forbidden` errors.
/// The code is 403 for every reason.
fn rejection_error(attributes: &Attributes<'_>, named: &str, why: &str, reason: &'static str) -> StatusError {
    let name = if attributes.name.is_empty() { "Unknown" } else { &attributes.name };
    let message = format!("{named} denied request: {why}");
    let mut status_error = StatusError::forbidden(&attributes.info.resource.id, name, &message);
    status_error.message.clone_from(&message);
    status_error.reason = reason.into();
    status_error.details["causes"] = json!([{ "message": message }]);
    status_error
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube_cel::cel::objects::Map as CelMap;

    use super::*;
    use crate::{cel::map, evaluate::TYPE};

    #[test]
    fn keys_and_types_have_separate_errors() {
        let keyed = |key: Key| Cel::Map(CelMap { map: Arc::new(std::iter::once((key, Cel::Null)).collect()) });
        let error = |value: Cel| to_json(&map([("port".to_owned(), value)])).unwrap_err();
        assert_eq!(error(keyed(TYPE)), "no field can be a CEL type; use a string instead");
        assert_eq!(error(keyed(Key::Int(5))), "keys must be strings, found 5");
    }
}
