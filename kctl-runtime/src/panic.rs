//! Reads the message of a caught panic, and unwinds from a read that will succeed later.

use std::any::Any;

/// The panic payload of a read whose objects are not in the cache yet. Later the same read succeeds.
pub(crate) struct NotListedYet(pub(crate) String);

impl NotListedYet {
    /// Unwinds without a call of the panic hook: the program has no bug, and its worker reconciles the key again.
    pub(crate) fn unwind(text: String) -> ! {
        // A program that aborts would end without a message.
        #[cfg(panic = "abort")]
        panic!("{text}");
        // In a task that the reconcile has spawned, nothing else reports it.
        tracing::debug!("{text}");
        #[cfg(not(panic = "abort"))]
        std::panic::resume_unwind(Box::new(Self(text)));
    }
}

/// Returns the message of a panic, or `no text` if its payload has none.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(NotListedYet(text)) = panic.downcast_ref() {
        return text.clone();
    }
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".into())
}
