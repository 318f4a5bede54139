//! Deployment tests: each example runs as a process with only its generated manifests and a token of its
//! `ServiceAccount`, on the embedded API server and on the one that `KUBECONFIG` names.

mod book;
mod build;
mod cluster;
mod examples;
mod files;
mod framework;
mod helm;
mod multicluster;
mod new;
mod program;
mod proxy;
mod roles;
mod rolling;
mod stuck;
