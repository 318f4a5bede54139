//! The embedded API server, for tests that need more control than a test server gives.
//!
//! * [`ApiServer`] is the server. Clients in the same process send requests as a [`User`] by an [`InProcess`] service,
//!   whose responses have a [`Body`]. [`FeatureGates`] turn on alpha and beta features.
//! * [`ServeOptions`] and [`Listening`] serve it over HTTPS, for other processes.
//! * [`ControllerOptions`] select which [`Controller`]s of kube-controller-manager run.
//! * [`RequestRecord`] and [`Change`] describe each request and each write, for assertions.
//! * [`faults`] makes requests and watches fail.
//! * `Kubelet` runs Pods, and `Workloads` creates them for Deployments and Jobs (feature `dev`).
//!
//! The errors of parsing [`FeatureGates`] and [`ControllerOptions`] are in the crate [`kctl_apiserver`].

#[doc(inline)]
pub use kctl_apiserver::{
    ApiServer, Body, Change, Controller, ControllerOptions, FeatureGates, InProcess, Listening, RequestRecord,
    ServeOptions, User,
};
#[cfg(feature = "dev")]
#[doc(inline)]
pub use kctl_workloads::{Kubelet, Workloads};

/// Faults: requests and watches that fail, as rules that repeat exactly.
///
/// [`Faults`](faults::Faults) has the [`Rule`](faults::Rule)s. A rule injects a [`RequestFault`](faults::RequestFault) or an
/// [`EventFault`](faults::EventFault). [`ApiServer::faulty`] applies them to a client in the same process, and
/// [`Listening::with_faults`] to clients of other processes.
pub mod faults {
    #[doc(inline)]
    pub use kctl_apiserver::faults::{
        Connection, ConnectionResetError, EventFault, EventSummary, Fault, Faults, Faulty, Moment, RequestFault,
        RequestSummary, Rule, Seen, StaleState,
    };
}
