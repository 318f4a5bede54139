//! Checks and allocates the values that no two objects of a kind may have, such as node ports of Services.
//!
//! The kind has the rules (`strategy.allocator`). This step gives it the other objects, which a kind cannot read itself.

use std::sync::Arc;

use serde_json::Value;

use super::Write;
use crate::{field_errors::Errors, registry::kind::Allocator, request::RequestInfo, status::StatusError, store::Store};

/// Checks the requested values of a new object before `prepare`, as upstream's allocator runs before the strategy.
///
/// # Errors
/// `Invalid` for values that the cluster does not have, and for taken ones.
pub(super) fn check_new(store: &Store, info: &RequestInfo, write: &Write) -> Result<(), StatusError> {
    match &info.resource.kind.strategy.allocator {
        Some(allocator) if write.is_new() => check(store, info, allocator, write),
        _ => Ok(()),
    }
}

/// Allocates the values of a new or changed object. The kind allocates those that need no other object (`allocate`),
/// such as a cluster IP. Writes of subresources allocate nothing else.
///
/// # Errors
/// `Invalid` for requested values that can't be allocated.
pub(super) fn allocate(store: &mut Store, info: &RequestInfo, write: &mut Write) -> Result<(), StatusError> {
    let strategy = &info.resource.kind.strategy;
    (strategy.allocate)(store, &mut write.object);
    let Some(allocator) = strategy.allocator.as_ref().filter(|_| write.is_new() || info.subresource.is_main()) else {
        return Ok(());
    };
    if !write.is_new() {
        check(store, info, allocator, write)?;
    }
    let name = name_of(&write.object);
    let allocated = (allocator.allocate)(&mut write.object, Box::new(other_objects(store, info, &name)));
    allocated.map_err(|errors| reject(info, &name, &errors))
}

/// Checks the requested values. A dry run compares them with no other object, as upstream
/// (`Allocator.allocateService` of `pkg/registry/core/service/ipallocator`).
fn check(store: &Store, info: &RequestInfo, allocator: &Allocator, write: &Write) -> Result<(), StatusError> {
    let others = other_objects(store, info, &info.name).take_while(|_| !info.dry_run());
    let checked = (allocator.check)(write.old(), &write.object, Box::new(others));
    checked.map_err(|errors| reject(info, &name_of(&write.object), &errors))
}

/// Iterates over the objects of the kind, without the one that has this name in the namespace of the request.
fn other_objects(store: &Store, info: &RequestInfo, name: &str) -> impl Iterator<Item = Arc<Value>> {
    store.objects(&info.resource.id, None).filter(move |other| {
        let meta = &other["metadata"];
        meta["name"] != name || meta["namespace"] != info.namespace.as_str()
    })
}

/// Returns the name of an object, or an empty one.
fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// Returns the response to a write with these errors.
fn reject(info: &RequestInfo, name: &str, errors: &Errors) -> StatusError {
    StatusError::invalid(&info.resource.id.group, info.resource.kind.kind, name, errors)
}
