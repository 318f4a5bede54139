//! Functions between versions of one kind, which an API server calls when a client uses another
//! version than the stored one.
//!
//! A [`Rule`] converts one version into another. [`Conversions`] finds the shortest path of rules
//! between each pair of versions, and all of them are served at [`PATH`].
//!
//! A response contains all objects of the request or none (`Convert` in
//! `k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`): one object that can't be converted
//! fails the whole list. So `kubectl get` of the kind fails. Return an error only for objects that really have no form
//! in the other version.
//!
//! `metadata` is not changed, except for labels and annotations that the function adds or sets. An API server rejects
//! other changes.
//!
//! ```
//! use k8s_openapi::api::autoscaling::{v1, v2};
//! use kctl_webhook::{FunctionInfo, conversion::{Conversions, Rule}};
//!
//! let about = |name| FunctionInfo::new(name, file!(), line!());
//! let up = Rule::new(about("up"), |old: v1::HorizontalPodAutoscaler| async move {
//!     let metadata = old.metadata;
//!     Ok(v2::HorizontalPodAutoscaler { metadata, ..Default::default() })
//! });
//! let down = Rule::new(about("down"), |new: v2::HorizontalPodAutoscaler| async move {
//!     let metadata = new.metadata;
//!     Ok(v1::HorizontalPodAutoscaler { metadata, ..Default::default() })
//! });
//! let conversions = Conversions::new(vec![up, down], &[]).unwrap();
//! assert!(conversions.has("autoscaling", "HorizontalPodAutoscaler"));
//! ```

mod respond;
mod table;

use std::{fmt, sync::Arc};

use kube::core::GroupVersionKind;
use serde_json::Value;

pub use self::table::{ConversionError, Conversions};
pub(crate) use respond::{BODY_LEN_MAX, failure_response, respond};

use crate::{
    call::{CallFuture, FunctionInfo},
    kind::{Definition, Kind},
};

/// The path of all conversions, as in controller-runtime (`pkg/builder/webhook.go`).
pub const PATH: &str = "/convert";

/// A function with `#[conversion]`, or a tuple of such; the function's name is the type.
///
/// Generated code implements it. `App::conversion` takes it. An implementation by hand needs the items of the crate
/// `kctl-webhook` from which a [`Rule`] is built.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a conversion",
    label = "not made by `#[conversion]`",
    note = "help: write `#[conversion]` on `fn name(old: v1alpha1::Kind) -> Result<v1::Kind>`, and name it here without parentheses",
    note = "code: K0115"
)]
pub trait Converts {
    /// Returns the rules of the functions.
    fn rules() -> Vec<Rule>;
}

crate::tuples!(Converts::rules -> Rule);

type Call = Arc<dyn Fn(&Value) -> CallFuture<Result<Value, StepError>> + Send + Sync>;

/// The reason why one function did not convert an object.
#[derive(Debug, thiserror::Error)]
enum StepError {
    /// The object does not have the fields of the version. serde's error has the value that does not fit.
    #[error("can't be read as {version}: {source}")]
    Unreadable {
        /// The version that the function takes.
        version: String,
        /// The error of the deserializer.
        source: serde_json::Error,
    },
    /// The error of the function, or a problem with its result.
    #[error("{0}")]
    Function(String),
}

impl StepError {
    /// Returns the message without values of the object, for the log.
    fn without_values(&self) -> String {
        match self {
            Self::Unreadable { version, .. } => format!("can't be read as {version}; the response has the reason"),
            Self::Function(text) => text.clone(),
        }
    }
}

/// A conversion function with the versions that it connects.
#[derive(Clone)]
pub struct Rule {
    about: FunctionInfo,
    from: GroupVersionKind,
    to: GroupVersionKind,
    definitions: [Definition; 2],
    call: Call,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {} by {}", self.from.api_version(), self.to.api_version(), self.about.named_location())
    }
}

impl Rule {
    /// Creates a rule from a function. An error of the function is reported with the object's name.
    ///
    /// # Errors
    /// Not of this call: when the rule runs, an object that does not fit `From` is an error with
    /// serde's reason.
    pub fn new<From, To, F, Fut>(about: FunctionInfo, call: F) -> Self
    where
        From: Kind,
        To: Kind,
        F: Fn(From) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<To, String>> + Send + 'static,
    {
        let (from, to) = (From::gvk(), To::gvk());
        let as_version = from.version.clone();
        let call = move |object: &Value| -> CallFuture<Result<Value, StepError>> {
            let read = From::deserialize(object)
                .map_err(|source| StepError::Unreadable { version: as_version.clone(), source });
            let called = read.map(&call);
            Box::pin(async move {
                let converted = called?.await.map_err(StepError::Function)?;
                serde_json::to_value(&converted)
                    .map_err(|error| StepError::Function(format!("can't be written as JSON: {error}")))
            })
        };
        Self { about, from, to, definitions: [Definition::default(); 2], call: Arc::new(call) }
    }

    /// Adds the CRDs of both versions; generated code calls it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_definitions(mut self, from: Definition, to: Definition) -> Self {
        self.definitions = [from, to];
        self
    }

    /// Returns the CRDs of both versions.
    #[doc(hidden)]
    pub fn definitions(&self) -> [Definition; 2] {
        self.definitions
    }

    /// Returns the name and location of the function.
    pub fn function_info(&self) -> FunctionInfo {
        self.about
    }

    /// Returns the version that the function takes.
    pub fn from(&self) -> &GroupVersionKind {
        &self.from
    }

    /// Returns the version that the function returns.
    ///
    /// ```
    /// use k8s_openapi::api::autoscaling::{v1, v2};
    /// use kctl_webhook::{FunctionInfo, conversion::Rule};
    ///
    /// let up = Rule::new(FunctionInfo::new("up", file!(), line!()), |old: v1::HorizontalPodAutoscaler| async move {
    ///     Ok(v2::HorizontalPodAutoscaler { metadata: old.metadata, ..Default::default() })
    /// });
    /// assert_eq!((up.from().version.as_str(), up.to().version.as_str()), ("v1", "v2"));
    /// ```
    pub fn to(&self) -> &GroupVersionKind {
        &self.to
    }
}
