//! Compares the embedded API server with kube-apiserver and etcd: the same client, the same cores, one run.
//!
//! ```text
//! cargo run --release -p apiserver-bench -- tls --envtest tests/envtest
//! cargo run --release -p apiserver-bench -- in-process
//! cargo run --release -p apiserver-bench -- memory
//! ```
//!
//! `guide/performance.md` has the results, and `benches/README.md` compares allocators and threads. The servers run one
//! after the other. Client and server share the machine, so rates are lower than with separate machines, and only their
//! ratio is meaningful.

mod client;
mod in_process;
mod lag;
mod load;
mod objects;
mod process;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Parser;
use kctl_apiserver::{ApiServer, ServeOptions};

use load::Figure;
use process::Server;

/// mimalloc, as in the `kctl` tool.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Any error. The first error ends the benchmark.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Measures the embedded API server, and a kube-apiserver in the same run
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Over TLS: the embedded server, and the real one when there is one
    Tls {
        /// A folder with the scripts `up DIR` and `down DIR`, which start and stop kube-apiserver and etcd
        #[arg(long, env = "ENVTEST")]
        envtest: Option<PathBuf>,
        /// The folder of the servers' files
        #[arg(long, default_value = "target/apiserver-bench")]
        folder: PathBuf,
        /// Seconds of each load
        #[arg(long, default_value_t = 5)]
        seconds: u64,
    },
    /// Without a socket: patches, applies and watchers
    InProcess {
        /// Seconds of each load
        #[arg(long, default_value_t = 5)]
        seconds: u64,
    },
    /// The memory of 100,000 Pods
    Memory,
    /// Sends `n` requests of one sort and nothing else; for profilers
    #[command(hide = true)]
    Repeat {
        #[arg(value_enum)]
        what: in_process::Repeated,
        n: u32,
    },
    /// The embedded server alone, which writes this kubeconfig; for the others, and for profilers
    #[command(hide = true)]
    Serve { kubeconfig: PathBuf },
}

fn main() -> Result<(), Failure> {
    let command = Options::parse().command;
    // One thread for the server, as in `kctl`, and one for the client, so that the client takes less of the shared
    // cores.
    let mut runtime = match command {
        Command::Tls { .. } | Command::Serve { .. } => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.enable_all().build()?.block_on(run(command))
}

/// Runs a command and prints its results.
async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Tls { envtest, folder, seconds } => {
            let each = Duration::from_secs(seconds);
            if folder.exists() {
                std::fs::remove_dir_all(&folder)?;
            }
            std::fs::create_dir_all(&folder)?;
            let own = tls(Server::embedded(&folder).await?, each).await?;
            let real = match envtest {
                Some(scripts) => Some(tls(Server::real(&scripts, &folder).await?, each).await?),
                None => None,
            };
            print(&own, real.as_deref());
        }
        Command::InProcess { seconds } => print(&in_process::all(Duration::from_secs(seconds)).await?, None),
        Command::Memory => print(&in_process::memory().await?, None),
        Command::Repeat { what, n } => in_process::repeat(what, n).await?,
        Command::Serve { kubeconfig } => serve(&kubeconfig).await?,
    }
    Ok(())
}

/// Measures one server over TLS. The server is dropped at the end, which frees the machine for the next one.
async fn tls(server: Server, each: Duration) -> Result<Vec<Figure>, Failure> {
    eprintln!("{} is ready", server.name);
    load::all(&server, each).await
}

/// Serves the embedded API server with its controllers. This is the process that the benchmark measures.
async fn serve(kubeconfig: &Path) -> Result<(), Failure> {
    let server = ApiServer::on_system_time();
    let listening = server.listen(ServeOptions::default()).await?;
    listening.write_kubeconfig(kubeconfig)?;
    tokio::spawn(server.controllers());
    Ok(listening.serve().await?)
}

/// Prints a Markdown table, with a column for the real server if there is one.
///
/// The ratio is kctl's value divided by the real server's. Above 1 is better for rates, below 1 for times and CPU.
#[expect(clippy::print_stdout, reason = "what the program is for")]
fn print(own: &[Figure], real: Option<&[Figure]>) {
    let Some(real) = real else {
        println!("| | | |\n|---|---|---|");
        for figure in own {
            println!("| {} | {:.1} | {} |", figure.what, figure.value, figure.unit);
        }
        return;
    };
    println!("| | kctl | kube-apiserver and etcd | | kctl / real |\n|---|---|---|---|---|");
    for (own, real) in own.iter().zip(real) {
        let ratio = own.value / real.value;
        println!("| {} | {:.2} | {:.2} | {} | {ratio:.2} |", own.what, own.value, real.value, own.unit);
    }
}
