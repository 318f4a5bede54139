//! Kinds of `apiregistration.k8s.io`.
//!
//! The only kind is `APIService`, which belongs to the aggregation layer (`kube-aggregator`).

pub(crate) mod api_service;
