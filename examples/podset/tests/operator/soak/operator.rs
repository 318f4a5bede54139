//! The operator in a separate process, which the soak test kills.

use std::{
    fs::File,
    process::{Child, Command},
};

pub(crate) struct Operator(Child);

impl Operator {
    /// Starts the operator. Its log goes to `soak-operator.log` in cargo's folder for temporary files of tests.
    pub(crate) fn start(namespace: &str) -> Self {
        let log = concat!(env!("CARGO_TARGET_TMPDIR"), "/soak-operator.log");
        let log = File::options().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_podset"));
        command.args(["run", "--namespace", namespace]).stdout(log.try_clone().unwrap()).stderr(log);
        Self(command.spawn().unwrap())
    }

    pub(crate) fn must_run(&mut self) {
        let ended = self.0.try_wait().unwrap();
        assert!(ended.is_none(), "the operator ended by itself: {ended:?}");
    }

    /// Kills the operator, and returns its peak memory in MB, or 0 on systems without `/proc`.
    pub(crate) fn kill(self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).unwrap();
    }
}
