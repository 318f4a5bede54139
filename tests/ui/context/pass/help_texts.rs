//! The code that `help:` lines suggest compiles. Each item names the cases whose message suggests it.
use kctl::{
    k8s::apimachinery::pkg::apis::meta::v1::Time,
    prelude::*,
    reconcile::{Writes, bounds::MayPatch},
};

/// `controller/signature_primary_without_resource`, `resource/struct_named_as_the_kind`, `resource/scope_as_in_a_crd`,
/// `schema/name_of_validator` and `resource/field_of_type_instant`.
#[resource(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
pub(crate) struct SiteSpec {
    #[kctl(minimum = 0)]
    pub replicas: i32,
    pub since: Option<Time>,
    pub host: String,
}

#[schema]
pub(crate) struct SiteStatus {
    pub ready: i32,
}

/// `context/update_of_the_primary`, `context/list_on_a_store`, `context/store_get_by_name` and
/// `controller/signature_context_of_the_kind`.
#[controller(owns = Pod, reads = Node(patch), watches = Secret(map = users_of), primary(patch))]
pub(crate) async fn site(site: Arc<Site>, cx: Context<site>) -> Result<Action> {
    cx.patch(kctl::json!({ "metadata": { "labels": { "a": "b" } } })).await?;
    for node in cx.store::<Node>().iter() {
        mark(&cx, &node).await?;
    }
    let node = cx.store::<Node>().get(&Key::cluster_scoped("a"));
    let secret = cx.store::<Secret>().get(&Key::namespaced("default", "a"));
    make(&cx, Pod::default()).await?;
    cx.patch_status(SiteStatus { ready: site.spec.replicas + i32::from(node.is_some() && secret.is_some()) }).await?;
    Ok(Action::await_change())
}

/// `controller/map_without_store`.
fn users_of(_secret: &Secret, sites: &Store<Site>) -> Vec<Key<Site>> {
    sites.keys()
}

/// `context/helper_without_bound_creates`: the suggestion of rustc.
async fn make<C: kctl::prelude::Owns<kctl::prelude::Pod>>(cx: &Context<C>, pod: Pod) -> Result<()> {
    cx.owned::<Pod>().create(pod).await?;
    Ok(())
}

/// `context/helper_without_bound_writes_objects`.
async fn mark<C: Writes<Node, Verbs: MayPatch<C, Node>>>(cx: &Context<C>, node: &Node) -> Result<()> {
    cx.objects::<Node>().patch(node, kctl::json!({ "metadata": { "labels": { "a": "b" } } })).await?;
    Ok(())
}

pub(crate) trait Buckets: Send + Sync + 'static {
    fn create(&self, name: &str) -> std::result::Result<(), std::io::Error>;
}

/// `controller/generic_struct_with_impl`.
#[controller(of = ConfigMap)]
pub(crate) struct Configs {
    buckets: Arc<dyn Buckets + Send + Sync>,
}

impl Reconcile for Configs {
    async fn reconcile(&self, config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        self.buckets.create(&config.name_any())?;
        Ok(Action::await_change())
    }
}

struct Disk;

impl Buckets for Disk {
    fn create(&self, _name: &str) -> std::result::Result<(), std::io::Error> {
        Ok(())
    }
}

/// `controller/registered_as_an_argument` and `controller/registered_private_function`.
pub(crate) fn app() -> App {
    App::new("advised").controller::<site>().controller_with(|_env| async { Ok(Configs { buckets: Arc::new(Disk) }) })
}
