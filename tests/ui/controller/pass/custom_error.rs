//! A reconcile function may return its own error type, and name its context by an alias.
use kctl::prelude::*;

#[derive(Debug)]
struct TooMany;

impl std::fmt::Display for TooMany {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("too many")
    }
}

impl std::error::Error for TooMany {}

type Cx = Context<configs>;

#[controller]
async fn configs(config: Arc<ConfigMap>, _cx: Cx) -> Result<Action, TooMany> {
    if config.data.as_ref().is_some_and(|data| data.len() > 10) {
        return Err(TooMany);
    }
    Ok(Action::await_change())
}

pub(crate) fn app() -> App {
    App::new("error-of-ones-own").controller::<configs>()
}
