//! Views and metadata in every relation that has them, and helper functions over them.
use kctl::prelude::*;

mod elsewhere {
    use kctl::prelude::*;

    /// A view with a label, a status field and the whole `spec` of a Node.
    #[view(of = Node)]
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Zone {
        #[view(metadata.labels["topology.kubernetes.io/zone"])]
        pub name: Option<String>,
        #[view(status.conditions)]
        pub conditions: Option<Vec<kctl::k8s::api::core::v1::NodeCondition>>,
        #[view(spec)]
        pub spec: Option<kctl::k8s::api::core::v1::NodeSpec>,
    }
}

#[resource(group = "example.com", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
pub(crate) struct WidgetSpec {
    pub max_size: i32,
    pub r#type: Option<String>,
}

#[schema]
pub(crate) struct WidgetStatus {
    pub ready: bool,
}

/// A view of a custom resource, whose specification is always there.
#[view(of = Widget)]
pub(crate) struct Sized {
    #[view(spec.max_size)]
    pub max_size: i32,
    #[view(spec.r#type)]
    pub r#type: Option<String>,
    #[view(status.ready)]
    pub ready: Option<bool>,
}

/// No field but the metadata.
#[view(of = Secret)]
pub(crate) struct Named {}

#[controller(
    owns = Pod(metadata, patch, delete, block_owner_deletion),
    watches = Node(as = elsewhere::Zone, map = all, when = any, index = by_name, selector = "a=b"),
    watches = Service(metadata, map = none),
    reads = Widget(as = Sized, patch),
    reads = Secret(as = Named)
)]
async fn configs(config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let pods = cx.owned::<PartialObjectMeta<Pod>>();
    for pod in &pods {
        pods.patch(pod, kctl::json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
    }
    let wide = widest(&cx);
    for widget in cx.store::<Sized>().iter().filter(|widget| widget.max_size == wide && widget.ready == Some(true)) {
        let kind = widget.r#type.clone().unwrap_or_default();
        cx.objects::<Widget>()
            .patch(
                &Widget::new(&widget.name_any(), WidgetSpec { max_size: 0, r#type: None }),
                kctl::json!({ "spec": { "type": kind } }),
            )
            .await?;
    }
    let n_zones = cx.store::<elsewhere::Zone>().by_index(by_name, "a").filter(|zone| zone.spec.is_some()).count();
    let services = cx.store::<PartialObjectMeta<Service>>();
    cx.event(
        Normal,
        "Seen",
        format!("{} {n_zones} {} {}", config.name_any(), services.len(), cx.store::<Named>().len()),
    );
    Ok(Action::await_change())
}

fn widest<C: Reads<Sized>>(cx: &Context<C>) -> i32 {
    cx.store::<Sized>().iter().map(|widget| widget.max_size).max().unwrap_or_default()
}

fn all(_node: &elsewhere::Zone, configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    configs.keys()
}

fn none(_service: &PartialObjectMeta<Service>, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    Vec::new()
}

fn any(change: &Change<elsewhere::Zone>) -> bool {
    change.latest().conditions.is_some()
}

fn by_name(zone: &elsewhere::Zone) -> Vec<String> {
    zone.name.iter().cloned().collect()
}

pub(crate) fn app() -> App {
    App::new("parts").controller::<configs>()
}
