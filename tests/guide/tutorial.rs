//! The program of `guide/tutorial.md`.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "it is the text of the guide")]

use kctl::prelude::*;

/// What is wanted.
#[resource(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
pub struct SiteSpec {
    /// How many pods.
    pub replicas: i32,
    /// What the pods serve.
    pub text: String,
}

/// What is there.
#[schema]
pub struct SiteStatus {
    pub ready_replicas: i32,
    pub conditions: Vec<Condition>,
}

/// Keeps the pods and the text of every `Site`.
#[controller(owns = Pod, owns = ConfigMap)]
async fn site(site: Arc<Site>, cx: Context<site>) -> Result<Action> {
    // What it owns comes from the cache: no request.
    let pods = cx.owned::<Pod>();
    let wanted = usize::try_from(site.spec.replicas)?;
    for _ in pods.len()..wanted {
        // The owner reference is set, and the next read sees the pod.
        pods.create(pod_of(&site)).await?;
    }
    for pod in pods.iter().skip(wanted) {
        pods.delete(&pod).await?;
    }
    // Applies what differs, deletes what is not wanted any more.
    cx.owned::<ConfigMap>().converge([text_of(&site)]).await?;

    let ready = pods.iter().filter(|pod| is_ready(pod)).count().min(wanted);
    let conditions =
        cx.conditions().with("Ready", ready == wanted, "Pods", format!("{ready} of {wanted}")).into_vec()?;
    let status = SiteStatus { ready_replicas: i32::try_from(ready)?, conditions };
    // Sends nothing when nothing changed.
    cx.patch_status(status).await?;
    Ok(Action::await_change())
}

fn pod_of(site: &Site) -> Pod {
    let container = Container { name: "web".into(), image: Some("nginx".into()), ..Container::default() };
    Pod {
        metadata: ObjectMeta { generate_name: Some(format!("{}-", site.name_any())), ..ObjectMeta::default() },
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
        ..Pod::default()
    }
}

fn text_of(site: &Site) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(site.name_any()), ..ObjectMeta::default() },
        data: Some([("text".into(), site.spec.text.clone())].into()),
        ..ConfigMap::default()
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn app() -> App {
    App::new("sites").controller::<site>()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> kctl::Result<()> {
    app().main().await
}

#[cfg(test)]
mod tests {
    use kctl::{
        kube::{
            Api,
            api::{ListParams, PostParams},
        },
        testing::TestServer,
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_site_gets_its_pods() -> kctl::Result<()> {
        let server = TestServer::start(app()).await?;
        let sites = Api::<Site>::default_namespaced(server.client());
        let site = Site::new("web", SiteSpec { replicas: 3, text: "hello".into() });
        sites.create(&PostParams::default(), &site).await?;
        server.idle().await?;
        let pods = Api::<Pod>::default_namespaced(server.client()).list(&ListParams::default()).await?;
        assert_eq!(pods.items.len(), 3);
        Ok(())
    }
}
