//! Kinds of `autoscaling`.
//!
//! `Scale`, which this group also defines, is not a kind with a resource but the form of the subresource `scale`.

mod conversion;
pub(crate) mod horizontal_pod_autoscaler;
