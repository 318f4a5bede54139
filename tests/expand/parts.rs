//! Relations that read a part of their kind.
use kctl::prelude::*;

#[view(of = Node)]
struct Zone {
    #[view(spec.provider_id)]
    provider: Option<String>,
}

#[controller(owns = Pod(metadata), watches = Node(as = Zone, map = of_zone, patch))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn of_zone(node: &Zone, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    node.provider.iter().map(|provider| Key::namespaced("default", provider)).collect()
}
