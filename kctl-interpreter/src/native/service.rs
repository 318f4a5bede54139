//! The rules of `v1 Service`.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `Retain` | `spec.clusterIP` and `spec.healthCheckNodePort` | `pkg/util/lifted/retain.go`, `RetainServiceFields` |
//! | `InterpretStatus` | `status.loadBalancer` of a load balancer | `reflectstatus.go`, `reflectServiceStatus` |
//! | `AggregateStatus` | the addresses of all clusters | `aggregatestatus.go`, `aggregateServiceStatus` |
//! | `InterpretHealth` | `true` if a load balancer has an address | `healthy.go`, `interpretServiceHealth` |

use serde_json::Value;

use super::{Items, NativeError, Result, load_balancer, nested};
use crate::typed::Typed;

fn service(object: &Value) -> Result<Typed> {
    Typed::from_object("Service", object).map_err(NativeError::object("Service"))
}

/// Copies `spec.healthCheckNodePort` and `spec.clusterIP` from the observed object, if they are
/// set.
///
/// The API server of each cluster allocates them, and rejects a write with another value.
/// `spec.clusterIPs` and node ports are not copied, as in Karmada.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    if let Some(port) = nested::int64(observed, &["spec", "healthCheckNodePort"])?.filter(|port| *port > 0) {
        nested::set(&mut desired, &["spec", "healthCheckNodePort"], port.into())?;
    }
    if let Some(ip) = nested::string(observed, &["spec", "clusterIP"])?.filter(|ip| !ip.is_empty()) {
        nested::set(&mut desired, &["spec", "clusterIP"], ip.into())?;
    }
    Ok(desired)
}

/// Replaces the status of a Service of the type `LoadBalancer` with the merged addresses of all
/// clusters. A Service of another type is returned unchanged.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let service = service(&object)?;
    if service.text("/spec/type") != "LoadBalancer" {
        return Ok(object);
    }
    let mut status = Typed::zero("ServiceStatus");
    *status.at_mut("/loadBalancer/ingress") = load_balancer::merge_ingress("ServiceStatus", items.unwrap_or_default())?;
    Ok(service.with_status(status, object))
}

/// Returns `loadBalancer` of the status of a Service of the type `LoadBalancer`; `null` for other
/// types and for an object without a status.
pub(super) fn status(object: &Value) -> Result<Value> {
    // A type that is not a string counts as absent, as in Karmada.
    if nested::string(object, &["spec", "type"]).ok().flatten() != Some("LoadBalancer") {
        return Ok(Value::Null);
    }
    let Some(status) = nested::map(object, &["status"])? else { return Ok(Value::Null) };
    let status = Typed::from_object("ServiceStatus", &Value::Object(status.clone()));
    let status = status.map_err(NativeError::object("ServiceStatus"))?;
    let mut collected = Typed::zero("ServiceStatus");
    *collected.at_mut("/loadBalancer") = status.at("/loadBalancer").clone();
    Ok(collected.into_object())
}

/// Returns `true` unless the Service has the type `LoadBalancer` and no address yet.
pub(super) fn is_healthy(object: &Value) -> Result<bool> {
    let service = service(object)?;
    Ok(service.text("/spec/type") != "LoadBalancer" || load_balancer::has_address(&service))
}
