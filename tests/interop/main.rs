//! What no one here wrote gets along with kctl: controllers on controller-runtime and kube's own runtime on the embedded API
//! server, a candidate of client-go for a lease, and the parsers of Prometheus; controller-gen makes the same definitions and roles.

mod clients;
mod fabric8;
mod faults;
mod go;
mod kube_runtime;
mod plan;
