//! A reconcile function returns `Result<Action>`.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) {
}

fn main() {}
