//! Validation of the built-in kinds: functions that `kinds/` refers to, and what they share.
//!
//! Behaviour: the `validation.go` of each group in `k8s.io/kubernetes/pkg/apis`, in their order, with the texts that
//! kube-apiserver 1.36 answers.

pub(crate) mod address;
pub(crate) mod affinity;
pub(crate) mod attached;
pub(crate) mod change;
pub(crate) mod claim;
pub(crate) mod config;
pub(crate) mod container;
pub(crate) mod declared;
pub(crate) mod device;
pub(crate) mod dns;
pub(crate) mod downward;
pub(crate) mod endpoints;
pub(crate) mod environment;
mod format;
pub(crate) mod job;
pub(crate) mod mounts;
pub(crate) mod node;
pub(crate) mod paths;
pub(crate) mod placement;
pub(crate) mod pod;
pub(crate) mod policy;
pub(crate) mod ports;
pub(crate) mod probe;
pub(crate) mod requests;
pub(crate) mod resources;
pub(crate) mod review;
pub(crate) mod schedule;
pub(crate) mod security;
pub(crate) mod selector;
pub(crate) mod served;
pub(crate) mod status;
pub(crate) mod storage;
pub(crate) mod volume;
pub(crate) mod volume_source;
pub(crate) mod windows;
pub(crate) mod workload;

use serde_json::Value;

pub(crate) use crate::field_errors::{Errors, pairs, text};
use crate::status::FieldError;

/// What is wrong with a path that begins with a domain.
pub(crate) fn domain_prefixed(field: &str, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    errors.domain_prefixed(field, &path.into());
    errors.into_causes()
}

/// The entries of a list with their indexes; none when there is no list.
pub(crate) fn entries(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}
