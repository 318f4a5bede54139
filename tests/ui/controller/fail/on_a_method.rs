//! The attribute must be applied to a function, not to a method.
use kctl::prelude::*;

struct Configs;

impl Configs {
    #[controller(owns = Pod)]
    async fn configs(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

fn main() {}
