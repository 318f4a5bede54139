//! Named formats (`format.dns1123Label()` and others). Upstream: `pkg/cel/library/format.go` of apiserver.
//!
//! A format is a value: `format.dns1123Label().validate(s)` returns an optional list of errors,
//! `optional.none()` for a valid string. The rules are the same as for object names and `OpenAPI` formats, so their
//! messages are the same as in validation errors.

use std::sync::Arc;

use kctl_apimachinery::{formats, url::Url};
use kube_cel::cel::{Value as Cel, objects::Opaque};

use super::{EvalResult, Target, optional};
use crate::names::{NameRule, check_label_value, check_qualified_name};

/// A named format; holds its name.
#[derive(Debug, PartialEq, Eq)]
struct Format(&'static str);

/// Returns the validation error of a string.
type FormatRule = fn(&str) -> Option<&'static str>;

/// The formats that `format.named` accepts, each with its rule. Each is also a function of the library, without
/// arguments. Prefix formats accept a dash at the end, as `generateName` does.
const FORMATS: [(&str, FormatRule); 13] = [
    ("dns1123Label", |text| NameRule::Label.check(text)),
    ("dns1123Subdomain", |text| NameRule::Subdomain.check(text)),
    ("dns1035Label", |text| NameRule::Label1035.check(text)),
    ("dns1123LabelPrefix", |text| NameRule::Label.check_prefix(text)),
    ("dns1123SubdomainPrefix", |text| NameRule::Subdomain.check_prefix(text)),
    ("dns1035LabelPrefix", |text| NameRule::Label1035.check_prefix(text)),
    ("qualifiedName", check_qualified_name),
    ("labelValue", check_label_value),
    ("uri", |text| (!Url::is_of_request(text)).then_some("must be a URL")),
    ("uuid", |text| (!formats::matches("uuid", text)).then_some("does not match the UUID format")),
    ("byte", |text| (!formats::matches("byte", text)).then_some("invalid base64")),
    ("date", |text| (!formats::matches("date", text)).then_some("invalid date")),
    ("datetime", |text| (!formats::matches("datetime", text)).then_some("invalid datetime")),
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
pub(super) fn call(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<EvalResult> {
    let made = |name: &str| {
        let (format, _) = FORMATS.iter().find(|(format, _)| *format == name)?;
        Some(Cel::Opaque(Arc::new(Format(format))))
    };
    match (name, target, arguments) {
        ("named", Target::Library("format"), [Cel::String(name)]) => Some(Ok(optional::wrap(made(name)))),
        (name, Target::Library("format"), []) => made(name).map(Ok),
        ("validate", Target::Value(Cel::Opaque(opaque)), [Cel::String(text)]) => {
            let Format(name) = opaque.downcast_ref::<Format>()?;
            let (_, check) = FORMATS.iter().find(|(format, _)| format == name)?;
            let errors = |error: &str| Cel::List(Arc::new(vec![Cel::String(Arc::new(error.to_owned()))]));
            Some(Ok(optional::wrap(check(text).map(errors))))
        }
        _ => None,
    }
}
