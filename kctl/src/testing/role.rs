//! The proof that a role is exactly what an app needs: enough, and nothing in it can be left out.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use kctl_runtime::{
    manifest::Grant,
    reconcile::{Error, Result},
};
use kube::Config;

use super::Trial;
use crate::{App, app::Grants};

/// Tests of an app's role on the embedded API server and, when `KUBECONFIG` names one, on a real one. The scenario makes the
/// app do everything that it can do.
///
/// ```
/// # use kctl::{App, testing::Trial};
/// fn app() -> App {
///     App::new("nothing")
/// }
/// async fn scenario(trial: &Trial) -> kctl::Result<()> {
///     trial.idle().await
/// }
/// kctl::role_tests!(app, scenario);
/// ```
#[macro_export]
macro_rules! role_tests {
    ($app:path, $scenario:path) => {
        #[::tokio::test(start_paused = true)]
        async fn role_is_exactly_what_the_app_needs() {
            if let ::std::result::Result::Err(error) = $crate::testing::check_role($app, $scenario).await {
                ::std::panic!("{error}");
            }
        }

        #[::tokio::test]
        async fn role_is_exactly_what_the_app_needs_on_a_real_server() {
            if ::std::env::var_os("KUBECONFIG").is_none() {
                ::std::eprintln!("left out: KUBECONFIG names no API server");
                return;
            }
            if let ::std::result::Result::Err(error) = $crate::testing::check_role_on_cluster($app, $scenario).await {
                ::std::panic!("{error}");
            }
        }
    };
}

/// Runs a scenario under exactly the generated role, then once for each permission in it without that one: each time
/// something has to be refused. What kctl needs for every declaration of its sort - list and watch of caches, events - is not
/// tried.
///
/// # Errors
/// When the scenario fails, when the role lacks something, or when something is superfluous: it names the declarations.
pub async fn check_role(app: impl Fn() -> App, scenario: impl AsyncFn(&Trial) -> Result<()>) -> Result<()> {
    let role = app().grants();
    let whole = Trial::embedded(&app(), &role).await?;
    check_whole(run(&whole, &scenario).await, whole.lacks())?;
    let mut superfluous = Vec::new();
    let parts = app().all_grants();
    for (cluster, grant) in droppable(&role) {
        let mut rest = role.clone();
        rest.insert(cluster.clone(), without(&grant, parts.get(&cluster).map_or(&[], Vec::as_slice)));
        let trial = Trial::embedded(&app(), &rest).await?;
        check_part(&trial, &scenario, grant, &mut superfluous).await?;
    }
    report(&superfluous)
}

/// The same on the cluster that the kubeconfig names, by impersonation: each run in a namespace of its own. Other clusters of
/// the app are used as its closures say.
///
/// # Errors
/// As [`check_role`], and when the cluster does not allow what an administrator may do.
pub async fn check_role_on_cluster(app: impl Fn() -> App, scenario: impl AsyncFn(&Trial) -> Result<()>) -> Result<()> {
    // A simulated kubelet runs the pods of all namespaces: two would get in each other's way.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _alone = ONE_AT_A_TIME.lock().await;
    let config = Config::infer().await?;
    let whole = Trial::on_cluster(&config, &mut app(), None).await?;
    let outcome = run(&whole, &scenario).await;
    let lacks = whole.lacks();
    whole.end().await?;
    check_whole(outcome, lacks)?;
    let mut superfluous = Vec::new();
    let mut first = app();
    first.run_only_in("any");
    for (index, grant) in first.grants().remove("").unwrap_or_default().into_iter().enumerate() {
        if grant.framework {
            continue;
        }
        let trial = Trial::on_cluster(&config, &mut app(), Some(index)).await?;
        let checked = check_part(&trial, &scenario, grant, &mut superfluous).await;
        trial.end().await?;
        checked?;
    }
    report(&superfluous)
}

/// What is left of a role: all that others have declared, of which the one that is taken away may have covered some.
pub(super) fn without(grant: &Grant, parts: &[Grant]) -> Vec<Grant> {
    let is_it = |other: &&Grant| other.place == grant.place && other.on == grant.on && other.verb == grant.verb;
    parts.iter().filter(|other| !is_it(other)).cloned().collect()
}

fn droppable(role: &Grants) -> Vec<(String, Grant)> {
    let all =
        role.iter().flat_map(|(cluster, grants)| grants.iter().map(move |grant| (cluster.clone(), grant.clone())));
    all.filter(|(_, grant)| !grant.framework).collect()
}

/// Runs a scenario to its end; a panic is a failure.
async fn run(trial: &Trial, scenario: &impl AsyncFn(&Trial) -> Result<()>) -> Result<()> {
    let whole = async {
        scenario(trial).await?;
        trial.idle().await
    };
    let outcome = AssertUnwindSafe(whole).catch_unwind().await;
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Error::from(format!("panic: {}", text.unwrap_or("without a text"))))
    })
}

fn check_whole(outcome: Result<()>, lacks: Option<Grant>) -> Result<()> {
    if let Some(grant) = lacks {
        return Err(Error::from(format!("the generated role lacks `{grant}`: nothing that is declared needs it")));
    }
    outcome.map_err(|error| Error::from(format!("the scenario fails under the generated role: {error}")))
}

async fn check_part(
    trial: &Trial,
    scenario: &impl AsyncFn(&Trial) -> Result<()>,
    grant: Grant,
    superfluous: &mut Vec<Grant>,
) -> Result<()> {
    let outcome = tokio::select! {
        // What follows a refusal does not matter any more.
        () = trial.refused() => return Ok(()),
        outcome = run(trial, scenario) => outcome,
    };
    if trial.lacks().is_some() {
        return Ok(());
    }
    outcome.map_err(|error| {
        Error::from(format!("without `{grant}` nothing is refused, and the scenario still fails: {error}"))
    })?;
    superfluous.push(grant);
    Ok(())
}

fn report(superfluous: &[Grant]) -> Result<()> {
    if superfluous.is_empty() {
        return Ok(());
    }
    let line = |grant: &Grant| {
        let because: Vec<_> = grant.because.iter().map(|text| format!("`{text}`")).collect();
        format!("\n  `{grant}`, declared by {}", because.join(" and "))
    };
    let lines: String = superfluous.iter().map(line).collect();
    Err(Error::from(format!(
        "the scenario does not need everything that is declared:{lines}\n\
         help: leave it out of the declaration, or let the scenario do what needs it"
    )))
}
