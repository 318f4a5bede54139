//! Measures one, two and three replicas in one run: memory, CPU, handover times, a rolling update, and the cost at
//! rest.
//!
//! | step | measured |
//! |---|---|
//! | no objects | memory of the process itself |
//! | create | CPU and time until each primary has its Pods |
//! | start | CPU, time and LIST requests for Pods of processes that start with all objects present; memory at rest |
//! | changes | CPU, and the time from a change of a primary to the end of its reconcile |
//! | moves | with three replicas: time from a kill or clean stop until other replicas reconcile the keys |
//! | rolling update | three replicas replaced one by one while objects change |
//! | rest | requests for Leases and CPU of idle replicas, and the same server without replicas ([`crate::rest`]) |
//!
//! The first four steps run `--runs` times per number of replicas, in turn and each time on a new server; the table has
//! the medians. CPU seconds don't contain those that idle replicas take in the same time, because the steps wait for slots
//! to settle; a row adds them. With `--large` the first three steps run once more with other numbers of objects. With
//! `--rest-only` the last step runs alone, on a server without objects. The output shows the goals next to the figures.
//! Times depend on the machine, so only an overlap or a lost change fails the run.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::sleep;

use crate::{
    Failure,
    changes::{Changes, Lags, lags},
    journal::{between, now},
    process::{Memory, lease_times, load, sibling_program},
    rest::Rest,
    server::Server,
    stage::{PODS_EACH, Stage},
};

/// Replica counts to compare. The first one runs without shards.
const REPLICAS: [usize; 3] = [1, 2, 3];
/// Delay before memory at rest is measured, in which the CPU of idle replicas is measured too. A process drops decoded objects
/// at the second bookmark after they were read, and the API server sends one per minute.
const REST_DURATION: Duration = Duration::from_secs(130);
/// Wait after the start of a server before the cost at rest is measured. Later, none of the CPU of its start counts as a
/// cost of the replicas.
const SERVER_START_DELAY: Duration = Duration::from_secs(30);
/// Pause between two replacements of a rolling update.
const REPLICA_START_INTERVAL: Duration = Duration::from_secs(3);

/// Compares 1, 2 and 3 replicas
#[derive(clap::Args)]
pub(crate) struct FigureOptions {
    /// Number of primaries; each owns two Pods
    #[arg(long, default_value_t = 5_000)]
    primaries: usize,
    /// Number of slots
    #[arg(long, default_value_t = 24)]
    shards: u32,
    /// Seconds of changes, of rest with three replicas, and of rest without replicas
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Kills and clean stops; the longest time of each sort is printed
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Runs of the comparison; medians are printed. Each takes about 4 minutes per number of replicas
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Also compare a start over this number of primaries, such as 50000, where the program itself takes little of the memory; 0
    /// leaves it out
    #[arg(long, default_value_t = 0)]
    large: usize,
    /// Changes per second
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rate: u64,
    /// The Lease duration in seconds; the other times are client-go's in proportion
    #[arg(long, default_value_t = 15)]
    lease_seconds: u64,
    /// Run on kube-apiserver, with the scripts `up DIR` and `down DIR` of this folder; `tests/envtest` if the folder is
    /// left out [default: the embedded API server]
    #[arg(long, env = "ENVTEST", num_args = 0..=1, default_missing_value = "tests/envtest")]
    envtest: Option<PathBuf>,
    /// Measure only the cost of three idle replicas, on a server without objects. Takes twice `--seconds`, and a minute
    #[arg(long)]
    rest_only: bool,
    /// The folder of logs
    #[arg(long, default_value = "target/bench-shards")]
    folder: PathBuf,
}

/// The figures of one run with one number of replicas.
#[derive(Default)]
struct Figures {
    /// Memory of the largest replica before any object exists.
    empty: Memory,
    /// Memory of the largest replica with all objects, measured [`REST_DURATION`] after the last reconcile. By then the
    /// allocator has returned the memory of the first lists.
    full: Memory,
    /// CPU seconds per second of all idle replicas together, in the time before `full` was measured.
    idle: f64,
    /// CPU seconds of all replicas until all Pods are created, beyond the seconds of idle replicas.
    create: f64,
    /// CPU seconds from the start of the processes until all slots have settled, beyond the seconds of idle replicas.
    start: f64,
    /// CPU seconds for all changes of the step, beyond the seconds of idle replicas. The rate is the same for each
    /// number of replicas.
    changes: f64,
    /// CPU seconds that idle replicas take in the time of these three steps.
    idle_in_steps: f64,
    /// Seconds from the start of the processes until all keys were reconciled.
    create_took: f64,
    start_took: f64,
    /// Number of LIST requests for Pods during the start.
    lists: f64,
    /// Time from each change to the end of its reconcile.
    lags: Lags,
}

impl Figures {
    /// Returns the CPU seconds of all steps, beyond the seconds of idle replicas.
    const fn cpu(&self) -> f64 {
        self.create + self.start + self.changes
    }
}

/// The runs with one number of replicas.
struct Runs {
    /// Number of replicas.
    n: usize,
    runs: Vec<Figures>,
}

impl Runs {
    /// Returns the median of a figure over all runs, of an even number the lower one.
    fn median(&self, of: impl Fn(&Figures) -> f64) -> f64 {
        let mut values: Vec<f64> = self.runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
    }
}

/// A row of the comparison: its title, and the function that reads its value.
type Row = (&'static str, fn(&Figures) -> f64);

/// Measures and prints everything.
///
/// # Errors
/// Two reconciles of one key overlapped, or a change was not reconciled within a minute after the last one. A missed
/// goal is not an error.
pub(crate) async fn run(options: &FigureOptions) -> Result<(), Failure> {
    if options.rest_only {
        return rest_only(options).await;
    }
    let before = load();
    let mut all = REPLICAS.map(|n| Runs { n, runs: Vec::new() });
    let mut last: Option<Stage> = None;
    let mut overlaps = Vec::new();
    for run in 1..=options.runs.max(1) {
        for Runs { n, runs } in &mut all {
            // The previous server must stop before the next one starts.
            if let Some(previous) = last.take() {
                overlaps.extend(previous.journals.overlaps());
            }
            let (figures, stage) = compare(options, *n).await?;
            runs.push(figures);
            last = Some(stage);
            eprintln!("{n} replicas are measured, run {run}");
        }
    }
    let mut stage = last.ok_or("no replicas")?;
    let server = stage.server.name;
    print_title(options, options.primaries, server);
    print_memory(&all);
    print_cpu(&all);
    let moves = moves(&mut stage, options).await?;
    let rolling = rolling(&mut stage, options).await?;
    // No replica runs after this step.
    let rest = rest(&mut stage, options).await?;
    stage.journals.refresh()?;
    overlaps.extend(stage.journals.overlaps());
    moves.print(options);
    rolling.print(options, overlaps.len());
    print_rest(&rest);
    if options.large > 0 {
        drop(stage);
        print_large(options).await?;
    }
    print_line(&format!("\nLoad of the machine (1 minute): {before} before, {} after.", load()));
    if let Some(first) = overlaps.first() {
        return Err(format!("{} reconciles ran at once, such as {first}", overlaps.len()).into());
    }
    let n_lost_in_steps: usize = all.iter().flat_map(|runs| &runs.runs).map(|figures| figures.lags.n_lost).sum();
    let n_lost = n_lost_in_steps + rolling.lags.n_lost;
    if n_lost > 0 {
        return Err(format!("{n_lost} changes were not reconciled").into());
    }
    Ok(())
}

/// Starts a new server for `n` replicas.
async fn new_stage(options: &FigureOptions, n: usize) -> Result<Stage, Failure> {
    let folder = options.folder.join(n.to_string());
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let folder = std::fs::canonicalize(folder)?;
    let server = server(options, &folder).await?;
    let shards = (n > 1).then_some(options.shards);
    let times = lease_times(options.lease_seconds);
    Stage::new(server, sibling_program("shards-replica")?, &folder, shards, times).await
}

/// Measures `n` replicas on a new server, and leaves them running.
async fn compare(options: &FigureOptions, n: usize) -> Result<(Figures, Stage), Failure> {
    let (mut figures, mut stage) = compare_starts(options, n, options.primaries).await?;
    let (before, begun) = (stage.cpu()?, now());
    let changes = Changes::start(&stage, options.primaries, options.rate, 0);
    sleep(Duration::from_secs(options.seconds)).await;
    let sent = changes.stop().await?;
    figures.lags = lags(&mut stage, &sent).await?;
    let idle = figures.idle * seconds(begun, now());
    figures.changes = stage.cpu()? - before - idle;
    figures.idle_in_steps += idle;
    Ok((figures, stage))
}

/// Measures `n` replicas that start over objects on a new server, and leaves them running.
///
/// The replicas start three times: without objects, with primaries that have no Pods, and with all Pods. So each figure
/// comes from fresh processes.
async fn compare_starts(options: &FigureOptions, n: usize, primaries: usize) -> Result<(Figures, Stage), Failure> {
    let mut stage = new_stage(options, n).await?;
    let mut figures = Figures::default();

    start(&mut stage, n)?;
    stage.wait_for_shares().await?;
    figures.empty = largest(&stage)?;
    stage.stop_all().await?;

    stage.create_groups(primaries).await?;
    let begun = now();
    start(&mut stage, n)?;
    let done = stage.wait_for_all(primaries, begun).await?;
    let (create, create_time) = (stage.cpu()?, seconds(begun, now()));
    figures.create_took = seconds(begun, done);
    stage.stop_all().await?;

    let lists = lists(&stage).await?;
    let begun = now();
    start(&mut stage, n)?;
    let done = stage.wait_for_all(primaries, begun).await?;
    let (start, start_time, rests_since) = (stage.cpu()?, seconds(begun, now()), now());
    figures.start_took = seconds(begun, done);
    figures.lists = self::lists(&stage).await? - lists;
    sleep(REST_DURATION).await;
    figures.full = largest(&stage)?;
    figures.idle = (stage.cpu()? - start) / seconds(rests_since, now());
    figures.create = create - figures.idle * create_time;
    figures.start = start - figures.idle * start_time;
    figures.idle_in_steps = figures.idle * (create_time + start_time);
    Ok((figures, stage))
}

/// Returns the seconds between two times.
fn seconds(from: u64, to: u64) -> f64 {
    between(from, to).as_secs_f64()
}

/// Compares and prints a start over `--large` primaries.
async fn print_large(options: &FigureOptions) -> Result<(), Failure> {
    let mut all = REPLICAS.map(|n| Runs { n, runs: Vec::new() });
    let mut server = "";
    for Runs { n, runs } in &mut all {
        let (figures, stage) = compare_starts(options, *n, options.large).await?;
        server = stage.server.name;
        runs.push(figures);
    }
    print_line("");
    print_title(options, options.large, server);
    print_memory(&all);
    Ok(())
}

/// Returns the number of LIST requests for Pods that the server has counted.
async fn lists(stage: &Stage) -> Result<f64, Failure> {
    let counts = stage.server.requests("pods").await?;
    Ok(counts.into_iter().filter(|(verb, _)| verb == "LIST").map(|(_, count)| count).sum())
}

/// Starts kube-apiserver if the options name a folder with its scripts, and the embedded server otherwise.
async fn server(options: &FigureOptions, folder: &Path) -> Result<Server, Failure> {
    match &options.envtest {
        Some(scripts) => Server::real(&std::fs::canonicalize(scripts)?, folder, None).await,
        None => Server::embedded(folder).await,
    }
}

/// Starts `n` replicas at once.
fn start(stage: &mut Stage, n: usize) -> Result<(), Failure> {
    (0..n).try_for_each(|_| stage.start())
}

/// Returns the maximum of each memory value over all replicas. The three maxima may come from different replicas.
fn largest(stage: &Stage) -> Result<Memory, Failure> {
    let mut largest = Memory::default();
    for replica in &stage.replicas {
        let found = replica.memory()?;
        largest = Memory {
            rss: largest.rss.max(found.rss),
            anonymous: largest.anonymous.max(found.anonymous),
            pss: largest.pss.max(found.pss),
            peak: largest.peak.max(found.peak),
        };
    }
    Ok(largest)
}

/// Times until other replicas reconciled the keys of a replica that ended.
struct Moves {
    /// After SIGKILL, when the Leases have to expire first.
    kills: Vec<Duration>,
    /// After SIGTERM, when the replica releases its Leases.
    stops: Vec<Duration>,
    /// Maximum number of keys that a replica owned when it ended.
    n_keys: usize,
}

/// Kills and stops replicas in turn. A new replica replaces each one.
async fn moves(stage: &mut Stage, options: &FigureOptions) -> Result<Moves, Failure> {
    let mut moves = Moves { kills: Vec::new(), stops: Vec::new(), n_keys: 0 };
    for number in 0..2 * options.repeats {
        stage.wait_for_shares().await?;
        let mut ends = stage.replicas.remove(0);
        let keys = stage.keys_of(&ends.user, options.primaries).await?;
        let (user, is_kill, begun) = (ends.user.clone(), number % 2 == 0, now());
        if is_kill {
            drop(ends);
            stage.journals.record_kill(&user, now())?;
        } else {
            ends.signal("TERM")?;
            ends.wait_for_exit().await?;
        }
        let last = stage.wait_until_elsewhere(&user, &keys, begun).await?;
        moves.n_keys = moves.n_keys.max(keys.len());
        if is_kill { &mut moves.kills } else { &mut moves.stops }.push(between(begun, last));
        stage.start()?;
    }
    stage.wait_for_shares().await?;
    Ok(moves)
}

impl Moves {
    /// Prints the longest times next to their goals: the Lease duration plus one second after a kill, one second
    /// after a stop.
    fn print(&self, options: &FigureOptions) {
        let lease = Duration::from_secs(options.lease_seconds);
        let longest = |times: &[Duration]| times.iter().max().copied().unwrap_or_default();
        let seconds = |times: &[Duration]| {
            let times: Vec<_> = times.iter().map(|time| format!("{:.2}", time.as_secs_f64())).collect();
            times.join(", ")
        };
        print_line(&format!(
            "\n| one of 3 replicas ends, with up to {} keys | longest, s | each, s | goal, s | |",
            self.n_keys
        ));
        print_line("|---|---|---|---|---|");
        let goals =
            [("killed", &self.kills, lease + Duration::from_secs(1)), ("stopped", &self.stops, Duration::from_secs(1))];
        for (what, times, goal) in goals {
            let longest = longest(times);
            let (longest_s, goal_s) = (longest.as_secs_f64(), goal.as_secs());
            let verdict = verdict(longest, goal);
            print_line(&format!(
                "| {what}: its keys run elsewhere | {longest_s:.2} | {} | {goal_s} | {verdict} |",
                seconds(times)
            ));
        }
    }
}

/// The result of a rolling update while objects change.
struct Rolling {
    /// Times of the changes during the update.
    lags: Lags,
    /// Time from before the start of the first new replica to after the end of the last old one.
    took: Duration,
}

/// Replaces each replica as a Deployment does: a new one starts, then an old one stops.
async fn rolling(stage: &mut Stage, options: &FigureOptions) -> Result<Rolling, Failure> {
    let begun = now();
    // Above all numbers of earlier changes.
    let changes = Changes::start(stage, options.primaries, options.rate, 1_000_000);
    sleep(REPLICA_START_INTERVAL).await;
    for _ in 0..stage.replicas.len() {
        stage.start()?;
        stage.wait_for_shares().await?;
        let mut old = stage.replicas.remove(0);
        old.signal("TERM")?;
        old.wait_for_exit().await?;
        sleep(REPLICA_START_INTERVAL).await;
    }
    stage.wait_for_shares().await?;
    let took = between(begun, now());
    let sent = changes.stop().await?;
    Ok(Rolling { lags: lags(stage, &sent).await?, took })
}

impl Rolling {
    /// Prints the times of the changes, and the number of overlaps in the whole run.
    fn print(&self, options: &FigureOptions, n_overlaps: usize) {
        let Self { lags, took } = self;
        let (p50, p99, max) = (lags.quantile(0.5), lags.quantile(0.99), lags.quantile(1.0));
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = lags.ms.len() as f64 / took.as_secs_f64();
        print_line("\n| rolling update of 3 replicas | | goal | |\n|---|---|---|---|");
        print_line(&format!(
            "| changes per second, over {:.0} s | {rate:.0} | {} | |",
            took.as_secs_f64(),
            options.rate
        ));
        print_line(&format!("| change until reconciled, 50 %, ms | {p50:.0} | | |"));
        print_line(&format!("| … 99 %, ms | {p99:.0} | 2,000 | {} |", verdict(p99, 2_000.0)));
        print_line(&format!("| … all, ms | {max:.0} | | |"));
        print_line(&format!(
            "| changes that were not reconciled | {} | 0 | {} |",
            lags.n_lost,
            verdict(lags.n_lost, 0)
        ));
        print_line(&format!(
            "| reconciles of one key at once, in the whole run | {n_overlaps} | 0 | {} |",
            verdict(n_overlaps, 0)
        ));
    }
}

/// Measures the cost at rest of the running replicas, and stops them.
async fn rest(stage: &mut Stage, options: &FigureOptions) -> Result<Rest, Failure> {
    // One Lease per slot, one seat per replica, and one for the settings, each renewed every 2 s with the default Lease
    // duration of 15 s.
    #[expect(clippy::cast_precision_loss, reason = "few replicas and seconds")]
    let (n, period) = (stage.replicas.len() as f64, options.lease_seconds as f64 * 2.0 / 15.0);
    let expected = (f64::from(options.shards) + n + 1.0) / period;
    Rest::measure(stage, Duration::from_secs(options.seconds), expected).await
}

/// Prints the cost at rest.
fn print_rest(rest: &Rest) {
    print_line("");
    for line in rest.lines() {
        print_line(&line);
    }
}

/// Measures and prints only the cost at rest, with the largest number of replicas on a new server without objects.
async fn rest_only(options: &FigureOptions) -> Result<(), Failure> {
    let (n, before) = (REPLICAS.into_iter().max().unwrap_or_default(), load());
    let mut stage = new_stage(options, n).await?;
    start(&mut stage, n)?;
    sleep(SERVER_START_DELAY).await;
    let rest = rest(&mut stage, options).await?;
    print_line(&format!("No objects, {} slots, {}", options.shards, stage.server.name));
    print_rest(&rest);
    print_line(&format!("\nLoad of the machine (1 minute): {before} before, {} after.", load()));
    Ok(())
}

/// Prints the number of objects and slots.
fn print_title(options: &FigureOptions, primaries: usize, server: &str) {
    print_line(&format!("{primaries} primaries, {} Pods, {} slots, {server}", primaries * PODS_EACH, options.shards));
}

/// Prints the comparison of memory. The goal is `1 / n + 0.2` of the single replica's.
fn print_memory(all: &[Runs]) {
    let Some(single) = all.first() else { return };
    print_line("\n| replicas | | per replica | of the single one | goal | |\n|---|---|---|---|---|---|");
    for runs in all {
        let goal = 1.0 / f64::from(u32::try_from(runs.n).unwrap_or(u32::MAX)) + 0.2;
        let memory: [Row; 7] = [
            ("memory at rest, MiB", |figures| figures.full.rss),
            ("… in parts of shared pages (PSS)", |figures| figures.full.pss),
            ("… without pages of files (RssAnon)", |figures| figures.full.anonymous),
            ("… more than without objects", |figures| figures.full.rss - figures.empty.rss),
            ("peak, MiB", |figures| figures.full.peak),
            ("without objects, MiB", |figures| figures.empty.rss),
            ("without objects and pages of files, MiB", |figures| figures.empty.anonymous),
        ];
        for (what, of) in memory {
            let (value, ratio) = (runs.median(of), runs.median(of) / single.median(of));
            let has_goal = runs.n > 1 && !what.starts_with("without");
            let (goal, verdict) =
                if has_goal { (format!("{goal:.2}"), verdict(ratio, goal)) } else { (String::new(), "") };
            print_line(&format!("| {} | {what} | {value:.1} | {ratio:.2} | {goal} | {verdict} |", runs.n));
        }
    }
}

/// Prints the comparison of CPU and times. The goal for CPU is 1.3 times the single replica's.
fn print_cpu(all: &[Runs]) {
    let Some(single) = all.first() else { return };
    print_line("\n| replicas | | all replicas | of the single one | goal | |\n|---|---|---|---|---|---|");
    for runs in all {
        let n = runs.n;
        let cpu: [Row; 5] = [
            ("CPU to create all Pods, s", |figures| figures.create),
            ("CPU to start over them, s", |figures| figures.start),
            ("CPU of the changes, s", |figures| figures.changes),
            ("CPU in all, s", Figures::cpu),
            ("… with the CPU of idle replicas, s", |figures| figures.cpu() + figures.idle_in_steps),
        ];
        for (what, of) in cpu {
            let (value, ratio) = (runs.median(of), runs.median(of) / single.median(of));
            let (goal, verdict) = if n == 1 { ("", "") } else { ("1.3", verdict(ratio, 1.3)) };
            print_line(&format!("| {n} | {what} | {value:.2} | {ratio:.2} | {goal} | {verdict} |"));
        }
        print_line(&format!(
            "| {n} | CPU at rest, % of a core | {:.2} | | | |",
            runs.median(|figures| figures.idle) * 100.0
        ));
        print_line(&format!("| {n} | lists of Pods at the start | {} | | | |", runs.median(|figures| figures.lists)));
        let times: [Row; 2] = [
            ("until all Pods are created, s", |figures| figures.create_took),
            ("until all keys are reconciled after a start, s", |figures| figures.start_took),
        ];
        for (what, of) in times {
            print_line(&format!("| {n} | {what} | {:.1} | | | |", runs.median(of)));
        }
        let [p50, p99] = [0.5, 0.99].map(|part| runs.median(|figures| figures.lags.quantile(part)));
        print_line(&format!("| {n} | change until reconciled, 50 % and 99 %, ms | {p50:.0}, {p99:.0} | | | |"));
    }
}

/// Returns the word that the table shows for a figure that should be at most its goal.
fn verdict<T: PartialOrd + Copy>(figure: T, goal: T) -> &'static str {
    if figure <= goal { "reached" } else { "missed" }
}

/// Prints a line of the result.
#[expect(clippy::print_stdout, reason = "the result of the program")]
fn print_line(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_of_all_runs() {
        for (starts, expected) in [(&[3.0][..], 3.0), (&[9.0, 1.0, 2.0], 2.0), (&[4.0, 1.0, 3.0, 2.0], 2.0)] {
            let runs = starts.iter().map(|start| Figures { start: *start, ..Figures::default() }).collect();
            let median = Runs { n: 1, runs }.median(|figures| figures.start);
            assert!((median - expected).abs() < f64::EPSILON, "{starts:?}: {median}");
        }
    }
}
