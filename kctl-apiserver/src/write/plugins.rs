//! Admission plugins that are on by default and depend on other objects, and the allocation of node ports.
//!
//! The plugins run in the order of kube-apiserver (`AllOrderedPlugins` of `pkg/kubeapiserver/options/plugins.go`).
//!
//! Plugins act at four points of the pipeline:
//!
//! | function | point | acts on |
//! |---|---|---|
//! | `adjust` | after mutating webhooks, before defaults | updated Pods, new Services |
//! | `fill` | before mutating webhooks, and again in `complete` | new Pods, claims, Ingresses |
//! | `complete` | after defaults | addresses, node ports, signing requests |
//! | `validate` | before validating webhooks | all |
//!
//! Filling in is idempotent, so the second run changes only what webhooks have removed.

mod accounts;
mod classes;
mod limits;
mod pods;
mod security;
mod services;
mod signers;

use serde_json::{Value, json};

use crate::{
    admission::Attributes,
    controllers::Controller,
    field_errors::text,
    kinds::{
        certificates::certificate_signing_request,
        core::{
            persistent_volume_claim::{self, class_of_claim},
            pod, service,
        },
        networking::ingress,
        scheduling::priority_class,
        storage::storage_class,
    },
    quantity,
    request::{Operation, RequestInfo},
    state::State,
    status::{FieldError, GroupResource, StatusError},
    write::Write,
};

pub(crate) use pods::topology;

/// The range of node ports of Services: the default of `--service-node-port-range`.
///
/// Inclusive at both ends.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// Builds the `Forbidden` error with which a plugin rejects a request, as `admission.NewForbidden` does.
///
/// Every plugin rejects with the same code and reason, 403 `Forbidden`.
pub(super) struct Forbid<'a> {
    /// The resource that the error names.
    resource: &'a GroupResource,
    /// The name of the object, possibly empty if it is generated later.
    name: &'a str,
}

impl<'a> Forbid<'a> {
    /// Creates it for the object of a request.
    pub(super) fn new(attributes: &'a Attributes<'_>) -> Self {
        Self { resource: &attributes.info.resource.id, name: &attributes.name }
    }

    /// Returns the error.
    pub(super) fn error(&self, why: &str) -> StatusError {
        StatusError::forbidden(self.resource, self.name, why)
    }

    /// Rejects the request.
    fn reject(&self, why: &str) -> Result<(), StatusError> {
        Err(self.error(why))
    }

    /// Rejects the object if there are errors.
    ///
    /// One error contains all reasons, separated by commas.
    fn reject_all(&self, errors: &[String]) -> Result<(), StatusError> {
        if errors.is_empty() { Ok(()) } else { self.reject(&errors.join(", ")) }
    }
}

/// Runs the plugins that act before the object gets its defaults.
///
/// A new Service is validated here, as its allocator runs before the defaults upstream.
pub(super) fn adjust(state: &State, info: &RequestInfo, write: &mut Write) -> Result<(), StatusError> {
    match &write.old {
        None if info.resource.is(&service::KIND) => services::check(state, info, None, &write.object),
        None => Ok(()),
        Some(old) => {
            fill_change(state, info, old, &mut write.object);
            Ok(())
        }
    }
}

/// Completes a new object, allocates its values, and runs the plugins that complete a prepared object.
///
/// The kind defines the first two (`complete_create`, `allocate`), such as Pod-level resources and the
/// cluster IP.
pub(super) fn complete(state: &mut State, info: &RequestInfo, write: &mut Write) -> Result<(), StatusError> {
    if write.is_new() {
        (info.resource.kind.complete_create)(&mut write.object);
    }
    (info.resource.kind.allocate)(state, &mut write.object);
    match &write.old {
        None => admit(state, info, &mut write.object),
        Some(old) => admit_change(state, info, old, &mut write.object),
    }
}

/// Checks that at most one `PriorityClass` is the global default (plugin `Priority`).
fn one_default(state: &State, info: &RequestInfo, class: &Value) -> Result<(), StatusError> {
    let name = &class["metadata"]["name"];
    let is_other = |other: &Value| other["globalDefault"] == true && other["metadata"]["name"] != *name;
    let Some(other) = state.objects(&info.resource.id, None).find(|other| is_other(other)) else { return Ok(()) };
    if class["globalDefault"] != true {
        return Ok(());
    }
    let other = other["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let why = format!("PriorityClass {other} is already marked as default. Only one default can exist");
    Err(StatusError::forbidden(&info.resource.id, name.as_str().unwrap_or_default(), &why))
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

/// Completes an updated object as the mutating plugins do.
///
/// A Pod that is being deleted is not completed.
fn fill_change(state: &State, info: &RequestInfo, old: &Value, object: &mut Value) {
    let is_going = old["metadata"]["deletionTimestamp"].is_string();
    if !info.resource.is(&pod::KIND) {
        return;
    }
    match info.subresource.as_str() {
        "" => pods::keep_priority(old, object),
        "resize" if !is_going => limits::fill(state, &info.namespace, object),
        _ => {}
    }
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
            old.map_or(Ok(()), |old| may_grow(state, &forbid, old, object))
        }
        (_, "") if is(&priority_class::KIND) => one_default(state, info, object),
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
    } else if resource.is(&service::KIND) {
        give_ports(state, info, object)?;
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

/// Completes an updated object.
///
/// Only the main resource of a Service allocates node ports.
fn admit_change(state: &State, info: &RequestInfo, old: &Value, new: &mut Value) -> Result<(), StatusError> {
    if info.resource.is(&service::KIND) && info.subresource.is_empty() {
        services::check(state, info, Some(old), new)?;
        give_ports(state, info, new)?;
    } else if info.resource.is(&certificate_signing_request::KIND) {
        stamp_conditions(old, new, &state.clock.seconds());
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

/// Checks that a bound `PersistentVolumeClaim` may be expanded: its `StorageClass` has to allow it
/// (`PersistentVolumeClaimResize`).
///
/// A smaller request is left to validation. An update that changes the class at the same time may not expand the claim.
fn may_grow(state: &State, forbid: &Forbid<'_>, old: &Value, new: &Value) -> Result<(), StatusError> {
    let size = |claim: &Value| {
        let size = quantity::amount(text(&claim["spec"]["resources"]["requests"]["storage"]));
        size.unwrap_or_default()
    };
    if size(new) <= size(old) {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        return forbid.reject("Only bound persistent volume claims can be expanded");
    }
    let (was, class) = (class_of_claim(old), class_of_claim(new));
    let resource = storage_class::KIND.group_resource();
    let found = state.get(&resource, &(String::new(), class.into())).filter(|_| was == class);
    if found.is_some_and(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    forbid.reject(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
         support resize",
    )
}

/// Checks the requested node ports of a Service and allocates the missing ones.
///
/// A port that is out of range, taken, or repeated in the Service is `Invalid` at its path. Only the first error is
/// reported, as by upstream's allocator.
fn give_ports(state: &State, info: &RequestInfo, service: &mut Value) -> Result<(), StatusError> {
    if !["NodePort", "LoadBalancer"].contains(&service["spec"]["type"].as_str().unwrap_or_default()) {
        return Ok(());
    }
    let name = service["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let others = state.objects(&info.resource.id, None).filter(|other| {
        other["metadata"]["name"] != name.as_str() || other["metadata"]["namespace"] != info.namespace.as_str()
    });
    let ports = |service: &Value| -> Vec<i64> {
        let list = service["spec"]["ports"].as_array().into_iter().flatten();
        let of_ports = list.filter_map(|port| port["nodePort"].as_i64());
        of_ports.chain(service["spec"]["healthCheckNodePort"].as_i64()).filter(|port| *port != 0).collect()
    };
    let mut taken: Vec<i64> = others.flat_map(|other| ports(&other)).collect();
    let mut own = Vec::new();
    let list = service["spec"]["ports"].as_array().into_iter().flatten();
    let requested =
        list.enumerate().map(|(index, port)| (index, port["nodePort"].as_i64().unwrap_or(0), &port["protocol"]));
    for (index, port, protocol) in requested.filter(|(_, port, _)| *port != 0) {
        // One port may serve several protocols of the same Service.
        let is_repeated = own.contains(&(port, protocol));
        own.push((port, protocol));
        if !NODE_PORTS.contains(&port) || is_repeated || taken.contains(&port) {
            let why = format!("must be a free port from {} to {}", NODE_PORTS.start(), NODE_PORTS.end());
            let field_error = FieldError::invalid(&format!("spec.ports[{index}].nodePort"), &port.into(), &why);
            return Err(StatusError::invalid("", "Service", &name, &[field_error]));
        }
    }
    taken.extend(ports(service));
    give_free(service, &mut taken);
    Ok(())
}

/// Allocates node ports: one per port of the Service, and one for the health check of its load balancer.
///
/// It takes the lowest free port; upstream draws a random one. Without a free port the field stays unset.
fn give_free(service: &mut Value, taken: &mut Vec<i64>) {
    let is_checked = service::validation::is_checked(&service["spec"]);
    let mut give = |object: &mut Value, field: &str| {
        if object[field].as_i64().unwrap_or(0) == 0
            && let Some(free) = NODE_PORTS.into_iter().find(|free| !taken.contains(free))
        {
            taken.push(free);
            object[field] = free.into();
        }
    };
    if service["spec"]["allocateLoadBalancerNodePorts"] != false {
        for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
            give(port, "nodePort");
        }
    }
    if is_checked {
        give(&mut service["spec"], "healthCheckNodePort");
    }
}
