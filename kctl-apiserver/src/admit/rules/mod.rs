//! What the built-in kinds demand of their objects: reads an object with its defaults, hands on the causes of a refusal.
//!
//! Behaviour: the `validation.go` of each group in `k8s.io/kubernetes/pkg/apis`, in their order, with the texts that
//! kube-apiserver 1.36 answers.

mod access;
pub(super) mod address;
mod admission;
mod affinity;
mod attached;
mod autoscaler;
mod certificates;
mod change;
mod claim;
mod claim_status;
mod config;
mod container;
mod device;
mod dns;
mod downward;
mod endpoints;
mod environment;
mod events;
mod flow;
mod ingress;
mod job;
mod job_status;
mod mounts;
mod network;
mod node;
mod paths;
mod placement;
mod pod;
mod pod_status;
mod policies;
mod policy;
mod ports;
mod probe;
mod quota;
mod requests;
mod resize;
mod resources;
pub(crate) mod review;
mod schedule;
mod security;
mod selector;
mod served;
mod service;
mod slice;
mod status;
mod storage;
mod volume;
mod volume_source;
mod windows;
mod workload;

use serde_json::Value;

pub(crate) use self::change::{Turn, forbidden_changes, turn};
pub(crate) use self::claim_status::forget_returned;
pub(crate) use self::quota::OF_PODS as COUNTED_OF_PODS;
pub(crate) use self::service::is_checked as is_checked_on_nodes;
use crate::{
    field_errors::{Errors, pairs, text},
    kinds::Resource,
    status::Cause,
};

/// What is wrong with a new or changed object of a built-in kind, besides its metadata.
pub(crate) fn causes(resource: &Resource, object: &Value, is_new: bool) -> Vec<Cause> {
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
        ("", "resourcequotas") => quota::quota,
        ("", "persistentvolumes") => storage::volume,
        ("", "endpoints") => endpoints::endpoints,
        ("apps", "controllerrevisions") if is_new => |object, errors| workload::revision(object, true, errors),
        ("apps", "controllerrevisions") => |object, errors| workload::revision(object, false, errors),
        ("networking.k8s.io", "ingressclasses") => ingress::class,
        ("", "namespaces") => node::namespace,
        ("apps", "deployments") => workload::deployment,
        ("apps", "replicasets") => workload::replica_set,
        ("apps", "statefulsets") if is_new => |object, errors| workload::stateful_set(object, true, errors),
        ("apps", "statefulsets") => |object, errors| workload::stateful_set(object, false, errors),
        ("apps", "daemonsets") => workload::daemon_set,
        ("batch", "jobs") => job::job,
        ("batch", "cronjobs") => job::cron_job,
        ("autoscaling", "horizontalpodautoscalers") => autoscaler::autoscaler,
        ("policy", "poddisruptionbudgets") => policy::disruption_budget,
        ("networking.k8s.io", "ingresses") => ingress::ingress,
        ("networking.k8s.io", "networkpolicies") => network::policy,
        ("discovery.k8s.io", "endpointslices") => endpoints::new_slice,
        ("coordination.k8s.io", "leases") => config::lease,
        ("scheduling.k8s.io", "priorityclasses") => policy::priority_class,
        ("storage.k8s.io", "storageclasses") => storage::class,
        ("storage.k8s.io", "csidrivers") => storage::csi_driver,
        ("storage.k8s.io", "volumeattachments") => attached::attachment,
        ("storage.k8s.io", "csinodes") => attached::node,
        ("storage.k8s.io", "csistoragecapacities") => attached::capacity,
        ("storage.k8s.io", "volumeattributesclasses") => attached::attributes,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => flow::schema,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => flow::level,
        ("apiregistration.k8s.io", "apiservices") => served::version,
        ("networking.k8s.io", "servicecidrs") => served::ranges,
        ("networking.k8s.io", "ipaddresses") => served::owned_address,
        ("node.k8s.io", "runtimeclasses") => node::runtime_class,
        ("resource.k8s.io", "deviceclasses") => device::class,
        ("resource.k8s.io", "resourceclaims") => claim::claim,
        ("resource.k8s.io", "resourceclaimtemplates") => claim::template,
        ("resource.k8s.io", "resourceslices") => slice::slice,
        ("", "limitranges") => quota::limits,
        ("", "nodes") if is_new => |object, errors| node::node(object, true, errors),
        ("", "nodes") => |object, errors| node::node(object, false, errors),
        ("rbac.authorization.k8s.io", "roles") => |object, errors| access::role(object, true, errors),
        ("rbac.authorization.k8s.io", "clusterroles") => access::cluster_role,
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

/// What is wrong with a path that begins with a domain.
pub(crate) fn domain_prefixed(field: &str, path: &str) -> Vec<Cause> {
    let mut errors = Errors::default();
    errors.domain_prefixed(field, &path.into());
    errors.into_causes()
}

/// Whether the rules of a kind look at nothing but the specification and the name: one that stays was judged when it was
/// stored.
pub(crate) fn are_about_spec_alone(resource: &Resource) -> bool {
    const KINDS: &[(&str, &str)] = &[
        ("", "pods"),
        ("", "replicationcontrollers"),
        ("apps", "daemonsets"),
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("batch", "cronjobs"),
    ];
    KINDS.contains(&(resource.of.group.as_str(), resource.of.resource.as_str()))
}

/// What is wrong with the addresses of a service.
pub(crate) fn addresses_of_service(object: &Value) -> Vec<Cause> {
    let mut errors = Errors::default();
    service::addresses(&object["spec"], &mut errors);
    errors.into_causes()
}

/// What the subresource of a pod may not change.
pub(crate) fn forbidden_in_pod(subresource: &str, old: &Value, new: &Value) -> Vec<Cause> {
    let mut errors = Errors::default();
    let rules = if subresource == "resize" { resize::resize } else { resize::ephemeral };
    rules(old, new, &mut errors);
    errors.into_causes()
}

/// What is wrong with a new object alone.
pub(crate) fn new_causes(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut errors = Errors::default();
    match (resource.of.group.as_str(), resource.of.resource.as_str()) {
        ("", "pods") => pod::new_pod(object, &mut errors),
        ("batch", "jobs") => job::new_job(object, &mut errors),
        ("networking.k8s.io", "ingresses") => ingress::new_ingress(object, &mut errors),
        _ => {}
    }
    errors.into_causes()
}

/// What is wrong with a status that was written.
pub(crate) fn status_causes(resource: &Resource, old: &Value, new: &Value) -> Vec<Cause> {
    let mut errors = Errors::default();
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    match of {
        ("", "pods") => pod_status::status(old, new, &mut errors),
        ("", "services") => service::status(new, &mut errors),
        ("", "nodes") => node::status(new, &mut errors),
        ("", "persistentvolumeclaims") => storage::status_of_claim(new, &mut errors),
        ("", "resourcequotas") => quota::status(new, &mut errors),
        ("batch", "jobs") => job_status::status(old, new, &mut errors),
        ("networking.k8s.io", "ingresses") => ingress::status(old, new, &mut errors),
        ("storage.k8s.io", "volumeattachments") => attached::status(new, &mut errors),
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => policies::status(new, &mut errors),
        ("flowcontrol.apiserver.k8s.io", _) => flow::status(new, &mut errors),
        ("apiregistration.k8s.io", "apiservices") => served::status(new, &mut errors),
        ("resource.k8s.io", "resourceclaims") => claim_status::status(old, new, &mut errors),
        _ => status::status(of, old, new, &mut errors),
    }
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
