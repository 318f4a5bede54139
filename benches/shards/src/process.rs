//! Replica processes: start, signals, memory and CPU time.
//!
//! Memory and CPU are read from `/proc`, so the benchmark runs only on Linux.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::Failure;

/// `sysconf(_SC_CLK_TCK)` on Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Longest wait for a replica to end after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between two checks of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The parts of a command line that all replicas of a run share.
#[derive(Clone)]
pub(crate) struct Program {
    /// The binary.
    pub(crate) path: PathBuf,
    /// The folder of logs and journals.
    pub(crate) folder: PathBuf,
    /// Arguments after `run`.
    pub(crate) arguments: Vec<String>,
    /// Environment variables.
    pub(crate) variables: Vec<(&'static str, &'static str)>,
}

/// The memory of a process, in MiB.
#[derive(Clone, Copy, Default)]
pub(crate) struct Memory {
    /// All resident pages.
    pub(crate) rss: f64,
    /// The pages of heap and stacks (`RssAnon`), without pages of files such as the program.
    pub(crate) anonymous: f64,
    /// Proportional set size: a page that `n` processes share counts as `1 / n`.
    pub(crate) pss: f64,
    /// Peak number of resident pages (`VmHWM`).
    pub(crate) peak: f64,
}

/// A running replica. Dropping it kills it.
pub(crate) struct Replica {
    /// The user of its requests and its identity in Leases, unique in the run.
    pub(crate) user: String,
    /// The file to which it appends its reconciles.
    pub(crate) journal: PathBuf,
    child: Child,
}

impl Replica {
    /// Starts a replica as this user. Its log goes to `USER.log` in the folder of the program.
    ///
    /// It impersonates the user, so that the API server's audit log distinguishes replicas. It is also an
    /// administrator, because RBAC is not part of the measurement.
    pub(crate) fn start(program: &Program, user: &str) -> Result<Self, Failure> {
        let log = File::create(program.folder.join(format!("{user}.log")))?;
        let journal = program.folder.join(format!("{user}.journal"));
        let mut command = Command::new(&program.path);
        command.arg("run").args(&program.arguments);
        command.args(["--as", user, "--as-group", "system:masters", "--leader-election-identity", user]);
        command.envs(program.variables.iter().copied()).env("BENCH_JOURNAL", &journal);
        command.stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().map_err(|error| format!("{}: {error}", program.path.display()))?;
        Ok(Self { user: user.into(), journal, child })
    }

    /// Sends a signal, such as `TERM`.
    ///
    /// # Errors
    /// The process has ended.
    pub(crate) fn signal(&self, name: &str) -> Result<(), Failure> {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status()?;
        if sent.success() { Ok(()) } else { Err(format!("failed to send SIG{name} to {}", self.user).into()) }
    }

    /// Returns `true` once the process has ended.
    pub(crate) fn has_ended(&mut self) -> Result<bool, Failure> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits until the process ends by itself.
    ///
    /// # Errors
    /// The process still runs after [`EXIT_TIMEOUT`], which is longer than the default termination grace period of a
    /// Pod.
    pub(crate) async fn wait_for_exit(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        while !self.has_ended()? {
            if start.elapsed() > EXIT_TIMEOUT {
                return Err(format!("{} did not end within {EXIT_TIMEOUT:?}", self.user).into());
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Returns the memory of the process.
    ///
    /// # Errors
    /// The process has ended, or the kernel has no `smaps_rollup` (before Linux 4.14).
    pub(crate) fn memory(&self) -> Result<Memory, Failure> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", self.child.id()));
        let (status, rollup) = (read("status")?, read("smaps_rollup")?);
        let peak = mib(&status, "VmHWM:")?;
        let (rss, anonymous) = (mib(&status, "VmRSS:")?, mib(&status, "RssAnon:")?);
        Ok(Memory { rss, anonymous, pss: mib(&rollup, "Pss:")?, peak })
    }

    /// Returns the CPU time of the process so far, in seconds.
    pub(crate) fn cpu(&self) -> Result<f64, Failure> {
        cpu_of(self.child.id())
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Returns the value of a line such as `VmRSS:  123 kB`, in MiB.
fn mib(text: &str, field: &str) -> Result<f64, Failure> {
    let line = text.lines().find_map(|line| line.strip_prefix(field)).ok_or(format!("no {field}"))?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

/// Returns the user and system time of a process in seconds. Fields are counted from the closing parenthesis of the
/// name, because the name may contain spaces.
pub(crate) fn cpu_of(pid: u32) -> Result<f64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| -> Result<f64, Failure> { Ok(fields.get(at).ok_or("no such field")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

/// Returns the arguments for a Lease duration. The other times keep the proportions of the defaults of 15 s, 10 s and 2
/// s.
pub(crate) fn lease_times(seconds: u64) -> Vec<String> {
    let [renew, retry] = [seconds * 2_000 / 3, seconds * 2_000 / 15];
    let times = format!(
        "--leader-elect-lease-duration {seconds}s --leader-elect-renew-deadline {renew}ms --leader-elect-retry-period {retry}ms"
    );
    times.split(' ').map(ToOwned::to_owned).collect()
}

/// Returns the load average of the last minute. It is printed next to the results, because other processes may use the
/// machine.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

/// Returns the path of a program in the folder of this one.
pub(crate) fn sibling_program(name: &str) -> Result<PathBuf, Failure> {
    let path = std::env::current_exe()?.with_file_name(name);
    if Path::new(&path).exists() {
        Ok(path)
    } else {
        Err(format!("{} does not exist: build it", path.display()).into())
    }
}
