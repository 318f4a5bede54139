//! Programs of other projects work with kctl: controllers on controller-runtime and kube-runtime with the embedded API
//! server, a client-go candidate for a Lease, and Prometheus' parsers. controller-gen generates the same CRDs and
//! roles.

mod clients;
mod fabric8;
mod faults;
mod go;
mod kube_runtime;
mod plan;
