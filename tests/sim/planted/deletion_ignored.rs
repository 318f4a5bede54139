//! A `deletionTimestamp` is ignored: a Pod that is being deleted runs for its whole grace period, but counts as gone.
//! The controller waits for it only in the reconcile that deleted it.

use std::collections::BTreeSet;

use kctl::{k8s::api::rbac::v1::PolicyRule, kube::Api, prelude::*, testing::Scenario};

use crate::{
    case::{External, State, program, rule},
    site::{A, Site, ask, reached},
};

/// The existing disks, by the name of their site.
type Disks = External<BTreeSet<String>>;

/// Wipes the disk when the cache seems to have no Pods of the site.
#[controller(of = Site, owns = Pod(create, delete))]
struct Bug {
    disks: Disks,
}

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if site.spec.version > 0 {
            run(&self.disks, &site, &cx.owned::<Pod>().iter().collect::<Vec<_>>(), |pod| cx.owned::<Pod>().create(pod))
                .await?;
        } else {
            for pod in &cx.owned::<Pod>() {
                cx.owned::<Pod>().delete(pod).await?;
                while !cx.store::<Pod>().is_empty() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
            self.disks.with(|disks| disks.remove(&site.name_any()));
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Waits for Pods that are being deleted, also by others. Wiping the disk can't be undone, so it reads from the API
/// server first: its cache may have started with an old state.
#[controller(of = Site, owns = Pod(create, delete), rbac(asking_for_pods()))]
struct Twin {
    disks: Disks,
}

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let pods = cx.owned::<Pod>();
        if site.spec.version > 0 {
            run(&self.disks, &site, &pods.iter().collect::<Vec<_>>(), |pod| pods.create(pod)).await?;
        } else {
            for pod in &pods {
                pods.delete(pod).await?;
            }
            if cx.owned::<Pod>().terminating().len() > 0 {
                return Ok(Action::await_change());
            }
            if Api::<Pod>::default_namespaced(cx.client()).get_opt(&site.name_any()).await?.is_some() {
                return Ok(Action::requeue(Duration::from_secs(1)));
            }
            self.disks.with(|disks| disks.remove(&site.name_any()));
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

fn asking_for_pods() -> PolicyRule {
    let [group, resource, verb] = ["", "pods", "get"].map(|text| vec![text.to_owned()]);
    PolicyRule { api_groups: Some(group), resources: Some(resource), verbs: verb, ..PolicyRule::default() }
}

async fn run<F>(disks: &Disks, site: &Site, pods: &[Arc<Pod>], create: impl FnOnce(Pod) -> F) -> Result<()>
where
    F: IntoFuture<Output = Result<Arc<Pod>, ApiError>>,
{
    disks.with(|disks| disks.insert(site.name_any()));
    if pods.is_empty() {
        create(database(&site.name_any())).await?;
    }
    Ok(())
}

fn database(name: &str) -> Pod {
    let container = Container { name: "main".into(), image: Some("postgres".into()), ..Container::default() };
    let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    Pod { metadata, spec: Some(spec), ..Pod::default() }
}

fn case(app: fn() -> App) -> Scenario {
    let disks = Disks::default();
    let (known, left) = (disks.clone(), disks.clone());
    Scenario::new(app)
        .objects(A)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .step("ask for nothing", |client| async move { ask(&client, "a", 0).await })
        .invariant("no disk is wiped under a pod", rule(move |state| known.with(|disks| under_pods(disks, state))))
        .settled("a disk where something is asked for", rule(move |state| left.with(|disks| wanted(disks, state))))
}

fn under_pods(disks: &BTreeSet<String>, state: &State) -> Result<(), String> {
    let lost: Vec<_> = state.pods.iter().map(ResourceExt::name_any).filter(|name| !disks.contains(name)).collect();
    if lost.is_empty() { Ok(()) } else { Err(format!("pods {lost:?} run without their disk")) }
}

fn wanted(disks: &BTreeSet<String>, state: &State) -> Result<(), String> {
    let wanted: BTreeSet<_> =
        state.sites.iter().filter(|site| site.spec.version > 0).map(ResourceExt::name_any).collect();
    if *disks == wanted { Ok(()) } else { Err(format!("disks {disks:?}, wanted {wanted:?}")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|disks| Bug { disks }))
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|disks| Twin { disks }))
}
