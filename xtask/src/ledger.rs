//! Counts tests in the output of `cargo test`, to find tests that one step ignores and no other step runs.
//!
//! It parses the human-readable output, because libtest's JSON format is unstable.

use std::collections::{BTreeMap, BTreeSet};

/// A test: its binary and its name.
type Test = (String, String);

/// The test results of all steps so far.
#[derive(Default)]
pub(crate) struct Ledger {
    /// The test binary that is currently running.
    binary: String,
    /// A test whose result has not been printed yet. With `--nocapture`, its own output comes between its name and its
    /// result.
    pending: Option<String>,
    /// Tests of the current `cargo test` that ran for longer than a minute, as long as they have no result.
    slow: BTreeSet<Test>,
    /// Number of times that each test passed, in all steps.
    passed: BTreeMap<Test, usize>,
    /// The tests that libtest skipped, with the reason of each.
    ignored: BTreeMap<Test, Ignored>,
    /// Number of passed tests by the lines `test result: …`, including doc tests.
    n_passed: usize,
    /// Number of failed tests of all steps, including doc tests.
    n_failed: usize,
}

/// An ignored test.
#[derive(Default)]
struct Ignored {
    /// Number of times that it was ignored. Two binaries of the same name may contain a test of the same name.
    n: usize,
    /// The reason of its `#[ignore]`.
    reason: String,
}

/// Parses the line that cargo prints before it runs a binary, and returns the binary's name without its hash.
///
/// The hash is removed, because it differs between the builds of two steps.
fn binary(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(package) = line.strip_prefix("Doc-tests ") {
        return Some(format!("doc {package}"));
    }
    let path = line.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once('(')?.1;
    let file = path.rsplit(['/', '\\']).next()?;
    Some(file.rsplit_once('-')?.0.to_owned())
}

/// Parses the line that libtest prints once for a test that runs for longer than a minute, and returns the name of the test.
fn slow_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" has been running for over 60 seconds")
}

/// Returns the number before a word of the line `test result: …`, or 0 if the line lacks the word.
fn count(line: &str, word: &str) -> usize {
    let number = |part: &str| part.trim().strip_suffix(word)?.split_whitespace().last()?.parse().ok();
    line.split(';').find_map(number).unwrap_or(0)
}

impl Ledger {
    /// Starts reading the output of another `cargo test`. A pending test is dropped: its binary crashed before the
    /// result.
    ///
    /// The counts of earlier runs are kept.
    pub(crate) fn begin(&mut self) {
        self.pending = None;
        self.slow.clear();
    }

    /// Reads a line of the output of `cargo test`.
    ///
    /// Lines of unknown form are skipped, because tests may print anything.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(binary) = binary(line) {
            self.binary = binary;
            self.pending = None;
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.n_passed += count(counts, "passed");
            self.n_failed += count(counts, "failed");
        } else if let Some(name) = slow_test(line) {
            self.slow.insert((self.binary.clone(), name.to_owned()));
        } else if let Some((name, result)) = line.strip_prefix("test ").and_then(|line| line.split_once(" ... ")) {
            if !self.note(name, result) {
                self.pending = Some(name.to_owned());
            }
        } else if let Some(name) = self.pending.take()
            && !self.note(&name, line)
        {
            self.pending = Some(name);
        }
    }

    /// Records the result of a test. Returns `false` if `result` is other output.
    fn note(&mut self, name: &str, result: &str) -> bool {
        let test = (self.binary.clone(), name.to_owned());
        if result == "ok" {
            *self.passed.entry(test.clone()).or_default() += 1;
        } else if let Some(reason) = result.strip_prefix("ignored") {
            // Doc examples marked `ignore` have no reason.
            if !self.binary.starts_with("doc ") {
                let ignored = self.ignored.entry(test.clone()).or_default();
                ignored.n += 1;
                reason.trim_start_matches([',', ' ']).clone_into(&mut ignored.reason);
            }
        } else if result != "FAILED" {
            return false;
        }
        self.slow.remove(&test);
        true
    }

    /// Returns the end of an error message with the tests that ran for longer than a minute and have no result, or an empty
    /// string. They are the ones that hung if the step was killed.
    pub(crate) fn describe_unfinished(&self) -> String {
        if self.slow.is_empty() {
            return String::new();
        }
        let names: Vec<String> = self.slow.iter().map(|(binary, name)| format!("{binary}: {name}")).collect();
        format!(", and these did not end: {}", names.join(", "))
    }

    /// Returns the number of passed tests.
    pub(crate) fn n_passed(&self) -> usize {
        self.n_passed
    }

    /// Returns the number of failed tests.
    pub(crate) fn n_failed(&self) -> usize {
        self.n_failed
    }

    /// Returns the tests that were ignored more often than they passed in all steps, with their reasons.
    ///
    /// The binary precedes the name, as in `podset: slow`.
    pub(crate) fn never_ran(&self) -> Vec<(String, &str)> {
        let never =
            self.ignored.iter().filter(|(test, ignored)| self.passed.get(*test).copied().unwrap_or(0) < ignored.n);
        never.map(|((binary, name), ignored)| (format!("{binary}: {name}"), ignored.reason.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(output: &str) -> Ledger {
        let mut ledger = Ledger::default();
        output.lines().for_each(|line| ledger.read(line));
        ledger
    }

    const FIRST: &str = "\
     Running unittests src/lib.rs (target/debug/deps/podset-0123456789abcdef)
test fast ... ok
test slow ... ignored, needs KUBECONFIG
test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
   Doc-tests podset
test src/lib.rs - example (line 1) ... ignored
test result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn ignored_test_that_runs_nowhere_is_named() {
        let ledger = ledger(FIRST);
        assert_eq!(ledger.never_ran(), [("podset: slow".to_owned(), "needs KUBECONFIG")]);
        assert_eq!((ledger.n_passed(), ledger.n_failed()), (1, 0));
    }

    #[test]
    fn ignored_test_that_passes_later_has_run() {
        let later = "
     Running tests/cluster.rs (target/debug/deps/cluster-0123456789abcdef)
test slow ... ok
     Running unittests src/lib.rs (target/debug/deps/podset-0123456789abcdef)
test slow ... prints something
and more
ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s
";
        assert_eq!(ledger(&format!("{FIRST}{later}")).never_ran(), []);
        let elsewhere = later.replace("podset-", "website-");
        assert_eq!(ledger(&format!("{FIRST}{elsewhere}")).never_ran().len(), 1);
    }

    #[test]
    fn slow_tests_without_result_are_named() {
        let slow = "     Running tests/cluster.rs (target/debug/deps/cluster-0)
test hangs has been running for over 60 seconds
test hangs ... prints something
test slow has been running for over 60 seconds
test slow ... ok
";
        let mut ledger = ledger(slow);
        assert_eq!(ledger.describe_unfinished(), ", and these did not end: cluster: hangs");
        ledger.begin();
        assert_eq!(ledger.describe_unfinished(), "");
    }

    #[test]
    fn failed_test_has_not_run() {
        let later = "     Running unittests src/lib.rs (target/debug/deps/podset-0)\ntest slow ... FAILED\n\
            test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s";
        let ledger = ledger(&format!("{FIRST}{later}"));
        assert_eq!((ledger.never_ran().len(), ledger.n_failed()), (1, 1));
    }
}
