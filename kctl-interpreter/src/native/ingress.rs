//! The rules of `networking.k8s.io/v1 Ingress`. `InterpretStatus` returns the whole status.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `AggregateStatus` | the addresses of all clusters | `aggregatestatus.go`, `aggregateIngressStatus` |
//! | `InterpretHealth` | `true` if there is an address | `healthy.go`, `interpretIngressHealth` |
//! | `InterpretDependency` | the Secrets of `spec.tls` | `dependencies.go`, `getIngressDependencies` |

use serde_json::Value;

use super::{Items, NativeError, Result, load_balancer};
use crate::{operation::DependentReference, typed::Typed};

fn ingress(object: &Value) -> Result<Typed> {
    Typed::from_object("Ingress", object).map_err(NativeError::object("Ingress"))
}

/// Replaces the status with the merged addresses of all clusters
/// (`DedupeAndSortIngressLoadBalancerIngress` in Karmada's `pkg/util/helper/ingress.go`).
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let ingress = ingress(&object)?;
    let mut status = Typed::zero("IngressStatus");
    *status.at_mut("/loadBalancer/ingress") = load_balancer::merge_ingress("IngressStatus", items.unwrap_or_default())?;
    Ok(ingress.with_status(status, object))
}

/// Returns `true` if `status.loadBalancer.ingress` has an entry with a hostname or an IP address.
pub(super) fn is_healthy(object: &Value) -> Result<bool> {
    Ok(load_balancer::has_address(&ingress(object)?))
}

/// Returns the Secrets of `spec.tls`, one per entry and in its order.
///
/// An entry without `secretName` gives a reference with an empty name.
pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    let ingress = ingress(object)?;
    let namespace = ingress.text("/metadata/namespace");
    let secrets = ingress.list("/spec/tls").iter().map(|tls| DependentReference {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: namespace.to_owned(),
        name: tls["secretName"].as_str().unwrap_or_default().to_owned(),
        label_selector: None,
    });
    Ok(secrets.collect())
}
