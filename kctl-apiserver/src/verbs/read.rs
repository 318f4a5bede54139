//! `GET` of one object.

use kctl_apimachinery::strconv;
use serde_json::Value;

use super::{ResponseSource, VerbResponse};
use crate::{conversion, registry::Resource, request::RequestInfo, state::State, status::StatusError, store::head};

/// Returns one object. With [`ResponseSource::StoredText`] the client accepts JSON without a table, so that it is sent
/// as stored, without being parsed. `resourceVersion` is only checked: the newest state is always returned, which
/// satisfies any older version.
///
/// # Errors
/// `NotFound`, and 400 for an invalid `resourceVersion` or the removed parameter `export`.
pub(super) fn get(state: &State, info: &RequestInfo, source: ResponseSource) -> Result<VerbResponse, StatusError> {
    if info.params.flag("export") {
        let why = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(StatusError::bad_request(why));
    }
    let version = info.params.text("resourceVersion");
    if !version.is_empty() && strconv::parse_uint(version).is_none() {
        return Err(super::list::malformed_version_error(version));
    }
    super::list::check_not_in_future(&state.store, version)?;
    let resource = &info.resource.id;
    let key = info.key();
    if source == ResponseSource::StoredText
        && let Some(stored) = state.store.get_stored(resource, &key)
        && stored.text().starts_with(head(&info.resource).as_bytes())
    {
        return Ok(VerbResponse::text(stored.line().clone(), key.1));
    }
    let object = conversion::get(state, info)?.ok_or_else(|| StatusError::not_found(resource, &info.name))?;
    Ok(VerbResponse::ok(object))
}

/// Returns the object in the version of the resource, or `None` if it has that version. The versions must differ only
/// in `apiVersion`. Use it only for kinds whose versions have equal fields, like most built-in kinds with two versions.
pub(crate) fn in_version(resource: &Resource, object: &Value) -> Option<Value> {
    let api_version = resource.api_version();
    (object["apiVersion"] != api_version.as_str()).then(|| {
        let mut converted = object.clone();
        converted["apiVersion"] = api_version.into();
        converted
    })
}
