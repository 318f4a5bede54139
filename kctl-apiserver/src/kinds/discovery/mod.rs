//! Kinds of `discovery.k8s.io`.
//!
//! The only kind is `EndpointSlice`, the successor of `Endpoints` of the core group.

pub(crate) mod endpoint_slice;
