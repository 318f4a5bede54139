//! URLs in expressions. Upstream: `pkg/cel/library/urls.go` of apiserver.
//!
//! The URL type itself is in `kctl_apimachinery::url`, which webhook validation uses too.

use std::{collections::HashMap, sync::Arc};

use kctl_apimachinery::url::{Url, parse_query};
use kube_cel::cel::{
    Value as Cel,
    objects::{Key, Map, Opaque},
};

use super::{EvalResult, Target};

/// A URL as a value of an expression.
#[derive(Debug, PartialEq, Eq)]
struct UrlValue(Url);

impl Opaque for UrlValue {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.URL"
    }
}

/// Returns the result of a function of URLs; `None` for other functions.
///
/// `url` accepts absolute URLs and absolute paths, as Go's `url.ParseRequestURI`.
pub(super) fn call(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<EvalResult> {
    match (name, target, arguments) {
        ("url", Target::None, [Cel::String(text)]) => {
            let url = Url::parse(text).filter(|_| Url::is_of_request(text));
            let url = url.map(|url| Cel::Opaque(Arc::new(UrlValue(url))));
            Some(url.ok_or_else(|| format!("{text:?} is not a valid URL").into()))
        }
        ("isURL", Target::None, [Cel::String(text)]) => Some(Ok(Cel::Bool(Url::is_of_request(text)))),
        (_, Target::Value(Cel::Opaque(value)), []) => part(&value.downcast_ref::<UrlValue>()?.0, name).map(Ok),
        _ => None,
    }
}

/// Returns the result of an accessor such as `getHost`. Absent parts are empty strings.
fn part(url: &Url, function: &str) -> Option<Cel> {
    let string = |text: &str| Cel::String(Arc::new(text.to_owned()));
    Some(match function {
        "getScheme" => string(&url.scheme),
        "getHost" => string(&url.host),
        "getHostname" => string(url.host_and_port().0),
        "getPort" => string(url.host_and_port().1),
        "getEscapedPath" => string(&url.path),
        "getQuery" => {
            let list = |values: Vec<String>| Cel::List(Arc::new(values.iter().map(|value| string(value)).collect()));
            let values = parse_query(&url.query).into_iter();
            let map: HashMap<Key, Cel> =
                values.map(|(name, values)| (Key::String(Arc::new(name)), list(values))).collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
        _ => return None,
    })
}
