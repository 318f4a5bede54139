//! Rejections: the message that a person reads, and the fields that programs read.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

/// The error of an admission function that rejects a request, with a code and a reason.
///
/// Any other error rejects the request as well, with its message and the code 403.
///
/// ```
/// use kctl_webhook::admission::Denial;
///
/// let denied = Denial::because("the budget of this team is used up").code(429).reason("TooManyRequests");
/// assert_eq!(denied.to_string(), "the budget of this team is used up");
/// ```
///
/// Write the message for the author of the object: what is wrong, and what to change. `kubectl`
/// prints it after `admission webhook "…" denied the request:`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
#[must_use = "the request is accepted unless the function returns it: `return Err(denial.into())`"]
pub struct Denial {
    code: u16,
    reason: String,
    message: String,
    causes: Vec<Cause>,
}

/// One invalid field, as in `Status.details.causes`.
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

/// The status codes of a request that is not permitted, and of an object with invalid fields.
const FORBIDDEN: u16 = 403;
const UNPROCESSABLE: u16 = 422;

impl Denial {
    /// Rejects a request with a message: 403 Forbidden.
    pub fn because(message: impl Into<String>) -> Self {
        Self { code: FORBIDDEN, reason: "Forbidden".into(), message: message.into(), causes: Vec::new() }
    }

    /// Rejects a request because of one field: 422 Invalid, like the API server's own validation
    /// errors. Use [`Invalid`] for several.
    ///
    /// ```
    /// use kctl_webhook::admission::Denial;
    ///
    /// let denied = Denial::field("spec.replicas", 12, "must be at most 10");
    /// assert_eq!(denied.to_string(), "spec.replicas: Invalid value: 12: must be at most 10");
    /// ```
    pub fn field(path: impl Into<String>, value: impl Serialize, why: impl fmt::Display) -> Self {
        let mut invalid = Invalid::default();
        invalid.field(path, value, why);
        Self::of_fields(invalid.causes)
    }

    /// Sets the HTTP status code, 400 to 599.
    ///
    /// # Panics
    /// In debug builds, for another code.
    pub fn code(mut self, code: u16) -> Self {
        debug_assert!((400..600).contains(&code), "a rejection is an error of HTTP");
        self.code = code;
        self
    }

    /// Sets the `reason` of the status, which programs read, such as `TooManyRequests`.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Creates a rejection from the status of another API server: its code, reason and message. A
    /// code that is not an error becomes 403. API servers would report it as 400 (`ToStatusErr` in
    /// `k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go`).
    ///
    /// ```
    /// use kctl_webhook::admission::Denial;
    ///
    /// let denied = Denial::from_status(409, "AlreadyExists", "the name is taken");
    /// assert_eq!(denied.to_string(), "the name is taken");
    /// ```
    pub fn from_status(code: u16, reason: &str, message: &str) -> Self {
        let code = if (400..600).contains(&code) { code } else { FORBIDDEN };
        Self { code, reason: reason.into(), message: message.into(), causes: Vec::new() }
    }

    /// Creates an error of the webhook itself, without a reason.
    pub(super) fn webhook_error(code: u16, message: String) -> Self {
        Self { code, reason: String::new(), message, causes: Vec::new() }
    }

    fn of_fields(causes: Vec<Cause>) -> Self {
        let messages: Vec<String> = causes.iter().map(ToString::to_string).collect();
        let message = match messages.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Self { code: UNPROCESSABLE, reason: "Invalid".into(), message, causes }
    }

    pub(super) fn http_code(&self) -> u16 {
        self.code
    }

    /// Returns a `Status`. With invalid fields it starts like the API server's own (`NewInvalid` in
    /// `k8s.io/apimachinery/pkg/api/errors/errors.go`): `PodSet.example.com "web" is invalid: `.
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

/// Collects invalid fields, so that the author of an object learns of all of them at once.
///
/// Its methods follow Kubernetes' `field.ErrorList`: [`field`](Self::field) is `Invalid`, [`required`](Self::required)
/// and [`forbidden`](Self::forbidden) have their names. Paths are written as in YAML: `spec.hosts[0]`.
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

/// Maximum number of invalid fields that are reported; further ones are dropped.
const CAUSES_LEN_MAX: usize = 100;

impl Invalid {
    /// Adds a field whose value is invalid. The message shows the value as JSON, as `field.Invalid` does.
    ///
    /// ```
    /// use kctl_webhook::admission::Invalid;
    ///
    /// let mut invalid = Invalid::default();
    /// invalid.field("spec.replicas", -1, "must not be negative");
    /// let denied = invalid.finish().unwrap_err();
    /// assert_eq!(denied.to_string(), "spec.replicas: Invalid value: -1: must not be negative");
    /// ```
    pub fn field(&mut self, path: impl Into<String>, value: impl Serialize, why: impl fmt::Display) -> &mut Self {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.add("FieldValueInvalid", path.into(), format!("Invalid value: {value}: {why}"))
    }

    /// Adds a field that is missing or empty and has to be set, as `field.Required` does.
    ///
    /// ```
    /// use kctl_webhook::admission::Invalid;
    ///
    /// let mut invalid = Invalid::default();
    /// invalid.required("spec.image", "there is nothing to run");
    /// assert_eq!(invalid.finish().unwrap_err().to_string(), "spec.image: Required value: there is nothing to run");
    /// ```
    pub fn required(&mut self, path: impl Into<String>, why: impl fmt::Display) -> &mut Self {
        self.add("FieldValueRequired", path.into(), format!("Required value: {why}"))
    }

    /// Adds a field that must not be set, or not be changed.
    ///
    /// ```
    /// use kctl_webhook::admission::Invalid;
    ///
    /// let mut invalid = Invalid::default();
    /// invalid.forbidden("spec.class", "can't be changed");
    /// assert_eq!(invalid.finish().unwrap_err().to_string(), "spec.class: Forbidden: can't be changed");
    /// ```
    pub fn forbidden(&mut self, path: impl Into<String>, why: impl fmt::Display) -> &mut Self {
        self.add("FieldValueForbidden", path.into(), format!("Forbidden: {why}"))
    }

    fn add(&mut self, reason: &'static str, field: String, message: String) -> &mut Self {
        if self.causes.len() < CAUSES_LEN_MAX {
            self.causes.push(Cause { reason, message, field });
        }
        self
    }

    /// Accepts the object if no field was added, and rejects it with all of them otherwise.
    ///
    /// # Errors
    /// Some field is invalid. In a function that returns kctl's `Result`, write
    /// `Ok(invalid.finish()?)`.
    pub fn finish(self) -> Result<(), Denial> {
        if self.causes.is_empty() { Ok(()) } else { Err(Denial::of_fields(self.causes)) }
    }
}
