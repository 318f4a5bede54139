//! Writes through the context: sent only if they change something, and never to objects with another owner.

use std::sync::atomic::{AtomicU32, Ordering};

use kctl::{
    k8s::api::apps::v1::DeploymentStatus,
    kube::{
        Api,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
};

use crate::{
    deployments_controller::{controlled_by, deployments},
    world::{Log, World, advance_seconds, app, metadata_named, pod},
};

async fn owners_of(world: &World, pod: &str) -> Vec<String> {
    let owners = world.pods().get(pod).await.unwrap().metadata.owner_references.unwrap_or_default();
    owners.iter().map(|owner| format!("{} {} {:?}", owner.api_version, owner.name, owner.controller)).collect()
}

#[tokio::test(start_paused = true)]
async fn controller_reference_is_set_once_across_versions() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_deployment("web").await;
    let app = deployments(app(), {
        let log = log.clone();
        move |deployment, cx| {
            let log = log.clone();
            async move {
                let mut old = controlled_by(&*deployment);
                old.api_version = "apps/v1beta2".into();
                let mut made = pod("made");
                made.metadata.owner_references = Some(vec![old]);
                let made = cx.owned::<Pod>().create(made).await?;
                for _ in 0..2 {
                    cx.adopt(&*cx.store::<Pod>().get(&Key::from_object(&*made)).ok_or("own write")?).await?;
                }
                log.add(made.namespace().unwrap_or_default());
                Ok(Action::await_change())
            }
        }
    });
    world.run(app).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(log.take(), ["default"], "what it owns lives in its own namespace");
    assert_eq!(owners_of(&world, "made").await, ["apps/v1 web Some(true)"]);
}

#[tokio::test(start_paused = true)]
async fn writes_into_another_namespace_are_rejected() {
    let (mut world, log) = (World::new(), Log::default());
    let elsewhere = kctl::from_json(kctl::json!({ "metadata": { "name": "elsewhere" } })).unwrap();
    Api::<Namespace>::all(world.client.clone()).create(&PostParams::default(), &elsewhere).await.unwrap();
    let stranger = pod("stranger");
    let theirs = Api::<Pod>::namespaced(world.client.clone(), "elsewhere");
    theirs.create(&PostParams::default(), &stranger).await.unwrap();
    world.create_deployment("web").await;
    let app = deployments(app(), {
        let log = log.clone();
        move |_deployment, cx| {
            let log = log.clone();
            async move {
                let mut new = pod("new");
                new.metadata.namespace = Some("elsewhere".into());
                let pods = cx.owned::<Pod>();
                let stranger = cx.store::<Pod>().iter().next().ok_or("a pod")?;
                let rejected = [
                    pods.create(new.clone()).await.map(drop),
                    pods.create(new.clone()).or_get().await.map(drop),
                    pods.apply(&new).await.map(drop),
                    pods.converge([&new]).await.map(drop),
                    cx.adopt(&*stranger).await.map(drop),
                ];
                for result in rejected {
                    let error = result.err().ok_or("it was done")?;
                    let rest = "Deployment default/web cannot own an object of another namespace; leave \
                                `metadata.namespace` out, or write it by `cx.objects` and watch it with a mapper";
                    assert!(error.is_terminal());
                    log.add(error.to_string().strip_suffix(rest).ok_or("another text")?);
                }
                Ok(Action::await_change())
            }
        }
    });
    world.run(app).await;
    advance_seconds(1).await;
    let expected = [
        "create Pod elsewhere/new: ",
        "create Pod elsewhere/new: ",
        "apply Pod elsewhere/new: ",
        "apply Pod elsewhere/new: ",
        "adopt Pod elsewhere/stranger: ",
    ];
    assert_eq!(log.take(), expected);
    assert_eq!(theirs.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn writes_to_another_controllers_object_are_rejected() {
    let (mut world, log) = (World::new(), Log::default());
    let other = world.create_deployment("other").await;
    world.create_pod_of("taken", &[controlled_by(&other)]).await;
    world.create_deployment("web").await;
    let app = deployments(app(), {
        let log = log.clone();
        move |deployment, cx| {
            let log = log.clone();
            async move {
                if deployment.name_any() == "other" {
                    return Ok(Action::await_change());
                }
                let (pods, taken) = (cx.owned::<Pod>(), cx.store::<Pod>().iter().next().ok_or("a pod")?);
                let mut new = pod("new");
                new.metadata.owner_references.clone_from(&taken.metadata.owner_references);
                let apply = kctl::json!({ "metadata": { "name": "taken", "labels": { "color": "red" } } });
                let results = [
                    pods.create(new).await.map(drop),
                    cx.adopt(&*taken).await.map(drop),
                    pods.update(Pod::clone(&taken)).await.map(drop),
                    pods.patch(&taken, &apply).await.map(drop),
                    pods.apply(&apply).await.map(drop),
                    pods.delete(&taken).await,
                ];
                for result in results {
                    log.add(result.err().map_or("done".into(), |error| error.to_string()));
                }
                Ok(Action::await_change())
            }
        }
    });
    world.run(app).await;
    advance_seconds(5).await;
    let lines = log.take();
    assert_eq!(lines.len(), 6);
    for line in lines {
        assert!(line.contains("(controlled by other) is not controlled by Deployment default/web"), "{line}");
    }
    let n_writes: usize =
        ["create", "update", "patch", "delete"].iter().map(|verb| world.n_requests(verb, "pods")).sum();
    assert_eq!(n_writes, 1, "the test's own");
}

#[tokio::test(start_paused = true)]
async fn name_of_another_primary_is_applied_once_free() {
    let mut world = World::new();
    let other = world.create_deployment("other").await;
    world.create_pod_of("taken", &[controlled_by(&other)]).await;
    world.create_deployment("web").await;
    let app = deployments(app(), |deployment, cx| async move {
        if deployment.name_any() == "web" {
            cx.owned::<Pod>().apply(pod("taken")).await?;
        }
        Ok(Action::await_change())
    });
    world.run(app).await;
    advance_seconds(1).await;
    assert_eq!(owners_of(&world, "taken").await, ["apps/v1 other Some(true)"]);
    // The deletion enqueues `other` alone.
    world.pods().delete("taken", &DeleteParams::default().grace_period(0)).await.unwrap();
    advance_seconds(5).await;
    assert_eq!(owners_of(&world, "taken").await, ["apps/v1 web Some(true)"]);
}

#[tokio::test(start_paused = true)]
async fn object_in_desired_state_is_not_written_again() {
    let mut world = World::new();
    world.create_deployment("web").await;
    let app = deployments(app(), |deployment, cx| async move {
        let color = deployment.annotations().get("color").cloned().unwrap_or_default();
        let mut desired = pod("web-0");
        desired.metadata.labels = Some([("color".to_owned(), color)].into());
        let with = deployment.annotations().contains_key("color");
        cx.owned::<Pod>().converge(with.then_some(desired)).await?;
        Ok(Action::await_change())
    });
    world.run(app).await;
    advance_seconds(5).await;
    let writes = |world: &World| (world.n_requests("patch", "pods"), world.n_requests("delete", "pods"));
    // The desired Pods in each step: none, one, the same one twice, a changed one, none.
    let steps = [("other", Some("x"), (0, 0)), ("color", Some("red"), (1, 0)), ("other", Some("y"), (1, 0))];
    let more = [("other", Some("z"), (1, 0)), ("color", Some("blue"), (2, 0)), ("color", None, (2, 1))];
    for (name, value, expected) in steps.into_iter().chain(more) {
        world.patch_deployment("web", kctl::json!({ "metadata": { "annotations": { name: value } } })).await;
        advance_seconds(5).await;
        assert_eq!(writes(&world), expected, "{name} {value:?}");
    }
    assert!(world.pod_names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn desired_object_without_a_name_is_an_error() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_deployment("web").await;
    let app = deployments(app(), {
        let log = log.clone();
        move |_, cx| {
            let log = log.clone();
            async move {
                let result = cx.owned::<Pod>().converge([kctl::json!({ "spec": {} })]).await;
                log.add(result.err().map(|error| error.to_string()).unwrap_or_default());
                Ok(Action::await_change())
            }
        }
    });
    world.run(app).await;
    advance_seconds(5).await;
    let lines = log.take();
    assert!(lines.len() == 1 && lines[0].contains("has no metadata.name"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn get_finds_only_owned_objects_by_name() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_deployment("web").await;
    world.create_pod_of("stranger", &[]).await;
    let app = deployments(app(), {
        let log = log.clone();
        move |_, cx| {
            let log = log.clone();
            async move {
                let name = |name: &str| cx.owned::<Pod>().get(name).map(|pod| pod.name_any());
                if cx.owned::<Pod>().is_empty() {
                    log.add(format!("{:?} {:?}", name("web-0"), name("stranger")));
                    cx.owned::<Pod>().create(pod("web-0")).await?;
                    log.add(format!("{:?} {:?}", name("web-0"), name("web")));
                }
                Ok(Action::await_change())
            }
        }
    });
    world.run(app).await;
    advance_seconds(5).await;
    assert_eq!(log.take(), ["None None", "Some(\"web-0\") None"]);
}

#[tokio::test(start_paused = true)]
async fn object_of_another_kind_is_a_terminal_error() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_deployment("web").await;
    let app = deployments(app(), {
        let log = log.clone();
        move |_, cx| {
            let log = log.clone();
            async move {
                let secret = || Secret { metadata: metadata_named("a"), ..Secret::default() };
                let (pods, metadata) = (cx.owned::<Pod>(), kctl::json!({ "name": "a" }));
                let results = [
                    pods.apply(secret()).await.map(drop),
                    pods.converge([secret()]).await.map(drop),
                    pods.apply(kctl::json!({ "kind": "Secret", "metadata": metadata })).await.map(drop),
                    pods.apply(kctl::json!({ "apiVersion": "v2", "kind": "Pod", "metadata": metadata }))
                        .await
                        .map(drop),
                ];
                for result in results {
                    let error = result.err().ok_or("it was done")?;
                    assert!(error.is_terminal());
                    log.add(error.to_string());
                }
                Ok(Action::await_change())
            }
        }
    });
    world.run(app).await;
    advance_seconds(5).await;
    let not_sent = "apply Pod default/a: not sent: the object has kind";
    let for_pods = "and this handle is for Pod (v1):";
    let expected = [
        format!("{not_sent} Secret (v1), {for_pods} declare and use `cx.owned::<Secret>()`"),
        format!("{not_sent} Secret (v1), {for_pods} declare and use `cx.owned::<Secret>()`"),
        format!("{not_sent} Secret, {for_pods} declare and use `cx.owned::<Secret>()`"),
        format!("{not_sent} Pod (v2), {for_pods} set apiVersion to v1, or leave it out"),
    ];
    assert_eq!(log.take(), expected);
    assert!(world.pod_names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn converge_makes_one_request_per_child_and_status() {
    const DEPLOYMENTS: usize = 100;
    const PODS: usize = 3;
    let mut world = World::new();
    world
        .run(deployments(app(), |deployment, cx| async move {
            let pods = cx.owned::<Pod>();
            for n in 0..PODS {
                let name = format!("{}-{n}", deployment.name_any());
                if !pods.iter().any(|pod| pod.name_any() == name) {
                    pods.create(pod(&name)).await?;
                }
            }
            let generation = deployment.metadata.generation;
            cx.patch_status(DeploymentStatus { observed_generation: generation, ..DeploymentStatus::default() })
                .await?;
            Ok(Action::await_change())
        }))
        .await;
    advance_seconds(1).await;
    let requests = |world: &World| {
        let counted = ["pods", "deployments", "deployments/status"].map(|resource| {
            ["create", "update", "patch", "delete", "list", "watch"].map(|verb| world.n_requests(verb, resource))
        });
        counted.concat()
    };
    let before = requests(&world);
    for n in 0..DEPLOYMENTS {
        world.create_deployment(&format!("web-{n}")).await;
    }
    advance_seconds(60).await;
    let made: Vec<_> = requests(&world).iter().zip(before).map(|(after, before)| after - before).collect();
    let (pods, deployments, status) = (&made[..6], &made[6..12], &made[12..]);
    assert_eq!(pods, [DEPLOYMENTS * PODS, 0, 0, 0, 0, 0]);
    assert_eq!(deployments, [DEPLOYMENTS, 0, 0, 0, 0, 0], "the test's own");
    assert_eq!(status, [0, 0, DEPLOYMENTS, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn changed_own_status_is_written_without_a_loop() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_deployment("web").await;
    let app = deployments(app(), {
        let log = log.clone();
        move |deployment, cx| {
            log.add("run");
            async move {
                let replicas = deployment.spec.replicas;
                cx.patch_status(DeploymentStatus { replicas, ..DeploymentStatus::default() }).await?;
                Ok(Action::await_change())
            }
        }
    });
    world.run(app).await;
    advance_seconds(60).await;
    let n_patches = |world: &World| world.n_requests("patch", "deployments/status");
    assert_eq!(n_patches(&world), 1);
    assert!(log.take().len() <= 2, "once, and once for the echo");
    world.patch_deployment("web", kctl::json!({ "metadata": { "annotations": { "poke": "now" } } })).await;
    advance_seconds(60).await;
    assert_eq!((n_patches(&world), log.take().len()), (1, 1), "it is as it was");
    world.patch_deployment("web", kctl::json!({ "spec": { "replicas": 7 } })).await;
    advance_seconds(60).await;
    assert_eq!(n_patches(&world), 2);
    assert_eq!(world.n_requests("patch", "deployments"), 2, "the test's own: the status is a separate request");
}

const FINALIZER: &str = "example.com/clean";

/// Fails its first two cleanups.
#[controller(of = ConfigMap, finalizer = "example.com/clean")]
struct Cleaning {
    log: Log,
    tries: AtomicU32,
}

impl Reconcile for Cleaning {
    async fn reconcile(&self, config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        self.log.add(format!("reconcile with {}", config.finalizers().join(" ")));
        Ok(Action::await_change())
    }
}

impl Finalize for Cleaning {
    async fn finalize(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<()> {
        let n_try = self.tries.fetch_add(1, Ordering::Relaxed) + 1;
        self.log.add(format!("finalize {n_try}"));
        if n_try < 3 { Err("not yet".into()) } else { Ok(()) }
    }
}

#[tokio::test(start_paused = true)]
async fn finalizer_is_added_before_reconcile_removed_after_cleanup() {
    let (mut world, log) = (World::new(), Log::default());
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    let config = kctl::json!({ "metadata": { "name": "a", "finalizers": ["example.com/other"] } });
    configs.create(&PostParams::default(), &kctl::from_json(config).unwrap()).await.unwrap();
    let made = log.clone();
    world
        .run(app().controller_with(move |_env| {
            std::future::ready(Ok(Cleaning { log: made.clone(), tries: AtomicU32::new(0) }))
        }))
        .await;
    advance_seconds(5).await;
    assert_eq!(log.take()[0], format!("reconcile with example.com/other {FINALIZER}"));
    // A finalizer that is listed twice is removed completely.
    let twice = kctl::json!({ "metadata": { "finalizers": [FINALIZER, "example.com/other", FINALIZER] } });
    configs.patch("a", &PatchParams::default(), &Patch::Merge(twice)).await.unwrap();
    advance_seconds(5).await;
    log.take();
    configs.delete("a", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(4)).await;
    assert_eq!(log.take(), ["finalize 1"]);
    assert!(configs.get("a").await.unwrap().finalizers().contains(&FINALIZER.to_owned()), "a failure keeps it");
    advance_seconds(5).await;
    assert_eq!(log.take(), ["finalize 2", "finalize 3"], "and then never again");
    assert_eq!(configs.get("a").await.unwrap().finalizers(), ["example.com/other"], "finalizers of others are kept");
    let none = kctl::json!({ "metadata": { "finalizers": null } });
    configs.patch("a", &PatchParams::default(), &Patch::Merge(none)).await.unwrap();
    assert!(configs.get_opt("a").await.unwrap().is_none());
}
