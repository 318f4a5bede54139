//! Why an object is refused: what its author reads, and what programs can tell from it.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

/// The error of an admission function that rejects a request, with a code and a reason.
///
/// Any other error rejects the request as well, with its message and the code 403.
///
/// ```
/// use kctl_webhook::admission::Denial;
/// let denied = Denial::because("the budget of this team is used up").code(429);
/// assert_eq!(denied.to_string(), "the budget of this team is used up");
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    code: u16,
    reason: String,
    message: String,
    causes: Vec<Cause>,
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// The code of what is not permitted, and that of an object with wrong fields.
const FORBIDDEN: u16 = 403;
const UNPROCESSABLE: u16 = 422;

impl Denial {
    /// Refuses with a reason in words: 403 Forbidden.
    pub fn because(message: impl Into<String>) -> Self {
        Self { code: FORBIDDEN, reason: "Forbidden".into(), message: message.into(), causes: Vec::new() }
    }

    /// Refuses for one field: 422 Invalid. For several, [`Invalid`].
    pub fn field(path: impl Into<String>, value: impl Serialize, why: impl fmt::Display) -> Self {
        let mut invalid = Invalid::default();
        invalid.field(path, value, why);
        Self::of_fields(invalid.causes)
    }

    /// As another code of HTTP, of 400 to 599.
    #[must_use]
    pub fn code(mut self, code: u16) -> Self {
        debug_assert!((400..600).contains(&code), "a refusal is an error of HTTP");
        self.code = code;
        self
    }

    /// With another `reason` for programs, such as `TooManyRequests`.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// As an API server has said it: its code, reason and words.
    pub fn of_status(code: u16, reason: &str, message: &str) -> Self {
        let code = if (400..600).contains(&code) { code } else { FORBIDDEN };
        Self { code, reason: reason.into(), message: message.into(), causes: Vec::new() }
    }

    pub(super) fn failed(code: u16, message: String) -> Self {
        Self { code, reason: String::new(), message, causes: Vec::new() }
    }

    fn of_fields(causes: Vec<Cause>) -> Self {
        let said: Vec<String> = causes.iter().map(ToString::to_string).collect();
        let message = match said.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Self { code: UNPROCESSABLE, reason: "Invalid".into(), message, causes }
    }

    /// The code of HTTP.
    pub(super) fn http_code(&self) -> u16 {
        self.code
    }

    /// As a `Status`; where fields are wrong it begins like the API server's own: `PodSet.example.com "web" is invalid: `.
    pub(super) fn status(&self, group: &str, kind: &str, name: &str) -> Value {
        let mut status = json!({ "status": "Failure", "code": self.code, "message": self.message });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.clone().into();
        }
        if !self.causes.is_empty() {
            let whole = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
            status["message"] = format!("{whole} {name:?} is invalid: {}", self.message).into();
            status["details"] = json!({ "name": name, "group": group, "kind": kind, "causes": self.causes });
        }
        status
    }
}

/// Wrong fields, collected so that the author of an object learns of all of them at once.
///
/// ```
/// use kctl_webhook::admission::Invalid;
/// let mut invalid = Invalid::default();
/// invalid.field("spec.replicas", -1, "must not be negative");
/// invalid.required("spec.image", "there is nothing to run");
/// let denied = invalid.finish().unwrap_err();
/// assert!(denied.to_string().starts_with("[spec.replicas: Invalid value: -1: must not be negative, "));
/// assert!(Invalid::default().finish().is_ok());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Invalid {
    causes: Vec<Cause>,
}

/// So many wrong fields are told; the next ones are left out.
const CAUSES_LEN_MAX: usize = 100;

impl Invalid {
    /// A value that is wrong.
    pub fn field(&mut self, path: impl Into<String>, value: impl Serialize, why: impl fmt::Display) -> &mut Self {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.add("FieldValueInvalid", path.into(), format!("Invalid value: {value}: {why}"))
    }

    /// A value that is missing.
    pub fn required(&mut self, path: impl Into<String>, why: impl fmt::Display) -> &mut Self {
        self.add("FieldValueRequired", path.into(), format!("Required value: {why}"))
    }

    /// A field that must not be there, or not be changed.
    pub fn forbidden(&mut self, path: impl Into<String>, why: impl fmt::Display) -> &mut Self {
        self.add("FieldValueForbidden", path.into(), format!("Forbidden: {why}"))
    }

    fn add(&mut self, reason: &'static str, field: String, message: String) -> &mut Self {
        if self.causes.len() < CAUSES_LEN_MAX {
            self.causes.push(Cause { reason, message, field });
        }
        self
    }

    /// Ends a check.
    ///
    /// # Errors
    /// Some field is wrong: return it, as `Ok(invalid.finish()?)`.
    pub fn finish(self) -> Result<(), Denial> {
        if self.causes.is_empty() { Ok(()) } else { Err(Denial::of_fields(self.causes)) }
    }
}
