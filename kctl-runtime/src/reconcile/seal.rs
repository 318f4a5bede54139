//! The parts of permissions that only generated code may name. `__private_0_1` re-exports them.

use super::Controller;

/// Part of every permission, so that only generated code can grant one.
#[derive(Debug)]
pub struct Seal;

/// A controller whose declaration has no mistake. A declaration with one gets every permission, so that a
/// mistake is reported once.
pub trait ValidDeclaration: Controller {}

/// A placeholder for a kind. With one `Declares` implementation rustc would infer its kind, and without any
/// it would report that `cx.owned` does not exist. With two it names the kind that is not declared.
#[derive(Debug)]
pub struct NoKind;
/// The second placeholder.
#[derive(Debug)]
pub struct NoOtherKind;
