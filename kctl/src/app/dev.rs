//! `dev`: the app against an embedded API server with a simulated kubelet.

use std::time::Duration;

use kctl_apiserver::{ApiServer, Kubelet};
use kctl_runtime::{
    manager::View,
    manifest,
    reconcile::{Error, Result},
    spec::Role,
};
use kube::Client;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{
    App,
    cli::{DevOptions, Format, print},
    files, run,
};

/// How often it is looked whether anything is left to do.
const IDLE_POLL: Duration = Duration::from_millis(20);
/// So many quiet looks in a row are idle: an event may be on its way between server and cache.
const IDLE_POLLS: u32 = 5;

pub(super) async fn dev(app: App, options: DevOptions) -> Result<()> {
    run::log();
    let objects = files::read(&options.files)?;
    let world = World::start(&app).await?;
    eprintln!("{}: running on an embedded API server", app.name);
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

/// An app that runs on an API server of its own.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    kubelet: Kubelet,
    pub(crate) client: Client,
    pub(crate) view: View,
    _tasks: JoinSet<()>,
}

impl World {
    /// Starts the server, installs the definitions, runs the controllers.
    pub(crate) async fn start(app: &App) -> Result<Self> {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let mut tasks = JoinSet::new();
        tasks.spawn(server.controllers());
        let kubelet = server.kubelet();
        tasks.spawn(kubelet.clone().run());
        for crd in manifest::crds(&app.specs()) {
            let crds = kube::Api::all(client.clone());
            crds.create(&kube::api::PostParams::default(), &crd).await?;
        }
        let manager = app.manager(client.clone()).await?;
        let view = manager.view();
        tasks.spawn(manager.run(std::future::pending()));
        Ok(Self { server, kubelet, client, view, _tasks: tasks })
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
    async fn objects(&self, app: &App, applied: &[files::FromFile]) -> Result<Vec<Value>> {
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
        objects.sort_by_key(place);
        objects.dedup_by_key(|object| place(object));
        Ok(objects)
    }
}
