//! State that the steps of the gate share: the results of tests, and everything that this machine lacks.
//!
//! A test that needs something which a machine may lack is `#[ignore]`d with a reason, and one step runs it. If the
//! machine lacks it, the step records that. An ignored test that ran in no step and has no such explanation is an
//! error.

use crate::{Options, Result, ledger::Ledger};

/// Prefix of the `#[ignore]` reason of tests that no step of the gate runs.
const BY_HAND: &str = "runs each week";

/// Something that a step needs and that this machine lacks.
struct LeftOut {
    /// The sentence that the gate prints.
    what: String,
    /// Parts of `#[ignore]` reasons. Tests whose reason contains one of them did not run because of this lack.
    reasons: Vec<String>,
}

/// Between the sentence of something that was left out and the parts of `#[ignore]` reasons, when it is printed.
const SKIPS: &str = "; skips tests with: ";

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, reasons } = self;
        if reasons.is_empty() { write!(f, "{what}") } else { write!(f, "{what}{SKIPS}{}", reasons.join(", ")) }
    }
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
    pub(crate) fn leave_out(&mut self, what: impl Into<String>, reasons: &[&str]) {
        let left_out = LeftOut { what: what.into(), reasons: reasons.iter().map(|&part| part.to_owned()).collect() };
        if self.left_out.iter().any(|known| known.what == left_out.what) {
            return;
        }
        eprintln!("left out: {left_out}");
        self.left_out.push(left_out);
    }

    /// Adds the results of another process from its output: the tests, and what it left out.
    pub(crate) fn read(&mut self, output: &str) {
        self.ledger.begin();
        for line in output.lines() {
            match line.strip_prefix("left out: ") {
                Some(left_out) => {
                    let (what, reasons) = left_out.split_once(SKIPS).unwrap_or((left_out, ""));
                    let reasons: Vec<&str> = reasons.split(", ").filter(|part| !part.is_empty()).collect();
                    self.leave_out(what, &reasons);
                }
                None => self.ledger.read(line),
            }
        }
    }

    /// Prints everything that was left out.
    ///
    /// # Errors
    /// Something was left out, and `--strict` is set.
    pub(crate) fn finish(&self) -> Result {
        for left_out in &self.left_out {
            eprintln!("left out: {left_out}");
        }
        if self.is_strict && !self.left_out.is_empty() {
            return Err("something was left out, and --strict (or STRICT=1) forbids it".into());
        }
        Ok(())
    }

    /// Returns the ignored tests that ran in no step without an explanation.
    ///
    /// Only a complete run can report them, because another step may run the test.
    pub(crate) fn unexplained_ignored_tests(&self) -> Vec<String> {
        let is_explained = |reason: &str| {
            let mut reasons = self.left_out.iter().flat_map(|left_out| &left_out.reasons);
            reason.starts_with(BY_HAND) || reasons.any(|part| reason.contains(part.as_str()))
        };
        let never = self.ledger.never_ran().into_iter().filter(|(_test, reason)| !is_explained(reason));
        never.map(|(test, reason)| format!("  {test} ({reason})")).collect()
    }
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
        gate.ledger.read("test c ... ignored, runs each week");
        gate.leave_out("Go is not installed", &["needs Go"]);
        assert_eq!(gate.unexplained_ignored_tests(), ["  interop: b (needs KUBECONFIG: cargo xtask real-server)"]);
    }

    #[test]
    fn output_of_another_process_has_its_results() {
        let mut gate = Gate::new(Options::default());
        gate.ledger.read("     Running go.rs (target/debug/deps/interop-0)");
        for test in ["a ... ignored, needs Go", "b ... ignored, needs curl", "c ... ignored, needs KUBECONFIG"] {
            gate.ledger.read(&format!("test {test}"));
        }
        let mut other = Gate::new(Options::default());
        other.leave_out("Go is not installed", &["needs Go", "needs Maven"]);
        let left_out = format!("left out: {}", other.left_out[0]);
        let ran =
            "     Running go.rs (target/debug/deps/interop-0)\ntest c ... ok\ntest result: ok. 1 passed; 0 failed";
        gate.read(&format!("{left_out}\n{ran}\n{left_out}"));
        assert_eq!(gate.unexplained_ignored_tests(), ["  interop: b (needs curl)"]);
        assert_eq!((gate.ledger.n_passed(), gate.left_out.len()), (1, 1));
    }
}
