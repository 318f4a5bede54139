//! The servers as processes: how long until they are ready, what CPU time and memory they take.

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

/// A server that is not ready by then is broken.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// How often it is asked.
const ASK_EVERY: Duration = Duration::from_millis(1);
/// `sysconf(_SC_CLK_TCK)` on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A server that runs.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) target: Target,
    pub(crate) ready_after: Duration,
    pids: Vec<u32>,
    end: End,
}

enum End {
    Kill(Child),
    Down { script: PathBuf, folder: PathBuf },
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing can be done about a server that does not end.
        let _best_effort = match &mut self.end {
            End::Kill(child) => child.kill().and_then(|()| child.wait()),
            End::Down { script, folder } => Command::new(script).arg(folder).status(),
        };
    }
}

impl Server {
    /// The embedded server in a process of its own: this program again.
    pub(crate) async fn embedded(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join("embedded.kubeconfig");
        let start = Instant::now();
        let child = Command::new(std::env::current_exe()?).arg("serve").arg(&file).spawn()?;
        let pids = vec![child.id()];
        let end = End::Kill(child);
        while !file.exists() && start.elapsed() < READY_WITHIN {
            tokio::time::sleep(ASK_EVERY).await;
        }
        let target = ready(&file, start).await?;
        Ok(Self { name: "kctl", target, ready_after: start.elapsed(), pids, end })
    }

    /// kube-apiserver and etcd, by a folder with the scripts `up` and `down`.
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

    /// The CPU time of the server until now.
    pub(crate) fn cpu(&self) -> Result<f64, Failure> {
        self.pids.iter().map(|pid| cpu_of(*pid)).sum()
    }
}

async fn ready(kubeconfig: &Path, start: Instant) -> Result<Target, Failure> {
    loop {
        let asked = async {
            let target = Target::read(kubeconfig).await?;
            target.connect().await?.send(Method::GET, "/readyz", Bytes::new()).await?;
            Ok::<_, Failure>(target)
        };
        match asked.await {
            Ok(target) => return Ok(target),
            Err(error) if start.elapsed() > READY_WITHIN => return Err(error),
            Err(_) => tokio::time::sleep(ASK_EVERY).await,
        }
    }
}

/// User and system time in seconds; the two fields after the name, which may have spaces in it.
fn cpu_of(pid: u32) -> Result<f64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| -> Result<f64, Failure> { Ok(fields.get(at).ok_or("no such field")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

/// The CPU time of this process until now.
pub(crate) fn own_cpu() -> Result<f64, Failure> {
    cpu_of(std::process::id())
}

/// The memory of this process, in bytes.
pub(crate) fn own_memory() -> Result<usize, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? * 1024)
}
