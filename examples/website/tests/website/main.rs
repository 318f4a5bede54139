//! The program as a process: outside of a cluster, and with the role for its webhook certificate.

mod certificate;
mod outside;
