//! Named formats (`format.dns1123Label()` and others). Upstream: `pkg/cel/library/format.go` of apiserver.
//!
//! A format is a value: `format.dns1123Label().validate(s)` returns an optional list of errors,
//! `optional.none()` for a valid string. The rules are those of object names and `OpenAPI` formats,
//! so their messages are the same as in validation errors.

use std::sync::Arc;

use kctl_apimachinery::{formats, url::Url};
use kube_cel::cel::{Value as Cel, objects::Opaque};

use super::{EvalResult, Target, optional};
use crate::names::{NameRule, check_label_value, check_qualified_name};

/// A named format; holds its name.
#[derive(Debug, PartialEq, Eq)]
struct Format(&'static str);

/// Names that `format.named` accepts. Each is also a function of the library, without arguments.
const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "qualifiedName",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

impl Opaque for Format {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.NamedFormat"
    }
}

/// Returns the result of a function of formats; `None` for other functions.
///
/// `format.named` returns an optional value, empty for an unknown name. The list of errors has one
/// item, since our rules report the first violation.
pub(super) fn called(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<EvalResult> {
    let made = |name: &str| {
        let format = NAMES.iter().find(|format| **format == name)?;
        Some(Cel::Opaque(Arc::new(Format(format))))
    };
    match (name, target, arguments) {
        ("named", Target::Library("format"), [Cel::String(name)]) => Some(Ok(optional::wrap(made(name)))),
        (name, Target::Library("format"), []) => made(name).map(Ok),
        ("validate", Target::Value(Cel::Opaque(opaque)), [Cel::String(text)]) => {
            let error = opaque.downcast_ref::<Format>()?.wrong(text);
            let errors = |error: &str| Cel::List(Arc::new(vec![Cel::String(Arc::new(error.to_owned()))]));
            Some(Ok(optional::wrap(error.map(errors))))
        }
        _ => None,
    }
}

impl Format {
    /// Returns the validation error of a string in this format. Prefix formats accept a dash at the end, as
    /// `generateName` does.
    fn wrong(&self, text: &str) -> Option<&'static str> {
        let unless = |is_valid: bool, error| (!is_valid).then_some(error);
        match self.0 {
            "dns1123Label" => NameRule::Label.check(text),
            "dns1123Subdomain" => NameRule::Subdomain.check(text),
            "dns1035Label" => NameRule::Label1035.check(text),
            "dns1123LabelPrefix" => NameRule::Label.check_prefix(text),
            "dns1123SubdomainPrefix" => NameRule::Subdomain.check_prefix(text),
            "dns1035LabelPrefix" => NameRule::Label1035.check_prefix(text),
            "qualifiedName" => check_qualified_name(text),
            "labelValue" => check_label_value(text),
            "uri" => unless(Url::is_of_request(text), "must be a URL"),
            "uuid" => unless(formats::matches("uuid", text), "does not match the UUID format"),
            "byte" => unless(formats::matches("byte", text), "invalid base64"),
            "date" => unless(formats::matches("date", text), "invalid date"),
            _ => unless(formats::matches("datetime", text), "invalid datetime"),
        }
    }
}
