//! A complete program that keeps `spec.replicas` pods running for every `PodSet`.
use kctl::prelude::*;

#[resource(group = "apps.example.com", version = "v1", kind = "PodSet", namespaced, status = "PodSetStatus")]
pub struct PodSetSpec {
    pub replicas: i32,
    pub template: PodTemplateSpec,
}

#[schema]
pub struct PodSetStatus {
    pub ready: i32,
}

/// Keeps `spec.replicas` pods running for every `PodSet`.
#[controller(owns = Pod(create, delete))]
async fn podset(set: Arc<PodSet>, cx: Context<podset>) -> Result<Action> {
    let pods = cx.owned::<Pod>();
    let wanted = usize::try_from(set.spec.replicas).unwrap_or(0);
    for _ in pods.len()..wanted {
        pods.create(new_pod(&set)).await?;
    }
    for pod in pods.iter().skip(wanted) {
        pods.delete(&pod).await?;
    }
    let ready = ready(pods.iter().take(wanted));
    cx.patch_status(PodSetStatus { ready }).await?;
    Ok(Action::await_change())
}

fn new_pod(set: &PodSet) -> Pod {
    let mut meta = set.spec.template.metadata.clone().unwrap_or_default();
    meta.generate_name = Some(format!("{}-", set.name_any()));
    Pod { metadata: meta, spec: set.spec.template.spec.clone(), ..Pod::default() }
}

fn ready(pods: impl Iterator<Item = Arc<Pod>>) -> i32 {
    let is_ready = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    pods.filter(|pod| is_ready(pod)).count().try_into().unwrap_or(i32::MAX)
}

pub fn app() -> App {
    App::new("podset").controller::<podset>()
}

#[tokio::main]
async fn main() -> kctl::Result<()> {
    app().main().await
}

#[cfg(test)]
mod tests {
    use kctl::{
        kube::{
            Api,
            api::{Patch, PatchParams, PostParams},
        },
        testing::{TestServer, Trial},
    };

    use super::*;

    fn web(replicas: i32) -> PodSet {
        let template = PodTemplateSpec {
            metadata: None,
            spec: Some(PodSpec {
                containers: vec![Container { name: "web".into(), image: Some("nginx".into()), ..Container::default() }],
                ..PodSpec::default()
            }),
        };
        PodSet::new("web", PodSetSpec { replicas, template })
    }

    async fn ready_and_pods(server: &TestServer) -> (i32, usize) {
        let set = Api::<PodSet>::default_namespaced(server.client()).get("web").await.unwrap();
        let pods = Api::<Pod>::default_namespaced(server.client()).list(&Default::default()).await.unwrap();
        (set.status.map_or(-1, |status| status.ready), pods.items.len())
    }

    #[tokio::test(start_paused = true)]
    async fn pods_follow_replicas() {
        let server = TestServer::start(app()).await.unwrap();
        let sets = Api::<PodSet>::default_namespaced(server.client());
        sets.create(&PostParams::default(), &web(3)).await.unwrap();
        server.idle().await.unwrap();
        assert_eq!(ready_and_pods(&server).await, (3, 3));

        let fewer = Patch::Merge(kctl::json!({ "spec": { "replicas": 1 } }));
        sets.patch("web", &PatchParams::default(), &fewer).await.unwrap();
        server.idle().await.unwrap();
        assert_eq!(ready_and_pods(&server).await, (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn pods_go_with_their_set() {
        let server = TestServer::start(app()).await.unwrap();
        let sets = Api::<PodSet>::default_namespaced(server.client());
        sets.create(&PostParams::default(), &web(2)).await.unwrap();
        server.idle().await.unwrap();
        sets.delete("web", &Default::default()).await.unwrap();
        server.idle().await.unwrap();
        let pods = Api::<Pod>::default_namespaced(server.client()).list(&Default::default()).await.unwrap();
        assert_eq!(pods.items.len(), 0);
    }

    /// Time is simulated, and Pods take a second to start.
    #[tokio::test(start_paused = true)]
    async fn idle_within_two_seconds_and_silent_afterwards() {
        let started = tokio::time::Instant::now();
        let server = TestServer::start(app()).await.unwrap();
        let sets = Api::<PodSet>::default_namespaced(server.client());
        sets.create(&PostParams::default(), &web(3)).await.unwrap();
        server.idle().await.unwrap();
        assert!(started.elapsed() <= Duration::from_secs(2), "{:?}", started.elapsed());
        assert_eq!(ready_and_pods(&server).await, (3, 3));
        let n_requests = server.server().requests().len();
        assert!(n_requests < 60, "{n_requests} requests for three pods");

        tokio::time::sleep(Duration::from_secs(240)).await;
        assert_eq!(server.server().requests().len(), n_requests, "the controller still sends requests");
    }

    async fn scaled_up_and_down(trial: &Trial) -> Result<()> {
        let sets = Api::<PodSet>::default_namespaced(trial.client());
        let mut two = web(2);
        two.spec.template.spec.get_or_insert_default().termination_grace_period_seconds = Some(1);
        sets.create(&PostParams::default(), &two).await?;
        trial.idle().await?;
        let fewer = Patch::Merge(kctl::json!({ "spec": { "replicas": 1 } }));
        sets.patch("web", &PatchParams::default(), &fewer).await?;
        trial.idle().await
    }

    kctl::role_tests!(app, scaled_up_and_down);
    kctl::permissions_test!(podset; owns Pod);
}
