//! What messages advise compiles: each item here is the answer to a case of `ui/fail`.
use kctl::{
    k8s::apimachinery::pkg::apis::meta::v1::Time,
    prelude::*,
    reconcile::{MayPatch, Writes},
};

/// `primary_without_resource`, `resource_on_the_kind`, `resource_scope_text`, `mark_min` and `spec_with_an_instant`.
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

/// `update_of_the_primary`, `astray_list_of_a_store`, `astray_get_by_name_from_a_store` and `context_of_the_kind`.
#[controller(owns = Pod, reads = Node(patch), watches = Secret(map = users_of), primary(patch))]
pub(crate) async fn site(site: Arc<Site>, cx: Context<site>) -> Result<Action> {
    cx.patch(kctl::json!({ "metadata": { "labels": { "a": "b" } } })).await?;
    for node in cx.store::<Node>().iter() {
        mark(&cx, &node).await?;
    }
    let node = cx.store::<Node>().get(&Key::cluster("a"));
    let secret = cx.store::<Secret>().get(&Key::namespaced("default", "a"));
    make(&cx, Pod::default()).await?;
    cx.patch_status(SiteStatus { ready: site.spec.replicas + i32::from(node.is_some() && secret.is_some()) }).await?;
    Ok(Action::await_change())
}

/// `mapper_without_store`.
fn users_of(_secret: &Secret, sites: &Store<Site>) -> Vec<Key<Site>> {
    sites.keys()
}

/// `helper_without_bounds_creates`, by the advice of rustc.
async fn make<C: kctl::prelude::Owns<kctl::prelude::Pod>>(cx: &Context<C>, pod: Pod) -> Result<()> {
    cx.owned::<Pod>().create(pod).await?;
    Ok(())
}

/// `helper_without_bounds_objects`.
async fn mark<C: Writes<Node, Grant: MayPatch<C, Node>>>(cx: &Context<C>, node: &Node) -> Result<()> {
    cx.objects::<Node>().patch(node, kctl::json!({ "metadata": { "labels": { "a": "b" } } })).await?;
    Ok(())
}

pub(crate) trait Buckets: Send + Sync + 'static {
    fn create(&self, name: &str) -> std::result::Result<(), std::io::Error>;
}

/// `generic_struct_with_impl`.
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

/// `app_controller_as_an_argument` and `private_function_registered`.
pub(crate) fn app() -> App {
    App::new("advised").controller::<site>().controller_with(|_env| async { Ok(Configs { buckets: Arc::new(Disk) }) })
}
