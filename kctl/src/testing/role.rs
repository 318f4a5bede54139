//! Tests that a role is exactly what an app needs: sufficient, and without a permission that could
//! be dropped.
//!
//! Reviewers of a `ClusterRole` ask two questions: does the program work with it, and why does it
//! need each line? [`check_role`] answers both by experiment. It runs a scenario under the
//! generated role, then again once for each permission with that permission removed. A run that is
//! not rejected with 403 shows that the permission is superfluous. Permissions for caches, events and
//! `…/finalizers` are not removed.
//!
//! The experiment is only as good as its scenario. A permission that only a rare branch uses is
//! reported as superfluous until the scenario reaches that branch. So these tests also measure what
//! the scenario covers.

use std::{fmt, panic::AssertUnwindSafe};

use futures::FutureExt;
use kctl_runtime::{
    manager::UnusedCache,
    manifest::Permission,
    object::Kind,
    reconcile::{Error, Result},
};
use kube::Config;

use super::{
    Trial,
    bypass::Bypasses,
    cleanup,
    trial::{NAMESPACE_PREFIX, WatchedNamespaces, role_without},
};
use crate::{
    App,
    app::{Permissions, names_a_file},
};

/// Generates two tests of an app's role: on the embedded API server and on the one that
/// `KUBECONFIG` names.
///
/// The first argument is the path of a function that returns the [`App`]. The second is an async function that takes a
/// [`Trial`](crate::testing::Trial) and makes the app do everything that it can do. The tests are `role_is_minimal` and
/// `role_is_minimal_on_a_real_server`. The second is ignored unless it is asked for:
/// `KUBECONFIG=… cargo test on_a_real_server -- --ignored`.
///
/// The embedded test needs `tokio` with the feature `test-util` among the dev-dependencies.
///
/// ```
/// use kctl::{kube::{Api, api::PostParams}, prelude::*, testing::Trial};
///
/// /// Keeps a `ServiceAccount` for each `ConfigMap`.
/// #[controller(owns = ServiceAccount(create))]
/// async fn accounts(config: Arc<ConfigMap>, cx: Context<accounts>) -> Result<Action> {
///     let owned = cx.owned::<ServiceAccount>();
///     if owned.is_empty() {
///         let name = Some(config.name_any());
///         owned.create(ServiceAccount { metadata: ObjectMeta { name, ..Default::default() }, ..Default::default() }).await?;
///     }
///     Ok(Action::await_change())
/// }
///
/// fn app() -> App {
///     App::new("accounts").controller::<accounts>()
/// }
///
/// /// Creates a `ConfigMap`; the app needs `create` on ServiceAccounts for it, and nothing else.
/// async fn scenario(trial: &Trial) -> kctl::Result<()> {
///     let config = kctl::from_json(kctl::json!({ "metadata": { "name": "web" } }))?;
///     Api::<ConfigMap>::default_namespaced(trial.client()).create(&PostParams::default(), &config).await?;
///     trial.idle().await
/// }
///
/// kctl::role_tests!(app, scenario);
/// ```
#[macro_export]
macro_rules! role_tests {
    ($app:path, $scenario:path) => {
        #[::tokio::test(start_paused = true)]
        async fn role_is_minimal() {
            if let ::std::result::Result::Err(error) = $crate::testing::check_role($app, $scenario).await {
                ::std::panic!("{error}");
            }
        }

        #[::tokio::test]
        #[ignore = "needs KUBECONFIG: cargo test on_a_real_server -- --ignored"]
        async fn role_is_minimal_on_a_real_server() {
            ::std::assert!($crate::testing::names_a_real_server(), "KUBECONFIG names no file of an API server");
            if let ::std::result::Result::Err(error) = $crate::testing::check_role_on_cluster($app, $scenario).await {
                ::std::panic!("{error}");
            }
        }
    };
}

/// Returns `true` if `KUBECONFIG` names an existing file.
///
/// With `KUBECONFIG=/dev/null` a test run finds no cluster, whatever `~/.kube/config` holds.
#[doc(hidden)]
pub fn names_a_real_server() -> bool {
    std::env::var_os("KUBECONFIG").is_some_and(|list| names_a_file(&list))
}

/// Proves that the generated role is minimal: runs a scenario under exactly that role, then once
/// without each permission.
///
/// Each run without a permission has to fail with 403. List and watch of caches, events, and `update` of `…/finalizers`
/// are not removed. Instead, a cache of `reads` or `watches` is superfluous if no reconcile of the
/// scenario calls `cx.store` or `cx.objects` for it. Kinds that are watched at run time
/// ([`Env::watches`](crate::app::Env::watches)) and `watches = K(metadata)` are not reported.
///
/// A request that bypasses the context, for example with `kube::Client::try_default()`, is reported
/// with its URL, even if it reaches no cluster. Only requests on the thread of the test are seen,
/// not those on other threads of a runtime.
///
/// The scenario runs once per permission, so keep it short, and pause time. It may panic; a panic
/// counts as a failure of that run. [`role_tests!`](crate::role_tests) wraps this function in a
/// test.
///
/// ```
/// use kctl::{kube::{Api, api::PostParams}, prelude::*, testing::check_role};
///
/// /// Only reads. The declaration also allows it to delete Pods.
/// #[controller(reads = Pod(delete))]
/// async fn lazy(_config: Arc<ConfigMap>, cx: Context<lazy>) -> Result<Action> {
///     println!("{} pods", cx.store::<Pod>().len());
///     Ok(Action::await_change())
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> kctl::Result<()> {
/// let app = || App::new("lazy").controller::<lazy>();
/// let error = check_role(app, async |trial: &kctl::testing::Trial| {
///     let config = kctl::from_json(kctl::json!({ "metadata": { "name": "web" } }))?;
///     Api::<ConfigMap>::default_namespaced(trial.client()).create(&PostParams::default(), &config).await?;
///     trial.idle().await
/// });
/// let text = error.await.unwrap_err().to_string();
/// assert!(text.contains("`delete pods`"), "{text}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A request bypasses the context, the scenario fails, the role lacks a permission, or a permission or
/// cache is superfluous. The error names the declarations, caches of Secrets first.
pub async fn check_role(app: impl Fn() -> App, scenario: impl AsyncFn(&Trial) -> Result<()>) -> Result<()> {
    let role = app().permissions();
    let bypasses = Bypasses::watch();
    let whole = Trial::start_embedded(&app(), &role).await?;
    let outcome = run_under_full_role(&whole, &scenario).await;
    // A client that bypasses the role comes first: the other results prove nothing then.
    if let Some(report) = bypasses.report() {
        return Err(Error::from(report));
    }
    check_full_role(outcome, whole.lacks())?;
    let unused = whole.unused_caches();
    drop(whole);
    let mut superfluous = Vec::new();
    let parts = app().all_permissions();
    for (_, part) in droppable(&role) {
        let mut rest = role.clone();
        rest.insert(
            part.cluster.clone(),
            role_without(&part.permission, parts.get(&part.cluster).map_or(&[], Vec::as_slice)),
        );
        let trial = Trial::start_embedded(&app(), &rest).await?;
        check_part(&trial, &scenario, part, &mut superfluous).await?;
    }
    report(&superfluous, unused)
}

/// Does the same as [`check_whole_role_on_cluster`] with the app running for the new namespace only;
/// [`role_tests!`](crate::role_tests) calls it.
///
/// # Errors
/// As [`check_whole_role_on_cluster`].
pub async fn check_role_on_cluster(app: impl Fn() -> App, scenario: impl AsyncFn(&Trial) -> Result<()>) -> Result<()> {
    check_on_clusters(app, scenario, WatchedNamespaces::OwnNamespace).await
}

/// Does the same as [`check_role`] on the cluster of the kubeconfig, with impersonation and for the namespaces that the app
/// declares, usually all.
///
/// Use it for apps that create namespaces or reconcile cluster-scoped kinds, and only on a cluster
/// without other users: the app reconciles everything there. Each run deletes what the scenario and
/// the app created. For other apps, the second test of [`role_tests!`](crate::role_tests) does the same with the app
/// running for one namespace.
///
/// Each run has a new namespace. For other clusters of the app, its closures connect; each gets a namespace of the same
/// name and its generated role. Two such checks in one process run one after the other.
///
/// The kubeconfig is found as `kubectl` finds it. Use an API server that may be written to. Each run
/// installs the app's CRDs, a `ClusterRole` and a `ClusterRoleBinding`, and removes the objects, the role
/// and the namespace at its end. CRDs are kept. An API server with etcd suffices, as envtest starts it: Pods are run by
/// a simulated kubelet.
///
/// # Errors
/// As [`check_role`], and if the user of the kubeconfig is not an administrator.
pub async fn check_whole_role_on_cluster(
    app: impl Fn() -> App,
    scenario: impl AsyncFn(&Trial) -> Result<()>,
) -> Result<()> {
    check_on_clusters(app, scenario, WatchedNamespaces::AsDeclared).await
}

/// Runs the whole role first, then one trial per permission, each with a fresh namespace.
async fn check_on_clusters(
    app: impl Fn() -> App,
    scenario: impl AsyncFn(&Trial) -> Result<()>,
    reach: WatchedNamespaces,
) -> Result<()> {
    // Two simulated kubelets would both run the Pods of all namespaces and interfere with each other.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _alone = ONE_AT_A_TIME.lock().await;
    let config = Config::infer().await?;
    let whole = Trial::on_clusters(&config, &mut app(), reach, None).await?;
    let outcome = run_under_full_role(&whole, &scenario).await;
    let (lacks, unused) = (whole.lacks(), whole.unused_caches());
    cleanup::append_error(check_full_role(outcome, lacks), whole.end().await)?;
    let mut superfluous = Vec::new();
    let mut first = app();
    if reach == WatchedNamespaces::OwnNamespace {
        first.run_only_in(NAMESPACE_PREFIX);
    }
    for (index, part) in droppable(&first.permissions()) {
        let trial = Trial::on_clusters(&config, &mut app(), reach, Some((&part.cluster, index))).await?;
        let checked = check_part(&trial, &scenario, part, &mut superfluous).await;
        cleanup::append_error(checked, trial.end().await)?;
    }
    report(&superfluous, unused)
}

/// A permission of the role on a cluster, which one run leaves out.
struct Part {
    /// Empty for the cluster that the app is started against.
    cluster: String,
    permission: Permission,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.permission)?;
        if self.cluster.is_empty() { Ok(()) } else { write!(f, " on {}", self.cluster) }
    }
}

/// Returns each permission that a run leaves out, with its index in the role of its cluster.
///
/// Permissions that kctl itself needs are not among them: caches, events, and `update` of `…/finalizers` for
/// `blockOwnerDeletion`. Without a cache an app never starts its work, and an event that is rejected fails no reconcile.
/// The `patch` that adds a finalizer is a verb of the primary, and is left out like others.
fn droppable(role: &Permissions) -> impl Iterator<Item = (usize, Part)> {
    let all = role.iter().flat_map(|(cluster, permissions)| {
        permissions
            .iter()
            .enumerate()
            .map(|(index, permission)| (index, Part { cluster: cluster.clone(), permission: permission.clone() }))
    });
    all.filter(|(_, part)| !part.permission.framework)
}

/// Runs a scenario to its end; a panic counts as an error.
async fn run(trial: &Trial, scenario: &impl AsyncFn(&Trial) -> Result<()>) -> Result<()> {
    let whole = async {
        scenario(trial).await?;
        trial.idle().await
    };
    let outcome = AssertUnwindSafe(whole).catch_unwind().await;
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Error::from(format!("panic: {}", text.unwrap_or("without a message"))))
    })
}

/// Runs a scenario under the whole role. It ends at the first 403, because a scenario that waits for the rejected write
/// would never end.
async fn run_under_full_role(trial: &Trial, scenario: &impl AsyncFn(&Trial) -> Result<()>) -> Result<()> {
    tokio::select! {
        biased;
        outcome = run(trial, scenario) => outcome,
        () = trial.wait_for_rejection() => Ok(()),
    }
}

/// Reports a missing permission first: it explains why the scenario failed.
fn check_full_role(outcome: Result<()>, lacks: Option<Permission>) -> Result<()> {
    if let Some(permission) = lacks {
        return Err(Error::from(format!("the generated role lacks `{permission}`: nothing that is declared needs it")));
    }
    outcome.map_err(|error| Error::from(format!("the scenario fails under the generated role: {error}")))
}

/// Runs a scenario without one permission. If it still succeeds, the permission is superfluous.
async fn check_part(
    trial: &Trial,
    scenario: &impl AsyncFn(&Trial) -> Result<()>,
    part: Part,
    superfluous: &mut Vec<Part>,
) -> Result<()> {
    let outcome = tokio::select! {
        // One rejected request proves that the permission is needed.
        () = trial.wait_for_rejection() => return Ok(()),
        outcome = run(trial, scenario) => outcome,
    };
    if trial.lacks().is_some() {
        return Ok(());
    }
    outcome.map_err(|error| {
        Error::from(format!("without {part} nothing is rejected, and the scenario still fails: {error}"))
    })?;
    superfluous.push(part);
    Ok(())
}

fn is_secrets(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "secrets"
}

/// Formats the line of the report for a cache that no reconcile used.
fn describe_unused_cache(cache: &UnusedCache) -> String {
    let UnusedCache { controller, relation, .. } = cache;
    let Kind { group, plural, kind, .. } = &relation.kind;
    let resource = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
    let on = if relation.cluster.is_empty() { String::new() } else { format!(" on {}", relation.cluster) };
    let why = if is_secrets(&relation.kind) { ", and every Secret is held in memory" } else { "" };
    format!(
        "\n  `list {resource}` and `watch {resource}`{on}, declared by `{controller}: {}`: no reconcile reads the store of {kind}{why}",
        relation.text
    )
}

/// Returns the error that lists superfluous permissions and unused caches, Secrets first.
fn report(superfluous: &[Part], mut unused: Vec<UnusedCache>) -> Result<()> {
    if superfluous.is_empty() && unused.is_empty() {
        return Ok(());
    }
    // Secrets come first: a program that caches them without reading them exposes them for nothing.
    unused.sort_by_key(|cache| !is_secrets(&cache.relation.kind));
    let line = |part: &Part| {
        let because: Vec<_> = part.permission.because.iter().map(|text| format!("`{text}`")).collect();
        format!("\n  {part}, declared by {}", because.join(" and "))
    };
    let lines: String = unused.iter().map(describe_unused_cache).chain(superfluous.iter().map(line)).collect();
    Err(Error::from(format!(
        "the scenario does not need everything that is declared:{lines}\n\
         help: leave it out of the declaration, or let the scenario do what needs it"
    )))
}
