//! Processes that run steps at the same time as this one, each with its output in a file.

use std::{path::PathBuf, process::Child};

use crate::{
    Options, Result, descendants,
    gate::Gate,
    process::{Run, find, scratch, target},
    real_server, shared_build,
};

/// The way in which a process runs steps at the same time as this one.
#[derive(Clone, Copy)]
pub(crate) enum Lane {
    /// Builds of programs that suites wait for, and checks that compile nothing of the workspace. They begin at once, and
    /// use what the compiler and the tests leave of the CPU time before [`Lane::Idle`] does.
    Early,
    /// Compilers and linters, which take only CPU time that nothing else wants. At normal priority, a compiler would make
    /// tests miss their deadlines. They have a separate target directory, because Cargo locks it while it compiles.
    Idle,
    /// Suites at normal priority, which spend most of their time waiting.
    Waiting,
}

impl Lane {
    /// Returns the niceness of the processes, or `None` if they inherit it.
    const fn niceness(self) -> Option<&'static str> {
        match self {
            Self::Early => Some("10"),
            Self::Idle => Some("19"),
            Self::Waiting => None,
        }
    }
}

/// A process that runs steps in the background.
pub(crate) struct BackgroundSteps {
    /// The running `cargo xtask`, which is killed on drop.
    process: Child,
    /// The file with standard output and standard error, so that the output of different steps does not mix.
    output: PathBuf,
}

impl BackgroundSteps {
    /// Starts `cargo xtask ARGUMENTS`, whose output goes to a file of the given name.
    pub(crate) fn start(lane: Lane, name: &str, arguments: &[&str], options: Options) -> Result<Self> {
        let output = scratch("background")?.join(name);
        let xtask = std::env::current_exe().map_err(|error| format!("failed to find the xtask program: {error}"))?;
        let run = match lane.niceness().zip(find("nice")) {
            Some((niceness, nice)) => Run::new(nice).args(["-n", niceness]).arg(xtask),
            None => Run::new(xtask),
        };
        let run = match lane {
            Lane::Idle => {
                let idle_target = target().join("beside");
                shared_build::seed(&target(), &idle_target)?;
                run.env("CARGO_TARGET_DIR", idle_target)
            }
            Lane::Early | Lane::Waiting => run,
        };
        let run = run.args(arguments).args(options.install.then_some("--install"));
        let process = run.args(options.strict.then_some("--strict")).start(&output)?;
        eprintln!("\n=== in the background: {}; see {}", arguments.join(" "), output.display());
        Ok(Self { process, output })
    }

    /// Returns `true` if the steps have ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(Some(_status)))
    }

    /// Returns the id of the process, or `None` if it has ended, because another process may have its id by now.
    pub(crate) fn running_id(&mut self) -> Option<u32> {
        (!self.has_ended()).then(|| self.process.id())
    }

    /// Prints that a step has failed if the process has ended with a failure. The output follows when all steps have ended.
    pub(crate) fn print_failure(&mut self) {
        if matches!(self.process.try_wait(), Ok(Some(status)) if !status.success()) {
            eprintln!("error: a step failed: see {}", self.output.display());
        }
    }

    /// Waits for the end of the steps, prints their output, and adds their results to the gate.
    ///
    /// # Errors
    /// A step failed, and the error has the one that the process has printed. Or its output is lost, and with it the tests that
    /// ran and the checks that were left out.
    pub(crate) fn finish(mut self, gate: &mut Gate) -> Result {
        let status = self.process.wait().map_err(|error| format!("failed to wait for the background steps: {error}"));
        let output = std::fs::read(&self.output).map_err(|error| format!("{}: {error}", self.output.display()))?;
        let output = String::from_utf8_lossy(&output);
        eprintln!("\n=== from the background:\n{output}");
        gate.read(&output);
        if status?.success() {
            Ok(())
        } else {
            let error = last_error(&output).unwrap_or("it was killed");
            Err(format!("{error}\n  (the whole output is above and in {})", self.output.display()))
        }
    }
}

/// Returns the error at the end of the output of a `cargo xtask`, or `None` if it printed none.
fn last_error(output: &str) -> Option<&str> {
    output.rsplit_once("\nerror: ").map(|(_before, error)| error.trim_end())
}

impl Drop for BackgroundSteps {
    /// Kills the steps if they still run, and stops their API servers.
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            let descendants = descendants::of(self.process.id(), &[]);
            let _ended = self.process.kill();
            let _reaped = self.process.wait();
            descendants::kill(&descendants);
        }
        real_server::stop_servers_of(self.process.id());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl BackgroundSteps {
        /// Starts a shell script in place of steps.
        pub(crate) fn of_script(name: &str, script: &str) -> Self {
            let output = scratch("background-test").unwrap().join(name);
            let process = Run::new("sh").args(["-c", script]).start(&output).unwrap();
            Self { process, output }
        }
    }

    #[test]
    fn failed_process_passes_on_its_last_error() {
        let output = "error: test failed\nstep seconds\nerror: docs: cargo doc failed\nclippy: cargo clippy failed\n";
        assert_eq!(last_error(output), Some("docs: cargo doc failed\nclippy: cargo clippy failed"));
        assert_eq!(last_error("step seconds\n"), None);
    }

    #[test]
    fn failure_and_results_reach_the_gate() {
        let steps = BackgroundSteps::of_script(
            "failed",
            "echo 'test a ... ok'; echo 'test result: ok. 1 passed; 0 failed'; echo 'error: clippy: lints' >&2; exit 1",
        );
        let mut gate = Gate::new(Options::default());
        let error = steps.finish(&mut gate).unwrap_err();
        assert!(error.starts_with("clippy: lints\n"), "{error}");
        assert_eq!(gate.ledger.n_passed(), 1);
    }

    #[test]
    fn success_with_lost_output_is_a_failure() {
        let mut steps = BackgroundSteps::of_script("lost", "exit 0");
        steps.output.set_extension("removed");
        assert!(steps.finish(&mut Gate::new(Options::default())).unwrap_err().contains("lost.removed: "));
    }

    #[test]
    fn only_running_process_has_an_id() {
        let mut steps = BackgroundSteps::of_script("running", "exec sleep 600");
        let id = steps.process.id();
        assert_eq!(steps.running_id(), Some(id));
        steps.process.kill().unwrap();
        steps.process.wait().unwrap();
        assert_eq!(steps.running_id(), None);
    }
}
