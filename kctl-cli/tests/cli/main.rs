//! The tool `kctl` as a process: one program, because each would compile and link the clients again.

mod apiserver;
mod completions;
mod interpret;
mod kubelet;
mod new;
mod persistence;
mod samples;
