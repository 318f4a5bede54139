//! `dev`: the app against an embedded API server with a simulated kubelet.

use std::{sync::Arc, time::Duration};

use kctl_apiserver::{ApiServer, Kubelet, RequestRecord, ServeOptions, User};
use kctl_runtime::{
    manager::View,
    manifest::{self, RbacOptions},
    reconcile::{Error, Result, ResultExt},
    spec::Role,
};
use kube::Client;
use serde_json::Value;
use tokio::task::JoinSet;
use tower::Layer;

use super::{
    App, Grants,
    cli::{DevOptions, Format, print},
    files::{self, FromFile},
    run,
};
use crate::testing::Refusals;

/// How often it is looked whether anything is left to do.
const IDLE_POLL: Duration = Duration::from_millis(20);
/// So many quiet looks in a row are idle: an event may be on its way between server and cache.
const IDLE_POLLS: u32 = 5;

pub(super) async fn dev(app: App, options: DevOptions) -> Result<()> {
    run::log(run::Times::Hidden);
    let objects = files::read(&options.files)?;
    // People look at ages; a run that ends by itself is repeatable.
    let server = if options.until_idle { ApiServer::new() } else { ApiServer::on_system_time() };
    if let Some(folder) = &options.data {
        server.keep_in(folder).context(folder.display())?;
    }
    let served = options.port.is_some() || options.write_kubeconfig.is_some() || !options.until_idle;
    let mut tasks = JoinSet::new();
    if served {
        tasks.spawn(serve(&app, &server, &options).await?);
    }
    #[cfg(feature = "webhook")]
    if let Some(webhook) = app.webhook(&options.webhook).await? {
        tasks.spawn(async move {
            if let Err(error) = webhook.serve(std::future::pending()).await {
                tracing::error!(%error, "the interpreters are no longer served");
            }
        });
    }
    print_writes(&app, &server);
    let world = World::on(server, &app).await?;
    files::apply(&world.client, &objects).await?;
    if !options.until_idle {
        run::stopped().await;
        return Ok(());
    }
    tokio::select! {
        idle = world.idle(options.timeout) => idle?,
        () = run::stopped() => std::process::exit(130),
    }
    let printed = world.objects(&app, &objects).await?;
    match options.output {
        Format::Json => print(&format!("{}\n", serde_json::to_string_pretty(&printed)?)),
        Format::Yaml => print(&manifest::yaml(&printed)?),
    }
}

async fn serve(app: &App, server: &ApiServer, options: &DevOptions) -> Result<impl Future<Output = ()> + use<>> {
    let port = options.port.unwrap_or(0);
    let serve = ServeOptions { port, ..ServeOptions::default() };
    let listening = server.listen(serve).await.context(format!("port {port}"))?;
    let file = options.write_kubeconfig.clone();
    if let Some(file) = &file {
        listening.write_kubeconfig(file).context(file.display())?;
    }
    let hint = match &file {
        Some(file) => format!("; in another terminal: export KUBECONFIG={}", file.display()),
        None => "; with --write-kubeconfig FILE for kubectl".into(),
    };
    eprintln!("{}: serving {}{hint}", app.name, listening.url());
    Ok(async move {
        if let Err(error) = listening.serve().await {
            tracing::error!(%error, "the API server is no longer served");
        }
    })
}

/// A line for each thing that a controller does.
fn print_writes(app: &App, server: &ApiServer) {
    let (name, user) = (app.name.clone(), user_of(app).name);
    server.observe(move |request| {
        if request.user != user || ["get", "list", "watch"].contains(&request.verb) {
            return;
        }
        let RequestRecord { verb, resource, namespace, name: object, code, .. } = request;
        let place = if namespace.is_empty() { object.clone() } else { format!("{namespace}/{object}") };
        let refused = if *code >= 400 { format!(": {code}") } else { String::new() };
        eprintln!("{name}: {verb} {resource} {place}{refused}");
    });
}

/// The service account of the generated manifests.
fn user_of(app: &App) -> User {
    User {
        name: format!("system:serviceaccount:default:{}", app.name),
        groups: vec![
            "system:serviceaccounts".into(),
            "system:serviceaccounts:default".into(),
            "system:authenticated".into(),
        ],
    }
}

/// Installs the definitions and the app's role on a server. Returns a client of the app.
async fn as_role(server: &ApiServer, app: &App, role: &Grants, cluster: &str) -> Result<(Client, Refusals)> {
    let grants = role.get(cluster).cloned().unwrap_or_default();
    let names = RbacOptions { name: app.name.clone(), namespace: "default".into(), ..RbacOptions::default() };
    let admin = Client::new(server.service(), "default");
    files::install(&admin, &app.kinds(), &grants, &names).await?;
    let refusals = Refusals::beyond(grants);
    Ok((Client::new(refusals.layer(server.service_as(user_of(app))), "default"), refusals))
}

/// An app that runs on an API server of its own.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    kubelet: Kubelet,
    pub(crate) client: Client,
    /// Administrators of the other clusters, by name.
    pub(crate) others: Vec<(String, Client)>,
    pub(crate) view: View,
    /// What the app's role did not allow, on each cluster.
    pub(crate) refusals: Vec<Refusals>,
    _tasks: JoinSet<()>,
}

impl World {
    /// Starts a server, installs the definitions, runs the controllers.
    pub(crate) async fn start(app: &App) -> Result<Self> {
        Self::on(ApiServer::new(), app).await
    }

    /// The same on a server that is there. The app runs as its generated role, not as an administrator: what it does not
    /// declare is refused here as in a cluster.
    pub(crate) async fn on(server: ApiServer, app: &App) -> Result<Self> {
        Self::with_role(server, app, &app.grants()).await
    }

    /// The same with other permissions, by cluster.
    pub(crate) async fn with_role(server: ApiServer, app: &App, role: &Grants) -> Result<Self> {
        let client = Client::new(server.service(), "default");
        let mut tasks = JoinSet::new();
        tasks.spawn(server.controllers());
        let kubelet = server.kubelet();
        tasks.spawn(kubelet.clone().run());
        let clock = server.clone();
        let (own, refusals) = as_role(&server, app, role, "").await?;
        let mut refusals = vec![refusals];
        let mut clusters = Vec::new();
        let mut others = Vec::new();
        for (name, _) in &app.clusters {
            let other = ApiServer::new();
            let (there, refused) = as_role(&other, app, role, name).await?;
            refusals.push(refused);
            tasks.spawn(other.controllers());
            clusters.push((name.clone(), there));
            others.push((name.clone(), Client::new(other.service(), "default")));
        }
        let manager = app.manager_at(own, clusters, Arc::new(move || clock.now())).await?;
        let view = manager.view();
        tasks.spawn(async move {
            if let Err(error) = manager.run(std::future::pending()).await {
                tracing::error!(%error, "the controllers no longer run");
            }
        });
        Ok(Self { server, kubelet, client, others, view, refusals, _tasks: tasks })
    }

    /// Returns once nothing is left to do.
    pub(crate) async fn idle(&self, timeout: Duration) -> Result<()> {
        let quiet = async {
            let mut quiet = 0;
            while quiet < IDLE_POLLS {
                tokio::time::sleep(IDLE_POLL).await;
                let idle = self.view.is_idle() && self.simulation_is_idle();
                quiet = if idle { quiet + 1 } else { 0 };
            }
        };
        let timed = tokio::time::timeout(timeout, quiet).await;
        timed.map_err(|_elapsed| Error::from(self.busy(timeout)))
    }

    /// Nothing is left to collect, and no pod waits for something that will happen.
    fn simulation_is_idle(&self) -> bool {
        let seen = self.kubelet.seen() >= self.server.revision_of("", "pods");
        seen && self.kubelet.pending() == 0 && self.server.pending() == 0
    }

    fn busy(&self, timeout: Duration) -> String {
        let mut text = format!("not idle after {timeout:?}");
        for source in self.view.sources() {
            if let Some(failure) = source.health().failure {
                text += &format!("\n  {failure}");
            }
        }
        for (spec, queue) in self.view.controllers() {
            for (key, failures) in queue.failing() {
                text += &format!("\n  {} {key}: failed {failures} times in a row", spec.name);
            }
        }
        text
    }

    /// The applied objects and those of kinds that controllers own, by kind, namespace and name.
    async fn objects(&self, app: &App, applied: &[FromFile]) -> Result<Vec<Value>> {
        let mut objects = Vec::new();
        for file in applied {
            objects.push(files::get(&self.client, &file.object).await?);
        }
        let owned: Vec<_> = app
            .specs()
            .into_iter()
            .flat_map(|spec| spec.relations)
            .filter(|relation| relation.role == Role::Owned)
            .map(|relation| relation.kind)
            .collect();
        let sources = self.view.sources().iter().filter(|source| owned.contains(&source.identity().kind));
        for object in sources.flat_map(|source| source.store().all()) {
            objects.push(serde_json::from_str(object.json())?);
        }
        let place = |object: &Value| {
            let field = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            [field("/kind"), field("/metadata/namespace"), field("/metadata/name"), field("/metadata/uid")]
        };
        for object in &mut objects {
            // Who wrote which field is for machines; kubectl leaves it out as well.
            object["metadata"].as_object_mut().map(|metadata| metadata.remove("managedFields"));
        }
        objects.sort_by_key(place);
        objects.dedup_by_key(|object| place(object));
        Ok(objects)
    }
}
