//! Server processes: time until ready, CPU time and memory.
//!
//! CPU and memory are read from `/proc`, so the benchmark runs only on Linux.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use bytes::Bytes;
use http::Method;
use tokio::time::Instant;

use crate::{Failure, client::Target};

/// Longest wait until a server is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// Interval between two checks for readiness.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// `sysconf(_SC_CLK_TCK)` on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running server. Dropping it stops it.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) target: Target,
    /// Time from the start of the process until `/readyz` succeeds.
    pub(crate) ready_after: Duration,
    /// Its processes: the embedded server, or kube-apiserver and etcd.
    pids: Vec<u32>,
    end: End,
}

/// The way to stop a server.
enum End {
    /// Kill the process.
    Kill(Child),
    /// Run the script `down` with the server's folder.
    Down { script: PathBuf, folder: PathBuf },
}

/// Stops the server even if a benchmark fails, so that it does not slow down the next one.
impl Drop for Server {
    fn drop(&mut self) {
        // A failure to stop a server can't be handled here.
        let _best_effort = match &mut self.end {
            End::Kill(child) => child.kill().and_then(|()| child.wait()),
            End::Down { script, folder } => Command::new(script).arg(folder).status(),
        };
    }
}

impl Server {
    /// Starts the embedded server in a separate process of this program.
    ///
    /// This needs no installed `kctl`, and the CPU time of the process can be read as for the real server.
    pub(crate) async fn embedded(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join("embedded.kubeconfig");
        let start = Instant::now();
        let child = Command::new(std::env::current_exe()?).arg("serve").arg(&file).spawn()?;
        let pids = vec![child.id()];
        let end = End::Kill(child);
        while !file.exists() && start.elapsed() < READY_TIMEOUT {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let target = ready(&file, start).await?;
        Ok(Self { name: "kctl", target, ready_after: start.elapsed(), pids, end })
    }

    /// Starts kube-apiserver and etcd with the script `up` of a folder.
    ///
    /// The time until ready includes etcd and the script, because a user waits for both.
    pub(crate) async fn real(scripts: &Path, folder: &Path) -> Result<Self, Failure> {
        let folder = folder.join("real");
        let start = Instant::now();
        let up = Command::new(scripts.join("up")).arg(&folder).output()?;
        if !up.status.success() {
            return Err(format!("{}: {}", scripts.display(), String::from_utf8_lossy(&up.stderr)).into());
        }
        let end = End::Down { script: scripts.join("down"), folder: folder.clone() };
        let target = ready(&folder.join("kubeconfig"), start).await?;
        let pid = |name: &str| -> Result<u32, Failure> { Ok(fs::read_to_string(folder.join(name))?.trim().parse()?) };
        let pids = vec![pid("apiserver.pid")?, pid("etcd.pid")?];
        Ok(Self { name: "kube-apiserver and etcd", target, ready_after: start.elapsed(), pids, end })
    }

    /// Returns the CPU time of the server so far, in seconds.
    pub(crate) fn cpu(&self) -> Result<f64, Failure> {
        self.pids.iter().map(|pid| cpu_of(*pid)).sum()
    }
}

/// Waits until the kubeconfig of a server can be read and `/readyz` succeeds.
///
/// # Errors
/// The server is not ready within [`READY_TIMEOUT`]. The result is the error of the last attempt.
async fn ready(kubeconfig: &Path, start: Instant) -> Result<Target, Failure> {
    loop {
        let attempt = async {
            let target = Target::read(kubeconfig).await?;
            target.connect().await?.send(Method::GET, "/readyz", Bytes::new()).await?;
            Ok::<_, Failure>(target)
        };
        match attempt.await {
            Ok(target) => return Ok(target),
            Err(error) if start.elapsed() > READY_TIMEOUT => return Err(error),
            Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
}

/// Returns the user and system time of a process in seconds. Fields are counted from the closing parenthesis of the
/// name, because the name may contain spaces.
fn cpu_of(pid: u32) -> Result<f64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| -> Result<f64, Failure> { Ok(fields.get(at).ok_or("no such field")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

/// Returns the CPU time of this process so far, in seconds.
pub(crate) fn own_cpu() -> Result<f64, Failure> {
    cpu_of(std::process::id())
}

/// Returns the resident memory of this process in bytes.
pub(crate) fn own_memory() -> Result<usize, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? * 1024)
}
