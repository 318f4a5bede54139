//! Reads the case files: command lines, and the files that they use.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::run::Step;

/// A file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topic {
    #[serde(skip)]
    pub(crate) name: String,
    pub(crate) cases: Vec<Case>,
}

/// Commands that belong together, in a separate namespace and folder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    #[serde(rename = "case")]
    pub(crate) name: String,
    /// Files to create in the folder. `$NS` is replaced by the namespace.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Shell command lines.
    pub(crate) run: Vec<String>,
    /// Intended differences of the embedded server.
    #[serde(default)]
    pub(crate) differences: Vec<Difference>,
}

/// A string in the output that differs on the embedded server.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    /// The command line.
    at: String,
    real: String,
    ours: String,
    why: String,
}

impl Topic {
    pub(crate) fn read(name: &str, picked: &str) -> Self {
        let file = crate::folder().join(format!("cases/{name}.yaml"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let options = serde_saphyr::options! { strict_booleans: true };
        let read = serde_saphyr::from_str_with_options(&text, options);
        let mut topic: Self = read.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        topic.name = name.into();
        topic.cases.retain(|case| case.name.contains(picked));
        topic
    }
}

impl Case {
    /// Returns the output expected of the embedded server: the recorded one with the intended differences.
    pub(crate) fn expected_output(&self, line: &str, recorded: &Step) -> Step {
        let mut step = recorded.clone();
        for difference in self.differences.iter().filter(|difference| difference.at == line) {
            let Difference { real, ours, why, .. } = difference;
            assert!(!why.is_empty(), "{line}: a difference has a reason");
            let found = [&mut step.out, &mut step.err].into_iter().find(|text| text.contains(real));
            let text = found.unwrap_or_else(|| panic!("{line}: the real server does not say {real:?}"));
            *text = text.replace(real, ours);
        }
        step
    }
}
