//! Clients that no one here wrote converge on the embedded API server: controller-runtime, and kube's own runtime.

mod go;
mod kube_runtime;
