//! The generated role of a declaration is minimal: everything declared works with it, and requests are rejected
//! without any of its parts, except for the rule for Events.

use kctl::{
    apiserver::User,
    k8s::api::{
        apps::v1::DeploymentStatus,
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    kube::{
        Api, Client,
        api::{DeleteParams, PostParams},
    },
    prelude::*,
    reconcile::bounds::{Declares, MayApply, MayCreate, MayDelete, MayPatch, MayUpdate},
    testing::{Trial, check_role},
};
use kctl_runtime::manifest::{self, RbacOptions};

use crate::world::{World, advance_seconds, app, pod};

/// Uses each declared permission once.
#[controller(of = Deployment, owns = Pod(create, patch, delete), reads = Secret, primary(patch, status), finalizer = "example.com/x")]
struct Everything;

impl Reconcile for Everything {
    async fn reconcile(&self, deployment: Arc<Deployment>, cx: Context<Self>) -> Result<Action> {
        if deployment.labels().contains_key("color") {
            return Ok(Action::await_change());
        }
        let color = kctl::json!({ "metadata": { "labels": { "color": "red" } } });
        let made = cx.owned::<Pod>().create(pod(&format!("{}-0", deployment.name_any()))).or_get().await?;
        cx.owned::<Pod>().patch(&made, &color).await?;
        cx.owned::<Pod>().delete(&made).await?;
        let replicas = i32::try_from(cx.store::<Secret>().len() + 1)?;
        cx.patch_status(DeploymentStatus { replicas: Some(replicas), ..DeploymentStatus::default() }).await?;
        cx.patch(&color).await?;
        Ok(Action::await_change())
    }
}

impl Finalize for Everything {
    async fn finalize(&self, _deployment: Arc<Deployment>, _cx: Context<Self>) -> Result<()> {
        Ok(())
    }
}

fn everything() -> App {
    app().controller_with(|_env| std::future::ready(Ok(Everything)))
}

/// Returns the app's role and its binding.
fn manifests() -> (ClusterRole, ClusterRoleBinding) {
    let options = RbacOptions::new("everything", "default");
    let manifests = manifest::rbac(&everything().specs(), &options).unwrap();
    let of = |kind: &str| {
        let mut found = manifests.iter().filter(|manifest| manifest.object["kind"] == kind);
        found.next().unwrap_or_else(|| panic!("a {kind}")).object.clone()
    };
    (kctl::from_json(of("ClusterRole")).unwrap(), kctl::from_json(of("ClusterRoleBinding")).unwrap())
}

/// Owns Pods with the default verbs of `owns = K`.
#[controller(of = ConfigMap, owns = Pod)]
struct Bare;

impl Reconcile for Bare {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

/// Owns Pods with the same verbs, written out.
#[controller(of = ConfigMap, owns = Pod(create, update, patch, apply, delete))]
struct WrittenOut;

impl Reconcile for WrittenOut {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

// The types of `Bare` allow no verb that its role lacks, and the role has the verbs of the next test.
kctl::permissions_test!(fn types_and_role_of_bare_owns_agree: Bare; owns Pod);

/// The compiler compares the permission types: both controllers implement `Owns`, and `Owns` has all five verbs.
#[test]
fn bare_owns_declares_the_verbs_of_its_bound() {
    fn allow_all<C>()
    where
        C: Declares<Pod>,
        <C as Declares<Pod>>::Verbs:
            MayCreate<C, Pod> + MayUpdate<C, Pod> + MayPatch<C, Pod> + MayApply<C, Pod> + MayDelete<C, Pod>,
    {
    }
    fn verbs<C: Controller + Owns<Pod>>() -> Vec<&'static str> {
        allow_all::<C>();
        C::spec().relations.iter().flat_map(|relation| relation.verbs.clone()).collect()
    }
    assert_eq!(verbs::<Bare>(), verbs::<WrittenOut>());
    assert_eq!(verbs::<Bare>(), ["create", "update", "patch", "apply", "delete"]);
}

/// Uses each verb of a bare `owns` once.
#[controller(owns = ServiceAccount)]
async fn accounts(config: Arc<ConfigMap>, cx: Context<accounts>) -> Result<Action> {
    let owned = cx.owned::<ServiceAccount>();
    if !owned.is_empty() {
        return Ok(Action::await_change());
    }
    let account = |suffix: &str| {
        let metadata = ObjectMeta { name: Some(format!("{}-{suffix}", config.name_any())), ..ObjectMeta::default() };
        ServiceAccount { metadata, ..ServiceAccount::default() }
    };
    let created = owned.create(account("created")).await?;
    let mut changed = ServiceAccount::clone(&created);
    changed.automount_service_account_token = Some(false);
    let updated = owned.update(changed).await?;
    owned.patch(&updated, kctl::json!({ "metadata": { "labels": { "color": "red" } } })).await?;
    let applied = owned.apply(account("applied")).await?;
    owned.delete(&applied).await?;
    Ok(Action::await_change())
}

async fn create_config(trial: &Trial) -> Result<()> {
    let metadata = ObjectMeta { name: Some("web".into()), ..ObjectMeta::default() };
    let config = ConfigMap { metadata, ..ConfigMap::default() };
    Api::default_namespaced(trial.client()).create(&PostParams::default(), &config).await?;
    trial.idle().await
}

/// The role test removes each verb in turn.
#[tokio::test(start_paused = true)]
async fn bare_owns_grants_no_unneeded_verb() {
    let accounts_app = || App::new("accounts").controller::<accounts>();
    check_role(accounts_app, create_config).await.unwrap();
}

/// Returns the requests that were rejected while a Deployment was created, reconciled and deleted with this role.
async fn rejected_requests(role: &ClusterRole, binding: &ClusterRoleBinding) -> Vec<String> {
    let world = World::new();
    Api::all(world.client.clone()).create(&PostParams::default(), role).await.unwrap();
    Api::all(world.client.clone()).create(&PostParams::default(), binding).await.unwrap();
    world.create_deployment("web").await;
    let user = User::new("system:serviceaccount:default:everything");
    let client = Client::new(world.server.service_as(user), "default");
    let manager = everything().manager(client).await.unwrap();
    let running = tokio::spawn(manager.run(std::future::pending()));
    advance_seconds(60).await;
    world.deployments().delete("web", &DeleteParams::default()).await.unwrap();
    advance_seconds(60).await;
    running.abort();
    let gone = world.deployments().get_opt("web").await.unwrap().is_none();
    let requests = world.server.requests();
    let rejected: Vec<_> = requests.iter().filter(|request| request.code == 403).collect();
    assert!(gone || !rejected.is_empty(), "its finalizer is gone when nothing is rejected");
    rejected.iter().map(|request| format!("{} {}", request.verb, request.resource)).collect()
}

#[tokio::test(start_paused = true)]
async fn generated_role_is_exactly_what_the_declaration_needs() {
    let (role, binding) = manifests();
    assert_eq!(rejected_requests(&role, &binding).await, [""; 0]);
    let rules = role.rules.clone().unwrap_or_default();
    let mut n_parts = 0;
    for (index, rule) in rules.iter().enumerate() {
        // Events are sent once and never fail a reconcile, so a missing permission goes unnoticed.
        let resources = rule.resources.clone().unwrap_or_default();
        for resource in resources.iter().filter(|resource| *resource != "events") {
            // `list` and `watch` are removed together: a cache needs both.
            for verbs in [&["list", "watch"][..], &["create"], &["update"], &["patch"], &["delete"]] {
                if !verbs.iter().any(|verb| rule.verbs.iter().any(|known| known == verb)) {
                    continue;
                }
                n_parts += 1;
                let mut less = role.clone();
                let mut without = rule.clone();
                without.verbs.retain(|verb| !verbs.contains(&verb.as_str()));
                without.resources = Some(vec![resource.clone()]);
                let mut others = rule.clone();
                others.resources = Some(resources.iter().filter(|other| *other != resource).cloned().collect());
                let parts: Vec<_> = [without, others]
                    .into_iter()
                    .filter(|rule| !rule.verbs.is_empty() && rule.resources.as_ref().is_some_and(|all| !all.is_empty()))
                    .collect();
                less.rules.as_mut().unwrap().splice(index..=index, parts);
                let rejected = rejected_requests(&less, &binding).await;
                assert!(!rejected.is_empty(), "{resource} without {verbs:?} works as well");
                assert!(
                    rejected.iter().all(|line| line.ends_with(&format!(" {resource}"))),
                    "{resource}: {rejected:?}"
                );
            }
        }
    }
    assert!(n_parts >= 8, "{n_parts} parts of {rules:?}");
}
