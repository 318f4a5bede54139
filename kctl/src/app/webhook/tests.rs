//! Tests of served webhooks: their configuration, readiness and shutdown.

use super::*;

#[cfg(feature = "dev")]
mod drain;
#[cfg(feature = "karmada")]
mod interpreters;
#[cfg(feature = "dev")]
mod readiness;

#[cfg(unix)]
#[test]
fn configuration_is_not_written_through_a_dangling_link() {
    let folder = std::env::temp_dir().join(format!("kctl-webhook-config-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, target) = (folder.join("config.yaml"), folder.join("elsewhere.yaml"));
    std::os::unix::fs::symlink(&target, &file).unwrap();
    assert!(write(&file, "kind: A\n").is_err() && !target.exists());
    std::fs::remove_file(&file).unwrap();
    for yaml in ["kind: A\n", "kind: B\n"] {
        write(&file, yaml).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{WRITTEN_BY}{yaml}"));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[cfg(feature = "karmada")]
pub(super) use interpreters::app;
