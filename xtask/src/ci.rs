//! The gate: runs steps, and reports their times and the tests that no step ran.
//!
//! Each step checks one thing and works alone. A step whose tool is missing reports that, and succeeds unless
//! `--strict` is set.

use std::{
    path::PathBuf,
    process::Child,
    time::{Duration, Instant},
};

use clap::ValueEnum;

use crate::{
    Options, Result, features,
    gate::Gate,
    image, new_project, packages,
    process::{Run, find, scratch, target},
    real_server, shared_build, steps,
};

/// A step of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// The formatting.
    Fmt,
    /// All tests that need nothing but this repository.
    Test,
    /// Random requests to the embedded API server.
    Fuzz,
    /// The output of kubectl.
    Kubectl,
    /// The page of `dev`.
    Browser,
    /// Clients in other languages.
    Interop,
    /// Charts of the examples, installed by Helm.
    Helm,
    /// A project from `kctl new`.
    NewProject,
    /// Lints.
    Clippy,
    /// Lints with each feature alone, and with all.
    Features,
    /// Rustdoc.
    Docs,
    /// The book.
    Book,
    /// The spelling.
    Spelling,
    /// GitHub's workflows.
    Workflows,
    /// Licences and sources of dependencies.
    Deny,
    /// The packages of a release, and a project that is built from them.
    Packages,
    /// The container image of a project from `kctl new`.
    Image,
    /// The embedded API server compared with a real kube-apiserver.
    Conformance,
    /// Operators and clients on a real kube-apiserver.
    RealServer,
    /// Programs with only their generated roles on a real kube-apiserver.
    Roles,
}

impl Step {
    /// All steps, in the order of `cargo xtask ci`: formatting, tests, lints, docs, and real servers last.
    pub(crate) const ALL: [Self; 20] = [
        Self::Fmt,
        Self::Test,
        Self::Fuzz,
        Self::Kubectl,
        Self::Browser,
        Self::Interop,
        Self::Helm,
        Self::NewProject,
        Self::Clippy,
        Self::Features,
        Self::Docs,
        Self::Book,
        Self::Spelling,
        Self::Workflows,
        Self::Deny,
        Self::Packages,
        Self::Image,
        Self::Conformance,
        Self::RealServer,
        Self::Roles,
    ];

    /// Returns the name of the step on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Test => "test",
            Self::Fuzz => "fuzz",
            Self::Kubectl => "kubectl",
            Self::Browser => "browser",
            Self::Interop => "interop",
            Self::Helm => "helm",
            Self::NewProject => "new-project",
            Self::Clippy => "clippy",
            Self::Features => "features",
            Self::Docs => "docs",
            Self::Book => "book",
            Self::Spelling => "spelling",
            Self::Workflows => "workflows",
            Self::Deny => "deny",
            Self::Packages => "packages",
            Self::Image => "image",
            Self::Conformance => "conformance",
            Self::RealServer => "real-server",
            Self::Roles => "roles",
        }
    }

    /// Runs the step.
    ///
    /// # Errors
    /// The check failed. The error contains the command that failed.
    pub(crate) fn run(self, gate: &mut Gate) -> Result {
        match self {
            Self::Fmt => steps::fmt(),
            Self::Test => steps::test(gate, &[]),
            Self::Fuzz => steps::fuzz(gate, steps::FUZZ_REQUESTS),
            Self::Kubectl => steps::kubectl(gate),
            Self::Browser => steps::browser(gate),
            Self::Interop => steps::interop(gate),
            Self::Helm => steps::helm(gate),
            Self::NewProject => new_project::run(gate),
            Self::Clippy => steps::clippy(),
            Self::Features => features::check(features::Extent::Gate),
            Self::Docs => steps::docs(),
            Self::Book => steps::book(gate),
            Self::Spelling => steps::spelling(gate),
            Self::Workflows => steps::workflows(gate),
            Self::Deny => steps::deny(gate),
            Self::Packages => packages::check(packages::Builds::Together),
            Self::Image => image::run(gate),
            Self::Conformance => real_server::conformance(gate),
            Self::RealServer => real_server::suites(gate, None),
            Self::Roles => real_server::roles(gate, None),
        }
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
    /// The name of the step that ran, whether it succeeded or failed.
    step: &'static str,
    /// Elapsed time of the step.
    wall: Duration,
    /// CPU time of its processes. `None` on systems without `/proc`.
    cpu: Option<Duration>,
}

/// The table of the steps that have run, with wall time and CPU time. It shows the step to speed up.
struct Times {
    steps: Vec<StepTime>,
    /// The start of the run.
    begun: Instant,
}

impl Times {
    /// Runs a step, and adds its time.
    fn measure(&mut self, step: &'static str, run: impl FnOnce() -> Result) -> Result {
        eprintln!("\n=== {step} ({} s after the start)", self.begun.elapsed().as_secs());
        let (begun, cpu_before) = (Instant::now(), cpu_time());
        let result = run().map_err(|error| format!("{step}: {error}"));
        let cpu = cpu_time().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
        self.steps.push(StepTime { step, wall: begun.elapsed(), cpu });
        result
    }

    fn print(&self) {
        eprintln!("\n{:<14}{:>10}{:>12}", "step", "seconds", "CPU seconds");
        for StepTime { step, wall, cpu } in &self.steps {
            let cpu = cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.as_secs().to_string());
            eprintln!("{step:<14}{:>10}{cpu:>12}", wall.as_secs());
        }
        let all: Duration = self.steps.iter().map(|taken| taken.wall).sum();
        eprintln!("{:<14}{:>10}", "all", all.as_secs());
    }
}

/// The way in which a process runs steps at the same time as this one.
#[derive(Clone, Copy)]
enum Lane {
    /// Compilers and linters, which take only CPU time that nothing else wants. At normal priority, a compiler would make
    /// tests miss their deadlines. They have a separate target directory, because Cargo locks it while it compiles.
    Idle,
    /// Suites at normal priority, which spend most of their time waiting.
    Waiting,
}

/// Steps in a separate process.
struct Beside {
    /// The running `cargo xtask ci`, which is killed on drop.
    process: Child,
    /// The file with standard output and standard error, so that the output of different steps does not mix.
    output: PathBuf,
}

impl Beside {
    /// Starts `cargo xtask ci STEPS`. Returns `None` without steps.
    fn start(steps: &[Step], lane: Lane, options: Options) -> Result<Option<Self>> {
        let Some(first) = steps.first() else { return Ok(None) };
        let output = scratch("beside")?.join(first.name());
        let xtask = std::env::current_exe().map_err(|error| format!("failed to find the xtask program: {error}"))?;
        let run = match (lane, find("nice")) {
            (Lane::Idle, Some(nice)) => Run::new(nice).args(["-n", "19"]).arg(xtask),
            _ => Run::new(xtask),
        };
        let run = match lane {
            Lane::Idle => {
                let own = target().join("beside");
                shared_build::seed(&target(), &own)?;
                run.env("CARGO_TARGET_DIR", own)
            }
            Lane::Waiting => run,
        };
        let run = run.arg("ci").args(steps.iter().map(|step| step.name()));
        let run = run.args(options.install.then_some("--install")).args(options.strict.then_some("--strict"));
        let process = run.start(&output)?;
        eprintln!("\n=== beside the next steps: {}; see {}", names(steps), output.display());
        Ok(Some(Self { process, output }))
    }

    /// Returns `true` if the steps have already failed.
    fn has_failed(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(Some(status)) if !status.success())
    }

    /// Waits for the end of the steps, prints their output, and adds their results to the gate.
    fn finish(mut self, gate: &mut Gate) -> Result {
        let status = self.process.wait().map_err(|error| format!("failed to wait for the steps beside: {error}"));
        let output = std::fs::read(&self.output).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        eprintln!("\n=== beside the other steps:\n{output}");
        gate.read(&output);
        if status?.success() {
            Ok(())
        } else {
            Err(format!("a step beside failed: see above or {}", self.output.display()))
        }
    }
}

impl Drop for Beside {
    /// Kills the steps if they still run, and stops their API servers.
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
        real_server::stop_servers_of(self.process.id());
    }
}

/// Returns the names of steps for the log.
fn names(steps: &[Step]) -> String {
    steps.iter().map(|step| step.name()).collect::<Vec<_>>().join(", ")
}

/// The steps of a run. Each step is in one of the three lists.
pub(crate) struct Plan {
    /// The steps one after another; all steps that are in no other list if it is empty.
    pub(crate) steps: Vec<Step>,
    /// Suites that wait for a server: they run at the same time as each other and as the steps after `test`.
    pub(crate) waiting: Vec<Step>,
    /// Compilers and linters: they begin when the tests are compiled, at low priority.
    pub(crate) beside: Vec<Step>,
}

impl Plan {
    /// Returns the steps to run one after another.
    fn in_order(&self) -> Vec<Step> {
        let steps = if self.steps.is_empty() { &Step::ALL[..] } else { &self.steps };
        steps.iter().copied().filter(|step| !self.waiting.contains(step) && !self.beside.contains(step)).collect()
    }

    /// Returns `true` if the run contains every step.
    fn has_all_steps(&self) -> bool {
        let in_order = self.in_order();
        let has = |step: &Step| in_order.contains(step) || self.waiting.contains(step) || self.beside.contains(step);
        Step::ALL.iter().all(has)
    }
}

/// Runs steps. The first failure ends the run. Times are printed in any case.
///
/// # Errors
/// A step failed, a test ran in no step of a complete run, or something was left out with `--strict`.
pub(crate) fn run(plan: &Plan, options: Options) -> Result {
    let mut gate = Gate::new(options);
    let mut times = Times { steps: Vec::new(), begun: Instant::now() };
    let mut beside = Vec::new();
    let result = run_in_order(plan, options, &mut gate, &mut times, &mut beside);
    times.print();
    result?;
    for running in beside {
        running.finish(&mut gate)?;
    }
    eprintln!("the last step ended {} s after the start", times.begun.elapsed().as_secs());
    let forgotten = gate.unexplained_ignored_tests();
    if plan.has_all_steps() && !forgotten.is_empty() {
        return Err(format!("these tests were ignored and no step ran them:\n{}", forgotten.join("\n")));
    }
    gate.finish()?;
    let n_skipped = gate.ledger.never_ran().len();
    eprintln!("tests: {} passed, {} failed, {n_skipped} skipped", gate.ledger.n_passed(), gate.ledger.n_failed());
    Ok(())
}

/// Runs the steps that run one after another, and starts the other ones between them. Ends early, without an error, if
/// a concurrent step has failed: its end reports that.
fn run_in_order(plan: &Plan, options: Options, gate: &mut Gate, times: &mut Times, beside: &mut Vec<Beside>) -> Result {
    let (mut compilers, mut suites) = (Some(&plan.beside), Some(&plan.waiting));
    for step in plan.in_order() {
        if step == Step::Test {
            times.measure("build", steps::build_tests)?;
        }
        if step != Step::Fmt
            && let Some(steps) = compilers.take()
        {
            beside.extend(Beside::start(steps, Lane::Idle, options)?);
        }
        if step != Step::Fmt
            && step != Step::Test
            && let Some(steps) = suites.take()
        {
            start_waiting(steps, options, beside)?;
        }
        if beside.iter_mut().any(Beside::has_failed) {
            return Ok(());
        }
        times.measure(step.name(), || step.run(gate))?;
    }
    beside.extend(Beside::start(compilers.map_or(&[][..], |steps| steps), Lane::Idle, options)?);
    start_waiting(suites.map_or(&[][..], |steps| steps), options, beside)
}

/// Starts suites that wait for a server, each in a separate process.
fn start_waiting(steps: &[Step], options: Options, beside: &mut Vec<Beside>) -> Result {
    for step in steps {
        beside.extend(Beside::start(std::slice::from_ref(step), Lane::Waiting, options)?);
    }
    Ok(())
}
