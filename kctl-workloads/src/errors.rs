//! The message of a failed request, for logs and conditions.

/// Returns the message of an error. For a rejected request it is the API server's alone; kube's text repeats the whole
/// `Status` object.
pub(crate) fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.trim().to_owned(),
        error => error.to_string(),
    }
}
