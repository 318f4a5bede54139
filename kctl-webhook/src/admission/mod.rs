//! `#[admission(validate)]` and `#[admission(mutate)]`: functions that an API server asks before it stores an object.

mod configuration;
mod denial;
mod options;
mod request;
mod respond;
mod review;
mod rule;

pub use self::{
    configuration::{Client, Configurations},
    denial::{Denial, Invalid},
    options::{Action, FailurePolicy, MatchPolicy, Operation, Options, Reinvocation, SideEffects},
    request::{AUDIT_LEN_MAX, Admission, User, WARNINGS_LEN_MAX},
    rule::{Answer, FunctionTwice, Rule},
};
pub(crate) use respond::{BODY_LEN_MAX, given_up, respond, unread};
pub(crate) use rule::check;

/// One function with `#[admission(…)]`, by the type of its name, or a tuple of such.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an admission function",
    label = "not made by `#[admission]`",
    note = "help: write `#[admission(validate)]` or `#[admission(mutate)]` on the function, and name it here without parentheses",
    note = "code: K0108"
)]
pub trait Admits {
    /// Returns what the functions answer.
    fn rules() -> Vec<Rule>;
}

crate::tuples!(Admits, Rule);
