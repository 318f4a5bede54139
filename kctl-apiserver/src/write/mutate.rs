//! Mutating admission: policies and webhooks see the object with the defaults of decoding, and may change it.

use serde_json::{Value, json};

use super::{Admission, Write, default, ownership, place, plugins};
use crate::{admission, request::Call, state::State, status::Refusal};

/// Runs mutating admission. Returns the managedFields that it leaves, or `None` if nothing could change the object. No manager
/// owns what is changed here.
pub(super) fn admit(state: &mut State, call: &Call, write: &mut Write) -> Result<Option<Value>, Refusal> {
    if write.admission == Admission::Done || !admission::may_mutate(state, call) {
        return Ok(None);
    }
    let managed = ownership::before_admission(state, call, write)?;
    show(state, call, write)?;
    ownership::set_managed(&mut write.object, managed);
    let name = match write.is_new() {
        true => write.object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        false => call.name.clone(),
    };
    let mut attributes = write.attributes(call, &name);
    admission::mutate(state, &mut attributes)?;
    write.object = attributes.object.unwrap_or_default();
    Ok(Some(write.object["metadata"]["managedFields"].clone()))
}

/// Makes an object what webhooks see.
fn show(state: &mut State, call: &Call, write: &mut Write) -> Result<(), Refusal> {
    let (rules, object) = (call.resource.rules, &mut write.object);
    if write.old.is_some() {
        default::changed_as_read(call, object);
        return plugins::adjust(state, call, write);
    }
    let status = object.get("status").cloned();
    place::wipe(call, object)?;
    default::as_read(call, object);
    plugins::fill(state, call, object)?;
    (rules.complete_by_plugins)(object);
    if rules.set_once.is_some() {
        // The server's view of a new object comes later.
        object["status"] = status.unwrap_or_else(|| json!({}));
    }
    Ok(())
}
