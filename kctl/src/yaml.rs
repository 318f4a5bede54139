//! Reads YAML with the numbers that Kubernetes reads: `0644`, a mode of a file, is octal.

use serde::Deserialize;
use serde_saphyr::{Error, Options};

/// Parses one YAML document into a type. `App::dev_objects` and `TestServer::start_with` take
/// streams of documents.
///
/// Numbers are read as `kubectl` reads them: `defaultMode: 0644` is 420.
///
/// ```
/// use kctl::k8s::api::core::v1::ConfigMap;
///
/// let config: ConfigMap = kctl::from_yaml("{metadata: {name: web}, data: {color: blue}}").unwrap();
/// assert_eq!(config.data.unwrap()["color"], "blue");
/// ```
///
/// # Errors
/// The string is not YAML, has several documents, or has no value of the type.
pub fn from_yaml<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Error> {
    serde_saphyr::from_str_with_options(text, options())
}

/// Parses a stream of documents, as [`from_yaml`] parses one.
#[cfg(feature = "testing")]
pub(crate) fn from_yaml_stream<'de, T: Deserialize<'de>>(text: &'de str) -> Result<Vec<T>, Error> {
    serde_saphyr::from_multiple_with_options(text, options())
}

/// Returns the place of a syntax error and the parser's message, in one line.
///
/// The parser's own error also has an excerpt of the file, in which it repeats the message.
pub(crate) fn describe(error: &Error) -> String {
    let message = error.without_snippet().to_string();
    let Some(location) = error.location() else { return format!("not valid YAML: {message}") };
    let place = format!("line {}, column {}", location.line(), location.column());
    let message = message.strip_suffix(&format!(" at {place}")).unwrap_or(&message);
    format!("{place}: not valid YAML: {message}")
}

fn options() -> Options {
    serde_saphyr::options! { legacy_octal_numbers: true }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::SecretVolumeSource;
    use serde_json::{Value, json};

    use super::from_yaml;

    #[test]
    fn number_with_a_leading_zero_is_octal() {
        let volume: SecretVolumeSource = from_yaml("{secretName: web, defaultMode: 0644}").unwrap();
        assert_eq!(volume.default_mode, Some(420));
        let values: Value = from_yaml("[0644, -010, 644, 0, 0.5, '0644']").unwrap();
        assert_eq!(values, json!([420, -8, 644, 0, 0.5, "0644"]));
    }
}
