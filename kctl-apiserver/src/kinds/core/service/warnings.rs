//! Warnings about Services (`pkg/api/service/warnings.go`).
//!
//! They are about fields without effect: the Service is valid and stored as it is.

use serde_json::Value;

use crate::{field_errors::text, json_path::entries};

/// Adds the warnings of `GetWarningsForService`.
pub(crate) fn warn(object: &Value, texts: &mut Vec<String>) {
    let spec = &object["spec"];
    let kind = text(&spec["type"]);
    let old_hints = "service.kubernetes.io/topology-aware-hints";
    if object["metadata"]["annotations"].get(old_hints).is_some() {
        let instead = "service.kubernetes.io/topology-mode";
        texts.push(format!("annotation {old_hints} is deprecated, please use {instead} instead"));
    }
    let has_external = entries(&spec["externalIPs"]).next().is_some();
    if kind == "ClusterIP" && spec["clusterIP"] == "None" {
        let ignored = [
            (!text(&spec["loadBalancerIP"]).is_empty(), "loadBalancerIP"),
            (has_external, "externalIPs"),
            (spec["sessionAffinity"] == "ClientIP", "SessionAffinity"),
        ];
        let ignored = ignored.into_iter().filter(|(is_set, _)| *is_set);
        texts.extend(ignored.map(|(_, field)| format!("spec.{field} is ignored for headless services")));
    } else if has_external && kind != "ExternalName" {
        texts.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".into());
    }
    if kind == "ExternalName" && has_external {
        texts.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".into());
    }
    if kind != "ExternalName" && !text(&spec["externalName"]).is_empty() {
        texts.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".into());
    }
    if spec["trafficDistribution"] == "PreferClose" {
        texts.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".into());
    }
}
