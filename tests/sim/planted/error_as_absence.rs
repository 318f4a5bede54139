//! An error is treated as absence: if a read fails, the object counts as missing and its database is dropped.

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{External, State, program, rule},
    site::{A, Site, ask, reached},
};

/// Number of dropped databases, and number of existing ones.
type Databases = External<(u32, u32)>;

/// Drops the database when the read of its credentials fails.
#[controller(of = Site, reads = Secret(live))]
struct Bug {
    databases: Databases,
}

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        keep(&self.databases, cx.live::<Secret>().get("credentials").await.is_ok());
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Drops the database only if its credentials do not exist.
#[controller(of = Site, reads = Secret(live))]
struct Twin {
    databases: Databases,
}

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        keep(&self.databases, cx.live::<Secret>().get_opt("credentials").await?.is_some());
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

fn keep(databases: &Databases, wanted: bool) {
    databases.with(|(dropped, exist)| {
        if !wanted {
            *dropped += *exist;
        }
        *exist = u32::from(wanted);
    });
}

const CREDENTIALS: &str = "
apiVersion: v1
kind: Secret
metadata: { name: credentials }
";

fn case(app: fn() -> App) -> Scenario {
    let databases = Databases::default();
    Scenario::new(app)
        .objects(CREDENTIALS)
        .objects(A)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .invariant(
            "no database is dropped while there are credentials",
            rule(move |state| databases.with(|(dropped, _)| none_dropped(*dropped, state))),
        )
}

fn none_dropped(dropped: u32, state: &State) -> Result<(), String> {
    if dropped == 0 || state.secrets.is_empty() { Ok(()) } else { Err(format!("{dropped} dropped")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|databases| Bug { databases }))
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|databases| Twin { databases }))
}
