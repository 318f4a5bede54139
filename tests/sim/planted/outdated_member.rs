//! Reliance on the first list of another cluster: a site whose Secret is not in that cluster's cache gets a new
//! password. The Secret did exist, and keeps the old password.

use std::collections::BTreeMap;

use kctl::{
    prelude::*,
    testing::{Scenario, Snapshot},
};

use crate::{
    case::{External, program},
    site::{A, Site, ask, reached, secret, text},
};

/// The cluster with the Secrets.
struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

/// The system that uses the passwords: the number of issued passwords, and the last one of each site.
#[derive(Default)]
struct Passwords {
    n_issued: u32,
    of: BTreeMap<String, String>,
}

impl Passwords {
    fn issue(&mut self, site: &str) -> String {
        self.n_issued += 1;
        self.set(site, self.n_issued.to_string())
    }

    fn set(&mut self, site: &str, password: String) -> String {
        self.of.insert(site.into(), password.clone());
        password
    }
}

fn secret_of(site: &Site, password: &str) -> Secret {
    let mut secret = secret(&site.name_any(), password);
    secret.metadata.namespace = site.namespace();
    secret
}

/// Issues a password if its cache has no Secret.
#[controller(of = Site, reads = Secret(create, on = Edge))]
struct Bug {
    passwords: External<Passwords>,
}

impl Reconcile for Bug {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let there = cx.cluster(Edge);
        if there.store::<Secret>().is_empty() {
            let password = self.passwords.with(|passwords| passwords.issue(&site.name_any()));
            there.objects::<Secret>().create(&secret_of(&site, &password)).await?;
        }
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

/// Creates a Secret if its cache has none, and sets the password of the system to the Secret's. A second create is
/// rejected.
#[controller(of = Site, reads = Secret(create, on = Edge))]
struct Twin {
    passwords: External<Passwords>,
}

impl Reconcile for Twin {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        let there = cx.cluster(Edge);
        let password = match there.store::<Secret>().iter().next() {
            Some(secret) => text(&secret),
            None => text(&*there.objects::<Secret>().create(&secret_of(&site, "made up")).await?),
        };
        self.passwords.with(|passwords| passwords.set(&site.name_any(), password));
        cx.patch_status(reached(&site)).await?;
        Ok(Action::await_change())
    }
}

fn case(app: fn() -> App) -> Scenario {
    let passwords = External::<Passwords>::default();
    // The simulator replaces this client by its own.
    Scenario::new(move || app().cluster(Edge::NAME, || async { Err("not connected".into()) }))
        .objects(A)
        .step("ask for version 2", |client| async move { ask(&client, "a", 2).await })
        .invariant("the secret opens the site", move |snapshot| passwords.with(|known| opens(known, snapshot)))
        .ignoring("/data")
        .keeping("secrets")
}

fn opens(passwords: &Passwords, snapshot: &Snapshot) -> Result<(), String> {
    let secrets = snapshot.on(Edge::NAME).all::<Secret>();
    let fits = |secret: &&Secret| passwords.of.get(&secret.name_any()).is_none_or(|password| *password == text(secret));
    let wrong = secrets.iter().find(|secret| !fits(secret));
    wrong.map_or(Ok(()), |secret| Err(format!("site {} has another password than its secret", secret.name_any())))
}

pub(crate) fn bug() -> Scenario {
    case(|| program(|passwords| Bug { passwords }))
}

pub(crate) fn twin() -> Scenario {
    case(|| program(|passwords| Twin { passwords }))
}
