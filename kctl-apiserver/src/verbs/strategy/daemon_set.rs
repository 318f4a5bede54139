//! The number of the template of a daemon set.

use serde_json::Value;

use super::of;
use crate::{go, kinds::Resource};

/// The number of the template of a daemon set.
pub(super) const TEMPLATE_COUNT: &str = "deprecated.daemonset.template.generation";

/// Counts the templates of a daemon set. Upstream has a field for the number, which nobody sets: the annotation is how it is written.
pub(super) fn count_template(old: &Value, new: &mut Value) {
    let known = old["metadata"]["annotations"][TEMPLATE_COUNT].as_str().and_then(|count| count.parse::<i64>().ok());
    let is_another = old["spec"]["template"] != new["spec"]["template"];
    let count = known.unwrap_or(0).wrapping_add(i64::from(is_another));
    new["metadata"]["annotations"][TEMPLATE_COUNT] = count.to_string().into();
}

/// A daemon set as it is sent: without a number it has none yet, and whoever sends it so has set that.
pub(in crate::verbs) fn say_no_template_count(resource: &Resource, sent: &Value, object: &mut Value) {
    if of(resource) == ("apps", "daemonsets") && sent["metadata"]["annotations"][TEMPLATE_COUNT].is_null() {
        object["metadata"]["annotations"][TEMPLATE_COUNT] = "0".into();
    }
}

/// Why the number of templates that a daemon set says is none.
pub(in crate::verbs) fn wrong_template_count(resource: &Resource, object: &Value) -> Option<String> {
    let said = object["metadata"]["annotations"][TEMPLATE_COUNT].as_str()?;
    let is_wrong = of(resource) == ("apps", "daemonsets") && said.parse::<i64>().is_err();
    is_wrong.then(|| format!("strconv.ParseInt: parsing {}: invalid syntax", go::quote(said)))
}
