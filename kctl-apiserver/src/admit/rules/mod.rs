//! What the built-in kinds demand of their objects: reads an object with its defaults, hands on the causes of a refusal.
//!
//! Behaviour: the `validation.go` of each group in `k8s.io/kubernetes/pkg/apis`, in their order, with the texts that
//! kube-apiserver 1.36 answers.

mod access;
mod admission;
mod certificates;
mod change;
mod config;
mod container;
mod environment;
mod errors;
mod events;
mod network;
mod pod;
mod policies;
mod policy;
mod ports;
mod probe;
mod selector;
mod service;
mod storage;
mod volume;
mod workload;

use serde_json::Value;

pub(crate) use self::change::forbidden_changes;
use self::errors::Errors;
use crate::{kinds::Resource, status::Cause};

/// What is wrong with a new or changed object of a built-in kind, besides its metadata.
pub(crate) fn causes(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut errors = Errors::default();
    let rules: fn(&Value, &mut Errors) = match (resource.of.group.as_str(), resource.of.resource.as_str()) {
        ("", "pods") => pod::pod,
        ("", "podtemplates") => |object, errors| pod::template(&object["template"], "template", errors),
        ("", "replicationcontrollers") => workload::replication_controller,
        ("", "services") => service::service,
        ("", "configmaps") => config::config_map,
        ("", "secrets") => config::secret,
        ("", "events") => events::core_event,
        ("events.k8s.io", "events") => events::new_event,
        ("certificates.k8s.io", "certificatesigningrequests") => certificates::request,
        ("", "persistentvolumeclaims") => storage::claim,
        ("", "resourcequotas") => storage::quota,
        ("", "persistentvolumes") => storage::volume,
        ("", "endpoints") => network::endpoints,
        ("apps", "controllerrevisions") => workload::revision,
        ("networking.k8s.io", "ingressclasses") => network::ingress_class,
        ("", "namespaces") => config::namespace,
        ("apps", "deployments") => workload::deployment,
        ("apps", "replicasets") => workload::replica_set,
        ("apps", "statefulsets") => workload::stateful_set,
        ("apps", "daemonsets") => workload::daemon_set,
        ("batch", "jobs") => workload::job,
        ("batch", "cronjobs") => workload::cron_job,
        ("autoscaling", "horizontalpodautoscalers") => policy::autoscaler,
        ("policy", "poddisruptionbudgets") => policy::disruption_budget,
        ("networking.k8s.io", "ingresses") => network::ingress,
        ("networking.k8s.io", "networkpolicies") => network::policy,
        ("discovery.k8s.io", "endpointslices") => network::endpoint_slice,
        ("coordination.k8s.io", "leases") => config::lease,
        ("scheduling.k8s.io", "priorityclasses") => policy::priority_class,
        ("storage.k8s.io", "storageclasses") => storage::class,
        ("rbac.authorization.k8s.io", "roles") => |object, errors| access::role(object, true, errors),
        ("rbac.authorization.k8s.io", "clusterroles") => |object, errors| access::role(object, false, errors),
        ("rbac.authorization.k8s.io", "rolebindings") => |object, errors| access::binding(object, true, errors),
        ("rbac.authorization.k8s.io", "clusterrolebindings") => |object, errors| access::binding(object, false, errors),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations") => admission::validating_webhooks,
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations") => admission::mutating_webhooks,
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => policies::validating_policy,
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => policies::validating_binding,
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies") => policies::mutating_policy,
        ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings") => policies::mutating_binding,
        _ => return Vec::new(),
    };
    rules(object, &mut errors);
    errors.into_causes()
}

/// What a changed object may not change, by the subresource that is written.
pub(crate) fn fixed(resource: &Resource, subresource: &str, old: &Value, new: &Value) -> Vec<Cause> {
    let mut errors = Errors::default();
    match (resource.of.group.as_str(), resource.of.resource.as_str()) {
        ("events.k8s.io", "events") => events::fixed(old, new, &mut errors),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            certificates::fixed(subresource, old, new, &mut errors);
        }
        _ => {}
    }
    errors.into_causes()
}

/// The entries of a list with their indexes; none when there is no list.
fn entries(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

/// The pairs of a map; none when there is no map.
fn pairs(map: &Value) -> impl Iterator<Item = (&str, &Value)> {
    map.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// A text; the empty one when there is none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
