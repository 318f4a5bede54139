//! The match conditions of admission functions, compiled as API servers compile them.
//!
//! An API server rejects a webhook configuration with a condition that does not compile, and names the place in the
//! object. The program knows the function, and fails before it prints a configuration.

use kctl_cel::Environment;
use kctl_runtime::reconcile::{Error, Result};
use kctl_webhook::admission::Webhook;

/// Checks the conditions of all functions.
///
/// # Errors
/// A condition is not valid CEL, has a type error, or is not true or false.
pub(super) fn check(webhooks: &[Webhook]) -> Result<()> {
    let environment = Environment::for_request();
    for webhook in webhooks {
        for (name, expression) in &webhook.options().match_conditions {
            if let Some(why) = problem(expression.trim(), &environment) {
                let (function, place) = (webhook.function_info().name, webhook.function_info().location());
                return Err(Error::from(format!(
                    "{place}: the match condition `{name}` of `{function}` {why}\nhelp: write an expression that is true or \
                     false, such as `request.operation == 'CREATE'`\ncode: K0104"
                )));
            }
        }
    }
    Ok(())
}

/// Returns the reason why an API server rejects an expression.
fn problem(expression: &str, environment: &Environment) -> Option<String> {
    if let Err(errors) = kctl_cel::read(expression) {
        let text = errors.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("ERROR: <input>:").trim();
        return Some(format!("is not valid CEL: {first}"));
    }
    match kctl_cel::type_of(expression, environment) {
        Err(issues) => Some(format!("does not compile: {issues}")),
        Ok(Some(found)) if found.to_string() != "bool" => Some(format!("must be of type bool, and is of type {found}")),
        Ok(_) => kctl_cel::instantiate(expression).err().map(|why| format!("does not compile: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kctl_webhook::{
        FunctionInfo,
        admission::{Action, Options},
    };

    use super::*;

    /// Returns the error for a function with this condition.
    fn error(expression: &str) -> Option<String> {
        let mut options = Options::new(Action::Validate);
        options.match_conditions = vec![("mine".into(), expression.into())];
        let about = FunctionInfo::new("rules", "src/main.rs", 7);
        let webhook = Webhook::object(about, options, |pod: Pod, _request| async move { Ok(pod) });
        check(&[webhook]).err().map(|error| error.to_string())
    }

    #[test]
    fn conditions_about_the_request_compile() {
        for valid in [
            "true",
            "!request.userInfo.username.startsWith('system:')",
            "object.metadata.namespace != 'kube-system' && request.operation == 'CREATE'",
            "authorizer.group('').resource('pods').check('get').allowed()",
        ] {
            assert_eq!(error(valid), None, "{valid}");
        }
    }

    #[test]
    fn invalid_conditions_name_their_function() {
        for (invalid, why) in [
            ("tru", "does not compile"),
            ("1 + 1", "must be of type bool, and is of type int"),
            ("request.", "is not valid CEL"),
            ("request.userinfo.username == 'a'", "does not compile"),
        ] {
            let error = error(invalid).expect(invalid);
            let start = "src/main.rs:7: the match condition `mine` of `rules` ";
            assert!(error.starts_with(start) && error.contains(why) && error.ends_with("code: K0104"), "{error}");
        }
    }
}
