//! Shell completions, man pages and the version of the tool.

use std::process::{Command, Output};

fn kctl(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kctl")).args(arguments).output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = kctl(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn version_is_that_of_the_package() {
    assert_eq!(printed(&["--version"]), format!("kctl {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_shell_gets_completions_of_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        for command in ["apiserver", "completions", "interpret", "kubelet", "man", "new"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn man_pages_are_written_for_every_command() {
    let dir = std::env::temp_dir().join(format!("kctl-man-{}", std::process::id()));
    printed(&["man", dir.to_str().unwrap()]);
    for page in ["kctl.1", "kctl-apiserver.1", "kctl-completions.1", "kctl-new.1"] {
        let page = std::fs::read_to_string(dir.join(page)).unwrap();
        assert!(page.contains(".SH DESCRIPTION"), "{page}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn folder_that_cannot_be_created_is_an_error() {
    let file = std::env::temp_dir().join(format!("kctl-man-file-{}", std::process::id()));
    std::fs::write(&file, "").unwrap();
    let output = kctl(&["man", file.join("man1").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("kctl: failed to write man pages to "), "{error}");
    std::fs::remove_file(&file).unwrap();
}
