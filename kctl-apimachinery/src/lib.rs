//! Parses and formats strings of the Kubernetes API as `k8s.io/apimachinery` and Go's standard library do.
//!
//! An API server, a controller and an interpreter must agree that `1024Mi` is `1Gi`, that `1d` is not a duration and
//! that `Example.com/a` is not a label key. Each module is the counterpart of one Go package:
//!
//! | module | reads and writes | upstream |
//! |---|---|---|
//! | [`quantity`] | `500m`, `1Gi` | `apimachinery/pkg/api/resource` |
//! | [`validation`] | names, label keys and label values | `apimachinery/pkg/util/validation` |
//! | [`labels`] | `app=web,tier in (a, b)` | `apimachinery/pkg/labels` |
//! | [`fields`] | `spec.nodeName=a`: its syntax | `apimachinery/pkg/fields` |
//! | [`strconv`] | `1e+06`, `1.5e-07`, `\n` | `strconv`, `fmt`, `encoding/json` |
//! | [`fnv`] | the hash of a `shardSelector` | `hash/fnv`, `apimachinery/pkg/sharding` |
//! | [`url`] | `https://user@host:8443/path?query` | `net/url` |
#![cfg_attr(
    feature = "time",
    doc = "| [`time`] | `2026-01-01T00:00:00Z`, `metav1.Time` and `MicroTime` | `time`, `apimachinery/pkg/apis/meta/v1` |
| [`duration`] | `1h30m`, and the ages `3m5s` and `2d3h` of tables | `time`, `apimachinery/pkg/util/duration` |"
)]
#![cfg_attr(
    not(feature = "time"),
    doc = "| `time`, `duration` | with the feature `time`: `2026-01-01T00:00:00Z`, `1h30m` | `time` |"
)]
#![cfg_attr(
    feature = "formats",
    doc = "| [`formats`] | `date-time`, `uuid`, `hostname` | `kube-openapi/pkg/validation/strfmt` |"
)]
#![cfg_attr(
    not(feature = "formats"),
    doc = "| `formats` | with the feature `formats`: `date-time`, `uuid` | `kube-openapi/pkg/validation/strfmt` |"
)]
//!
//! Functions are pure: they have no clock, no configuration and no other state. The error messages are kctl's, not
//! Go's.
//!
//! ```
//! use kctl_apimachinery::{labels, quantity::Quantity};
//!
//! let sum = "512Mi".parse::<Quantity>()?.plus("1Gi".parse()?);
//! assert_eq!(sum.to_string(), "1536Mi");
//! let selector = labels::parse("app in (web, db),!legacy").unwrap();
//! assert!(selector.iter().all(|wanted| wanted.matches((wanted.key == "app").then_some("web"))));
//! # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "time")]
pub mod duration;
pub mod fields;
pub mod fnv;
#[cfg(feature = "formats")]
pub mod formats;
pub mod labels;
pub mod quantity;
pub mod strconv;
#[cfg(feature = "time")]
pub mod time;
pub mod url;
pub mod validation;

/// Compiles and runs the example of the README.
#[cfg(all(doctest, feature = "time"))]
#[doc = include_str!("../README.md")]
struct Readme;
