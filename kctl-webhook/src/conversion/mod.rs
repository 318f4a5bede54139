//! `#[conversion]`: functions between versions of one kind, which an API server asks when it shows an object in another version
//! than the stored one.

mod respond;
mod table;

use std::{fmt, sync::Arc};

use kube::core::GroupVersionKind;
use serde_json::Value;

pub use self::table::{ConversionError, Conversions};
pub(crate) use respond::{BODY_LEN_MAX, failed, respond, unread};

use crate::{
    call::{About, Called},
    kind::{Definition, Kind},
};

/// The path of all conversions, as in controller-runtime.
pub const PATH: &str = "/convert";

/// One function with `#[conversion]`, by the type of its name, or a tuple of such.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a conversion",
    label = "not made by `#[conversion]`",
    note = "help: write `#[conversion]` on `fn name(old: v1alpha1::Kind) -> Result<v1::Kind>`, and name it here without parentheses",
    note = "code: K0115"
)]
pub trait Converts {
    /// Returns what the functions convert.
    fn rules() -> Vec<Rule>;
}

crate::tuples!(Converts, Rule);

type Call = Arc<dyn Fn(&Value) -> Called<Result<Value, String>> + Send + Sync>;

/// A function with the versions that it is between.
#[derive(Clone)]
pub struct Rule {
    about: About,
    from: GroupVersionKind,
    to: GroupVersionKind,
    definitions: [Definition; 2],
    call: Call,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {} by {}", self.from.api_version(), self.to.api_version(), self.about.place())
    }
}

impl Rule {
    /// Creates a rule from a function. An error of the function is reported with the object's name.
    pub fn new<From, To, F, Fut>(about: About, call: F) -> Self
    where
        From: Kind,
        To: Kind,
        F: Fn(From) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<To, String>> + Send + 'static,
    {
        let (from, to) = (From::gvk(), To::gvk());
        let as_version = from.version.clone();
        let call = move |object: &Value| -> Called<Result<Value, String>> {
            let read = From::deserialize(object).map_err(|error| format!("can't be read as {as_version}: {error}"));
            let called = read.map(&call);
            Box::pin(async move {
                let converted = called?.await?;
                serde_json::to_value(&converted).map_err(|error| format!("can't be written as JSON: {error}"))
            })
        };
        Self { about, from, to, definitions: [Definition::default(); 2], call: Arc::new(call) }
    }

    /// Adds how both versions are defined; generated code calls it.
    #[must_use]
    pub fn defined(mut self, from: Definition, to: Definition) -> Self {
        self.definitions = [from, to];
        self
    }

    /// Returns how both versions are defined.
    pub fn definitions(&self) -> [Definition; 2] {
        self.definitions
    }

    /// Returns which function it is.
    pub fn about(&self) -> About {
        self.about
    }

    /// Returns the version that it takes.
    pub fn from(&self) -> &GroupVersionKind {
        &self.from
    }

    /// Returns the version that it makes.
    pub fn to(&self) -> &GroupVersionKind {
        &self.to
    }
}
