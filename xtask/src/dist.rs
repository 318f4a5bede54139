//! `cargo xtask dist`: builds the archive of the `kctl` tool that users download.

use std::path::{Path, PathBuf};

use crate::{
    Result,
    process::{Run, cargo, root, target as built},
    steps::of_workspace,
};

/// The shells that `kctl completions` knows, with the file names under which they load completions.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "kctl.bash"),
    ("elvish", "kctl.elv"),
    ("fish", "kctl.fish"),
    ("powershell", "_kctl.ps1"),
    ("zsh", "_kctl"),
];

/// Copies a file into a folder and keeps its name.
fn copy(from: &Path, folder: &Path) -> Result {
    let name = from.file_name().ok_or("a file has a name")?;
    std::fs::copy(from, folder.join(name)).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

/// Returns `true` if this machine has the architecture and the operating system of a target triple.
fn runs_here(target: &str) -> bool {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    target.starts_with(std::env::consts::ARCH) && target.contains(system)
}

/// Returns `true` if an ELF program names a dynamic loader. A static program doesn't.
///
/// # Errors
/// The program is not a complete 64-bit ELF file with little-endian numbers.
fn has_loader(program: &[u8]) -> Result<bool> {
    /// The type of the program header that names the loader (`PT_INTERP`).
    const INTERPRETER: usize = 3;
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return Err("not a 64-bit little-endian ELF file".into());
    }
    let number = |at: usize, len: usize| {
        let bytes = program.get(at..).and_then(|rest| rest.get(..len)).ok_or("the ELF file is too short")?;
        Ok::<_, String>(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    // `e_phoff`, `e_phentsize` and `e_phnum` of the file header.
    let (start, len, n_headers) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    for index in 0..n_headers {
        if number(start.saturating_add(index * len), 4)? == INTERPRETER {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks the program before it is packed. A musl program is static, and a program that this machine can run prints its
/// version.
fn check(program: &Path, target: &str, version: &str) -> Result {
    if target.ends_with("-musl") {
        let bytes = std::fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
        if has_loader(&bytes).map_err(|error| format!("{}: {error}", program.display()))? {
            return Err(format!("{} is not static: it names a dynamic loader", program.display()));
        }
    }
    if !runs_here(target) {
        eprintln!("{target}: this machine can't run the program");
        return Ok(());
    }
    check_version(program, version)
}

/// Checks that the tool `kctl` starts and prints its version.
///
/// # Errors
/// The program can't be started, fails, or prints something else.
pub(crate) fn check_version(program: &Path, version: &str) -> Result {
    let printed = Run::new(program).arg("--version").read()?;
    if printed != format!("kctl {version}") {
        return Err(format!("{} --version prints `{printed}`, not the version {version}", program.display()));
    }
    Ok(())
}

/// Returns the program of a target if this machine can run it, and otherwise builds the tool for this machine. Man pages and
/// completions are the same for all targets.
fn runnable_program(program: &Path, target: &str) -> Result<PathBuf> {
    if runs_here(target) {
        return Ok(program.to_owned());
    }
    cargo("build").args(["--release", "--locked", "--package", "kctl-cli", "--bin", "kctl"]).run()?;
    Ok(built().join("release").join(format!("kctl{}", std::env::consts::EXE_SUFFIX)))
}

/// Writes the man pages and the completions into the folders `man` and `completions` of the archive.
fn document(program: &Path, folder: &Path) -> Result {
    let (pages, completions) = (folder.join("man"), folder.join("completions"));
    Run::new(program).arg("man").arg(&pages).run()?;
    let page = std::fs::read_to_string(pages.join("kctl.1")).map_err(|error| format!("kctl.1: {error}"))?;
    if !page.contains(".SH DESCRIPTION") {
        return Err("the man page kctl.1 has no description".into());
    }
    std::fs::create_dir(&completions).map_err(|error| format!("{}: {error}", completions.display()))?;
    for (shell, file) in COMPLETIONS {
        let script = Run::new(program).args(["completions", shell]).read()?;
        std::fs::write(completions.join(file), script + "\n").map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

/// Returns the name of the folder in the archive of a target. The archive has the same name, with an extension.
fn folder_name(version: &str, target: &str) -> String {
    format!("kctl-{version}-{target}")
}

/// Returns the file name of the archive. Windows opens `.zip` files without other programs.
fn archive_name(version: &str, target: &str) -> String {
    let extension = if target.contains("windows") { "zip" } else { "tar.gz" };
    format!("{}.{extension}", folder_name(version, target))
}

/// Returns the `tar` of the system. The one of Windows writes zip files, too. The one of Git may come before it in `PATH`, and
/// takes `C:` for the name of a host.
fn tar() -> PathBuf {
    match std::env::var_os("SystemRoot") {
        Some(windows) if cfg!(windows) => Path::new(&windows).join("System32").join("tar.exe"),
        _ => "tar".into(),
    }
}

/// Builds the tool for a target triple, checks it, and packs it with its man pages, completions and licences into
/// `target/dist`.
///
/// The archive is named `kctl-VERSION-TARGET.tar.gz`, for Windows `kctl-VERSION-TARGET.zip`, and has one folder
/// `kctl-VERSION-TARGET`.
///
/// # Errors
/// The target is not installed, the build fails, the program does not run, or `tar` is missing.
pub(crate) fn run(target: &str) -> Result {
    cargo("build")
        .args(["--release", "--locked", "--package", "kctl-cli", "--bin", "kctl", "--target", target])
        .run()?;
    let version = of_workspace("version")?;
    let name = folder_name(&version, target);
    let dist = root().join("target/dist");
    let folder = built().join("xtask").join(&name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    for folder in [&dist, &folder] {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let program = if target.contains("windows") { "kctl.exe" } else { "kctl" };
    let program = built().join(target).join("release").join(program);
    check(&program, target, &version)?;
    copy(&program, &folder)?;
    document(&runnable_program(&program, target)?, &folder)?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "NOTICE", "README.md"] {
        copy(&root().join(file), &folder)?;
    }
    let archive = dist.join(archive_name(&version, target));
    let options: &[&str] = if target.contains("windows") { &["--format", "zip", "-cf"] } else { &["-czf"] };
    let pack = Run::new(tar()).args(options).arg(archive);
    pack.arg("-C").arg(folder.parent().unwrap_or(&folder)).arg(&name).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an ELF file whose program headers have these types.
    fn elf(types: &[u8]) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.resize(0x40, 0);
        (file[0x20], file[0x36], file[0x38]) = (0x40, 0x38, u8::try_from(types.len()).unwrap());
        for kind in types {
            file.push(*kind);
            file.resize(file.len() + 0x37, 0);
        }
        file
    }

    #[test]
    fn program_with_interpreter_header_is_dynamic() {
        assert_eq!(has_loader(&elf(&[6, 3, 1])), Ok(true));
        assert_eq!(has_loader(&elf(&[6, 1])), Ok(false));
        assert!(has_loader(&elf(&[6, 1])[..0x50]).is_err());
        assert!(has_loader(b"MZ").is_err());
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        assert_eq!(has_loader(&std::fs::read(std::env::current_exe().unwrap()).unwrap()), Ok(true));
    }

    #[test]
    fn program_that_prints_other_version_is_rejected() {
        let error = check_version(Path::new("cargo"), "0.1.0").unwrap_err();
        let starts = "cargo --version prints `cargo ";
        assert!(error.starts_with(starts) && error.ends_with("not the version 0.1.0"), "{error}");
    }

    #[test]
    fn binstall_downloads_packed_archives() {
        let manifest = std::fs::read_to_string(root().join("kctl-cli/Cargo.toml")).unwrap();
        let (_package, binstall) = manifest.split_once("\n[package.metadata.binstall]\n").unwrap();
        let of_windows = "\n[package.metadata.binstall.overrides.x86_64-pc-windows-msvc]\n";
        let (general, windows) = binstall.split_once(of_windows).unwrap();
        let cases = [(general, "x86_64-unknown-linux-musl", "tgz"), (windows, "x86_64-pc-windows-msvc", "zip")];
        for (table, target, format) in cases {
            let field = |table: &str, name: &str| {
                let value =
                    |line: &str| Some(line.strip_prefix(name)?.strip_prefix(" = \"")?.trim_end_matches('"').to_owned());
                let value: String = table.lines().find_map(value).unwrap();
                value.replace("{ version }", "1.2.3").replace("{ target }", target)
            };
            let url = format!("{{ repo }}/releases/download/v1.2.3/{}", archive_name("1.2.3", target));
            assert_eq!(field(table, "pkg-url"), url);
            assert_eq!(field(table, "pkg-fmt"), format);
            let folder = folder_name("1.2.3", target);
            assert_eq!(field(general, "bin-dir"), format!("{folder}/{{ bin }}{{ binary-ext }}"));
        }
    }

    #[test]
    fn release_uploads_archives_of_both_formats() {
        let workflow = std::fs::read_to_string(root().join(".github/workflows/binaries.yml")).unwrap();
        // In the checksums, the attestation and the upload.
        let n_uses = ["*.tar.gz", "*.zip"].map(|archives| workflow.matches(archives).count());
        assert_eq!(n_uses, [3, 3]);
    }

    #[test]
    fn machine_runs_targets_of_its_architecture() {
        let arch = std::env::consts::ARCH;
        let targets = ["unknown-linux-musl", "apple-darwin", "pc-windows-msvc"].map(|rest| format!("{arch}-{rest}"));
        assert_eq!(targets.iter().filter(|target| runs_here(target)).count(), 1);
        assert!(!runs_here("riscv32-unknown-linux-musl"));
    }
}
