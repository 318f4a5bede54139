//! The return types that reconcile functions may have.

use super::{Action, Error, Result};

/// A return type of reconcile functions: `Result<Action>`, or `Result<Action, E>` with any error that converts into
/// [`Error`].
#[diagnostic::on_unimplemented(
    message = "a reconcile function returns `Result<Action>`, not `{Self}`",
    label = "not `Result<Action>`",
    note = "help: write `-> Result<Action>` and end with `Ok(Action::await_change())`",
    note = "an error of your own is a `std::error::Error`, `Send` and `Sync`, for example `Box<dyn std::error::Error + Send + Sync>`",
    note = "code: K0005"
)]
pub trait Outcome {
    /// Returns the result with kctl's error type.
    ///
    /// # Errors
    /// The errors of the function.
    fn outcome(self) -> Result<Action>;
}

#[diagnostic::do_not_recommend]
impl<E: Into<Error>> Outcome for Result<Action, E> {
    fn outcome(self) -> Result<Action> {
        self.map_err(Into::into)
    }
}

/// Returns the result of a reconcile function with kctl's error type. Generated code calls it, so that a wrong return
/// type is reported at the function's signature.
///
/// # Errors
/// The errors of the function.
pub fn outcome<T: Outcome>(result: T) -> Result<Action> {
    result.outcome()
}
