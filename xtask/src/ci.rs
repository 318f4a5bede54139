//! The gate: several steps, their times, and an account of what did not run.

use std::time::{Duration, Instant};

use crate::{Options, Result, ledger::Ledger, steps::Step};

/// Reasons of ignored tests that no step of the gate runs.
const BY_HAND: &str = "takes an hour";

/// Something that a step needs and that this machine lacks.
struct LeftOut {
    what: String,
    /// The part of the reasons for which tests are ignored, of those that therefore don't run.
    reasons: &'static [&'static str],
}

/// What steps share.
pub(crate) struct Gate {
    pub(crate) install: bool,
    is_strict: bool,
    pub(crate) ledger: Ledger,
    left_out: Vec<LeftOut>,
}

impl Gate {
    pub(crate) fn new(options: Options) -> Self {
        let Options { install, strict } = options;
        Self { install, is_strict: strict, ledger: Ledger::default(), left_out: Vec::new() }
    }

    /// Notes that something was not checked, and which ignored tests did not run because of it.
    pub(crate) fn leave_out(&mut self, what: impl Into<String>, reasons: &'static [&'static str]) {
        let what = what.into();
        // Several steps may need the same.
        if self.left_out.iter().any(|left_out| left_out.what == what) {
            return;
        }
        eprintln!("left out: {what}");
        self.left_out.push(LeftOut { what, reasons });
    }

    /// Prints what was left out; with `--strict` that is an error.
    pub(crate) fn finish(&self) -> Result {
        for left_out in &self.left_out {
            eprintln!("left out: {}", left_out.what);
        }
        if self.is_strict && !self.left_out.is_empty() {
            return Err("something was left out, and --strict (or STRICT=1) forbids it".into());
        }
        Ok(())
    }

    /// Returns the ignored tests that ran in no step, although nothing explains it.
    fn forgotten(&self) -> Vec<String> {
        let is_explained = |reason: &str| {
            let mut reasons = self.left_out.iter().flat_map(|left_out| left_out.reasons);
            reason.starts_with(BY_HAND) || reasons.any(|part| reason.contains(part))
        };
        let never = self.ledger.never_ran().into_iter().filter(|(_test, reason)| !is_explained(reason));
        never.map(|(test, reason)| format!("  {test} ({reason})")).collect()
    }
}

/// Returns the CPU time of all child processes that have ended, where the system tells it.
fn cpu_time() -> Option<Duration> {
    /// Linux reports times in hundredths of a second to programs, whatever its own clock is.
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may have spaces.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u32 = fields.get(13)?.parse::<u32>().ok()? + fields.get(14)?.parse::<u32>().ok()?;
    Some(TICK * ticks)
}

struct Taken {
    step: Step,
    wall: Duration,
    cpu: Option<Duration>,
}

fn print_times(times: &[Taken]) {
    eprintln!("\n{:<14}{:>10}{:>12}", "step", "seconds", "CPU seconds");
    for Taken { step, wall, cpu } in times {
        let cpu = cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.as_secs().to_string());
        eprintln!("{:<14}{:>10}{cpu:>12}", step.name(), wall.as_secs());
    }
    let all: Duration = times.iter().map(|taken| taken.wall).sum();
    eprintln!("{:<14}{:>10}", "all", all.as_secs());
}

/// Runs steps, all of them if none is named. The first that fails ends the run.
pub(crate) fn run(steps: &[Step], options: Options) -> Result {
    let steps = if steps.is_empty() { &Step::ALL[..] } else { steps };
    let mut gate = Gate::new(options);
    let mut times = Vec::new();
    let mut result = Ok(());
    for step in steps {
        eprintln!("\n=== {}", step.name());
        let (begun, cpu_before) = (Instant::now(), cpu_time());
        result = step.run(&mut gate).map_err(|error| format!("{}: {error}", step.name()));
        let cpu = cpu_time().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
        times.push(Taken { step: *step, wall: begun.elapsed(), cpu });
        if result.is_err() {
            break;
        }
    }
    print_times(&times);
    result?;
    let forgotten = gate.forgotten();
    if Step::ALL.iter().all(|step| steps.contains(step)) && !forgotten.is_empty() {
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
