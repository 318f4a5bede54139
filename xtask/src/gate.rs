//! State that the steps of the gate share: the results of tests, and everything that this machine lacks.
//!
//! A test that needs something which a machine may lack is `#[ignore]`d with a reason, and one step runs it. If the
//! machine lacks it, the step records that. An ignored test that ran in no step and has no such explanation is an
//! error.

use crate::{Options, Result, ledger::Ledger};

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
    pub(crate) fn forgotten(&self) -> Vec<String> {
        let is_explained = |reason: &str| {
            let mut reasons = self.left_out.iter().flat_map(|left_out| left_out.reasons);
            reason.starts_with(BY_HAND) || reasons.any(|part| reason.contains(part))
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
        gate.ledger.read("test c ... ignored, takes an hour");
        gate.leave_out("Go is not installed", &["needs Go"]);
        assert_eq!(gate.forgotten(), ["  interop: b (needs KUBECONFIG: cargo xtask real-server)"]);
    }
}
