//! The command that runs one run of a simulated test again, and no other test.

use super::SEED_VARIABLE;

/// A test with `#[kctl::test]`, as the compiler knows it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SimulatedTest<'a> {
    /// The package: `CARGO_PKG_NAME`.
    pub package: &'a str,
    /// The program whose unit test it is: `CARGO_BIN_NAME`.
    pub program: Option<&'a str>,
    /// The file of the test: `file!()`.
    pub file: &'a str,
    /// The path of the test, which begins with its crate: `module_path!()` and the name of the function.
    pub path: &'a str,
}

impl SimulatedTest<'_> {
    /// Returns the name of the test in the output of `cargo test`: the path without the crate.
    pub(super) fn name(&self) -> &str {
        self.path.split_once("::").map_or(self.path, |(_, rest)| rest)
    }

    /// Returns the command with `{seed}` for the name of the run.
    ///
    /// It names the target, so that Cargo builds no other one, if that is certain. The names of crates have `_` for `-`, so
    /// `--test a_b` could miss a target `a-b`.
    pub(super) fn replay(&self) -> String {
        let Self { package, program, file, path } = self;
        let name_of_crate = path.split("::").next().unwrap_or_default();
        let folders = file.split(['/', '\\']).rev();
        let is_unit_test =
            folders.skip(1).find(|folder| ["src", "tests", "examples", "benches"].contains(folder)) == Some("src");
        let target = match program {
            Some(program) => format!(" --bin {program}"),
            None if is_unit_test => " --lib".into(),
            None if name_of_crate.contains('_') => String::new(),
            None => format!(" --test {name_of_crate}"),
        };
        let name = self.name();
        format!("{SEED_VARIABLE}={{seed}} cargo test -p {package}{target} {name} -- --exact")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_names_one_test_and_its_target() {
        let cases = [
            (None, "tests/fleet/main.rs", "fleet::survives", " --test fleet survives"),
            (None, "tests/sim/examples.rs", "sim::examples::survives", " --test sim examples::survives"),
            (None, "tests/two_words.rs", "two_words::survives", " survives"),
            (None, "kctl/src/lib.rs", "kctl::tests::survives", " --lib tests::survives"),
            (None, "src/operator/tests/sim.rs", "sim::survives", " --test sim survives"),
            (None, r"web\src\site.rs", "web::site::survives", " --lib site::survives"),
            (Some("web-site"), "web/src/main.rs", "web_site::tests::survives", " --bin web-site tests::survives"),
        ];
        for (program, file, path, expected) in cases {
            let test = SimulatedTest { package: "web", program, file, path };
            let expected = format!("KCTL_SEED={{seed}} cargo test -p web{expected} -- --exact");
            assert_eq!(test.replay(), expected, "{test:?}");
        }
    }
}
