//! Child processes of steps. They run in the root of the repository. The output of tests is parsed while it is printed.

use std::{
    ffi::{OsStr, OsString},
    io::{BufRead, BufReader, Read, Write, pipe},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use crate::{Result, ledger::Ledger};

/// Longest silence after which the output of a command that has ended is complete. A process that it left behind may hold the
/// pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The variable of the tests with the kubeconfig file of a real API server. Without it they use only the embedded server.
pub(crate) const REAL_SERVER: &str = "REAL_SERVER";

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository").to_owned()
}

/// Returns the target folder: `CARGO_TARGET_DIR`, or `target` in the root.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Returns a folder below `target/xtask` for tools and scratch files, and creates it.
pub(crate) fn scratch(name: &str) -> Result<PathBuf> {
    let folder = target().join("xtask").join(name);
    std::fs::create_dir_all(&folder).map_err(|error| format!("failed to create {}: {error}", folder.display()))?;
    Ok(folder)
}

/// Returns the path of a program in `PATH`, or `None` if it is not installed.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = [program.to_owned(), format!("{program}{}", std::env::consts::EXE_SUFFIX)];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.clone().map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

/// A command to run, with a builder like [`Command`]'s.
pub(crate) struct Run {
    command: Command,
}

/// Returns `cargo SUBCOMMAND`.
pub(crate) fn cargo(subcommand: &str) -> Run {
    Run::new("cargo").arg(subcommand)
}

impl Run {
    /// Returns a command that runs in the root of the repository.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.current_dir(root());
        // `cargo run` sets variables for xtask's own package. If child processes inherited them, build scripts would
        // rerun.
        let own = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
        for (name, _value) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| own.iter().any(|begin| name.starts_with(begin))) {
                command.env_remove(name);
            }
        }
        // Tests must not write to the cluster that a developer works with. A step sets the kubeconfig of the server that it
        // starts.
        command.env_remove("KUBECONFIG").env_remove(REAL_SERVER);
        Self { command }
    }

    /// Appends one argument, which the command gets as it is: no shell splits it.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets one environment variable of the command, over the inherited value.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn envs(mut self, variables: &[(&str, OsString)]) -> Self {
        self.command.envs(variables.iter().map(|(name, value)| (name, value)));
        self
    }

    /// Sets the working directory.
    pub(crate) fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Returns the command line with its short environment variables, for the log and for errors.
    fn command_line(&self) -> String {
        let variables = self.command.get_envs().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value?.to_str()?);
            (name != "PATH" && value.len() < 100).then(|| format!("{name}={value}"))
        });
        let words = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        let words = words.map(|word| word.to_string_lossy().into_owned());
        variables.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Prints the command and runs it. Its output goes to the terminal.
    ///
    /// # Errors
    /// The command can't be started, or its exit status is not 0.
    pub(crate) fn run(self) -> Result {
        eprintln!("$ {}", self.command_line());
        self.run_quietly()
    }

    /// Runs the command without printing it first, for scripts that read its standard output.
    pub(crate) fn run_quietly(mut self) -> Result {
        let line = self.command_line();
        let status = self.command.status().map_err(|error| format!("{line}: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("{line}: {status}")) }
    }

    /// Starts the command, and redirects standard output and standard error to a file.
    pub(crate) fn start(mut self, output: &Path) -> Result<Child> {
        let line = self.command_line();
        let failed = |error| format!("failed to start {line}: {error}");
        let file = std::fs::File::create(output).map_err(failed)?;
        self.command.stdin(Stdio::null()).stdout(file.try_clone().map_err(failed)?).stderr(file);
        self.command.spawn().map_err(failed)
    }

    /// Runs the command and discards its output. Returns `true` if it succeeded.
    pub(crate) fn succeeds(mut self) -> bool {
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.command.status().is_ok_and(|status| status.success())
    }

    /// Runs the command, and returns its standard output without the trailing newline.
    pub(crate) fn read(mut self) -> Result<String> {
        let line = self.command_line();
        let output =
            self.command.stderr(Stdio::inherit()).output().map_err(|error| format!("failed to run {line}: {error}"))?;
        if !output.status.success() {
            return Err(format!("{line}: {}", output.status));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Runs the command. Returns `true` if it succeeded, and its complete output, which the terminal also shows.
    pub(crate) fn output(self) -> Result<(bool, String)> {
        let mut all = String::new();
        let succeeded = self.lines(|line| {
            all.push_str(line);
            all.push('\n');
        })?;
        Ok((succeeded, all))
    }

    /// Runs `cargo test` and records the result of each test.
    ///
    /// # Errors
    /// A test failed, or fewer than `at_least` tests passed. A renamed test or filter must not turn a step into a
    /// no-op.
    pub(crate) fn tests(self, ledger: &mut Ledger, at_least: usize) -> Result {
        let line = self.command_line();
        let before = ledger.n_passed();
        ledger.begin();
        let succeeded = self.env("CARGO_TERM_COLOR", "never").lines(|line| ledger.read(line))?;
        let n_passed = ledger.n_passed() - before;
        if !succeeded {
            return Err(format!("{line}: tests failed{}", ledger.describe_unfinished()));
        }
        if n_passed < at_least {
            return Err(format!("{line}: {n_passed} tests ran, fewer than {at_least}: did a name or a filter change?"));
        }
        Ok(())
    }

    /// Calls `read` with each line of standard output and standard error. Both share one pipe, so their order is
    /// preserved.
    fn lines(mut self, mut read: impl FnMut(&str)) -> Result<bool> {
        let line = self.command_line();
        eprintln!("$ {line}");
        let failed = |error| format!("{line}: {error}");
        let (reader, writer) = pipe().map_err(failed)?;
        self.command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
        let mut child = self.command.spawn().map_err(failed)?;
        // The command holds write ends of the pipe, and the output ends once all write ends are closed.
        drop(self);
        let lines = read_lines(reader);
        let print = |bytes: &[u8]| -> Result {
            let mut out = std::io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush()).map_err(failed)?;
            read(String::from_utf8_lossy(bytes).trim_end());
            Ok(())
        };
        for_each_line(&lines, DRAIN_TIMEOUT, || Ok(child.try_wait().map_err(failed)?.is_some()), print)?;
        Ok(child.wait().map_err(failed)?.success())
    }
}

/// Calls `read` with each line until the input ends, or until nothing has come for `timeout` since `has_ended` returned `true`.
///
/// The silence before that doesn't count: a command may print its result after a long silence, and end.
fn for_each_line(
    lines: &Receiver<Vec<u8>>,
    timeout: Duration,
    mut has_ended: impl FnMut() -> Result<bool>,
    mut read: impl FnMut(&[u8]) -> Result,
) -> Result {
    let mut is_at_end = false;
    loop {
        match lines.recv_timeout(timeout) {
            Ok(bytes) => read(&bytes)?,
            Err(RecvTimeoutError::Timeout) if !is_at_end => is_at_end = has_ended()?,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Reads lines in a thread, so that the caller can wait for one with a bound. The thread ends with the input.
fn read_lines(reader: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|n_bytes| n_bytes > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    receiver
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Otherwise a server that a killed test has left would hold up the gate.
    #[test]
    fn process_left_behind_does_not_block_its_command() {
        let (succeeded, output) = Run::new("sh").args(["-c", "sleep 20 & echo started"]).output().unwrap();
        assert!(succeeded);
        assert_eq!(output, "started\n");
    }

    /// Otherwise tests would write to the cluster that a developer works with.
    #[test]
    fn kubeconfig_of_the_caller_is_not_inherited() {
        let run = Run::new("sh");
        let variables = run.command.get_envs();
        let removed: Vec<_> = variables.filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        for name in ["KUBECONFIG", REAL_SERVER] {
            assert!(removed.contains(&OsStr::new(name)), "{name}: {removed:?}");
        }
    }

    /// Otherwise a step would now and then lose the last line of its tests.
    #[test]
    fn line_at_end_of_silence_is_read() {
        let (sender, lines) = channel();
        let has_ended = || {
            sender.send(b"late\n".to_vec()).unwrap();
            Ok(true)
        };
        let mut found = Vec::new();
        let read = |line: &[u8]| {
            found.push(line.to_vec());
            Ok(())
        };
        for_each_line(&lines, Duration::from_millis(1), has_ended, read).unwrap();
        assert_eq!(found, [b"late\n"]);
    }

    #[test]
    fn output_without_newline_is_read() {
        let (succeeded, output) = Run::new("sh").args(["-c", "echo one; printf two >&2; exit 3"]).output().unwrap();
        assert!(!succeeded);
        assert_eq!(output, "one\ntwo\n");
    }
}
