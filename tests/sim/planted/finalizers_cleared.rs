//! Cleared finalizers: two controllers clean up after a site, and one of them removes all finalizers when it is done.

use std::collections::BTreeSet;

use kctl::{
    kube::{
        Api, Client,
        api::{Patch, PatchParams},
    },
    prelude::*,
    testing::Scenario,
};

use crate::{
    case::{External, State, rule},
    site::{A_AND_B, Site, ask, delete, reached, stays},
};

/// External disks, which one of the controllers creates.
#[derive(Default)]
struct Disks(BTreeSet<String>);
#[derive(Default)]
struct Names(BTreeSet<String>);

/// `true` while a user holds the site `c`.
#[derive(Default)]
struct Held(bool);

/// The finalizer of another program.
const USER_FINALIZER: &str = "planted.example.com/user";

/// Returns `true` if the site lacks its external object and still exists. For a deleted site the object would leak.
macro_rules! needs {
    ($outside:expr, $site:expr, $cx:expr) => {
        !$outside.with(|made| made.0.contains(&$site.name_any())) && stays(&$site, &*$cx.get().await?)
    };
}

/// Keeps an external disk for each site.
#[controller(of = Site, name = "disk", primary(get), finalizer = "planted.example.com/disk")]
struct Disk(External<Disks>);

impl Reconcile for Disk {
    async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
        if needs!(self.0, site, cx) {
            self.0.with(|disks| disks.0.insert(site.name_any()));
        }
        Ok(Action::await_change())
    }
}

impl Finalize for Disk {
    async fn finalize(&self, site: Arc<Site>, _cx: Context<Self>) -> Result<()> {
        self.0.with(|disks| disks.0.remove(&site.name_any()));
        Ok(())
    }
}

/// Keeps an external name for each site.
#[controller(of = Site, name = "name", primary(get), finalizer = "planted.example.com/name")]
struct Name(External<Names>);

/// Does the same, but removes all finalizers in its cleanup.
#[controller(of = Site, name = "name", primary(get, patch), finalizer = "planted.example.com/name")]
struct Clearing(External<Names>);

macro_rules! keeps_a_name {
    ($($controller:ty),*) => {$(
        impl Reconcile for $controller {
            async fn reconcile(&self, site: Arc<Site>, cx: Context<Self>) -> Result<Action> {
                if needs!(self.0, site, cx) {
                    self.0.with(|names| names.0.insert(site.name_any()));
                }
                cx.patch_status(reached(&site)).await?;
                Ok(Action::await_change())
            }
        }
    )*};
}
keeps_a_name!(Name, Clearing);

impl Finalize for Name {
    async fn finalize(&self, site: Arc<Site>, _cx: Context<Self>) -> Result<()> {
        self.0.with(|names| names.0.remove(&site.name_any()));
        Ok(())
    }
}

impl Finalize for Clearing {
    async fn finalize(&self, site: Arc<Site>, cx: Context<Self>) -> Result<()> {
        self.0.with(|names| names.0.remove(&site.name_any()));
        cx.patch(kctl::json!({ "metadata": { "finalizers": null } })).await?;
        Ok(())
    }
}

/// Creates a site as a user and then adds the user's finalizer, whichever finalizers the site has by then.
async fn make_and_hold(client: &Client, name: &str) -> Result<()> {
    ask(client, name, 1).await?;
    let hold = kctl::json!({
        "apiVersion": "planted.example.com/v1", "kind": "Site",
        "metadata": { "name": name, "finalizers": [USER_FINALIZER] },
    });
    sites(client).patch(name, &PatchParams::apply("holder"), &Patch::Apply(hold)).await?;
    Ok(())
}

/// Removes the user's finalizer, which must be the only one left.
async fn let_go(client: &Client, name: &str) -> Result<()> {
    let patch = kctl::from_json(kctl::json!([
        { "op": "test", "path": "/metadata/finalizers", "value": [USER_FINALIZER] },
        { "op": "remove", "path": "/metadata/finalizers" },
    ]))?;
    sites(client).patch(name, &PatchParams::default(), &Patch::<Site>::Json(patch)).await?;
    Ok(())
}

fn sites(client: &Client) -> Api<Site> {
    Api::default_namespaced(client.clone())
}

/// Deletes both sites.
fn case(app: fn() -> App) -> Scenario {
    let (disks, names) = (External::<Disks>::default(), External::<Names>::default());
    Scenario::new(app)
        .objects(A_AND_B)
        .step("delete a and b", |client| async move {
            delete(&client, "a").await?;
            delete(&client, "b").await
        })
        .settled(
            "each site has a disk and a name, and goes when it has none",
            rule(move |state| {
                let disks = disks.with(|disks| disks.0.clone());
                names.with(|names| same(&disks, &names.0, state))
            }),
        )
}

/// Adds a site that a user holds. The user's finalizer is added while both controllers add theirs.
fn held(app: fn() -> App) -> Scenario {
    let held = External::<Held>::default();
    case(app)
        .step("a user makes c and holds it", move |client| async move {
            make_and_hold(&client, "c").await?;
            held.with(|held| held.0 = true);
            Ok(())
        })
        .step("delete c", |client| async move { delete(&client, "c").await })
        .step("the user lets c go", move |client| async move {
            held.with(|held| held.0 = false);
            let_go(&client, "c").await
        })
        .invariant(
            "a site exists as long as a user holds it",
            rule(move |state| {
                let exists = state.sites.iter().any(|site| site.name_any() == "c");
                if exists || !held.with(|held| held.0) { Ok(()) } else { Err("c is gone".into()) }
            }),
        )
}

fn same(disks: &BTreeSet<String>, names: &BTreeSet<String>, state: &State) -> Result<(), String> {
    let (going, staying): (Vec<_>, Vec<_>) =
        state.sites.iter().partition(|site| site.metadata.deletion_timestamp.is_some());
    let staying: BTreeSet<_> = staying.into_iter().map(ResourceExt::name_any).collect();
    if *disks != staying || *names != staying {
        return Err(format!("disks {disks:?}, names {names:?}, sites {staying:?}"));
    }
    match going.iter().find(|site| site.finalizers() != [USER_FINALIZER]) {
        Some(site) => Err(format!("{} is held by {:?}", site.name_any(), site.finalizers())),
        None => Ok(()),
    }
}

fn with<C: Reconcile>(make: fn(External<Names>) -> C) -> App {
    App::new("planted")
        .controller_with(|_env| std::future::ready(Ok(Disk(External::default()))))
        .controller_with(move |_env| std::future::ready(Ok(make(External::default()))))
}

/// Without the user's finalizer, only a crash between the two cleanups shows the bug.
pub(crate) fn bug_alone() -> Scenario {
    case(|| with(Clearing))
}

pub(crate) fn bug() -> Scenario {
    held(|| with(Clearing))
}

pub(crate) fn twin() -> Scenario {
    held(|| with(Name))
}
