//! Compares several active replicas with a single one: costs, handover times, and a chaos run on a real API server.
//!
//! ```text
//! cargo xtask bench-shards
//! cargo xtask bench-shards --envtest --rest-only
//! cargo xtask chaos --minutes 5
//! ```
//!
//! `figures` compares costs, and `chaos` looks for writes by a replica that does not own the key. Both start servers
//! and replicas as processes, and stop them at the end and on Ctrl-C.
//!
//! | file | concept |
//! |---|---|
//! | `figures` | comparison of one, two and three replicas |
//! | `changes` | changes of primaries at a constant rate, and the times until they are reconciled |
//! | `rest` | requests for Leases and CPU of a server with idle replicas, and of the same server without them |
//! | `chaos`, `audit` | replicas that are killed and frozen, and the check of the API server's audit log |
//! | `division` | the slot of a key, for the audit |
//! | `stage` | a server with objects, and the replicas that reconcile them |
//! | `journal` | the reconciles of all replicas |
//! | `process`, `server` | replica processes with memory, CPU and signals; the API server |
//! | `podset` | a separate program: the operator of the chaos run; the measured one is the package `shards-replica` |
//!
//! `benches/README.md` has the results. All processes share the machine, so only ratios within one run mean something.

mod audit;
mod changes;
mod chaos;
mod division;
mod figures;
mod journal;
mod process;
mod rest;
mod server;
mod stage;

use std::path::PathBuf;

use clap::Parser;

use self::division::Division;

/// Any error. It ends the run, and dropping the values of the run kills all processes.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Measures several active replicas and compares them with one
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Figures(figures::FigureOptions),
    Chaos(chaos::ChaosOptions),
    /// Checks the audit log of an earlier chaos run, such as one that did not end well
    Audit {
        /// The file `audit.log` of the run
        log: PathBuf,
        /// Number of slots
        #[arg(long, default_value_t = 8)]
        shards: u32,
        /// The part of a key that decided its slot
        #[arg(long, value_enum, default_value_t = Division::Object)]
        shard_by: Division,
    },
    /// The embedded API server, which writes this kubeconfig
    #[command(hide = true)]
    Serve {
        kubeconfig: PathBuf,
    },
}

/// Runs on one thread, like `kctl apiserver`, both as server and as client, because they share the cores with the
/// replicas.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let run = async {
        match Cli::parse().command {
            Command::Figures(options) => figures::run(&options).await,
            Command::Chaos(options) => chaos::run(&options).await,
            Command::Audit { log, shards, shard_by } => chaos::audit(&log, shards, shard_by).map(|_verdict| ()),
            Command::Serve { kubeconfig } => server::serve(&kubeconfig).await,
        }
    };
    tokio::select! {
        ended = run => ended,
        // Dropping the future of the run ends its processes.
        _interrupted = tokio::signal::ctrl_c() => Err("interrupted".into()),
        received = wait_for_termination() => received.and_then(|()| Err("terminated".into())),
    }
}

/// Waits for SIGTERM.
#[cfg(unix)]
async fn wait_for_termination() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}

/// Never returns: only Unix has SIGTERM. The benchmark needs Linux, but the workspace compiles on other systems.
#[cfg(not(unix))]
async fn wait_for_termination() -> Result<(), Failure> {
    std::future::pending().await
}
