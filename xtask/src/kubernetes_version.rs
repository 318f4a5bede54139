//! Versions of Kubernetes: the variable that selects one, and the newest patch version.

use crate::{
    Result,
    process::{Run, root},
};

/// The growth of the heap, in percent, after which Go's garbage collector runs in the servers of the suites. Go's default of
/// 100 doubles the CPU time of a start. Benchmarks keep the default.
pub(crate) const GOGC: &str = "400";

/// The environment variable that selects the version in `tests/envtest`.
pub(crate) const VERSION: &str = "KUBERNETES_VERSION";

/// Returns the complete version. A minor version is completed with the newest patch version that the Go proxy serves.
pub(crate) fn resolve(version: &str) -> Result<String> {
    let version = version.trim_start_matches('v');
    if version.split('.').count() > 2 {
        return Ok(version.to_owned());
    }
    let query = format!("k8s.io/kubernetes@v{version}");
    let found = Run::new("go").args(["list", "-m", "-f", "{{.Version}}", &query]);
    let found = found.folder(root().join("tests/envtest")).env("GOFLAGS", "-mod=mod").env("GOWORK", "off").read()?;
    Ok(found.trim().trim_start_matches('v').to_owned())
}
