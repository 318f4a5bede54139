//! A swallowed error of an update: it is logged, but the reconcile is not retried.

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{State, rule, simple},
    site::{A, Site, ask, reached, secret, text},
};

/// Logs the error.
#[controller(of = Site, owns = Secret(create, update))]
struct Bug;

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if let Err(_logged) = bring(&site, &cx.owned::<Secret>()).await {
            return Ok(Action::await_change());
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Returns the error, so that the reconcile is retried.
#[controller(of = Site, owns = Secret(create, update))]
struct Twin;

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        bring(&site, &cx.owned::<Secret>()).await?;
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Creates or updates the Secret of a site to its version.
async fn bring<C, A>(site: &Site, secrets: &Owned<C, Secret, A>) -> Result<()>
where
    A: kctl::reconcile::bounds::MayCreate<C, Secret> + kctl::reconcile::bounds::MayUpdate<C, Secret>,
{
    let wanted = site.spec.version.to_string();
    match secrets.iter().next() {
        None => drop(secrets.create(secret(&site.name_any(), &wanted)).await?),
        Some(there) if text(&there) != wanted => {
            let data = Some([("text".to_owned(), wanted)].into());
            let changed = Secret { string_data: data, ..Secret::clone(&there) };
            secrets.update(changed).await?;
        }
        Some(_same) => {}
    }
    Ok(())
}

fn case(app: fn() -> App) -> Scenario {
    Scenario::new(app)
        .objects(A)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .settled("the secret has the version of its site", rule(versions))
}

fn versions(state: &State) -> Result<(), String> {
    let secrets: Vec<_> = state.secrets.iter().map(text).collect();
    let sites: Vec<_> = state.sites.iter().map(|site| site.spec.version.to_string()).collect();
    if secrets == sites { Ok(()) } else { Err(format!("secrets {secrets:?}, sites {sites:?}")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| simple(|| Bug))
}

pub(crate) fn twin() -> Scenario {
    case(|| simple(|| Twin))
}
