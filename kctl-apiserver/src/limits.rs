//! Request limits that several layers of the server enforce.

/// Maximum size of a request body in bytes, as in kube-apiserver (`MaxRequestBodyBytes`).
pub(crate) const BODY_LEN_MAX: usize = 3 * 1024 * 1024;
