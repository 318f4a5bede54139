//! Services.

use serde_json::Value;

use super::{Items, NativeError, Result, load_balancer, nested};
use crate::typed::Typed;

fn service(object: &Value) -> Result<Typed> {
    Typed::from_object("Service", object).map_err(NativeError::object("Service"))
}

/// Keeps what the cluster's API server allocated.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    if let Some(port) = nested::int64(observed, &["spec", "healthCheckNodePort"])?.filter(|port| *port > 0) {
        nested::set(&mut desired, &["spec", "healthCheckNodePort"], port.into())?;
    }
    if let Some(ip) = nested::string(observed, &["spec", "clusterIP"])?.filter(|ip| !ip.is_empty()) {
        nested::set(&mut desired, &["spec", "clusterIP"], ip.into())?;
    }
    Ok(desired)
}

pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let mut service = service(&object)?;
    if service.text("/spec/type") != "LoadBalancer" {
        return Ok(object);
    }
    let mut status = Typed::zero("ServiceStatus");
    *status.at_mut("/loadBalancer/ingress") = load_balancer::joined("ServiceStatus", items.unwrap_or_default())?;
    if service.has("/status", &status) {
        return Ok(object);
    }
    *service.at_mut("/status") = status.into_value();
    Ok(service.into_object())
}

/// Collects the addresses of a load balancer; other services have nothing worth it.
pub(super) fn status(object: &Value) -> Result<Value> {
    // A type that is no text is as good as none here.
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

pub(super) fn healthy(object: &Value) -> Result<bool> {
    let service = service(object)?;
    Ok(service.text("/spec/type") != "LoadBalancer" || load_balancer::has_address(&service))
}
