//! A stack that is large enough for functions that recurse over a deep expression.

/// Maximum depth for which the caller's stack is enough.
const DEPTH_MAX: usize = 24;
/// Size of the separate stack in bytes: enough for the deepest expression that an API server accepts.
const STACK_LEN: usize = 64 * 1024 * 1024;

/// Runs a function that recurses over an expression of this depth, on a separate, larger stack if the expression is deep.
///
/// Tokio's worker threads have 2 MiB of stack, which a deep expression from a client would overflow. Spawning a thread for
/// each expression would be slow, so shallow ones run on the caller's stack.
///
/// ```
/// let caller = std::thread::current().id();
/// assert_eq!(kctl_cel::with_large_stack(3, || std::thread::current().id()), caller);
/// assert_ne!(kctl_cel::with_large_stack(300, || std::thread::current().id()), caller);
/// ```
///
/// # Panics
/// The function panics.
pub fn with_large_stack<T: Send>(depth: usize, run: impl Fn() -> T + Sync) -> T {
    if depth <= DEPTH_MAX {
        return run();
    }
    std::thread::scope(|threads| match std::thread::Builder::new().stack_size(STACK_LEN).spawn_scoped(threads, &run) {
        Ok(running) => running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(_) => run(),
    })
}

/// Returns an upper bound of the depth of an expression: each of these characters, and each `in`, may add a level.
pub(crate) fn depth_of_text(expression: &str) -> usize {
    let signs = ['(', '[', '{', '?', '.', '+', '-', '*', '/', '%', '<', '>', '=', '&', '|'];
    expression.matches(signs).count() + expression.matches("in").count()
}
