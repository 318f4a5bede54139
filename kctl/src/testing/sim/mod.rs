//! The simulator: runs an app, unchanged, under simulated time and with faults on purpose, and checks it all the while.

mod authors;
mod checks;
mod lapse;
mod normal;
mod ownership;
mod plan;
mod process;
mod report;
mod run;
mod scenario;
mod search;
mod snapshot;
mod timed;
mod trace;
mod world;

use std::ops::Range;

use kctl_runtime::reconcile::{Error, Result};

pub use report::{Failure, Report};
pub use scenario::Scenario;
pub use snapshot::Snapshot;

use plan::SINGLES_MAX;
use run::prepare;
use search::{Case, Search};

/// The number of seeds, instead of the one in the test.
const SEEDS_VARIABLE: &str = "KCTL_SEEDS";
/// The one run that is to be replayed.
const SEED_VARIABLE: &str = "KCTL_SEED";
/// How many single faults, and how many seeds, are run twice, or `all`.
const TWICE_VARIABLE: &str = "KCTL_TWICE";
/// So many of each, unless it is said.
const TWICE: usize = 4;

/// Which runs are tried.
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
#[derive(Clone, Debug)]
pub struct Sim {
    cases: Vec<Cases>,
    /// How a run is replayed; `{seed}` stands for its name.
    replay: String,
    twice: usize,
}

#[derive(Clone, Debug)]
enum Cases {
    FaultFree,
    /// So many at most, from all over the list.
    Singles(usize),
    Single(usize),
    Seeds(Range<u64>),
}

impl Sim {
    fn new(cases: Vec<Cases>) -> Self {
        Self { cases, replay: format!("{SEED_VARIABLE}={{seed}}, with Sim::from_env"), twice: TWICE }
    }

    /// One run with a combination of faults that the seed chooses.
    pub fn seeded(seed: u64) -> Self {
        Self::new(vec![Cases::Seeds(seed..seed + 1)])
    }

    /// Each single fault once, at each place that the run without faults shows.
    pub fn single_faults() -> Self {
        Self::new(vec![Cases::Singles(SINGLES_MAX)])
    }

    /// Runs as many single faults as there are seeds, spread over all possible ones, then one run per seed.
    pub fn seeds(seeds: Range<u64>) -> Self {
        let n_singles = usize::try_from(seeds.end.saturating_sub(seeds.start)).unwrap_or(SINGLES_MAX);
        Self::new(vec![Cases::Singles(n_singles.min(SINGLES_MAX)), Cases::Seeds(seeds)])
    }

    /// As [`seeds`](Self::seeds) from 0 to `n`, unless `KCTL_SEEDS` names another number, or `KCTL_SEED` the one run that is
    /// to be replayed: a seed, `single-` and a number, or `none`.
    ///
    /// `KCTL_TWICE` says how many of them are run [twice](Self::twice): a number, or `all`.
    ///
    /// # Errors
    /// When one of the variables is no such thing.
    pub fn from_env(n: u64) -> Result<Self> {
        let sim = Self::named_by_env(n)?;
        Ok(match std::env::var(TWICE_VARIABLE) {
            Ok(all) if all == "all" => sim.twice(usize::MAX),
            Ok(text) => {
                let wrong = |_| Error::from(format!("{TWICE_VARIABLE} has to be a number or `all`, not `{text}`"));
                sim.twice(text.parse().map_err(wrong)?)
            }
            Err(_unset) => sim,
        })
    }

    fn named_by_env(n: u64) -> Result<Self> {
        if let Ok(seed) = std::env::var(SEED_VARIABLE) {
            return Self::replayed(&seed);
        }
        let n = match std::env::var(SEEDS_VARIABLE) {
            Ok(text) => {
                text.parse().map_err(|_| Error::from(format!("{SEEDS_VARIABLE} has to be a number, not `{text}`")))?
            }
            Err(_unset) => n,
        };
        Ok(Self::seeds(0..n))
    }

    fn replayed(seed: &str) -> Result<Self> {
        if seed == "none" {
            return Ok(Self::new(vec![Cases::FaultFree]));
        }
        if let Some(single) = seed.strip_prefix("single-").and_then(|number| number.parse().ok()) {
            return Ok(Self::new(vec![Cases::Single(single)]));
        }
        let wrong = |_| Error::from(format!("{SEED_VARIABLE} has to be a seed, `single-N` or `none`, not `{seed}`"));
        Ok(Self::seeded(seed.parse().map_err(wrong)?))
    }

    /// How a failure is replayed, for its report: `{seed}` stands for the name of the run.
    #[must_use]
    pub fn replayed_by(mut self, command: &str) -> Self {
        self.replay = command.into();
        self
    }

    /// Runs the first single faults and the first seeds twice, so many of each: both runs have to do the same, line by line. 4
    /// unless changed.
    #[must_use]
    pub fn twice(mut self, n: usize) -> Self {
        self.twice = n;
        self
    }

    /// Runs a scenario until a checker fails or all runs are done.
    ///
    /// The run without faults comes first, and twice: it shows where faults are possible, what the final state is, and that the app is
    /// deterministic.
    ///
    /// # Errors
    /// The scenario can't be set up, or the number of a single fault is too high. Findings of the simulation are in the report.
    pub fn run(&self, scenario: &Scenario) -> Result<Report> {
        let servers = prepare(scenario)?;
        let mut search = Search::new(scenario, &servers, &self.replay, self.twice);
        if search.begin() {
            for cases in &self.cases {
                let cases = match cases {
                    Cases::FaultFree => Vec::new(),
                    Cases::Singles(max) => search.singles(*max),
                    Cases::Single(number) => {
                        let singles = search.singles(SINGLES_MAX);
                        let n = singles.len();
                        let one = singles.into_iter().nth(*number);
                        vec![
                            one.ok_or_else(|| Error::from(format!("there are {n} single faults, no number {number}")))?,
                        ]
                    }
                    Cases::Seeds(seeds) => seeds.clone().map(|seed| search.seeded(seed)).collect::<Vec<Case>>(),
                };
                search.all(&cases);
            }
        }
        Ok(search.report())
    }
}

/// Runs a scenario for `#[kctl::test]`, and panics with the failure.
#[doc(hidden)]
pub fn simulate(scenario: &Scenario, seeds: u64, package: &str, test: &str) {
    // The name of the test is without the name of its crate.
    let test = test.split_once("::").map_or(test, |(_, rest)| rest);
    let command = format!("{SEED_VARIABLE}={{seed}} cargo test -p {package} {test}");
    let report = Sim::from_env(seeds).map(|sim| sim.replayed_by(&command)).and_then(|sim| sim.run(scenario));
    match report.map(|report| report.failure) {
        Ok(None) => {}
        Ok(Some(failure)) => panic!("{failure}"),
        Err(error) => panic!("{error}"),
    }
}
