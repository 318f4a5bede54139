//! The embedded API server, for tests that need more control than a test server gives.

#[doc(inline)]
pub use kctl_apiserver::*;
#[cfg(feature = "dev")]
#[doc(inline)]
pub use kctl_workloads::{Kubelet, Workloads};
