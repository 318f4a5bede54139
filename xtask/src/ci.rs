//! The gate: runs steps, and reports their times, their failures and the tests that no step ran.
//!
//! Each step checks one thing and works alone. A step whose tool is missing reports that, and succeeds unless
//! `--strict` is set.

use std::{
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use clap::ValueEnum;

use crate::{
    Options, Result,
    background::{BackgroundSteps, Lane},
    descendants, features,
    gate::Gate,
    image, new_project, packages, real_server, steps,
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
    /// Each published crate compiles with each feature alone, and with all.
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
    /// Operators that are deployed by their manifests on a real kube-apiserver.
    Deployed,
}

impl Step {
    /// All steps, in the order of `cargo xtask ci`: formatting, tests, lints, docs, and real servers last.
    pub(crate) const ALL: [Self; 21] = [
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
        Self::Deployed,
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
            Self::Deployed => "deployed",
        }
    }

    /// Returns the time after which the processes of the step are killed. Compilers and linters get more, because they take
    /// only the CPU time that suites leave. So does `new-project`, which waits for their target folder. Suites on a real server
    /// get more, because they may have to build it first.
    const fn time_max(self) -> Duration {
        match self {
            Self::Clippy
            | Self::Features
            | Self::Docs
            | Self::NewProject
            | Self::Packages
            | Self::Image
            | Self::Conformance
            | Self::RealServer
            | Self::Roles
            | Self::Deployed => LONG_TIME_MAX,
            _ => TIME_MAX,
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
            Self::Deployed => real_server::deploy(gate, None),
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

/// Time after which the processes of a suite, a check or the build of the tests are killed, so that one hung test or
/// download does not use up the time of the gate. It is more than twice what the tests take on two cores, because the same
/// machine has been slower by that factor on some days.
const TIME_MAX: Duration = Duration::from_secs(60 * 60);
/// The same for steps that wait for others.
const LONG_TIME_MAX: Duration = Duration::from_secs(80 * 60);
/// Time between later attempts, because a step may start other processes after one was killed.
const KILL_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Runs a step. After `time_max`, calls `kill`, which ends the command that the step waits for. `kill` returns `false` if it
/// found no process; then the step is not a failure.
///
/// # Errors
/// The errors of the step, and a step whose processes were killed.
fn run_bounded(time_max: Duration, kill: impl Fn() -> bool + Send, run: impl FnOnce() -> Result) -> Result {
    let (ended, end) = channel::<()>();
    let (result, was_killed) = thread::scope(|scope| {
        let watchdog = scope.spawn(move || {
            let (mut wait, mut was_killed) = (time_max, false);
            while end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                was_killed |= kill();
                wait = KILL_INTERVAL;
            }
            was_killed
        });
        let result = run();
        drop(ended);
        (result, watchdog.join().unwrap_or(false))
    });
    if !was_killed {
        return result;
    }
    let error = result.err().map_or_else(String::new, |error| format!(": {error}"));
    Err(format!("killed after {} s{error}", time_max.as_secs()))
}

/// Kills the processes of a step, but not the processes in `others`, which belong to other steps. Returns `false` if it found
/// none.
///
/// Systems without `/proc` list no descendants, so a step has no bound there.
fn kill_processes(step: &str, others: &[u32]) -> bool {
    let found = descendants::of(std::process::id(), others);
    eprintln!("{step} takes too long: its {} processes are killed", found.len());
    descendants::kill(&found);
    !found.is_empty()
}

/// Builds what several suites need, with a bound, because these suites wait until it ends. The bound is the longer one: the
/// tests are compiled and run at the same time, with a higher priority.
///
/// # Errors
/// The Go modules of the server don't compile, or the builds took too long.
pub(crate) fn prepare(gate: &mut Gate) -> Result {
    run_bounded(LONG_TIME_MAX, || kill_processes("prepare", &[]), || real_server::prepare(gate))
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

/// Steps that one process runs one after another.
#[derive(Clone)]
pub(crate) struct Chain(Vec<Step>);

impl Chain {
    /// Parses the names of steps, separated by commas.
    ///
    /// # Errors
    /// No step has one of the names.
    pub(crate) fn parse(names: &str) -> Result<Self> {
        names.split(',').map(|name| Step::from_str(name, false)).collect::<Result<_>>().map(Self)
    }
}

/// The steps of a run. Each step is in one of the lists.
pub(crate) struct Plan {
    /// The steps one after another; all steps that are in no other list if it is empty.
    pub(crate) steps: Vec<Step>,
    /// Suites that mostly wait and compile nothing: the chains run at the same time as each other and as `test`.
    pub(crate) during_test: Vec<Chain>,
    /// Suites that mostly wait: the chains run at the same time as each other and as the steps after `test`.
    pub(crate) waiting: Vec<Chain>,
    /// Checks that compile nothing of the workspace: they begin at once, at low priority.
    pub(crate) early: Vec<Step>,
    /// Compilers and linters: the chains begin when the tests are compiled, at the lowest priority. While one compiles a
    /// single crate, another uses the second core.
    pub(crate) idle: Vec<Chain>,
}

impl Plan {
    /// Returns `true` if another process runs the step.
    fn is_in_background(&self, step: Step) -> bool {
        let mut chains = self.during_test.iter().chain(&self.waiting).chain(&self.idle);
        self.early.contains(&step) || chains.any(|chain| chain.0.contains(&step))
    }

    /// Returns the steps to run one after another.
    fn in_order(&self) -> Vec<Step> {
        let steps = if self.steps.is_empty() { &Step::ALL[..] } else { &self.steps };
        steps.iter().copied().filter(|step| !self.is_in_background(*step)).collect()
    }

    /// Returns `true` if the run contains every step.
    fn has_all_steps(&self) -> bool {
        let in_order = self.in_order();
        Step::ALL.iter().all(|step| in_order.contains(step) || self.is_in_background(*step))
    }
}

/// Runs steps. A failed one does not end the run, so that one run reports all failures. Tests that do not compile end it, and
/// the processes that still run are killed. Times are printed in any case.
///
/// # Errors
/// Steps failed, a test ran in no step of a complete run, or something was left out with `--strict`.
pub(crate) fn run(plan: &Plan, options: Options) -> Result {
    let mut gate = Gate::new(options);
    let mut times = Times { steps: Vec::new(), begun: Instant::now() };
    let mut lanes = Lanes { options, running: Vec::new(), failures: Vec::new() };
    run_in_order(plan, &mut gate, &mut times, &mut lanes);
    times.print();
    let Lanes { running, mut failures, .. } = lanes;
    for steps in running {
        failures.extend(steps.finish(&mut gate).err());
    }
    eprintln!("the last step ended {} s after the start", times.begun.elapsed().as_secs());
    let forgotten = gate.unexplained_ignored_tests();
    if failures.is_empty() && plan.has_all_steps() && !forgotten.is_empty() {
        failures.push(format!("these tests were ignored and no step ran them:\n{}", forgotten.join("\n")));
    }
    failures.extend(gate.finish().err());
    if !failures.is_empty() {
        return Err(failures.join("\n"));
    }
    let n_skipped = gate.ledger.never_ran().len();
    eprintln!("tests: {} passed, {} failed, {n_skipped} skipped", gate.ledger.n_passed(), gate.ledger.n_failed());
    Ok(())
}

/// The processes that run steps at the same time as this one, and the failures so far.
struct Lanes {
    options: Options,
    /// In the order of their start.
    running: Vec<BackgroundSteps>,
    failures: Vec<String>,
}

impl Lanes {
    /// Starts a process with a command of xtask.
    fn start(&mut self, lane: Lane, name: &str, arguments: &[&str]) {
        match BackgroundSteps::start(lane, name, arguments, self.options) {
            Ok(steps) => self.running.push(steps),
            Err(error) => self.failures.push(error),
        }
    }

    /// Starts a process for each chain.
    fn start_chains(&mut self, lane: Lane, chains: &[Chain]) {
        for chain in chains {
            self.start_steps(lane, &chain.0);
        }
    }

    /// Starts `cargo xtask ci STEPS`. Does nothing without steps.
    fn start_steps(&mut self, lane: Lane, steps: &[Step]) {
        let Some(first) = steps.first() else { return };
        let arguments: Vec<&str> = std::iter::once("ci").chain(steps.iter().map(|step| step.name())).collect();
        self.start(lane, first.name(), &arguments);
    }

    /// Runs a step in this process. Returns `true` if it succeeded.
    fn run(&mut self, times: &mut Times, step: Step, name: &'static str, run: impl FnOnce() -> Result) -> bool {
        // So that a user can see a failure before the end of the run.
        self.running.iter_mut().for_each(BackgroundSteps::print_failure);
        let others: Vec<u32> = self.running.iter_mut().filter_map(BackgroundSteps::running_id).collect();
        let kill = || kill_processes(name, &others);
        let result = times.measure(name, || run_bounded(step.time_max(), kill, run));
        if let Err(error) = &result {
            eprintln!("error: {error}");
        }
        let has_succeeded = result.is_ok();
        self.failures.extend(result.err());
        has_succeeded
    }

    /// Kills the processes that still run. The others remain, so that their failures are reported.
    fn kill_running(&mut self) {
        self.running.retain_mut(BackgroundSteps::has_ended);
    }
}

/// Runs the steps that run one after another, and starts the other ones between them.
fn run_in_order(plan: &Plan, gate: &mut Gate, times: &mut Times, lanes: &mut Lanes) {
    if !plan.waiting.is_empty() || !plan.during_test.is_empty() {
        lanes.start(Lane::Early, "prepare", &["prepare"]);
    }
    lanes.start_steps(Lane::Early, &plan.early);
    let (mut compilers, mut early_suites, mut suites) =
        (Some(&plan.idle), Some(&plan.during_test), Some(&plan.waiting));
    for step in plan.in_order() {
        if step == Step::Test && !lanes.run(times, step, "build", steps::build_tests) {
            lanes.kill_running();
            return;
        }
        if step != Step::Fmt
            && let Some(chains) = compilers.take()
        {
            lanes.start_chains(Lane::Idle, chains);
        }
        if step != Step::Fmt
            && let Some(chains) = early_suites.take()
        {
            lanes.start_chains(Lane::Waiting, chains);
        }
        if step != Step::Fmt
            && step != Step::Test
            && let Some(chains) = suites.take()
        {
            lanes.start_chains(Lane::Waiting, chains);
        }
        lanes.run(times, step, step.name(), || step.run(gate));
    }
    lanes.start_chains(Lane::Idle, compilers.map_or(&[][..], |chains| chains));
    for suites in [early_suites, suites] {
        lanes.start_chains(Lane::Waiting, suites.map_or(&[][..], |chains| chains));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_step_is_not_run_in_order() {
        let plan = Plan {
            steps: Vec::new(),
            during_test: vec![Chain::parse("roles").unwrap()],
            waiting: vec![Chain::parse("conformance,helm").unwrap()],
            early: vec![Step::Spelling],
            idle: vec![Chain::parse("clippy").unwrap()],
        };
        let in_order = plan.in_order();
        assert_eq!(in_order.len(), Step::ALL.len() - 5, "{in_order:?}");
        assert!([Step::Conformance, Step::Helm, Step::Roles].iter().all(|step| !in_order.contains(step)));
        assert!(plan.has_all_steps());
        assert!(!Plan { steps: vec![Step::Fmt], ..plan }.has_all_steps());
    }

    #[test]
    fn step_that_waits_for_linters_has_their_bound() {
        assert_eq!(Step::NewProject.time_max(), Step::Features.time_max());
    }

    #[test]
    fn chain_of_an_unknown_step_is_rejected() {
        assert!(Chain::parse("conformance,nothing").is_err());
    }

    /// The first failure must not hide the second one.
    #[test]
    fn failed_step_does_not_stop_the_next() {
        let mut times = Times { steps: Vec::new(), begun: Instant::now() };
        let mut lanes = Lanes { options: Options::default(), running: Vec::new(), failures: Vec::new() };
        assert!(!lanes.run(&mut times, Step::Fmt, "fmt", || Err("unformatted".into())));
        assert!(lanes.run(&mut times, Step::Test, "test", || Ok(())));
        assert!(!lanes.run(&mut times, Step::Docs, "docs", || Err("broken link".into())));
        assert_eq!(lanes.failures, ["fmt: unformatted", "docs: broken link"]);
        assert_eq!(times.steps.len(), 3);
    }

    #[cfg(unix)]
    #[test]
    fn killed_lanes_do_not_hide_earlier_failures() {
        let running = vec![
            BackgroundSteps::of_script("hung", "exec sleep 600"),
            BackgroundSteps::of_script("unformatted", "exit 1"),
        ];
        let mut lanes = Lanes { options: Options::default(), running, failures: Vec::new() };
        while !lanes.running[1].has_ended() {
            thread::yield_now();
        }
        lanes.kill_running();
        let failures = lanes.running.into_iter().map(|ended| ended.finish(&mut Gate::new(Options::default())));
        let failures: Vec<String> = failures.filter_map(Result::err).collect();
        assert!(matches!(&failures[..], [failure] if failure.contains("unformatted")), "{failures:?}");
    }

    /// As on systems that don't list processes.
    #[test]
    fn slow_step_succeeds_if_nothing_was_killed() {
        let (called, calls) = channel();
        let kill = move || {
            called.send(()).unwrap();
            false
        };
        let wait = || calls.recv().map_err(|error| error.to_string());
        assert_eq!(run_bounded(Duration::from_millis(1), kill, wait), Ok(()));
    }

    #[cfg(unix)]
    #[test]
    fn hung_command_of_a_step_is_killed() {
        let output = crate::process::scratch("bound").unwrap().join("output");
        let mut hung = crate::process::Run::new("sleep").arg("600").start(&output).unwrap();
        let id = hung.id();
        let wait = || Err(hung.wait().unwrap().to_string());
        let kill = || {
            descendants::kill(&[id]);
            true
        };
        let error = run_bounded(Duration::from_millis(1), kill, wait).unwrap_err();
        assert!(error.starts_with("killed after 0 s: signal: 9"), "{error}");
        assert_eq!(run_bounded(TIME_MAX, || unreachable!(), || Ok(())), Ok(()));
    }
}
