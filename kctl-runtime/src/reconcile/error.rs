//! The error of a reconcile: made from any error, with a note on how to retry.

use std::{
    error::Error as StdError,
    fmt,
    io::{self, ErrorKind},
    path::Path,
    time::Duration,
};

use kube::config::KubeconfigError;

use crate::writer::ApiError;

/// The result of a reconcile and of its helper functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any error, with context and a note on how to retry.
///
/// `?` converts every `std::error::Error`, `anyhow::Error`, boxed errors and strings. For that reason `Error` itself
/// does not implement `std::error::Error`. [`ResultExt`] adds context and the notes.
///
/// Without a note the key is retried with exponential backoff. Errors of the API server carry their own notes. A
/// conflict (409) leads to a reconcile of the newer state, `Retry-After` sets the wait, and a request that can never
/// succeed is terminal.
///
/// ```
/// use kctl_runtime::reconcile::{Error, Result};
///
/// fn read() -> Result<u32> {
///     Ok("7x".parse::<u32>()?)
/// }
/// let error = read().unwrap_err();
/// assert_eq!(error.to_string(), "invalid digit found in string");
/// assert!(error.find::<std::num::ParseIntError>().is_some());
/// assert!(!error.is_terminal() && !error.is_conflict());
/// assert_eq!(Error::from("no free port").to_string(), "no free port");
/// ```
pub struct Error {
    source: Box<dyn StdError + Send + Sync>,
    context: Vec<String>,
    terminal: bool,
    retry_after: Option<Duration>,
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for Error {
    fn from(error: E) -> Self {
        Self { source: error.into(), context: Vec::new(), terminal: false, retry_after: None }
    }
}

impl Error {
    /// Returns the first error of the type `E` among the error and its sources.
    pub fn find<E: StdError + 'static>(&self) -> Option<&E> {
        let mut cause: Option<&(dyn StdError + 'static)> = Some(self.source.as_ref());
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }

    /// Returns the first error of the API server among the error and its sources, for example to test
    /// [`is_not_found`](ApiError::is_not_found).
    ///
    /// ```
    /// use kctl_runtime::{writer::ApiError, reconcile::Error};
    ///
    /// fn is_missing(error: &Error) -> bool {
    ///     error.api().is_some_and(ApiError::is_not_found)
    /// }
    /// assert!(!is_missing(&Error::from("another problem")));
    /// ```
    pub fn api(&self) -> Option<&ApiError> {
        self.find()
    }

    /// Returns `true` for a conflict: a write expected another state of the object (409), or a predecessor of the same
    /// name (422 about its uid). A 409 `Conflict` of the user's own kube client counts as well.
    pub fn is_conflict(&self) -> bool {
        let mut cause: Option<&(dyn StdError + 'static)> = Some(self.source.as_ref());
        while let Some(error) = cause {
            if let Some(kube::Error::Api(status)) = error.downcast_ref() {
                return status.code == 409 && status.reason == "Conflict";
            }
            if let Some(api) = error.downcast_ref::<ApiError>() {
                return api.is_conflict();
            }
            cause = error.source();
        }
        false
    }

    /// Returns `true` if a retry cannot help, by [`terminal`](ResultExt::terminal) or by the kind of the API error.
    pub fn is_terminal(&self) -> bool {
        self.terminal || self.api().is_some_and(ApiError::is_terminal)
    }

    /// Returns `true` if the API server rejected the content of a request, also of the user's own kube client.
    pub(crate) fn is_invalid(&self) -> bool {
        let is_invalid_status =
            |error: &kube::Error| matches!(error, kube::Error::Api(status) if [400, 422].contains(&status.code));
        self.api().map_or_else(|| self.find().is_some_and(is_invalid_status), ApiError::is_invalid)
    }

    /// Returns the wait before the next retry, if the error or the API server named one. A wait
    /// of the API server counts up to a minute, so that one wrong response does not freeze the key.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.or_else(|| self.api()?.followed_retry_after())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for context in self.context.iter().rev() {
            write!(f, "{context}: ")?;
        }
        let mut previous = match self.source.downcast_ref() {
            Some(KubeconfigError::ReadConfig(_source, path)) => unreadable_kubeconfig(path, &self.context),
            Some(KubeconfigError::Parse(error)) => {
                format!("the kubeconfig is not valid YAML: {}", error.without_snippet())
            }
            _ => text(self.source.as_ref()),
        };
        f.write_str(&previous)?;
        let mut cause = self.source.source();
        while let Some(error) = cause {
            // Many errors include the message of their source, which is not repeated.
            let text = text(error);
            if !previous.contains(&text) {
                write!(f, ": {text}")?;
                previous = text;
            }
            cause = error.source();
        }
        Ok(())
    }
}

/// Returns the message of one error. kube's errors print the whole Status object, but people need only the message.
fn text(error: &(dyn StdError + 'static)) -> String {
    match error.downcast_ref() {
        Some(kube::Error::Api(status)) => status.message.trim().to_owned(),
        Some(kube::Error::Service(cause)) if is_lost_connection(cause.as_ref()) => {
            "no response from the API server".to_owned()
        }
        // kube's own message begins with the name of its variant.
        Some(kube::Error::Service(cause)) => cause.to_string(),
        // The `Status` is the source of `kube::Error::Api`, whose message was printed.
        _ if error.is::<kube::core::Status>() || error.is::<Box<kube::core::Status>>() => String::new(),
        _ => error.to_string(),
    }
}

/// Returns the message about a kubeconfig that cannot be read, without its path if the context has that already. kube's own
/// message always has the path, with two kinds of quotes.
fn unreadable_kubeconfig(path: &Path, context: &[String]) -> String {
    let path = path.display().to_string();
    if context.iter().any(|context| context.contains(&path)) {
        return "failed to read the kubeconfig".into();
    }
    format!("failed to read the kubeconfig {path}")
}

/// Returns `true` if a connection could not be opened or broke. Other I/O errors are about files, such as the files of
/// plugins.
fn is_lost_connection(error: &(dyn StdError + 'static)) -> bool {
    let Some(error) = error.downcast_ref::<io::Error>() else { return error.source().is_some_and(is_lost_connection) };
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::BrokenPipe
            | ErrorKind::TimedOut
            | ErrorKind::UnexpectedEof
    )
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Adds context and notes on retries to a [`Result`] of any error type.
///
/// ```
/// use std::time::Duration;
/// use kctl_runtime::reconcile::{Result, ResultExt};
///
/// fn parse(replicas: &str) -> Result<i32> {
///     replicas.parse().context("spec.replicas").terminal() // only a change of the object helps
/// }
/// let error = parse("many").unwrap_err();
/// assert!(error.is_terminal() && error.to_string().starts_with("spec.replicas"));
///
/// let busy: Result<()> = Err("the disk is being resized".into());
/// let busy = busy.retry_after(Duration::from_secs(30));
/// assert_eq!(busy.unwrap_err().retry_after(), Some(Duration::from_secs(30)));
/// ```
pub trait ResultExt<T> {
    /// Marks the error as terminal: the key is given up instead of retried. Its next event, also of an owned object, or a
    /// resync runs it; events of own writes do not.
    ///
    /// # Errors
    /// The same error, marked.
    fn terminal(self) -> Result<T>;

    /// Retries after this time instead of the backoff. It still counts as a failure.
    ///
    /// # Errors
    /// The same error, marked.
    fn retry_after(self, after: Duration) -> Result<T>;

    /// Adds a prefix to the message of the error: the operation that failed. The outermost context comes first.
    ///
    /// # Errors
    /// The same error with the prefix.
    fn context(self, text: impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<Error>> ResultExt<T> for std::result::Result<T, E> {
    fn terminal(self) -> Result<T> {
        self.map_err(|error| Error { terminal: true, ..error.into() })
    }

    fn retry_after(self, after: Duration) -> Result<T> {
        self.map_err(|error| Error { retry_after: Some(after), ..error.into() })
    }

    fn context(self, text: impl fmt::Display) -> Result<T> {
        self.map_err(|error| {
            let mut error = error.into();
            error.context.push(text.to_string());
            error
        })
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Layer {
        let source = texts.get(1).map(|_| Box::new(layers(&texts[1..])));
        Layer { text: texts[0], source }
    }

    #[test]
    fn causes_are_reported_once() {
        let check =
            |texts: &[&'static str], expected: &str| assert_eq!(Error::from(layers(texts)).to_string(), expected);
        check(&["a", "b", "c"], "a: b: c");
        check(&["no answer: refused", "refused", "errno 111"], "no answer: refused: errno 111");
    }

    fn answered(code: u16, reason: &str) -> Error {
        let status = Status { code, reason: reason.into(), message: "was not so\n".into(), ..Status::default() };
        Error::from(kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn kube_errors_have_the_api_servers_message() {
        assert_eq!(answered(500, "").to_string(), "was not so");
    }

    #[test]
    fn only_rejected_content_of_kube_errors_is_invalid() {
        for (code, reason, expected) in [
            (422, "Invalid", true),
            (400, "BadRequest", true),
            (409, "Conflict", false),
            (404, "NotFound", false),
            (403, "Forbidden", false),
            (500, "", false),
        ] {
            assert_eq!(answered(code, reason).is_invalid(), expected, "{code}");
        }
        assert!(!Error::from("no disk").is_invalid());
    }

    #[test]
    fn path_of_unreadable_kubeconfig_is_reported_once() {
        let error = || {
            let source = io::Error::new(ErrorKind::NotFound, "no such file");
            Err::<(), _>(KubeconfigError::ReadConfig(source, "/a/config".into()))
        };
        for (context, expected) in [
            ("EDGE", "EDGE: failed to read the kubeconfig /a/config: no such file"),
            ("EDGE=/a/config", "EDGE=/a/config: failed to read the kubeconfig: no such file"),
        ] {
            assert_eq!(error().context(context).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn refused_connection_is_a_missing_response() {
        let service = |error: Box<dyn StdError + Send + Sync>| Error::from(kube::Error::Service(error)).to_string();
        let refused = io::Error::new(ErrorKind::ConnectionRefused, "connection refused");
        assert_eq!(service(refused.into()), "no response from the API server: connection refused");
        let plugin = io::Error::new(ErrorKind::NotFound, "no such plugin");
        assert_eq!(service(plugin.into()), "no such plugin");
        assert_eq!(service("no token".into()), "no token");
    }

    #[test]
    fn servers_wait_is_capped_but_not_the_users() {
        let day = Duration::from_secs(86_400);
        let busy = || ApiError::rejected("create Pod shop/web-0", 429, Some(day), "{}");
        assert_eq!(Error::from(busy()).retry_after(), Some(Duration::from_secs(60)));
        let named = Err::<(), _>(busy()).retry_after(day).unwrap_err();
        assert_eq!(named.retry_after(), Some(day));
    }

    #[test]
    fn conflicts_of_the_users_client_count() {
        assert!(answered(409, "Conflict").is_conflict());
        assert!(!answered(409, "AlreadyExists").is_conflict());
    }
}
