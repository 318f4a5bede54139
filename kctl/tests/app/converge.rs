//! `converge` of a primary without a namespace: namespace and name distinguish its objects.

use kctl::{
    kube::{
        Api,
        api::{Patch, PatchParams, PostParams},
    },
    prelude::*,
    testing::TestServer,
};

/// Owns a `ConfigMap` in each namespace that a label of the node names.
#[controller(owns = ConfigMap(apply, delete), name = "spread")]
async fn spread(node: Arc<Node>, cx: Context<spread>) -> Result<Action> {
    let namespaces = node.labels().keys().filter_map(|label| label.strip_prefix("in/"));
    let wanted = namespaces.map(|namespace| {
        kctl::json!({ "metadata": { "name": "of-the-node", "namespace": namespace }, "data": { "node": node.name_any() } })
    });
    cx.owned::<ConfigMap>().converge(wanted.collect::<Vec<_>>()).await?;
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn objects_in_several_namespaces_converge_and_rest() {
    let server = TestServer::start(App::new("spread").controller::<spread>()).await.unwrap();
    let nodes = Api::<Node>::all(server.client());
    let writes = || {
        let requests = server.server().requests();
        requests.iter().filter(|request| request.resource == "configmaps" && request.verb == "patch").count()
    };
    let node = kctl::from_yaml("{ metadata: { name: a, labels: { in/default: x, in/kube-public: x } } }").unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    server.idle().await.unwrap();
    let config = |namespace: &str| {
        let configs = Api::<ConfigMap>::namespaced(server.client(), namespace);
        async move { configs.get_opt("of-the-node").await.unwrap().is_some() }
    };
    assert_eq!((config("default").await, config("kube-public").await, writes()), (true, true, 2));

    let label = async |label: &str, value: Option<&str>| {
        let patch = Patch::Merge(kctl::json!({ "metadata": { "labels": { label: value } } }));
        nodes.patch("a", &PatchParams::default(), &patch).await.unwrap();
        server.idle().await.unwrap();
    };
    label("other", Some("x")).await;
    assert_eq!(writes(), 2, "what is as desired is left alone");
    label("in/default", None).await;
    assert_eq!((config("default").await, config("kube-public").await, writes()), (false, true, 2));
}
