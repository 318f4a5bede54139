//! Admission plugins that are on by default and depend on other objects.
//!
//! The plugins run in the order of kube-apiserver (`AllOrderedPlugins` of `pkg/kubeapiserver/options/plugins.go`).
//!
//! Plugins act at four points of the pipeline:
//!
//! | function | point | acts on |
//! |---|---|---|
//! | `adjust` | after mutating webhooks, before defaults | updated Pods |
//! | `fill` | before mutating webhooks, and again in `complete` | new Pods, claims, Ingresses |
//! | `complete` | after defaults | new Pods, signing requests |
//! | `validate` | before validating webhooks | all |
//!
//! Filling in is idempotent, so the second run changes only what webhooks have removed.

mod accounts;
mod classes;
mod forbid;
mod limits;
mod pods;
mod security;
mod signers;
mod volume_resize;

use serde_json::{Value, json};

use crate::{
    admission::Attributes,
    controllers::Controller,
    kinds::{
        certificates::certificate_signing_request,
        core::{persistent_volume_claim, pod},
        networking::ingress,
        scheduling::priority_class,
    },
    request::{Operation, RequestInfo},
    state::State,
    status::StatusError,
    write::Write,
};

pub(super) use forbid::Forbid;
pub(crate) use pods::topology;

/// Completes an updated Pod before it gets its defaults.
///
/// A Pod that is being deleted gets no limits.
pub(super) fn adjust(state: &State, info: &RequestInfo, write: &mut Write) {
    let Some(old) = write.old.as_ref().filter(|_| info.resource.is(&pod::KIND)) else { return };
    let is_going = old["metadata"]["deletionTimestamp"].is_string();
    match info.subresource.as_str() {
        "" => pods::keep_priority(old, &mut write.object),
        "resize" if !is_going => limits::fill(state, &info.namespace, &mut write.object),
        _ => {}
    }
}

/// Completes a new object, such as the Pod-level resources of a Pod (`complete_create` of the kind), and runs the
/// plugins that complete a prepared object.
pub(super) fn complete(state: &mut State, info: &RequestInfo, write: &mut Write) -> Result<(), StatusError> {
    if write.is_new() {
        (info.resource.kind.complete_create)(&mut write.object);
    }
    match &write.old {
        None => return admit(state, info, &mut write.object),
        Some(old) if info.resource.is(&certificate_signing_request::KIND) => {
            stamp_conditions(old, &mut write.object, &state.clock.seconds());
        }
        Some(_) => {}
    }
    Ok(())
}

/// Completes a new object as the mutating plugins do. Webhooks see the result.
///
/// The account plugin is off if its controller is off, because then no account exists.
pub(super) fn fill(state: &mut State, info: &RequestInfo, object: &mut Value) -> Result<(), StatusError> {
    let resource = &info.resource;
    if resource.is(&pod::KIND) {
        limits::fill(state, &info.namespace, object);
        if state.controllers.runs(Controller::ServiceAccount) {
            accounts::fill(state, info, object)?;
        }
        pods::fill(state, info, object)?;
    } else if resource.is(&persistent_volume_claim::KIND) {
        classes::fill_claim(state, object);
    } else if resource.is(&ingress::KIND) {
        classes::fill_ingress(state, object);
    }
    Ok(())
}

/// Runs the validating plugins in the order of kube-apiserver.
///
/// `DELETE` and `CONNECT` have no object here.
pub(super) fn validate(state: &State, attributes: &Attributes<'_>) -> Result<(), StatusError> {
    let (info, Some(object)) = (attributes.info, &attributes.object) else { return Ok(()) };
    check_limits(state, attributes, object)?;
    security::check(state, attributes, object)?;
    let forbid = Forbid::new(attributes);
    let old = attributes.old.as_deref();
    let is = |kind| info.resource.is(kind);
    match (attributes.operation, info.subresource.as_str()) {
        (Operation::Create, "") if is(&pod::KIND) => pods::check_overhead(state, &forbid, object),
        (Operation::Update, "resize") if is(&pod::KIND) => {
            old.map_or(Ok(()), |old| limits::check_resize(state, &forbid, old, object))
        }
        (_, "") if is(&persistent_volume_claim::KIND) => {
            old.map_or(Ok(()), |old| volume_resize::may_grow(state, &forbid, old, object))
        }
        (_, "") if is(&priority_class::KIND) => pods::one_default(state, info, object),
        (Operation::Create, "") if is(&certificate_signing_request::KIND) => signers::check_subject(attributes, object),
        _ => signers::check_right(state, attributes, object),
    }
}

/// Checks new and resized Pods, and `PersistentVolumeClaims`, against the `LimitRanges`. Objects that are being deleted
/// are not checked.
///
/// An update of a claim is checked, since it may increase the request.
fn check_limits(state: &State, attributes: &Attributes<'_>, object: &Value) -> Result<(), StatusError> {
    let (info, forbid) = (attributes.info, Forbid::new(attributes));
    if attributes.old.as_ref().is_some_and(|old| old["metadata"]["deletionTimestamp"].is_string()) {
        return Ok(());
    }
    match (attributes.operation, info.subresource.as_str()) {
        (Operation::Create, "") | (Operation::Update, "resize") if info.resource.is(&pod::KIND) => {
            limits::check_pod(state, &forbid, &info.namespace, object)
        }
        (_, "") if info.resource.is(&persistent_volume_claim::KIND) => {
            limits::check_claim(state, &forbid, &info.namespace, object)
        }
        _ => Ok(()),
    }
}

/// Completes a new object.
///
/// A signing request always gets the identity of its creator.
fn admit(state: &mut State, info: &RequestInfo, object: &mut Value) -> Result<(), StatusError> {
    fill(state, info, object)?;
    let resource = &info.resource;
    if resource.is(&pod::KIND) {
        pods::take_profiles(info, object);
    } else if resource.is(&certificate_signing_request::KIND) {
        object["spec"]["username"] = info.caller.user.name.clone().into();
        object["spec"]["groups"] = info.caller.user.groups.clone().into();
        for (field, value) in [("uid", json!(info.caller.uid)), ("extra", json!(info.caller.extra))] {
            if value != "" && value != json!({}) {
                object["spec"][field] = value;
            }
        }
    }
    Ok(())
}

/// Sets the times of the conditions of a `CertificateSigningRequest` (`populateConditionTimestamps`).
///
/// Times that the client has set stay.
fn stamp_conditions(old: &Value, new: &mut Value, now: &str) {
    let conditions = old["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for condition in new.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let before = conditions
            .iter()
            .find(|existing| existing["type"] == condition["type"] && existing["status"] == condition["status"]);
        let times = [("lastUpdateTime", None), ("lastTransitionTime", before)];
        for (field, before) in times {
            if condition[field].is_null() {
                condition[field] = before.map_or_else(|| now.into(), |before| before[field].clone());
            }
        }
    }
}
