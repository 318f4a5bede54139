//! `cargo xtask`: runs one or all steps of the gate, runs a real API server, and moves to another Kubernetes version.

mod background;
mod bump;
mod ci;
mod descendants;
mod dist;
mod features;
mod gate;
mod image;
mod kubernetes;
mod kubernetes_version;
mod ledger;
mod new_project;
mod packages;
mod process;
mod real_server;
mod shards;
mod shared_build;
mod sizes;
mod soak;
mod steps;
mod third_party;
mod tools;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::{
    ci::{Chain, Plan, Step},
    gate::Gate,
};

/// The result of a command. The error is a message for the user.
type Result<T = ()> = std::result::Result<T, String>;

/// Checks kctl as its gate does, one step at a time or all of them, and keeps its data in step with Kubernetes.
///
/// Times were measured on a machine with two cores and nothing built yet. Later steps reuse the build of earlier ones.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Step(StepCommand),
    /// Runs the named steps, or all of the gate, and prints their times. In the order of `.ci/run`: 29 to 60 minutes on two
    /// cores, and 8 more for the first build of kube-apiserver.
    ///
    /// A failed step does not end the run. The processes of a step that takes an hour are killed, after 80 minutes for
    /// linters, documentation, packages, new projects, images and suites on a real server. In the end, every test that `test`
    /// ignored has to have passed in another step, unless that step printed what this machine lacks.
    Ci {
        /// The steps, in this order.
        steps: Vec<Step>,
        /// Steps that begin at once at low priority, for checks that compile nothing of the workspace.
        #[arg(long, value_delimiter = ',', value_name = "STEP")]
        early: Vec<Step>,
        /// Compilers and linters, for example `clippy,features`: one after another, at the lowest priority, as soon as the tests
        /// are compiled. With several such options, these run at the same time as each other.
        #[arg(long, value_parser = Chain::parse, value_name = "STEPS")]
        idle: Vec<Chain>,
        /// Suites that mostly wait for a server and compile nothing, for example `conformance,roles`: one after another, at the same
        /// time as `test`. With several such options, these run at the same time as each other.
        #[arg(long, value_parser = Chain::parse, value_name = "STEPS")]
        during_test: Vec<Chain>,
        /// Suites that mostly wait for a server, for example `helm,browser`: one after another, at the same time as the steps
        /// after `test`. With several such options, these run at the same time as each other.
        #[arg(long, value_parser = Chain::parse, value_name = "STEPS")]
        waiting: Vec<Chain>,
        #[command(flatten)]
        options: Options,
    },
    /// Builds kube-apiserver and Helm, which other steps wait for. Needs Go. 11 minutes, and seconds after that.
    Prepare(Options),
    /// Compiles the workspace without running anything: for other operating systems. 3 minutes.
    Check,
    /// Compiles the workspace with the oldest supported Rust. Needs that toolchain (rustup). 5 minutes.
    Msrv(Options),
    /// Compares the public API with the last released version. Needs cargo-semver-checks and a release. 10 minutes.
    Semver(Options),
    /// Checks dependencies for known vulnerabilities. Needs cargo-deny and the network. Seconds.
    Advisories(Options),
    /// Builds the documentation as docs.rs does, with a nightly compiler. Needs that toolchain (rustup). 4 minutes.
    DocsRs(Options),
    /// Renders the charts of the examples with Helm 3. Needs Go to build it once (3 minutes).
    #[command(name = "helm-3")]
    Helm3(Options),
    /// Builds the `kctl` tool for users, runs it if this machine can, and packs it with man pages and completions into
    /// `target/dist`. Needs the target (rustup) and tar. 3 minutes.
    Dist {
        /// The target triple; static on Linux with `…-unknown-linux-musl`.
        #[arg(long)]
        target: String,
    },
    /// Builds the quickstart with and without `dev`, and prints the sizes and the numbers of dependencies. On x86-64 Linux, it fails
    /// if a size differs by more than 10 percent from the one in `guide/versions.md`. 10 minutes.
    Sizes,
    /// Starts and stops a real kube-apiserver with etcd. Needs Go (8 minutes for the first start of a version, seconds
    /// after that), Python 3, openssl and curl.
    #[command(subcommand)]
    Server(real_server::Command),
    /// Measures kctl against controller-runtime and kube-rs on a real kube-apiserver. Needs Go, Rust, Python 3, openssl
    /// and curl, and an idle machine. A quarter of an hour.
    BenchPeers {
        /// Options and jobs for `benches/peers/harness/run.sh`, for example `-r 3 sync-pods converge`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Compares 1, 2 and 3 active replicas (`run --shards`): memory, CPU, hand-overs, a rolling update, and the cost at rest.
    /// Prints tables. Needs Linux and an idle machine, and with `--envtest` what `server` needs.
    BenchShards {
        /// Options, for example `--primaries 500 --seconds 10`, or `--envtest --rest-only` for the cost at rest alone, on
        /// kube-apiserver; `--help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Kills, stops and freezes three active replicas on a real kube-apiserver, and checks by its audit log that only the owner of
    /// a key wrote. Needs Linux and what `server` needs.
    Chaos(shards::Chaos),
    /// Kills the operator of `examples/podset` again and again on a real kube-apiserver that crashes twice, and checks that no set ever
    /// has more Pods than desired, and that all settle. Needs what `server` needs.
    Soak {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        size: soak::Soak,
    },
    /// Sets the next version of all crates, with the changelog, the pages that name it, and the private module of macros.
    /// RELEASING.md says when. Seconds.
    Bump {
        /// Before 1.0, a minor version may break an API. After it, only a major version may.
        level: bump::Level,
    },
    /// Moves the embedded API server's data and recorded answers to a version of Kubernetes. Needs Go, kubectl and what
    /// `server` needs. Half an hour.
    Kubernetes(kubernetes::Arguments),
}

/// The steps of the gate, each as a command.
#[derive(Subcommand)]
enum StepCommand {
    /// Runs all tests that need nothing but this repository; the others are printed as ignored. 22 minutes on two cores.
    Test {
        #[command(flatten)]
        options: Options,
        /// Arguments for `cargo test`, for example `--test loop` or a part of a name.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Sends 30,000 random requests to the embedded API server. 1 minute.
    Fuzz {
        #[command(flatten)]
        options: Options,
        /// The number of requests; `FUZZ_SEED` selects which ones.
        #[arg(long, default_value_t = steps::FUZZ_REQUESTS)]
        requests: u32,
    },
    /// Checks the formatting (`cargo fmt`). A second.
    Fmt(Options),
    /// Runs clippy over everything; a warning is an error. 3 minutes.
    Clippy(Options),
    /// Compiles each published crate with each feature alone, and with all of them; a warning is an error. 5 minutes
    /// after `clippy`.
    Features {
        #[command(flatten)]
        options: Options,
        /// Every published crate with each of its features, some pairs of them, and each version of Kubernetes, as the workflow
        /// does for every change.
        #[arg(long)]
        all: bool,
        /// Runs the unit tests of the crates that have versions of Kubernetes with this one instead, for example `v1_33` or
        /// `oldest`.
        #[arg(long, value_name = "VERSION", conflicts_with = "all")]
        tests: Option<String>,
    },
    /// Builds the documentation of all crates; a warning is an error. 1 minute.
    Docs(Options),
    /// Builds the book. Needs mdbook (`--install` installs it with cargo). Seconds.
    Book(Options),
    /// Checks the spelling. Needs `typos`, or Python 3 to install it once. Seconds.
    Spelling(Options),
    /// Checks licences and sources of dependencies. Needs cargo-deny (`--install` installs it with cargo). Seconds.
    Deny(Options),
    /// Packages every published crate; builds the quickstart and the tool `kctl` from the packages, outside the workspace, and
    /// tests them there. Needs tar. 5 minutes.
    Packages {
        #[command(flatten)]
        options: Options,
        /// Builds each package alone as well, as `cargo publish` does, and installs the tool with `cargo install`. The workflow
        /// does so for every change. 25 minutes.
        #[arg(long)]
        each: bool,
    },
    /// Builds the container image of a project from `kctl new` with the packages of the crates, and runs its program. Needs a
    /// Docker daemon, which downloads the base images and the dependencies.
    Image(Options),
    /// Lints the workflows of GitHub. Needs Go, which builds `actionlint` once. Seconds.
    Workflows(Options),
    /// Creates a project with `kctl new`, and runs the commands of its README and its workflow. 5 minutes.
    NewProject(Options),
    /// Compares the output of kubectl with that on a real server, which is recorded. Needs kubectl 1.32. 1 minute.
    Kubectl(Options),
    /// Tests the debug page of `dev` in a browser. Needs chromedriver and Chromium (`--install` installs them with apt-get), and
    /// npm for the checker of accessibility. 1 minute.
    Browser(Options),
    /// Runs clients and controllers in other languages against the embedded API server. Needs any of Go, Java with Maven,
    /// Node.js, Python 3, curl and openssl; missing ones are skipped. 5 minutes.
    Interop(Options),
    /// Installs, upgrades and uninstalls generated charts with Helm. Needs Helm, or Go to build it once (3 minutes).
    /// 1 minute.
    Helm(Options),
    /// Compares a real kube-apiserver with the recorded answers that the embedded one has to give. Needs what `server` needs,
    /// and kubectl for one test. 7 minutes, and 8 for the first start.
    Conformance {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        version: real_server::Version,
    },
    /// Runs operators and clients on a real kube-apiserver. Needs what `server` and `interop` need. 10 minutes, and 8 for the
    /// first start.
    RealServer {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        version: real_server::Version,
    },
    /// Runs programs with only their generated roles on a real kube-apiserver: each role is sufficient and minimal. Needs what
    /// `server` needs. 6 minutes, and 8 for the first start.
    Roles {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        version: real_server::Version,
    },
    /// Runs operators as their manifests deploy them on a real kube-apiserver, and a new project. Needs what `server` needs, and
    /// kubectl for one test. 3 minutes, and 8 for the first start.
    Deployed {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        version: real_server::Version,
    },
}

/// Options of each step.
#[derive(Args, Clone, Copy, Default)]
struct Options {
    /// Installs missing tools on this machine, with apt-get and `cargo install`.
    #[arg(long)]
    install: bool,
    /// Fails if this machine lacks something that a step needs.
    #[arg(long, env = "STRICT", value_parser = clap::builder::FalseyValueParser::new())]
    strict: bool,
}

/// Runs a single step, and reports the checks that it left out.
fn run_single_step(options: Options, step: impl FnOnce(&mut Gate) -> Result) -> Result {
    let mut gate = Gate::new(options);
    step(&mut gate)?;
    gate.finish()
}

/// Runs a single step of the gate.
fn run_step(command: StepCommand) -> Result {
    match command {
        StepCommand::Test { options, arguments } => run_single_step(options, |gate| steps::test(gate, &arguments)),
        StepCommand::Fuzz { options, requests } => run_single_step(options, |gate| steps::fuzz(gate, requests)),
        StepCommand::Fmt(options) => run_single_step(options, |gate| Step::Fmt.run(gate)),
        StepCommand::Clippy(options) => run_single_step(options, |gate| Step::Clippy.run(gate)),
        StepCommand::Features { options, tests: Some(version), .. } => {
            run_single_step(options, |_gate| features::test(&version))
        }
        StepCommand::Features { options, all: true, .. } => {
            run_single_step(options, |_gate| features::check(features::Extent::All))
        }
        StepCommand::Features { options, .. } => run_single_step(options, |gate| Step::Features.run(gate)),
        StepCommand::Docs(options) => run_single_step(options, |gate| Step::Docs.run(gate)),
        StepCommand::Book(options) => run_single_step(options, |gate| Step::Book.run(gate)),
        StepCommand::Spelling(options) => run_single_step(options, |gate| Step::Spelling.run(gate)),
        StepCommand::Deny(options) => run_single_step(options, |gate| Step::Deny.run(gate)),
        StepCommand::Packages { options, each: false } => run_single_step(options, |gate| Step::Packages.run(gate)),
        StepCommand::Packages { options, each: true } => {
            run_single_step(options, |_gate| packages::check(packages::Builds::EachToo))
        }
        StepCommand::Image(options) => run_single_step(options, |gate| Step::Image.run(gate)),
        StepCommand::Workflows(options) => run_single_step(options, |gate| Step::Workflows.run(gate)),
        StepCommand::NewProject(options) => run_single_step(options, |gate| Step::NewProject.run(gate)),
        StepCommand::Kubectl(options) => run_single_step(options, |gate| Step::Kubectl.run(gate)),
        StepCommand::Browser(options) => run_single_step(options, |gate| Step::Browser.run(gate)),
        StepCommand::Interop(options) => run_single_step(options, |gate| Step::Interop.run(gate)),
        StepCommand::Helm(options) => run_single_step(options, |gate| Step::Helm.run(gate)),
        StepCommand::Conformance { options, version } => {
            run_single_step(options, |gate| real_server::conformance_of(gate, version.complete()?.as_deref()))
        }
        StepCommand::RealServer { options, version } => {
            run_single_step(options, |gate| real_server::suites(gate, version.complete()?.as_deref()))
        }
        StepCommand::Roles { options, version } => {
            run_single_step(options, |gate| real_server::roles(gate, version.complete()?.as_deref()))
        }
        StepCommand::Deployed { options, version } => {
            run_single_step(options, |gate| real_server::deploy(gate, version.complete()?.as_deref()))
        }
    }
}

fn run(command: Command) -> Result {
    match command {
        Command::Step(step) => run_step(step),
        Command::Ci { steps, during_test, waiting, early, idle, options } => {
            ci::run(&Plan { steps, during_test, waiting, early, idle }, options)
        }
        Command::Prepare(options) => run_single_step(options, ci::prepare),
        Command::Check => process::cargo("check").args(["--workspace", "--all-targets", "--locked"]).run(),
        Command::Msrv(options) => run_single_step(options, steps::msrv),
        Command::Semver(options) => run_single_step(options, steps::semver),
        Command::Advisories(options) => run_single_step(options, steps::advisories),
        Command::DocsRs(options) => run_single_step(options, steps::docs_rs),
        Command::Helm3(options) => run_single_step(options, steps::helm_3),
        Command::Dist { target } => dist::run(&target),
        Command::Sizes => sizes::run(),
        Command::Server(command) => real_server::command(&command),
        Command::BenchPeers { arguments } => {
            process::Run::new(process::root().join("benches/peers/harness/run.sh")).args(&arguments).run()
        }
        Command::BenchShards { arguments } => shards::figures(&arguments),
        Command::Chaos(options) => shards::chaos(&options),
        Command::Soak { options, size } => run_single_step(options, |gate| soak::run(gate, &size)),
        Command::Bump { level } => bump::run(level),
        Command::Kubernetes(arguments) => kubernetes::run(&arguments),
    }
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_step_runs_in_gate_and_workflow() {
        let read = |file: &str| std::fs::read_to_string(process::root().join(file)).unwrap();
        let (gate, workflow) = (read(".ci/run"), read(".github/workflows/ci.yml"));
        let listed: Vec<&str> =
            gate.lines().filter_map(|line| line.strip_prefix("    ")).flat_map(|line| line.split([' ', ','])).collect();
        let commands = workflow.lines().filter_map(|line| line.trim().strip_prefix("- run: cargo xtask "));
        let in_workflow: Vec<&str> = commands.flat_map(|line| line.split(' ')).collect();
        for step in Step::ALL {
            assert!(Cli::command().find_subcommand(step.name()).is_some(), "{}", step.name());
            assert!(listed.contains(&step.name()), ".ci/run lacks {}: {listed:?}", step.name());
            assert!(in_workflow.contains(&step.name()), "ci.yml lacks {}: {in_workflow:?}", step.name());
        }
    }

    /// Returns the lines `run: …` of GitHub's workflows and of their blocks `run: |`, with the name of the file.
    fn workflow_commands() -> Vec<(String, String)> {
        let folder = process::root().join(".github/workflows");
        let mut commands = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let file = entry.unwrap().path();
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            for line in std::fs::read_to_string(&file).unwrap().lines() {
                let command = line.trim().trim_start_matches("- ").trim_start_matches("run: ");
                commands.push((name.clone(), command.to_owned()));
            }
        }
        commands
    }

    /// Replaces each `${{ … }}` of a workflow by a word.
    fn with_values(command: &str) -> String {
        let parts = command.split("${{").enumerate();
        parts
            .map(|(index, part)| if index == 0 { part } else { part.split_once("}}").unwrap().1 })
            .collect::<Vec<_>>()
            .join("x")
    }

    #[test]
    fn workflow_commands_match_xtask() {
        let mut n_commands = 0;
        for (file, command) in workflow_commands() {
            let Some(arguments) = command.strip_prefix("cargo xtask ") else { continue };
            let arguments = with_values(arguments);
            let parsed = Cli::try_parse_from(["cargo xtask"].into_iter().chain(arguments.split(' ')));
            assert!(parsed.is_ok(), "{file}: {command}: {}", parsed.err().unwrap());
            n_commands += 1;
        }
        assert!(n_commands > 20, "{n_commands}");
        assert_eq!(with_values("dist --target ${{ matrix.target }} --x"), "dist --target x --x");
    }

    #[test]
    fn command_of_the_gate_matches_xtask() {
        let gate = std::fs::read_to_string(process::root().join(".ci/run")).unwrap();
        let (_comments, command) = gate.split_once("\ncargo run --quiet --bin xtask -- ").unwrap();
        let command = command.replace("${install:+--install}", "--install").replace('\\', "");
        let parsed = Cli::try_parse_from(["cargo xtask"].into_iter().chain(command.split_whitespace()));
        assert!(parsed.is_ok(), "{command}: {}", parsed.err().unwrap());
    }

    /// The gate must not change the machine of a developer whose shell has `CI=false`.
    #[cfg(unix)]
    #[test]
    fn gate_installs_tools_only_on_ci() {
        let gate = std::fs::read_to_string(process::root().join(".ci/run")).unwrap();
        let (_before, choice) = gate.split_once("\ncase ${CI:-} in\n").unwrap();
        let (choice, _after) = choice.split_once("\nesac\n").unwrap();
        let script = format!("set -eu\ncase ${{CI:-}} in\n{choice}\nesac\necho \"${{install:+--install}}\"");
        let printed = |ci: &str| process::Run::new("bash").args(["-c", &script]).env("CI", ci).read().unwrap();
        for (ci, expected) in [("true", "--install"), ("1", "--install"), ("false", ""), ("0", ""), ("", "")] {
            assert_eq!(printed(ci), expected, "CI={ci}");
        }
    }

    #[test]
    fn release_workflow_runs_documented_commands() {
        let documented = std::fs::read_to_string(process::root().join("RELEASING.md")).unwrap();
        let mut n_commands = 0;
        for (file, command) in workflow_commands() {
            // The runner has no terminal to confirm at, and another job has built the packages.
            let command = command.replace(" --no-confirm", "").replace(" --no-verify", "");
            if file == "release.yml" && (command.starts_with("cargo release ") || command.starts_with("cargo install "))
            {
                assert!(documented.contains(&format!("\n    {command}\n")), "RELEASING.md lacks `{command}`");
                n_commands += 1;
            }
        }
        assert_eq!(n_commands, 5);
    }

    /// The build scripts of a tool could publish crates and push commits there.
    #[test]
    fn job_that_publishes_compiles_no_tool() {
        let workflow = std::fs::read_to_string(process::root().join(".github/workflows/release.yml")).unwrap();
        let (build, publish) = workflow.split_once("\n  publish:\n").unwrap();
        assert!(build.contains("\n      - run: cargo install "), "{build}");
        for compiles in ["cargo install", "cargo build", "cargo run", "cargo xtask"] {
            assert!(!publish.contains(compiles), "the job `publish` runs `{compiles}`");
        }
        assert!(!build.contains(": write"), "only the job `publish` has permissions to write");
    }

    /// SECURITY.md promises fixes of an older minor version.
    #[test]
    fn release_branches_are_tested_and_published() {
        let read = |file: &str| std::fs::read_to_string(process::root().join(file)).unwrap();
        assert!(read("release.toml").contains("\nallow-branch = [\"main\", \"release-*\"]\n"));
        assert!(read(".github/workflows/ci.yml").contains("\n    branches: [main, \"release-*\"]\n"));
        let release = read(".github/workflows/release.yml");
        let condition = "github.ref == 'refs/heads/main' || startsWith(github.ref, 'refs/heads/release-')";
        assert_eq!(release.matches(&format!("\n    if: {condition}\n")).count(), 2, "`verify` and `cargo-release`");
        let pushes: Vec<&str> = release.lines().map(str::trim).filter(|line| line.starts_with("git push ")).collect();
        assert_eq!(pushes, ["git push origin \"HEAD:$GITHUB_REF\""]);
    }

    /// A fix of an older minor version is tagged after a newer version.
    #[cfg(unix)]
    #[test]
    fn latest_tag_names_the_highest_version() {
        let binaries = std::fs::read_to_string(process::root().join(".github/workflows/binaries.yml")).unwrap();
        let (_before, step) = binaries.split_once("      - id: compare\n        run: |\n").unwrap();
        let (script, _after) = step.split_once("        env:\n").unwrap();
        let tags = ["v0.1.9", "v0.1.10", "v0.2.0", "v0.10.0-rc.1", "vendor"].map(|tag| format!("refs/tags/{tag}"));
        let script = format!("set -e\ngh() {{ printf '%s\\n' {}; }}\n{script}", tags.join(" "));
        let printed = |reference: &str| {
            let bash = process::Run::new("bash").args(["-c", &script]);
            bash.env("GITHUB_OUTPUT", "/dev/stdout").env("GH_REPO", "a/b").env("REF", reference).read().unwrap()
        };
        assert_eq!(printed("refs/tags/v0.2.0"), "is-latest=true");
        for other in ["refs/tags/v0.1.10", "refs/tags/v0.10.0-rc.1", "refs/heads/main"] {
            assert_eq!(printed(other), "is-latest=false", "{other}");
        }
        assert_eq!(binaries.matches("${{ needs.latest.outputs.is-latest }}").count(), 2, "the image and the release");
    }

    /// crates.io keeps a version whose archives or image can't be built.
    #[test]
    fn release_requires_build_of_archives_and_image() {
        let read = |file: &str| std::fs::read_to_string(process::root().join(file)).unwrap();
        assert!(read("RELEASING.md").contains("\n       gh workflow run binaries.yml --ref main\n"));
        assert!(read(".github/workflows/release.yml").contains("for workflow in ci.yml binaries.yml; do\n"));
        let binaries = read(".github/workflows/binaries.yml");
        assert!(binaries.contains("\n  schedule:\n"));
        // A run from a branch builds everything, and publishes nothing.
        let is_tag = "startsWith(github.ref, 'refs/tags/')";
        let release = binaries.split_once("\n  release:\n").unwrap().1;
        assert!(release.starts_with(&format!("    needs: [build, latest]\n    if: {is_tag}\n")));
        let pushes: Vec<&str> = binaries.lines().filter(|line| line.trim().starts_with("push: ")).collect();
        assert_eq!(pushes, [format!("          push: ${{{{ {is_tag} }}}}")]);
    }

    /// A continued release compares the crates with the crates of the dated commit. Git compares nothing for a pathspec
    /// that matches no file.
    #[test]
    fn continued_release_compares_all_published_files() {
        let commands = workflow_commands();
        let pathspecs = commands.iter().find_map(|(file, command)| {
            let arguments = command.strip_prefix("git diff --quiet ").filter(|_| file == "release.yml")?;
            Some(arguments.split_once(" -- ")?.1.replace('\'', ""))
        });
        let pathspecs = pathspecs.expect("release.yml has a line `git diff --quiet … -- PATHSPECS`");
        let listed = process::Run::new("git").args(["ls-files", "--"]).args(pathspecs.split(' ')).read().unwrap();
        for file in ["Cargo.toml", "Cargo.lock", "kctl/Cargo.toml", "kctl-runtime/src/lib.rs", "kctl-cli/README.md"] {
            assert!(listed.lines().any(|line| line == file), "{pathspecs} lists no {file}");
        }
    }

    /// Returns the folders that the settings of Dependabot name, also in comments, without the slash before each.
    fn dependabot_folders(settings: &str) -> Vec<&str> {
        let words = settings.split(|c: char| c.is_whitespace() || ['"', ',', '[', ']'].contains(&c));
        words.map(|word| word.trim_start_matches('/').trim_end_matches('.')).collect()
    }

    #[test]
    fn longer_folder_does_not_name_a_shorter_one() {
        let settings = "directories: [\"/\", \"/a/go\"]\n  - /tests/go-1\n  # A step updates b/d.\n";
        let folders = dependabot_folders(settings);
        for (folder, is_named) in
            [("a/go", true), ("tests/go-1", true), ("b/d", true), ("tests/go", false), ("a", false), ("go", false)]
        {
            assert_eq!(folders.contains(&folder), is_named, "{folder}");
        }
    }

    /// Dependabot reads only the folders that its settings name.
    #[test]
    fn dependabot_names_each_folder_with_dependencies() {
        let settings = std::fs::read_to_string(process::root().join(".github/dependabot.yml")).unwrap();
        let files = ["*go.mod", "*Cargo.lock", "*pom.xml"];
        let listed = process::Run::new("git").args(["ls-files", "--"]).args(files).read().unwrap();
        let mut folders: Vec<&str> = listed.lines().filter_map(|file| Some(file.rsplit_once('/')?.0)).collect();
        assert!(folders.len() > 8, "{folders:?}");
        let named = dependabot_folders(&settings);
        folders.retain(|folder| !named.contains(folder));
        assert!(folders.is_empty(), "name these in .github/dependabot.yml, or say there why not: {folders:?}");
    }

    /// Collects the reasons of ignored tests in the Rust files below a folder, with the path of each.
    fn reasons(folder: &std::path::Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                reasons(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let reasons = text.lines().filter_map(|line| line.trim().strip_prefix("#[ignore")?.strip_suffix(']'));
                found.extend(reasons.map(|reason| (path.display().to_string(), reason.to_owned())));
            }
        }
    }

    /// The workflow runs the steps in several jobs, so none of them sees a test that no step runs.
    #[test]
    fn each_ignored_test_names_its_step() {
        // Tests of users have no xtask: `on_a_real_server` is a part of their names, which a step uses to select the
        // tests here.
        let has_step = |(_path, reason): &(String, String)| {
            let step = reason.split_once("cargo xtask ").map(|(_, rest)| rest.trim_end_matches('"'));
            // A workflow runs it each week.
            let is_soak =
                |step: &str| reason.contains("runs each week") && Cli::command().find_subcommand(step).is_some();
            step.is_some_and(|step| Step::ALL.iter().any(|known| known.name() == step) || is_soak(step))
                || reason.contains("cargo test on_a_real_server")
        };
        let mut found = Vec::new();
        reasons(&process::root(), &mut found);
        assert!(found.len() > 40, "{} ignored tests", found.len());
        found.retain(|test| !has_step(test));
        assert!(found.is_empty(), "end the reason with `cargo xtask STEP`: {found:#?}");
    }
}
