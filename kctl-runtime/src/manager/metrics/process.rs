//! Metrics of the process, under the names of Prometheus' client libraries. Read from `/proc`, so Linux only.
//!
//! On other systems, and for files of `/proc` that cannot be read, the metric is left out: a zero would look like
//! a measurement. The fields are numbered as in `proc(5)`.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};

/// Clock ticks per second in `/proc`: a constant of the kernel's interface on all architectures of Rust.
const TICKS: f64 = 100.0;

/// Collects CPU, memory, open files and start time.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return Ok(()) };
        // The name of the program may contain anything, also blanks and parentheses.
        let fields: Vec<f64> = stat
            .rsplit(')')
            .next()
            .into_iter()
            .flat_map(str::split_whitespace)
            .map(|field| field.parse().unwrap_or(0.0))
            .collect();
        let field = |number: usize| fields.get(number - 3).copied().unwrap_or_default();
        let cpu = encoder.encode_descriptor(
            "process_cpu_seconds",
            "Total user and system CPU time spent in seconds",
            None,
            MetricType::Counter,
        );
        cpu?.encode_counter::<NoLabelSet, f64, f64>(&((field(14) + field(15)) / TICKS), None)?;
        let mut gauge = |name: &str, help: &str, value: f64| {
            encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
        };
        gauge("process_virtual_memory_bytes", "Virtual memory size in bytes", field(23))?;
        if let Some(resident) = resident() {
            gauge("process_resident_memory_bytes", "Resident memory size in bytes", resident)?;
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            let n_open = u32::try_from(files.count()).unwrap_or(u32::MAX);
            gauge("process_open_fds", "Number of open file descriptors", n_open.into())?;
        }
        if let Some(n_files) = open_files_max() {
            gauge("process_max_fds", "Maximum number of open file descriptors", n_files)?;
        }
        if let Some(booted) = boot_time() {
            let help = "Start time of the process since unix epoch in seconds";
            gauge("process_start_time_seconds", help, booted + field(22) / TICKS)?;
        }
        Ok(())
    }
}

/// Returns the resident memory in bytes: physical memory, with pages that are shared with other processes.
fn resident() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}

/// Returns the soft limit of open files, `None` if it is unlimited.
fn open_files_max() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the boot time in seconds since 1970; start times of processes are relative to it.
fn boot_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}
