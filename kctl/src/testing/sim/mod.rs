//! The simulator: runs an app, unchanged, under simulated time and with injected faults, and checks
//! it continuously.
//!
//! The steps of a simulation:
//!
//! 1. [`Scenario`] describes the app, its objects, the steps of users and the invariants.
//! 2. [`Sim`] chooses the runs. `#[kctl::test]` builds both.
//! 3. The run without faults comes first. It records each request and watch event: the places where
//!    a fault can be.
//! 4. `plan` turns these places into faults; `search` executes one run per plan, on several
//!    threads.
//! 5. `world` builds the run: a copy of the prepared API servers, the processes of the app, and the
//!    fault rules. `run` goes through its phases: apply the objects, take the steps, wait until the
//!    state settles, compare it, delete everything.
//! 6. `checks` sees each request, each change and each reconcile. The first finding ends the run.
//! 7. `search` drops faults from a failing plan, or replaces them by simpler ones, as long as it still fails. [`Report`]
//!    has the shortest plan and its timeline.
//!
//! A run is a function of its plan: the API server, the clock, generated names and the order of
//! tasks are deterministic. A controller that uses random numbers, the order of a `HashMap` or the machine's clock
//! breaks that. The checker `one seed, one trace` reports it.

mod app_logs;
mod authors;
mod checks;
mod fault_targets;
mod fresh_start;
mod lease_lapse;
mod leftover_tasks;
mod normal;
mod own_thread;
mod owners;
mod ownership;
mod panics;
mod permits;
mod plan;
#[cfg(test)]
mod planted;
mod process;
mod progress;
mod replay;
mod report;
mod run;
mod scenario;
mod search;
mod snapshot;
mod time_limit;
mod timed;
mod trace;
mod world;

use std::{ops::Range, time::Duration};

use kctl_runtime::reconcile::{Error, Result};

#[doc(hidden)]
pub use replay::SimulatedTest;
pub use report::{Failure, Report};
pub use scenario::Scenario;
pub use snapshot::Snapshot;
pub use world::external;

use plan::SINGLES_MAX;
use run::prepare;
use search::{Case, Search};
use time_limit::Stopwatch;

/// Environment variable with the number of seeds, which overrides the one in the test.
const SEEDS_VARIABLE: &str = "KCTL_SEEDS";
/// Environment variable with the name of the one run to replay.
const SEED_VARIABLE: &str = "KCTL_SEED";
/// Environment variable with the number of single faults, and of seeds, to run twice: a number or
/// `all`.
const TWICE_VARIABLE: &str = "KCTL_TWICE";
/// Environment variable with the number of seconds of real time after which no run starts.
const SECONDS_VARIABLE: &str = "KCTL_SIM_SECONDS";
/// Default of [`TWICE_VARIABLE`].
const TWICE: usize = 4;

/// Chooses the runs of a simulation, and executes them.
///
/// `#[kctl::test]` uses [`from_env`](Self::from_env), which most tests want. Use `Sim` directly for
/// a simulation outside of a test, for all single faults ([`single_faults`](Self::single_faults)),
/// or to assert that a broken app is found.
///
/// ```
/// use kctl::{prelude::*, testing::{Scenario, Sim}};
///
/// /// Labels every ConfigMap.
/// #[controller(primary(patch))]
/// async fn labels(config: Arc<ConfigMap>, cx: Context<labels>) -> Result<Action> {
///     if !config.labels().contains_key("seen") {
///         cx.patch(kctl::json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
///     }
///     Ok(Action::await_change())
/// }
///
/// let scenario = Scenario::new(|| App::new("labels").controller::<labels>())
///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}");
/// let report = Sim::seeds(0..4).run(&scenario)?;
/// assert!(report.failure().is_none());
/// # Ok::<(), kctl::Error>(())
/// ```
///
/// The next controller has a bug: its program may be killed between its two writes, and it never
/// creates the second object then.
///
/// ```
/// use kctl::{prelude::*, testing::{Scenario, Sim, Snapshot}};
///
/// /// Creates a `Secret`, and only together with it a `ServiceAccount`.
/// #[controller(owns = Secret(create), owns = ServiceAccount(create))]
/// async fn pairs(config: Arc<ConfigMap>, cx: Context<pairs>) -> Result<Action> {
///     let metadata = || ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
///     if cx.owned::<Secret>().is_empty() {
///         cx.owned::<Secret>().create(Secret { metadata: metadata(), ..Secret::default() }).await?;
///         cx.owned::<ServiceAccount>().create(ServiceAccount { metadata: metadata(), ..Default::default() }).await?;
///     }
///     Ok(Action::await_change())
/// }
///
/// let scenario = Scenario::new(|| App::new("pairs").controller::<pairs>())
///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}")
///     .settled("both are there", |snapshot: &Snapshot| {
///         let n_accounts = snapshot.all::<ServiceAccount>().len();
///         if n_accounts == 1 { Ok(()) } else { Err(format!("{n_accounts} ServiceAccounts")) }
///     });
/// let report = Sim::single_faults().run(&scenario)?;
/// let failure = report.failure().expect("a crash between the two writes leaves the pair incomplete");
/// assert_eq!(failure.checker(), "both are there");
/// assert_eq!(failure.faults().len(), 1);
/// # Ok::<(), kctl::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sim {
    cases: Vec<Cases>,
    /// The command that replays a run, for reports; `{seed}` is replaced by the name of the run.
    replay: String,
    twice: usize,
    /// The value of [`TWICE_VARIABLE`], which wins over `twice`; `None` if it is unset.
    twice_of_env: Option<usize>,
    /// No run starts after this real time; `None` without a limit.
    within: Option<Duration>,
}

/// A part of the runs, in the order in which they are executed.
#[derive(Clone, Debug)]
enum Cases {
    /// No run with faults; the one without always comes first.
    FaultFree,
    /// At most this many single faults, spread evenly over all of them.
    Singles(usize),
    /// The single fault with this index.
    Single(usize),
    /// One run per seed.
    Seeds(Range<u64>),
    /// The run of this seed. A range could not have the highest seed.
    Seed(u64),
}

impl Cases {
    /// Returns the runs at the places for faults that a search has found.
    fn select(&self, search: &Search<'_>) -> Result<Vec<Case>> {
        Ok(match self {
            Self::FaultFree => Vec::new(),
            Self::Singles(max) => search.singles(*max),
            Self::Single(number) => {
                let singles = search.singles(SINGLES_MAX);
                let n = singles.len();
                let one = singles.into_iter().nth(*number);
                vec![one.ok_or_else(|| Error::from(format!("there are {n} single faults, no number {number}")))?]
            }
            Self::Seed(seed) => vec![search.case_from_seed(*seed)],
            Self::Seeds(seeds) => seeds.clone().map(|seed| search.case_from_seed(seed)).collect(),
        })
    }
}

impl Sim {
    fn new(cases: Vec<Cases>) -> Self {
        let replay = format!("{SEED_VARIABLE}={{seed}}, with Sim::from_env");
        Self { cases, replay, twice: TWICE, twice_of_env: None, within: None }
    }

    /// Chooses one run, with a combination of faults that the seed determines: one to five, and up to three more. These
    /// are a fault of several replicas, a fault of an external call, and jitter.
    ///
    /// The plan of a seed depends on the run without faults as well. A change of the app or the scenario gives the same
    /// seed other faults.
    ///
    /// ```
    /// use kctl::{App, testing::{Scenario, Sim}};
    ///
    /// let sim = Sim::seeded(17).replayed_by("cargo run --example simulate -- {seed}");
    /// assert!(sim.run(&Scenario::new(|| App::new("nothing")))?.failure().is_none());
    /// # Ok::<(), kctl::Error>(())
    /// ```
    pub fn seeded(seed: u64) -> Self {
        Self::new(vec![Cases::Seed(seed)])
    }

    /// Chooses one run for each single fault at each place that the run without faults shows, at
    /// most 4,000.
    ///
    /// This is the most thorough choice for bugs that one crash or one lost response triggers. It
    /// takes longer than a seeded test, so it fits a nightly job.
    pub fn single_faults() -> Self {
        Self::new(vec![Cases::Singles(SINGLES_MAX)])
    }

    /// Chooses as many single faults as there are seeds, spread over all possible ones, then one
    /// run per seed.
    pub fn seeds(seeds: Range<u64>) -> Self {
        let n_singles = usize::try_from(seeds.end.saturating_sub(seeds.start)).unwrap_or(SINGLES_MAX);
        Self::new(vec![Cases::Singles(n_singles.min(SINGLES_MAX)), Cases::Seeds(seeds)])
    }

    /// Chooses the same runs as [`seeds`](Self::seeds) from 0 to `n`, unless the environment says
    /// otherwise.
    ///
    /// | variable | effect |
    /// |---|---|
    /// | `KCTL_SEEDS=2000` | this number instead of `n` |
    /// | `KCTL_SEED=17` | only this run: a seed, `single-` and a number, or `none` |
    /// | `KCTL_TWICE=all` | the number of single faults, and of seeds, that are executed [twice](Self::twice), or `all` |
    /// | `KCTL_SIM_SECONDS=600` | no run starts after this real time; those without faults always run |
    ///
    /// # Errors
    /// A variable has another form; the error names it and its value.
    pub fn from_env(n: u64) -> Result<Self> {
        let mut sim = Self::named_by_env(n)?;
        if let Ok(text) = std::env::var(SECONDS_VARIABLE) {
            sim.within = Some(Duration::from_secs(parse_above_zero(SECONDS_VARIABLE, &text)?));
        }
        if let Ok(text) = std::env::var(TWICE_VARIABLE) {
            sim.twice_of_env = Some(parse_twice(&text)?);
        }
        Ok(sim)
    }

    fn named_by_env(n: u64) -> Result<Self> {
        if let Ok(seed) = std::env::var(SEED_VARIABLE) {
            return Self::from_seed(&seed);
        }
        let n = match std::env::var(SEEDS_VARIABLE) {
            Ok(text) => parse_above_zero(SEEDS_VARIABLE, &text)?,
            Err(_unset) => n,
        };
        Ok(Self::seeds(0..n))
    }

    /// Chooses one run per seed, as [`seeds`](Self::seeds) does, and no single faults.
    #[doc(hidden)]
    pub fn seeds_alone(seeds: Range<u64>) -> Self {
        Self::new(vec![Cases::Seeds(seeds)])
    }

    /// Runs a scenario with the faults of another scenario's failure, before these were reduced: a corrected twin has to
    /// survive those that reveal the bug.
    ///
    /// # Errors
    /// The scenario can't be set up.
    #[doc(hidden)]
    pub fn run_with_faults_of(failure: &Failure, scenario: &Scenario) -> Result<Report> {
        let (sim, case) = (Self::new(vec![Cases::FaultFree]), Case::from_failure(failure));
        let servers = prepare(scenario)?;
        let mut search = Search::new(scenario, &servers, &sim.replay, 0);
        // A bug that shows without faults has no plan.
        if search.begin() && !failure.full_plan.is_empty() {
            search.run_cases(&[case]);
        }
        Ok(search.report())
    }

    fn from_seed(seed: &str) -> Result<Self> {
        if seed == "none" {
            return Ok(Self::new(vec![Cases::FaultFree]));
        }
        if let Some(single) = seed.strip_prefix("single-").and_then(|number| number.parse().ok()) {
            return Ok(Self::new(vec![Cases::Single(single)]));
        }
        let wrong = |_| Error::from(format!("{SEED_VARIABLE} has to be a seed, `single-N` or `none`, not `{seed}`"));
        Ok(Self::seeded(seed.parse().map_err(wrong)?))
    }

    /// Sets the command that a report prints for replaying a failure. `{seed}` in it is replaced by the name of the
    /// run.
    ///
    /// The name is a number, `single-` and a number, or `none`. [`seeded`](Self::seeded) takes only a number.
    /// [`from_env`](Self::from_env) reads each of them from `KCTL_SEED`.
    #[must_use]
    pub fn replayed_by(mut self, command: &str) -> Self {
        self.replay = command.into();
        self
    }

    /// Executes the first `n` single faults and the first `n` seeds twice, 4 by default. Both runs
    /// have to produce the same trace.
    ///
    /// A difference means that the app depends on something outside of the simulation, such as the
    /// order of a `HashMap`.
    ///
    /// After [`from_env`](Self::from_env), `KCTL_TWICE` wins over `n`.
    #[must_use]
    pub fn twice(mut self, n: usize) -> Self {
        self.twice = n;
        self
    }

    /// Runs a scenario until a checker fails or all runs are done.
    ///
    /// The run without faults comes first, and twice: it shows where faults are possible, what the
    /// final state is, and that the app is deterministic. The others run on up to eight threads,
    /// and a failing plan is reduced with up to 40 more runs. The call blocks; each run has a
    /// separate thread and Tokio runtime, so it also works inside of another runtime. All
    /// simulations of a program together execute one run per processor at a time.
    ///
    /// A run without any progress for 60 seconds of real time fails. Its thread can't be ended: it
    /// is busy until the program ends.
    ///
    /// # Errors
    /// The scenario can't be set up, or the number of a single fault is too high. Findings of the
    /// simulation are in the report.
    pub fn run(&self, scenario: &Scenario) -> Result<Report> {
        let servers = prepare(scenario)?;
        let mut search = Search::new(scenario, &servers, &self.replay, self.n_twice()).within(self.within);
        if search.begin() {
            for part in &self.cases {
                let cases = part.select(&search)?;
                search.run_cases(&cases);
            }
        }
        Ok(search.report())
    }
}

impl Sim {
    /// Returns the number of single faults, and of seeds, that are executed twice.
    fn n_twice(&self) -> usize {
        self.twice_of_env.unwrap_or(self.twice)
    }

    /// Returns a message if no fault of many runs hit the app. The replay of one run may have no such fault.
    fn no_faults_message(&self, report: &Report, test: &str) -> Option<String> {
        let has_many = self.cases.iter().any(|cases| match cases {
            Cases::Singles(max) => *max > 0,
            Cases::Seeds(seeds) => !seeds.is_empty(),
            Cases::FaultFree | Cases::Single(_) | Cases::Seed(_) => false,
        });
        (has_many && report.injected() == 0 && report.not_started() == 0).then(|| {
            let n = report.runs();
            format!(
                "{test}: no fault hit a request or a watch event of the app in {n} runs, so they prove nothing; set an app \
                 with a controller (`.app(…)`), objects that it reconciles (`.objects(…)`), or more seeds"
            )
        })
    }
}

/// Parses the number of seeds or of seconds. With 0 of them only the run without faults would be left.
fn parse_above_zero(variable: &str, text: &str) -> Result<u64> {
    let n = text.parse().ok().filter(|n| *n > 0);
    n.ok_or_else(|| Error::from(format!("{variable} has to be a number above 0, not `{text}`")))
}

/// Parses the number of runs that are executed twice.
fn parse_twice(text: &str) -> Result<usize> {
    if text == "all" {
        return Ok(usize::MAX);
    }
    text.parse().map_err(|_| Error::from(format!("{TWICE_VARIABLE} has to be a number or `all`, not `{text}`")))
}

/// Returns a message if the app has controllers, and none of them has reconciled an object in any run.
fn unreconciled_message(scenario: &Scenario, report: &Report, test: &str) -> Option<String> {
    (report.n_reconciles == 0 && !(scenario.app)().specs().is_empty()).then(|| {
        let n = report.runs();
        format!(
            "{test}: no object was reconciled in {n} runs, so they prove nothing; add objects (`.objects(…)`) that match the \
             kind, the selector and the namespaces of a controller"
        )
    })
}

/// Runs a scenario for `#[kctl::test]`. The test harness shows the summary of a test that passes with `--show-output`.
///
/// # Panics
/// A run failed, no fault hit the app, no object was reconciled, or the scenario can't be set up.
#[doc(hidden)]
pub fn simulate(scenario: &Scenario, seeds: u64, test: &SimulatedTest<'_>) {
    let clock = Stopwatch::start();
    let sim = Sim::from_env(seeds).map(|sim| sim.replayed_by(&test.replay()));
    let report = sim.and_then(|sim| Ok((sim.run(scenario)?, sim)));
    if let Ok((report, _)) = &report {
        eprintln!("{}: {}", test.name(), report.summary(clock.run_time()));
    }
    match report.map(|(report, sim)| {
        let no_faults = sim.no_faults_message(&report, test.name());
        let coverage_message = no_faults.or_else(|| unreconciled_message(scenario, &report, test.name()));
        (report.failure().map(ToString::to_string), coverage_message)
    }) {
        Ok((None, None)) => {}
        Ok((Some(text), _) | (None, Some(text))) => panic!("{text}"),
        Err(error) => panic!("{error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::{
        App,
        prelude::{Action, Context, controller},
    };

    #[test]
    fn runs_without_an_injected_fault_prove_nothing() {
        let idle = Scenario::new(|| App::new("nothing"));
        let cases = [
            (Sim::seeds(0..2), true),
            (Sim::single_faults(), true),
            (Sim::seeds(0..0), false),
            (Sim::from_seed("none").unwrap(), false),
            (Sim::from_seed("0").unwrap(), false),
            (Sim::from_seed("single-0").unwrap(), false),
        ];
        for (sim, has_message) in cases {
            let report = sim.run(&idle).unwrap();
            assert_eq!((report.injected(), report.failure().is_none()), (0, true), "{sim:?}");
            let message = sim.no_faults_message(&report, "sim::survives");
            assert_eq!(message.is_some(), has_message, "{sim:?}");
            assert!(message.is_none_or(|text| text.starts_with("sim::survives: no fault hit")), "{sim:?}");
        }
    }

    #[test]
    fn simulated_test_without_injected_faults_fails() {
        let test = SimulatedTest { package: "kctl", program: None, file: file!(), path: "tests::survives" };
        let simulated = || simulate(&Scenario::new(|| App::new("nothing")), 2, &test);
        let panic = std::panic::catch_unwind(simulated).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.starts_with("survives: no fault hit"), "{text}");
    }

    /// Has nothing to do.
    #[controller(crate = crate)]
    async fn rests(_config: Arc<ConfigMap>, _cx: Context<rests>) -> Result<Action> {
        Ok(Action::await_change())
    }

    #[test]
    fn simulated_test_without_reconciles_fails() {
        let without = Scenario::new(|| App::new("rests").controller::<rests>());
        let with = without.clone().objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
        let message = |scenario: &Scenario| {
            let report = Sim::seeds(0..2).run(scenario).unwrap();
            assert!(report.injected() > 0 && report.failure().is_none(), "lists and watches have faults");
            unreconciled_message(scenario, &report, "survives")
        };
        let text = message(&without).unwrap();
        assert!(text.starts_with("survives: no object was reconciled in "), "{text}");
        assert_eq!(message(&with), None);
    }

    #[test]
    fn number_of_seeds_is_above_zero() {
        assert_eq!(parse_above_zero(SEEDS_VARIABLE, "2000").unwrap(), 2_000);
        for text in ["0", "-1", "many", ""] {
            let expected = format!("KCTL_SEEDS has to be a number above 0, not `{text}`");
            assert_eq!(parse_above_zero(SEEDS_VARIABLE, text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn repeats_of_the_environment_win() {
        let n_twice = |twice_of_env| Sim { twice_of_env, ..Sim::seeds(0..1) }.twice(2).n_twice();
        assert_eq!(n_twice(None), 2);
        for (text, n) in [("all", usize::MAX), ("7", 7), ("0", 0)] {
            assert_eq!(n_twice(Some(parse_twice(text).unwrap())), n);
        }
        let error = parse_twice("some").unwrap_err().to_string();
        assert_eq!(error, "KCTL_TWICE has to be a number or `all`, not `some`");
    }

    #[test]
    fn no_run_starts_after_the_time_limit() {
        let scenario = Scenario::new(|| App::new("rests").controller::<rests>())
            .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
        let sim = Sim { within: Some(Duration::ZERO), ..Sim::seeds(0..3) };
        let report = sim.run(&scenario).unwrap();
        assert_eq!(
            (report.runs(), report.not_started()),
            (2, 6),
            "only those without faults, of 3 single faults and 3 seeds"
        );
        assert_eq!(sim.no_faults_message(&report, "survives"), None);
    }

    #[test]
    fn highest_seed_is_run_as_any_other() {
        let scenario = Scenario::new(|| App::new("nothing"));
        for seed in ["17", "18446744073709551615"] {
            let report = Sim::from_seed(seed).unwrap().twice(0).run(&scenario).unwrap();
            assert_eq!(report.runs(), 3, "two without faults, and seed {seed}");
        }
    }
}
