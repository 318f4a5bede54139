//! What a reconcile function may return.

use super::{Action, Error, Result};

/// `Result<Action>`, and `Result<Action, E>` with any error that [`Error`] is made from.
#[diagnostic::on_unimplemented(
    message = "a reconcile function returns `Result<Action>`, not `{Self}`",
    label = "not `Result<Action>`",
    note = "help: write `-> Result<Action>` and end with `Ok(Action::await_change())`",
    note = "code: K0005"
)]
pub trait Outcome {
    /// The result with kctl's error.
    ///
    /// # Errors
    /// Those of the function.
    fn outcome(self) -> Result<Action>;
}

impl<E: Into<Error>> Outcome for Result<Action, E> {
    fn outcome(self) -> Result<Action> {
        self.map_err(Into::into)
    }
}

/// For generated code: the bound is asked for at the place of the return type.
///
/// # Errors
/// Those of the function.
pub fn outcome<T: Outcome>(result: T) -> Result<Action> {
    result.outcome()
}
