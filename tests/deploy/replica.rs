//! One replica of a rolling update, as a program: keeps a `Secret` for each `ConfigMap` that has a state.
//!
//! It records in a journal, which all replicas share, when it begins and ends to reconcile a key. The state `block`
//! blocks the thread. The variable `SHARDED` makes it a sharded app, whose chart differs.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    time::SystemTime,
};

use kctl::{app::ShardBy, prelude::*};

#[controller(of = ConfigMap, owns = Secret(apply), concurrency = 8, converged = is_done)]
struct ReplicaConfigs {
    replica: String,
    journal: File,
}

impl ReplicaConfigs {
    /// Appends a line with a single write, so that the lines of all processes are in chronological order.
    fn note(&self, what: &str, key: &str, state: &str) -> Result<()> {
        let now = SystemTime::UNIX_EPOCH.elapsed()?.as_micros();
        Ok((&self.journal).write_all(format!("{now} {} {what} {key} {state}\n", self.replica).as_bytes())?)
    }
}

fn state(config: &ConfigMap) -> Option<&String> {
    config.data.as_ref()?.get("state")
}

fn is_done(config: &ConfigMap, cx: &Context<ReplicaConfigs>) -> bool {
    let Some(state) = state(config) else { return true };
    let owned = cx.owned::<Secret>();
    let has = |secret: &Secret| secret.data.as_ref().is_some_and(|data| data["state"].0 == state.as_bytes());
    owned.iter().any(|secret| has(&secret))
}

impl Reconcile for ReplicaConfigs {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let Some(state) = state(&config) else { return Ok(Action::await_change()) };
        let name = config.name_any();
        self.note("begin", &name, state)?;
        if state == "block" {
            #[expect(clippy::disallowed_methods, reason = "what users do by mistake: nothing can cut it off")]
            std::thread::sleep(Duration::from_secs(3_600));
        }
        // Takes as long as a call to an external system.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let secret = kctl::json!({ "metadata": { "name": &name }, "stringData": { "state": state } });
        let written = cx.owned::<Secret>().apply(secret).await;
        self.note("end", &name, state)?;
        written?;
        Ok(Action::await_change())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let app = App::new("rolling").controller_with(|_env| async {
        let journal = OpenOptions::new().append(true).create(true).open(std::env::var("JOURNAL")?)?;
        Ok(ReplicaConfigs { replica: std::env::var("REPLICA")?, journal })
    });
    let app = if std::env::var_os("SHARDED").is_some() { app.sharded(8, ShardBy::Object) } else { app };
    app.main().await
}
