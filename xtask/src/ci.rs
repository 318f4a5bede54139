//! The gate: runs steps, and reports their times and the tests that no step ran.
//!
//! A test that needs something which a machine may lack is `#[ignore]`d with a reason, and one step runs it. If the
//! machine lacks it, the step records that. An ignored test that ran in no step and has no such explanation is an
//! error.

use std::{
    path::PathBuf,
    process::Child,
    time::{Duration, Instant},
};

use crate::{
    Options, Result,
    ledger::Ledger,
    process::{Run, find, scratch, target},
    steps::Step,
};

/// Prefix of the `#[ignore]` reason of tests that no step of the gate runs.
const BY_HAND: &str = "takes an hour";

/// Something that a step needs and that this machine lacks.
struct LeftOut {
    /// The sentence that the gate prints.
    what: String,
    /// Parts of `#[ignore]` reasons. Tests whose reason contains one of them did not run because of this lack.
    reasons: &'static [&'static str],
}

/// State that the steps of a run share.
pub(crate) struct Gate {
    /// `true` if steps may install missing tools (`--install`).
    pub(crate) install: bool,
    /// `true` if missing tools are an error (`--strict`).
    is_strict: bool,
    /// Results of all tests so far.
    pub(crate) ledger: Ledger,
    /// Everything that was left out, without duplicates, in the order of the first report.
    left_out: Vec<LeftOut>,
}

impl Gate {
    /// Creates the state of a run, before any step.
    pub(crate) fn new(options: Options) -> Self {
        let Options { install, strict } = options;
        Self { install, is_strict: strict, ledger: Ledger::default(), left_out: Vec::new() }
    }

    /// Records that something was not checked, and which ignored tests did not run because of it. Several steps may
    /// report the same lack.
    pub(crate) fn leave_out(&mut self, what: impl Into<String>, reasons: &'static [&'static str]) {
        let what = what.into();
        if self.left_out.iter().any(|left_out| left_out.what == what) {
            return;
        }
        eprintln!("left out: {what}");
        self.left_out.push(LeftOut { what, reasons });
    }

    /// Prints everything that was left out.
    ///
    /// # Errors
    /// Something was left out, and `--strict` is set.
    pub(crate) fn finish(&self) -> Result {
        for left_out in &self.left_out {
            eprintln!("left out: {}", left_out.what);
        }
        if self.is_strict && !self.left_out.is_empty() {
            return Err("something was left out, and --strict (or STRICT=1) forbids it".into());
        }
        Ok(())
    }

    /// Returns the ignored tests that ran in no step without an explanation.
    ///
    /// Only a complete run can report them, because another step may run the test.
    fn forgotten(&self) -> Vec<String> {
        let is_explained = |reason: &str| {
            let mut reasons = self.left_out.iter().flat_map(|left_out| left_out.reasons);
            reason.starts_with(BY_HAND) || reasons.any(|part| reason.contains(part))
        };
        let never = self.ledger.never_ran().into_iter().filter(|(_test, reason)| !is_explained(reason));
        never.map(|(test, reason)| format!("  {test} ({reason})")).collect()
    }
}

/// Returns the CPU time of all child processes that have ended, or `None` on systems without `/proc`.
///
/// The difference of two results is the CPU time of the processes that ended between the two calls.
fn cpu_time() -> Option<Duration> {
    /// Linux reports CPU times to programs in hundredths of a second, independent of its internal clock.
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program name, in parentheses, may contain spaces.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u32 = fields.get(13)?.parse::<u32>().ok()? + fields.get(14)?.parse::<u32>().ok()?;
    Some(TICK * ticks)
}

/// The duration of a step.
struct StepTime {
    /// The step that ran, whether it succeeded or failed.
    step: Step,
    /// Elapsed time of the step.
    wall: Duration,
    /// CPU time of its processes. `None` on systems without `/proc`.
    cpu: Option<Duration>,
}

/// Prints a table of the steps with wall time and CPU time, which shows the step to speed up.
fn print_times(times: &[StepTime]) {
    eprintln!("\n{:<14}{:>10}{:>12}", "step", "seconds", "CPU seconds");
    for StepTime { step, wall, cpu } in times {
        let cpu = cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.as_secs().to_string());
        eprintln!("{:<14}{:>10}{cpu:>12}", step.name(), wall.as_secs());
    }
    let all: Duration = times.iter().map(|taken| taken.wall).sum();
    eprintln!("{:<14}{:>10}", "all", all.as_secs());
}

/// Steps in a separate process at low priority. They run when the other steps leave a processor idle.
///
/// Suites against servers spend half of their time waiting, and compilers can use that time. At normal priority, a
/// compiler would make tests miss their deadlines.
struct Beside {
    /// The running `cargo xtask ci`, which is killed on drop.
    process: Child,
    /// The file with standard output and standard error, so that they do not mix with those of the other steps.
    output: PathBuf,
}

impl Beside {
    /// Starts `cargo xtask ci STEPS` with a separate target directory, because Cargo locks the target directory while
    /// it compiles.
    fn start(steps: &[Step], options: Options) -> Result<Self> {
        let output = scratch("beside")?.join("output");
        let xtask = std::env::current_exe().map_err(|error| format!("failed to find the xtask program: {error}"))?;
        let run = match find("nice") {
            Some(nice) => Run::new(nice).args(["-n", "10"]).arg(xtask),
            None => Run::new(xtask),
        };
        let run = run.arg("ci").args(steps.iter().map(|step| step.name()));
        let run = run.args(options.install.then_some("--install")).args(options.strict.then_some("--strict"));
        let process = run.env("CARGO_TARGET_DIR", target().join("beside")).start(&output)?;
        eprintln!("\n=== beside the next steps: {}", names(steps));
        Ok(Self { process, output })
    }

    /// Returns `true` if the steps have already failed.
    fn has_failed(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(Some(status)) if !status.success())
    }

    /// Waits for the end of the steps, and prints their output.
    fn finish(mut self) -> Result {
        let status = self.process.wait().map_err(|error| format!("failed to wait for the steps beside: {error}"));
        let output = std::fs::read(&self.output).unwrap_or_default();
        eprintln!("\n=== beside the other steps:\n{}", String::from_utf8_lossy(&output));
        if status?.success() {
            Ok(())
        } else {
            Err(format!("a step beside failed: see above or {}", self.output.display()))
        }
    }
}

impl Drop for Beside {
    /// Kills the steps if they still run.
    fn drop(&mut self) {
        let _ended = self.process.kill();
    }
}

/// Returns the names of steps for the log.
fn names(steps: &[Step]) -> String {
    steps.iter().map(|step| step.name()).collect::<Vec<_>>().join(", ")
}

/// Runs the given steps, or all steps if `steps` is empty. The first failure ends the run. Times are printed in any
/// case.
///
/// The steps `beside` start after the one that compiles the tests, because all later steps leave a processor idle.
///
/// # Errors
/// A step failed, a test ran in no step of a complete run, or something was left out with `--strict`.
pub(crate) fn run(steps: &[Step], beside: &[Step], options: Options) -> Result {
    let is_beside = |step: &Step| beside.contains(step);
    let steps: Vec<Step> = if steps.is_empty() { Step::ALL.to_vec() } else { steps.to_vec() };
    let steps: Vec<Step> = steps.into_iter().filter(|step| !is_beside(step)).collect();
    let mut gate = Gate::new(options);
    let mut times = Vec::new();
    let mut result = Ok(());
    let mut running = None;
    for step in &steps {
        if running.is_none() && !beside.is_empty() && !matches!(step, Step::Fmt | Step::Test) {
            running = Some(Beside::start(beside, options)?);
        }
        if running.as_mut().is_some_and(Beside::has_failed) {
            break;
        }
        eprintln!("\n=== {}", step.name());
        let (begun, cpu_before) = (Instant::now(), cpu_time());
        result = step.run(&mut gate).map_err(|error| format!("{}: {error}", step.name()));
        let cpu = cpu_time().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
        times.push(StepTime { step: *step, wall: begun.elapsed(), cpu });
        if result.is_err() {
            break;
        }
    }
    print_times(&times);
    result?;
    if running.is_none() && !beside.is_empty() {
        running = Some(Beside::start(beside, options)?);
    }
    if let Some(running) = running {
        running.finish()?;
    }
    let forgotten = gate.forgotten();
    let has_run = |step: &Step| steps.contains(step) || is_beside(step);
    if Step::ALL.iter().all(has_run) && !forgotten.is_empty() {
        return Err(format!("these tests were ignored and no step ran them:\n{}", forgotten.join("\n")));
    }
    gate.finish()?;
    let n_skipped = gate.ledger.never_ran().len();
    eprintln!("tests: {} passed, {} failed, {n_skipped} skipped", gate.ledger.n_passed(), gate.ledger.n_failed());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_tests_need_an_explanation() {
        let mut gate = Gate::new(Options::default());
        gate.ledger.read("     Running go.rs (target/debug/deps/interop-0)");
        gate.ledger.read("test a ... ignored, needs Go: cargo xtask interop");
        gate.ledger.read("test b ... ignored, needs KUBECONFIG: cargo xtask real-server");
        gate.ledger.read("test c ... ignored, takes an hour");
        gate.leave_out("Go is not installed", &["needs Go"]);
        assert_eq!(gate.forgotten(), ["  interop: b (needs KUBECONFIG: cargo xtask real-server)"]);
    }
}
