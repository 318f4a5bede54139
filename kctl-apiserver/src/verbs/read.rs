//! `GET` of one object.

use serde_json::Value;

use super::{Answer, versions};
use crate::{kinds::Resource, request::Call, status::Refusal, store::State};

pub(super) fn get(state: &State, call: &Call) -> Result<Answer, Refusal> {
    let version = call.params.text("resourceVersion");
    if !version.is_empty() && version.parse::<u64>().is_err() {
        return Err(super::list::unreadable_version(version));
    }
    super::list::not_from_the_future(state, version)?;
    let of = &call.resource.of;
    let object = versions::find(state, call)?.ok_or_else(|| Refusal::not_found(of, &call.name))?;
    Ok(Answer::ok(object))
}

/// An object in the version in which it is asked for: the stored one differs in nothing but its name.
pub(crate) fn in_version(resource: &Resource, object: &Value) -> Option<Value> {
    let wanted = resource.api_version();
    (object["apiVersion"] != wanted.as_str()).then(|| {
        let mut converted = object.clone();
        converted["apiVersion"] = wanted.into();
        converted
    })
}
