//! The conditions in the status of an object.

use serde_json::{Value, json};

/// Returns the condition of this type. If a client wrote a type twice, the first condition is returned.
pub(crate) fn condition<'a>(object: &'a Value, r#type: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == r#type)
}

/// Returns `true` if the condition of this type has the status `True`.
pub(crate) fn is_true(object: &Value, r#type: &str) -> bool {
    condition(object, r#type).is_some_and(|condition| condition["status"] == "True")
}

/// Adds or replaces the condition of its type. Keeps `lastTransitionTime` if the status is unchanged.
pub(crate) fn set_condition(object: &mut Value, mut condition: Value) {
    let conditions = &mut object["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|existing| existing["type"] == condition["type"]) {
        Some(existing) => {
            if existing["status"] == condition["status"] && existing["lastTransitionTime"].is_string() {
                condition["lastTransitionTime"] = existing["lastTransitionTime"].take();
            }
            *existing = condition;
        }
        None => conditions.push(condition),
    }
}

/// Sets a condition, given as its type, status, reason and message. `now` is its `lastTransitionTime` if the status
/// changes.
pub(crate) fn report(object: &mut Value, now: &str, [r#type, status, reason, message]: [&str; 4]) {
    let condition = json!({
        "type": r#type, "status": status, "lastTransitionTime": now, "reason": reason, "message": message,
    });
    set_condition(object, condition);
}
