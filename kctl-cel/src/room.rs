//! Room for what recurses over an expression: takes how deep it may be, and runs on a stack that is large enough.

/// The deepest expression for which the stack of the caller is enough.
const DEPTH_MAX: usize = 24;
/// Enough for expressions that are as deep as the server reads.
const STACK_LEN: usize = 64 * 1024 * 1024;

/// Runs a function that recurses over an expression of this depth, on a separate, larger stack if the expression is deep.
///
/// # Panics
/// The function panics.
pub fn with_room<T: Send>(depth: usize, run: impl Fn() -> T + Sync) -> T {
    if depth <= DEPTH_MAX {
        return run();
    }
    std::thread::scope(|threads| match std::thread::Builder::new().stack_size(STACK_LEN).spawn_scoped(threads, &run) {
        Ok(running) => running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(_) => run(),
    })
}

/// At most how deep the tree of an expression is: each of these signs may be a level.
pub(crate) fn depth_of_text(expression: &str) -> usize {
    expression.matches(['(', '[', '{', '?', '.', '+', '-', '*', '/', '%', '<', '>', '=']).count()
}
