//! The error of a reconcile: made from anything, with what the loop should do about it.

use std::{error::Error as StdError, fmt, time::Duration};

use crate::effect::ApiError;

/// The result of a reconcile.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any error, with a note on how to go on. It is not a `std::error::Error` itself, so that `?` makes it from all that are,
/// and from anyhow's, boxes and strings.
///
/// ```
/// use kctl_runtime::reconcile::{Error, Result};
/// fn read() -> Result<u32> { Ok("7x".parse::<u32>()?) }
/// assert!(read().unwrap_err().to_string().contains("invalid digit"));
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
    /// The first answer of the API server among the causes.
    pub fn api(&self) -> Option<&ApiError> {
        let mut cause: Option<&(dyn StdError + 'static)> = Some(self.source.as_ref());
        while let Some(error) = cause {
            if let Some(api) = error.downcast_ref() {
                return Some(api);
            }
            cause = error.source();
        }
        None
    }

    /// Whether trying again can't help.
    pub fn is_terminal(&self) -> bool {
        self.terminal || self.api().is_some_and(ApiError::is_terminal)
    }

    /// How long to wait before the next try, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.or_else(|| self.api()?.retry_after())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for context in self.context.iter().rev() {
            write!(f, "{context}: ")?;
        }
        write!(f, "{}", self.source)?;
        let mut cause = self.source.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Notes on errors, at the place where they are known.
pub trait ResultExt<T> {
    /// Trying again can't help: the key waits for the next change.
    ///
    /// # Errors
    /// The same error, marked.
    fn terminal(self) -> Result<T>;

    /// Tries again after this time instead of the growing waits.
    ///
    /// # Errors
    /// The same error, marked.
    fn retry_after(self, after: Duration) -> Result<T>;

    /// Says what was being done.
    ///
    /// # Errors
    /// The same error with the text before it.
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
