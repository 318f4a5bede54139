//! Mutating admission: policies and webhooks see the object with the defaults of decoding, and may change it.

use serde_json::{Value, json};

use super::{
    AdmissionStep, Write, namespace,
    ownership::{self, OwnershipSource},
    plugins::{self, Mutation},
    prepare,
};
use crate::{admission, request::RequestInfo, state::State, status::StatusError};

/// Runs mutating admission: policies and webhooks. Returns the source of `managedFields`, taken before plugins act: no
/// manager owns the fields that they change. Plugins run before and after the webhooks of an update. On a create they
/// run before them here, and again in `complete.rs`, when the object has its defaults. If nothing can mutate the object
/// (no policies, no webhooks for the resource), the object is not converted to the form that webhooks see.
///
/// # Errors
/// Fails with the first policy, webhook or plugin that rejects the object, or with [`StatusError::waiting`] if a
/// webhook has not replied yet.
pub(super) fn run(state: &mut State, info: &RequestInfo, write: &mut Write) -> Result<OwnershipSource, StatusError> {
    let source = if write.admission == AdmissionStep::Pending && admission::may_mutate(&state.store, info) {
        OwnershipSource::Fields(run_webhooks(state, info, write)?)
    } else {
        ownership::choose_source(info, write)
    };
    if let Some(old) = write.old.as_deref() {
        plugins::admit(state, Mutation { info, old: Some(old), object: &mut write.object })?;
    }
    Ok(source)
}

/// Runs policies and webhooks. Returns the `managedFields` that they leave. Webhooks see `managedFields` as the write
/// would set them without admission. No manager owns a field that a webhook or a policy adds: `managedFields` are
/// computed before admission, as upstream computes them (`FieldManager.UpdateNoErrors` in `handlers/create.go` and
/// `handlers/update.go`). A webhook may still change or remove `managedFields` itself.
fn run_webhooks(state: &mut State, info: &RequestInfo, write: &mut Write) -> Result<Value, StatusError> {
    let managed_fields = ownership::managed_fields_before_admission(state, info, write)?;
    complete_for_webhooks(state, info, write)?;
    ownership::set_managed_fields(&mut write.object, managed_fields);
    let name = if write.is_new() {
        write.object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
    } else {
        info.name.clone()
    };
    let mut attributes = write.attributes(info, &name);
    admission::mutate(state, &mut attributes)?;
    write.object = attributes.object.unwrap_or_default();
    Ok(write.object["metadata"]["managedFields"].clone())
}

/// Converts an object to the form that webhooks see. A new object loses the metadata that only the server sets, and
/// gets the defaults of decoding and the additions of mutating plugins. An updated object gets the same defaults, and
/// keeps values that are set only once. This order is upstream's: decoding sets defaults before admission, and the
/// strategy runs after it.
fn complete_for_webhooks(state: &mut State, info: &RequestInfo, write: &mut Write) -> Result<(), StatusError> {
    let object = &mut write.object;
    if let Some(old) = write.old.as_deref() {
        prepare::default_changed_object(info, object);
        return plugins::admit(state, Mutation { info, old: Some(old), object });
    }
    let status = object.get("status").cloned();
    namespace::wipe(info, object)?;
    prepare::default_new_object(info, object);
    plugins::admit(state, Mutation { info, old: None, object })?;
    if info.resource.kind.defaults.set_once.is_some() {
        // Webhooks see the status as it was sent. The strategy resets it later.
        object["status"] = status.unwrap_or_else(|| json!({}));
    }
    Ok(())
}
