//! Kinds of `resource.k8s.io`.
//!
//! Dynamic resource allocation: a driver publishes devices in a `ResourceSlice`, a `DeviceClass` selects some of them,
//! and a `ResourceClaim` requests devices for Pods. The scheduler writes the allocation into the status of the claim. A
//! `DeviceTaintRule` keeps Pods from devices.

pub(crate) mod defaults;
pub(crate) mod device_class;
pub(crate) mod device_taint_rule;
pub(crate) mod resource_claim;
pub(crate) mod resource_claim_template;
pub(crate) mod resource_slice;
pub(crate) mod validation;
