//! The process of an `exec` plugin: one thread waits for its output, and another thread may kill it.

use std::{
    io::{self, ErrorKind, Read},
    process::{Child, ChildStdout, Command, ExitStatus, Output},
    sync::mpsc,
    time::Duration,
};

use parking_lot::Mutex;

/// Maximum output of a plugin in bytes. A longer one is cut, and then is not an `ExecCredential`.
const OUTPUT_LEN_MAX: u64 = 1 << 20;
/// Time between two checks of a plugin that has closed its stdout and has not ended.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The process of one run. Its lock is never held while a thread waits for the process.
#[derive(Default)]
pub(super) struct PluginProcess(Mutex<ProcessState>);

#[derive(Default)]
enum ProcessState {
    #[default]
    New,
    Running(Child),
    /// The process was killed, or must not start any more.
    Killed,
}

impl PluginProcess {
    /// Starts the process, waits for its end, and returns its output. Returns `None` if it was killed after the limit.
    ///
    /// # Errors
    /// It can't be started, its output can't be read, or [`kill`](Self::kill) was called.
    pub(super) fn run(&self, command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
        let stdout = self.spawn(command)?;
        let output = self.output(stdout, limit);
        if !matches!(output, Ok(Some(_))) {
            self.kill();
        }
        output
    }

    /// Kills the process, or prevents its start.
    pub(super) fn kill(&self) {
        let state = std::mem::replace(&mut *self.0.lock(), ProcessState::Killed);
        if let ProcessState::Running(mut child) = state {
            // Fails if the process has already exited, which is fine.
            let _ended = child.kill();
            let _reaped = child.wait();
        }
    }

    fn spawn(&self, command: &mut Command) -> io::Result<Option<ChildStdout>> {
        let mut state = self.0.lock();
        if matches!(*state, ProcessState::Killed) {
            return Err(ErrorKind::Interrupted.into());
        }
        let mut child = command.spawn()?;
        let stdout = child.stdout.take();
        *state = ProcessState::Running(child);
        Ok(stdout)
    }

    fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        match &mut *self.0.lock() {
            ProcessState::Running(child) => child.try_wait(),
            ProcessState::New | ProcessState::Killed => Err(ErrorKind::Interrupted.into()),
        }
    }

    /// Waits for the end of the process and its output. Returns `None` after the limit.
    ///
    /// A thread reads the output, because a read of a pipe has no time limit. It ends when the last process that has the
    /// pipe does, which may be a child of a plugin that was killed.
    #[expect(
        clippy::disallowed_methods,
        reason = "a process takes real time, and this thread is not one of the runtime"
    )]
    fn output(&self, stdout: Option<ChildStdout>, limit: Duration) -> io::Result<Option<Output>> {
        let deadline = std::time::Instant::now() + limit;
        let left = || deadline.saturating_duration_since(std::time::Instant::now());
        let (sender, receiver) = mpsc::channel();
        std::thread::Builder::new().name("kubeconfig-plugin".into()).spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.map_or(Ok(0), |stdout| stdout.take(OUTPUT_LEN_MAX).read_to_end(&mut bytes));
            // After the time limit the receiver is dropped.
            let _late = sender.send(read.map(|_len| bytes));
        })?;
        let Ok(stdout) = receiver.recv_timeout(left()) else { return Ok(None) };
        let stdout = stdout?;
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(Some(Output { status, stdout, stderr: Vec::new() }));
            }
            if left().is_zero() {
                return Ok(None);
            }
            std::thread::sleep(EXIT_POLL_INTERVAL.min(left()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn killed_process_does_not_start() {
        let process = PluginProcess::default();
        process.kill();
        let ended = process.run(Command::new("true").stdout(Stdio::piped()), Duration::from_secs(60));
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Interrupted);
    }
}
