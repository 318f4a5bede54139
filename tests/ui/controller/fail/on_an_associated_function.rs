//! The attribute must be applied to a function, not to an associated one.
use kctl::prelude::*;

struct Configs;

impl Configs {
    #[controller(owns = Pod)]
    async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
        let _pods = cx.owned::<Pod>();
        Ok(Action::await_change())
    }
}

fn main() {}
