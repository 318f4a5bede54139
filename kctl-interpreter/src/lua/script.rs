//! A script: its source, the function that it defines, and an identity.
//!
//! The identity keeps Lua states of different customizations apart, even if their sources are
//! equal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::compile::check_syntax;
use super::error::ScriptError;

/// The maximum length of a source: 1 MiB. etcd rejects objects over 1.5 MiB, so no customization
/// has a much longer one.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;

/// A compiled script. Clones share one identity, and with it the idle states of a [`Pool`](super::Pool).
///
/// ```
/// use kctl_interpreter::lua::{ErrorClass, Script};
///
/// let script = Script::compile("function InterpretHealth(o) return true end", "InterpretHealth")?;
/// assert_eq!(script.function(), "InterpretHealth");
/// let error = Script::compile("function InterpretHealth(o", "InterpretHealth").unwrap_err();
/// assert_eq!(error.class(), ErrorClass::Syntax);
/// # Ok::<(), kctl_interpreter::lua::ScriptError>(())
/// ```
#[derive(Clone)]
pub struct Script {
    inner: Arc<Inner>,
}

/// Without the source: a script can contain data that does not belong in a log.
impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script").field("function", &self.inner.function).finish_non_exhaustive()
    }
}

struct Inner {
    source: String,
    function: String,
    /// Set once a run took so long that other tasks should not wait for the next one on the same
    /// thread.
    is_slow: AtomicBool,
}

impl Script {
    /// Compiles `source`, which should define the global function `function`.
    ///
    /// A missing function is reported when the script runs, because a script may define it under a
    /// condition.
    ///
    /// # Errors
    /// [`ScriptError::Syntax`] if the source is not valid Lua 5.1 with `goto`, or is longer than
    /// [`SOURCE_BYTES_MAX`].
    pub fn compile(source: &str, function: &str) -> Result<Self, ScriptError> {
        let syntax = |message: String| ScriptError::Syntax { function: function.to_owned(), line: None, message };
        if source.len() > SOURCE_BYTES_MAX {
            let n_bytes = source.len();
            return Err(syntax(format!("the source has {n_bytes} bytes, shorten it to {SOURCE_BYTES_MAX}")));
        }
        check_syntax(source, function)?;
        let inner = Inner { source: source.to_owned(), function: function.to_owned(), is_slow: AtomicBool::new(false) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the source, as it was given to [`Script::compile`].
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// Returns the name of the function that a run calls.
    pub fn function(&self) -> &str {
        &self.inner.function
    }

    /// Returns `true` once a run has blocked its thread for long.
    pub(super) fn is_slow(&self) -> bool {
        self.inner.is_slow.load(Ordering::Relaxed)
    }

    /// Records that a run blocked its thread for long. It is never taken back.
    pub(super) fn set_slow(&self) {
        self.inner.is_slow.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if both are clones of one compiled script.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}
