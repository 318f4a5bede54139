//! Invariant 6 for every write: one whose answer is lost, or that is cut, is not made twice, however late the watches are.

use kctl::{
    k8s::api::apps::v1::DeploymentStatus,
    kube::{Api, api::PostParams},
    prelude::*,
};
use kctl_tests::{Asked, Fault};

use crate::{
    rich::controlled_by,
    world::{World, app, named, pod, seconds, text},
};

/// Does what the config map `go` names, unless the cache shows that it is done.
#[controller(
    owns = Secret,
    watches = ConfigMap(map = every),
    reads = Pod(create, update, patch, delete, deletecollection, eviction),
    primary(status, patch, scale, delete),
    timeout = "1s"
)]
async fn doer(deployment: Arc<Deployment>, cx: Context<doer>) -> Result<Action> {
    for go in cx.store::<ConfigMap>().iter().filter(|config| config.name_any() == "go") {
        act(&text(&go), &deployment, &cx).await?;
    }
    Ok(Action::await_change())
}

fn every(_config: &ConfigMap, all: &Store<Deployment>) -> Vec<Key<Deployment>> {
    all.keys()
}

fn secret(name: &str) -> Secret {
    Secret { metadata: named(name), ..Secret::default() }
}

fn generated() -> ObjectMeta {
    let namespace = Some("default".into());
    ObjectMeta { generate_name: Some("g-".into()), namespace, ..ObjectMeta::default() }
}

fn is_undone(meta: &ObjectMeta) -> bool {
    meta.labels.as_ref().is_none_or(|labels| !labels.contains_key("done"))
}

async fn act(what: &str, deployment: &Deployment, cx: &Context<doer>) -> Result<()> {
    let (owned, pods) = (cx.owned::<Secret>(), cx.objects::<Pod>());
    let done = kctl::json!({ "metadata": { "labels": { "done": "yes" } } });
    match (what, owned.iter().next(), cx.store::<Pod>().iter().next()) {
        ("owned.create", None, _) => drop(owned.create(Secret { metadata: generated(), ..secret("") }).await?),
        ("owned.apply", None, _) => drop(owned.apply(secret("s")).await?),
        ("owned.patch", Some(s), _) if is_undone(&s.metadata) => drop(owned.patch(&s, &done).await?),
        ("owned.delete", Some(s), _) => owned.delete(&s).await?,
        ("converge", s, _) if s.is_some() => drop(owned.converge::<Secret>([]).await?),
        ("release", Some(s), _) => drop(cx.release(&*s).await?),
        ("adopt", None, _) => drop(cx.adopt(&*cx.store::<Secret>().iter().next().ok_or("a secret")?).await?),
        ("create", _, None) => drop(pods.create(&Pod { metadata: generated(), ..pod("") }).await?),
        ("update", _, Some(p)) if is_undone(&p.metadata) => {
            let mut new = Pod::clone(&p);
            new.metadata.labels = Some([("done".to_owned(), "yes".to_owned())].into());
            drop(pods.update(&new).await?);
        }
        ("patch", _, Some(p)) if is_undone(&p.metadata) => drop(pods.patch(&p, &done).await?),
        ("delete", _, Some(p)) => pods.delete(&p).await?,
        ("delete_collection", _, Some(_)) => pods.delete_collection(Some("default"), "").await?,
        ("evict", _, Some(p)) => pods.evict(&p).await?,
        ("primary.patch", ..) if is_undone(&deployment.metadata) => drop(cx.patch(&done).await?),
        ("primary.status", ..) => {
            cx.patch_status(DeploymentStatus { replicas: Some(1), ..DeploymentStatus::default() }).await?;
        }
        ("primary.scale", ..) if deployment.spec.replicas != Some(7) => {
            cx.scale(7).await?;
        }
        ("primary.delete", ..) => cx.delete().await?,
        _ => {}
    }
    Ok(())
}

/// Each write, with what is there before it.
const WRITES: [(&str, &str); 18] = [
    ("owned.create", ""),
    ("owned.apply", ""),
    ("owned.patch", "owned secret"),
    ("owned.delete", "owned secret"),
    ("converge", "owned secret"),
    ("release", "owned secret"),
    ("adopt", "secret"),
    ("create", ""),
    ("update", "pod"),
    ("patch", "pod"),
    ("delete", "pod"),
    ("delete_collection", "pod"),
    ("evict", "pod"),
    ("primary.patch", ""),
    ("primary.status", ""),
    ("primary.scale", ""),
    ("primary.delete", ""),
    ("nothing", "pod"),
];

/// A world that has what is there before, and a controller at work that waits for `go`.
async fn world(before: &str) -> World {
    let mut world = World::new();
    let web = world.create_deployment("web").await;
    let secrets = Api::<Secret>::default_namespaced(world.client.clone());
    let create = PostParams::default();
    if before == "pod" {
        world.pods().create(&create, &pod("p")).await.unwrap();
    } else if !before.is_empty() {
        let mut secret = secret("s");
        secret.metadata.owner_references = before.starts_with("owned").then(|| vec![controlled_by(&web)]);
        secrets.create(&create, &secret).await.unwrap();
    }
    world.run(app().controller::<doer>()).await;
    seconds(1).await;
    world
}

fn n_writes(world: &World) -> usize {
    let of_controller = |resource: &str| !resource.starts_with("configmaps") && !resource.starts_with("events");
    let is_write = |verb: &str| !["get", "list", "watch"].contains(&verb);
    let requests = world.server.requests();
    requests.iter().filter(|asked| is_write(asked.verb) && of_controller(&asked.resource)).count()
}

/// Nothing is heard of what is written, until the faults are cleared and for a while after that.
fn deafen(world: &World) {
    for plural in ["secrets", "pods", "deployments"] {
        world.deafen(plural);
    }
}

fn is_write(asked: &Asked) -> bool {
    asked.method != "GET" && !asked.path.ends_with("/events")
}

/// Each of the writes is made once, whatever a fault of that duration hides of it. The watches are deaf meanwhile.
async fn each_is_made_once(fault: Fault, lasts: Duration) {
    let mut n_made = Vec::new();
    for (what, before) in WRITES {
        let world = world(before).await;
        let n_before = n_writes(&world);
        deafen(&world);
        world.faults.add(fault, is_write);
        world.set("go", what).await;
        tokio::time::sleep(lasts).await;
        let expected = usize::from(what != "nothing");
        assert_eq!(n_writes(&world) - n_before, expected, "{what} is done");
        world.faults.clear();
        seconds(60).await;
        n_made.push((what, n_writes(&world) - n_before));
    }
    assert_eq!(n_made, WRITES.map(|(what, _)| (what, usize::from(what != "nothing"))));
}

#[tokio::test(start_paused = true)]
async fn write_whose_answer_is_lost_is_made_once_although_the_watches_are_deaf() {
    each_is_made_once(Fault::LoseAnswer, Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn write_that_is_cut_by_the_timeout_is_made_once_although_the_watches_are_deaf() {
    // At the end the watches have been tried again just now, in vain.
    each_is_made_once(Fault::DelayAnswer(Duration::from_secs(5)), Duration::from_millis(999)).await;
}

#[tokio::test(start_paused = true)]
async fn next_reconcile_sees_every_write_that_was_answered_although_the_watches_are_deaf() {
    let mut n_made = Vec::new();
    for (what, before) in WRITES {
        let world = world(before).await;
        let n_before = n_writes(&world);
        for plural in ["secrets", "pods", "deployments"] {
            world.faults.add(Fault::Break, move |asked: &Asked| asked.reads(plural) && asked.is_watch);
        }
        world.faults.cut_watches();
        world.set("go", what).await;
        for n in 0..3 {
            seconds(2).await;
            world.set("again", &n.to_string()).await;
        }
        n_made.push((what, n_writes(&world) - n_before));
    }
    assert_eq!(n_made, WRITES.map(|(what, _)| (what, usize::from(what != "nothing"))));
}
