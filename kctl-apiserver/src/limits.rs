//! Request limits that several layers of the server enforce.

/// Maximum size of a request body in bytes, as in kube-apiserver (`MaxRequestBodyBytes`).
pub(crate) const BODY_LEN_MAX: usize = 3 * 1024 * 1024;

/// Maximum number of field errors in a response. Those beyond it are left out, and the message says so. kube-apiserver
/// has no such bound. A body of 3 MiB may have more than a million wrong items, and the response would be many times as
/// large.
pub(crate) const CAUSES_LEN_MAX: usize = 1000;

/// Number of warnings after which rules that compare pairs stop. A response has at most 4,096 characters of warnings, so
/// later ones are never sent. A body of 3 MiB has billions of pairs; kube-apiserver reports all of them.
pub(crate) const WARNINGS_MAX: usize = 4096;
