//! Converts objects between the versions of their kind: the storage version, and the versions that requests name.
//!
//! Events of both groups share one table, and are stored as Events of the core group. Custom objects get another
//! `apiVersion`, or are converted by the webhook of their CRD. `HorizontalPodAutoscalers` are converted by
//! `kinds/autoscaling/conversion.rs`.

mod field_versions;
mod webhook;

use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::{
    field_versions::FieldVersions,
    webhook::{UnconvertedObjects, call_for, read_response},
};
use crate::{
    crd,
    registry::{Custom, Resource},
    request::RequestInfo,
    state::State,
    status::StatusError,
    store::Store,
};

/// Returns a custom kind in one of its versions, even if that is not served.
fn in_version(store: &Store, resource: &Resource, name: &str) -> Option<Arc<Resource>> {
    let served = store.registry.get(&resource.id.group, name, &resource.id.resource);
    served.or_else(|| resource.in_version(name).map(Arc::new))
}

/// The way in which an object is converted to the version of a resource.
pub(crate) enum ConversionPlan {
    /// The object is in this version.
    Same,
    /// The object is converted already.
    Done(Value),
    /// The webhook of the CRD converts it.
    CallWebhook,
}

/// Returns `true` if a webhook converts objects of other versions to this one.
pub(crate) fn uses_webhook(to: &Resource) -> bool {
    to.custom.as_ref().is_some_and(|custom| custom.conversion["strategy"] == "Webhook")
}

/// Returns how an object is converted to the version of a resource.
///
/// Only custom kinds with `conversion.strategy: Webhook` need a call. With the strategy `None` only `apiVersion`
/// changes, and fields that the new version does not have are dropped.
pub(crate) fn plan(to: &Resource, object: &Value) -> ConversionPlan {
    let api_version = to.api_version();
    if object["apiVersion"] == api_version.as_str() {
        return ConversionPlan::Same;
    }
    if uses_webhook(to) {
        return ConversionPlan::CallWebhook;
    }
    if let Some(shared) = to.kind.shared_table {
        return ConversionPlan::Done((shared.convert)(&api_version, object));
    }
    if let Some(storage) = to.kind.storage {
        return ConversionPlan::Done((storage.convert)(&api_version, object));
    }
    let mut renamed = object.clone();
    renamed["apiVersion"] = api_version.into();
    drop_unknown(to, &mut renamed);
    ConversionPlan::Done(renamed)
}

/// Drops the fields of a converted custom object that the schema of its new version does not have.
fn drop_unknown(to: &Resource, object: &mut Value) {
    if let (Some(_), Some(schema)) = (&to.custom, to.schema()) {
        crd::prune(schema, object);
    }
}

/// The purpose of a conversion. It decides the error if a webhook does not convert an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The request reads one object, and writes nothing.
    Get,
    /// The request lists objects.
    List,
    /// The request writes an object, or validates a written one.
    Write,
}

/// Returns the stored object of a read, in the version of the request.
///
/// # Errors
/// Fails with `InternalError` if the conversion webhook fails, or with [`StatusError::waiting`].
pub(crate) fn get(state: &State, info: &RequestInfo) -> Result<Option<Arc<Value>>, StatusError> {
    find_for(state, info, Purpose::Get)
}

/// Returns the stored object that a request changes, in the version of the request.
///
/// A conversion webhook is called on each read: nothing is cached beyond the request.
///
/// # Errors
/// Fails if the conversion webhook fails, or with [`StatusError::waiting`].
pub(crate) fn find(state: &State, info: &RequestInfo) -> Result<Option<Arc<Value>>, StatusError> {
    find_for(state, info, Purpose::Write)
}

fn find_for(state: &State, info: &RequestInfo, purpose: Purpose) -> Result<Option<Arc<Value>>, StatusError> {
    let Some(object) = state.store.get(&info.resource.id, &info.key()) else { return Ok(None) };
    convert_all(state, info, &info.resource, vec![object], purpose).map(|mut all| all.pop())
}

/// Drops the `managedFields` that an Event got through the other group: a write through one group does not keep them.
///
/// Their field names belong to the other group, and do not exist in this one.
pub(crate) fn forget_other_group(resource: &Resource, object: &mut Value) {
    if resource.kind.shared_table.is_some()
        && let Some(managed) = object["metadata"]["managedFields"].as_array_mut()
    {
        managed.retain(|entry| entry["apiVersion"] == resource.api_version().as_str());
    }
}

/// Returns the objects of a list in the version of its request. One call of the webhook converts all of them.
///
/// # Errors
/// Fails with `StorageReadError` if the conversion webhook fails, or with [`StatusError::waiting`].
pub(crate) fn convert_list(
    state: &State,
    info: &RequestInfo,
    objects: Vec<Arc<Value>>,
) -> Result<Vec<Arc<Value>>, StatusError> {
    convert_all(state, info, &info.resource, objects, Purpose::List)
}

/// A written object in the version in which it is stored, and in the version of the request.
pub(crate) struct ConvertedWrite {
    /// The object in the storage version.
    pub(crate) stored: Value,
    /// The object converted to the storage version and back, as a later read returns it.
    ///
    /// `None` if both versions are the same.
    shown: Option<Value>,
}

impl ConvertedWrite {
    /// Returns the object for the response, once it is stored.
    ///
    /// Only the resource version is new. The response reuses the converted object, because reading the stored one would
    /// call the webhook again.
    pub(crate) fn into_response_object(self, stored: Arc<Value>) -> Arc<Value> {
        let Some(mut shown) = self.shown else { return stored };
        shown["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        shown.into()
    }

    /// Returns the object for the response to a dry run.
    pub(crate) fn into_object(self) -> Arc<Value> {
        self.shown.unwrap_or(self.stored).into()
    }
}

/// Converts a written object to the version in which it is stored, and back, before anything is written.
///
/// The conversion back shows the client which fields are lost because the storage version does not have them.
///
/// # Errors
/// Fails as [`find`] does.
pub(crate) fn convert_for_storage(
    state: &State,
    info: &RequestInfo,
    object: Value,
) -> Result<ConvertedWrite, StatusError> {
    let resource = &info.resource;
    let home = match &resource.custom {
        Some(custom) if custom.storage != resource.version => in_version(&state.store, resource, &custom.storage),
        None => match (resource.kind.shared_table, resource.kind.storage) {
            (Some(shared), _) => state.store.registry.any_version(&shared.owner.group_resource()),
            (None, Some(storage)) => in_version(&state.store, resource, Custom::version_of(storage.api_version)),
            (None, None) => None,
        },
        Some(_) => None,
    };
    match home.filter(|home| home.api_version() != resource.api_version()) {
        None => Ok(ConvertedWrite { stored: object, shown: None }),
        Some(home) => {
            let mut stored = convert(state, info, &home, &object)?;
            if let Some(custom) = &home.custom {
                custom.read(&mut stored);
            }
            if resource.kind.storage.is_some()
                && info.subresource.is_main()
                && let Some(before) = state.store.get(&resource.id, &info.key())
            {
                // The other version, `autoscaling/v1`, cannot express an absent value. A write without a status
                // therefore keeps the stored status.
                stored["status"] = before["status"].clone();
            }
            let shown = convert(state, info, resource, &stored)?;
            Ok(ConvertedWrite { stored, shown: Some(shown) })
        }
    }
}

/// Converts an object to the version of a resource.
///
/// # Errors
/// Fails as [`find`] does.
pub(crate) fn convert(state: &State, info: &RequestInfo, to: &Resource, object: &Value) -> Result<Value, StatusError> {
    let mut all = convert_all(state, info, to, vec![Arc::new(object.clone())], Purpose::Write)?;
    Ok(all.pop().map(Arc::unwrap_or_clone).unwrap_or_default())
}

/// Converts objects to the version of a resource.
///
/// Objects that only the conversion webhook can convert go into one call. kube-apiserver sends one call per list item
/// where it reads items one by one. The result is the same.
///
/// # Errors
/// Fails if the webhook fails, or with [`StatusError::waiting`].
fn convert_all(
    state: &State,
    info: &RequestInfo,
    to: &Resource,
    mut objects: Vec<Arc<Value>>,
    purpose: Purpose,
) -> Result<Vec<Arc<Value>>, StatusError> {
    let mut open = Vec::new();
    for (index, object) in objects.iter_mut().enumerate() {
        match plan(to, object) {
            ConversionPlan::Same => {}
            ConversionPlan::Done(converted) => *object = converted.into(),
            ConversionPlan::CallWebhook => open.push(index),
        }
    }
    if open.is_empty() {
        return Ok(objects);
    }
    let originals: Vec<&Value> = open.iter().map(|index| objects[*index].as_ref()).collect();
    let status_error = |unconverted: UnconvertedObjects| match purpose {
        // `corruptObjectDeleter.Get` of `k8s.io/apiserver/pkg/storage/etcd3`.
        Purpose::Get => StatusError::internal(&unconverted.into_status().message),
        Purpose::List => unconverted.into_status_of_list(&to.id, &originals),
        Purpose::Write => unconverted.into_status(),
    };
    let webhook_call = call_for(state, to, &originals).map_err(status_error)?;
    let reply = info.round.call(webhook_call)?;
    let converted = read_response(to, &originals, &reply).map_err(status_error)?;
    for (index, object) in open.into_iter().zip(converted) {
        objects[index] = object.into();
    }
    Ok(objects)
}
