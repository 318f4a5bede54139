//! A reconcile says what happens next.
use kctl::prelude::*;

#[controller]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) {
}

fn main() {}
