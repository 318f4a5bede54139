//! Validation of the built-in kinds: functions that `kinds/` refers to, and what they share.
//!
//! Behaviour: the `validation.go` of each group in `k8s.io/kubernetes/pkg/apis`, in their order, with the texts that
//! kube-apiserver 1.36 answers.

pub(crate) mod access;
pub(crate) mod address;
pub(crate) mod admission;
pub(crate) mod affinity;
pub(crate) mod attached;
pub(crate) mod autoscaler;
pub(crate) mod certificates;
pub(crate) mod change;
pub(crate) mod claim;
pub(crate) mod claim_status;
pub(crate) mod config;
pub(crate) mod container;
pub(crate) mod device;
pub(crate) mod dns;
pub(crate) mod downward;
pub(crate) mod endpoints;
pub(crate) mod environment;
pub(crate) mod events;
pub(crate) mod flow;
pub(crate) mod ingress;
pub(crate) mod job;
pub(crate) mod job_status;
pub(crate) mod mounts;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod paths;
pub(crate) mod placement;
pub(crate) mod pod;
pub(crate) mod pod_status;
pub(crate) mod policies;
pub(crate) mod policy;
pub(crate) mod ports;
pub(crate) mod probe;
pub(crate) mod quota;
pub(crate) mod requests;
pub(crate) mod resize;
pub(crate) mod resources;
pub(crate) mod review;
pub(crate) mod schedule;
pub(crate) mod security;
pub(crate) mod selector;
pub(crate) mod served;
pub(crate) mod service;
pub(crate) mod slice;
pub(crate) mod status;
pub(crate) mod storage;
pub(crate) mod volume;
pub(crate) mod volume_source;
pub(crate) mod windows;
pub(crate) mod workload;

use serde_json::Value;

pub(crate) use self::claim_status::forget_returned;
pub(crate) use self::quota::OF_PODS as COUNTED_OF_PODS;
pub(crate) use self::service::is_checked as is_checked_on_nodes;
use crate::{
    field_errors::{Errors, pairs, text},
    status::Cause,
};

/// What is wrong with a path that begins with a domain.
pub(crate) fn domain_prefixed(field: &str, path: &str) -> Vec<Cause> {
    let mut errors = Errors::default();
    errors.domain_prefixed(field, &path.into());
    errors.into_causes()
}

/// What is wrong with the addresses of a service.
pub(crate) fn addresses_of_service(object: &Value) -> Vec<Cause> {
    let mut errors = Errors::default();
    service::addresses(&object["spec"], &mut errors);
    errors.into_causes()
}

/// The entries of a list with their indexes; none when there is no list.
fn entries(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}
