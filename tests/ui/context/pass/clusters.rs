//! One kind on several clusters.
use kctl::{
    prelude::*,
    reconcile::bounds::{CachesOn, MayPatch, WritesOn},
};

pub(crate) struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

mod regions {
    use kctl::prelude::Cluster;

    pub(crate) struct North;
    impl Cluster for North {
        const NAME: &'static str = "north";
    }
}
use regions::North;

/// Declares the same kinds in several clusters, with different verbs.
#[controller(
    owns = Pod,
    watches = Pod(map = nobody, create, on = Edge),
    reads = Pod(patch, index = by_node, on = regions::North),
    reads = Secret(live, on = Edge),
    reads = ConfigMap(on = Edge),
    reads = Node(on = "far")
)]
pub(crate) async fn pods(config: Arc<ConfigMap>, cx: Context<pods>) -> Result<Action> {
    let _far = cx.store::<Node>().len();
    if cx.cluster(Edge).store::<ConfigMap>().get(&cx.key()).is_none() {
        return Ok(Action::await_change());
    }
    for pod in &cx.owned::<Pod>() {
        cx.owned::<Pod>().delete(pod).await?;
        cx.cluster(Edge).objects().create(&**pod).await?;
    }
    label_all(&cx, North).await?;
    let north = cx.cluster(North);
    let _on_a = north.store::<Pod>().by_index(by_node, "a").count();
    let _secret = cx.cluster(Edge).live::<Secret>().get_opt(&config.name_any()).await?;
    Ok(Action::await_change())
}

/// A helper for whichever cluster.
async fn label_all<C, M>(cx: &Context<C>, on: M) -> Result<()>
where
    M: Cluster,
    C: CachesOn<M, Pod> + WritesOn<M, Pod, Verbs: MayPatch<C, Pod>>,
{
    let there = cx.cluster(on);
    for pod in there.store::<Pod>().iter() {
        there.objects().patch(&*pod, kctl::json!({ "metadata": { "labels": { "a": "b" } } })).await?;
    }
    Ok(())
}

/// Its primary, and what it owns, are on the other cluster.
#[controller(owns = Secret(on = Edge), reads = Secret(on = North), primary(on = Edge), name = "edge")]
pub(crate) async fn at_the_edge(_config: Arc<ConfigMap>, cx: Context<at_the_edge>) -> Result<Action> {
    let _own = cx.owned::<Secret>().len();
    Ok(Action::await_change())
}

fn nobody(_pod: &Pod, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    Vec::new()
}
fn by_node(pod: &Pod) -> Vec<String> {
    pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
}

pub(crate) fn app() -> App {
    App::new("clusters").controller::<pods>().controller::<at_the_edge>()
}
