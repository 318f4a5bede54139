//! Reliance on intermediate states: each version of the site is one migration of its database, and the controller
//! expects to see all versions.

use kctl::{prelude::*, testing::Scenario};

use crate::{
    case::{External, State, program, rule},
    site::{A, Site, ask, reached},
};

/// The schema version of a database.
type Database = External<i32>;

/// Runs only the migration to the version that it sees.
#[controller(of = Site)]
struct Bug {
    database: Database,
}

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let (is, wanted) = (self.database.with(|version| *version), site.spec.version);
        if wanted == is + 1 {
            self.database.with(|version| *version = wanted);
        } else if wanted != is {
            return Err(format!("there is no migration from {is} to {wanted}")).terminal();
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Runs all migrations from the database's version to the desired one.
#[controller(of = Site)]
struct Twin {
    database: Database,
}

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        while self.database.with(|version| *version) < site.spec.version {
            self.database.with(|version| *version += 1);
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

fn case(app: fn() -> App) -> Scenario {
    let database = Database::default();
    Scenario::new(app)
        .objects(A)
        .step("ask for version 2, then 3", |client| async move {
            ask(&client, "a", 2).await?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            ask(&client, "a", 3).await
        })
        .settled("the database has the version of the site", rule(move |state| database.with(|is| same(*is, state))))
}

fn same(database: i32, state: &State) -> Result<(), String> {
    let wanted: Vec<_> = state.sites.iter().map(|site| site.spec.version).collect();
    if wanted == [database] { Ok(()) } else { Err(format!("database {database}, wanted {wanted:?}")) }
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|database| Bug { database }))
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|database| Twin { database }))
}
