//! The API servers of a scenario: installed once, and copied for each run.

use std::collections::BTreeMap;

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList};
use kctl_apiserver::ApiServer;
use kctl_runtime::{
    manifest::{self, RbacOptions},
    reconcile::{Error, Result, ResultExt},
};
use kube::Client;
use serde_json::Value;

use crate::{
    app::{self, FromFile},
    testing::sim::{
        scenario::{FreshStart, Scenario},
        timed::TimeDependent,
    },
};

/// API servers on which the CRDs, the role and the Leases' role are installed. Each run gets copies
/// (`ApiServer::fork`), which is much cheaper than installing again. Clones are the same servers.
#[derive(Clone)]
pub(in crate::testing::sim) struct Servers {
    pub(super) own: ApiServer,
    /// The servers of the other clusters, by name.
    pub(super) others: Vec<(String, ApiServer)>,
}

impl Servers {
    /// Installs everything on one server per cluster.
    ///
    /// # Errors
    /// The objects of the scenario can't be parsed, a server rejects a CRD, or a kind of the app is not served. The
    /// error names the remedy.
    pub(in crate::testing::sim) async fn from_scenario(scenario: &Scenario) -> Result<Self> {
        scenario.check_options()?;
        let app = scenario.new_app();
        let mut objects = Vec::new();
        app::parse(&scenario.objects, "the objects of the scenario", &mut objects)?;
        check_distinct(&objects)?;
        TimeDependent::parse(&scenario.time_dependent)?;
        let own = ApiServer::new();
        install(&own, &app, "", leases(scenario)).await?;
        let mut others = Vec::new();
        for cluster in app.cluster_names() {
            let other = ApiServer::new();
            install(&other, &app, &cluster, manifest::ManagerOptions::default()).await?;
            others.push((cluster, other));
        }
        if !others.is_empty() && scenario.fresh_start == FreshStart::Compared {
            let first = &others[0].0;
            return Err(Error::from(format!(
                "comparing_with_fresh_start(): not for an app with other clusters, such as {first:?}"
            )));
        }
        let client_of = |cluster: &str| {
            let other = others.iter().find(|(name, _)| name == cluster);
            Client::new(other.map_or(&own, |(_, other)| other).service(), "default")
        };
        app::check_kinds(&app, client_of, &objects, app::Remedy::Objects).await?;
        let mut known = declared_resources(&app, &objects);
        if scenario.names_resources() {
            let mut clients = vec![Client::new(own.service(), "default")];
            clients.extend(others.iter().map(|(_, other)| Client::new(other.service(), "default")));
            for client in clients {
                add_served_resources(&client, &mut known).await?;
            }
        }
        scenario.check_resources(&known)?;
        Ok(Self { own, others })
    }
}

/// Checks that no object overwrites another.
///
/// # Errors
/// Two objects of one kind have the same name and differ.
fn check_distinct(objects: &[FromFile]) -> Result<()> {
    let mut by_name = BTreeMap::new();
    for FromFile { object, .. } in objects {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (Some(kind), Some(name)) = (text("/kind"), text("/metadata/name")) else { continue };
        let namespace = text("/metadata/namespace").unwrap_or("default");
        let id = [text("/apiVersion").unwrap_or_default(), kind, namespace, name];
        if by_name.insert(id, object).is_some_and(|other| other != object) {
            return Err(Error::from(format!(
                "the objects of the scenario: two different objects are {kind} {name:?} in {namespace}; give one another \
                 name, or change it in a `.step(…)`"
            )));
        }
    }
    Ok(())
}

/// Returns the kinds of the resources that the app declares and that the CRDs of the objects define, by plural.
fn declared_resources(app: &crate::App, objects: &[FromFile]) -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    for spec in app.specs() {
        let relations = std::iter::once(&spec.primary).chain(&spec.relations);
        known.extend(relations.map(|relation| (relation.kind.plural.clone(), relation.kind.kind.clone())));
    }
    let names = objects.iter().map(|file| &file.object["spec"]["names"]);
    let defined = names.filter_map(|names| Some((names["plural"].as_str()?, names["kind"].as_str()?)));
    known.extend(defined.map(|(plural, kind)| (plural.to_owned(), kind.to_owned())));
    known
}

/// Adds the kinds of the resources that a server has, by plural.
async fn add_served_resources(client: &Client, known: &mut BTreeMap<String, String>) -> Result<()> {
    let groups = client.request::<APIGroupList>(Request::get("/apis").body(Vec::new())?).await?;
    let versions = groups.groups.into_iter().flat_map(|group| group.versions);
    let mut paths = vec!["/api/v1".to_owned()];
    paths.extend(versions.map(|version| format!("/apis/{}", version.group_version)));
    for path in paths {
        let served = client.request::<APIResourceList>(Request::get(&path).body(Vec::new())?).await.context(path)?;
        known.extend(served.resources.into_iter().map(|resource| (resource.name, resource.kind)));
    }
    Ok(())
}

/// Returns the Leases that the replicas need.
pub(super) fn leases(scenario: &Scenario) -> manifest::ManagerOptions {
    let shards = scenario.slots.map(|slots| slots.count());
    let mut options = manifest::ManagerOptions::default();
    (options.leader_elect, options.shards) = (scenario.elects(), shards);
    options
}

/// Installs the CRDs of the app's kinds and its role.
async fn install(server: &ApiServer, app: &crate::App, cluster: &str, manager: manifest::ManagerOptions) -> Result<()> {
    let names = RbacOptions::new(app.name(), "default");
    let admin = Client::new(server.service(), "default");
    let permissions = app.permissions().remove(cluster).unwrap_or_default();
    app::create_namespaces(&admin, &permissions).await?;
    #[cfg(feature = "webhook")]
    app.install_on(server, &permissions, &names, cluster).await?;
    #[cfg(not(feature = "webhook"))]
    app::install(&admin, &app.definitions()?, &permissions, &names).await?;
    let lease = manifest::manager_rbac(&names, manager)?;
    let origin = || "generated manifests".to_owned();
    let lease = lease.into_iter().map(|manifest| FromFile { object: manifest.object, origin: origin() });
    app::apply(&admin, &lease.collect::<Vec<_>>()).await.context("the role for the Leases")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(namespace: &str, color: &str) -> FromFile {
        let metadata = serde_json::json!({ "name": "a", "namespace": namespace });
        let object = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "color": color },
        });
        FromFile { object, origin: String::new() }
    }

    #[test]
    fn overwritten_object_is_rejected() {
        let fine = [config("default", "red"), config("other", "blue"), config("default", "red")];
        check_distinct(&fine).unwrap();
        let error = check_distinct(&[config("default", "red"), config("default", "blue")]).unwrap_err().to_string();
        let start = r#"the objects of the scenario: two different objects are ConfigMap "a" in default; "#;
        assert!(error.starts_with(start), "{error}");
    }
}
