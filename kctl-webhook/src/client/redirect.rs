//! Redirects as Go's client follows them (`redirectBehavior` in `net/http/client.go`), but never to an address without TLS.

use http::{Method, StatusCode, Uri, header, response};

/// Maximum number of requests of one call, including the first; the bound of Go's client (`defaultCheckRedirect` in
/// `net/http/client.go`).
pub(super) const REQUESTS_MAX: usize = 10;

/// The next request.
#[derive(Debug, PartialEq)]
pub(super) struct Redirect {
    /// POST with the same body, or GET without one.
    pub(super) method: Method,
    pub(super) to: Uri,
}

/// Returns the next request after a response, or `None` if the response is final, for example a
/// redirect without a location.
///
/// # Errors
/// The location is invalid or not https.
pub(super) fn follow(parts: &response::Parts, method: &Method, from: &Uri) -> Result<Option<Redirect>, String> {
    let method = match parts.status {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => method.clone(),
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => Method::GET,
        _ => return Ok(None),
    };
    let Some(location) = parts.headers.get(header::LOCATION) else { return Ok(None) };
    let location = String::from_utf8_lossy(location.as_bytes());
    let to: Uri = resolve_reference(&location, from)
        .parse()
        .map_err(|error| format!("Post \"{from}\": failed to parse Location header {location:?}: {error}"))?;
    match to.scheme_str() {
        Some("https") => Ok(Some(Redirect { method, to })),
        Some("http") => Err(format!(
            "Post \"{to}\": the webhook redirects to http, where anybody on the way reads the object: serve the address by https"
        )),
        other => Err(format!("Post \"{to}\": unsupported protocol scheme {:?}", other.unwrap_or_default())),
    }
}

/// Resolves a reference against an address (RFC 3986, section 5.2).
fn resolve_reference(reference: &str, from: &Uri) -> String {
    let reference = reference.split('#').next().unwrap_or_default();
    let authority = from.authority().map_or("", |authority| authority.as_str());
    let has_scheme = reference.split(['/', '?']).next().is_some_and(|first| first.contains(':'));
    if has_scheme {
        return reference.to_owned();
    }
    if reference.starts_with("//") {
        return format!("https:{reference}");
    }
    let (path, query) = reference.split_at(reference.find('?').unwrap_or(reference.len()));
    let path = match path {
        "" => from.path().to_owned(),
        path if path.starts_with('/') => without_dots(path),
        path => {
            let folder = from.path().rsplit_once('/').map_or("", |(folder, _last)| folder);
            without_dots(&format!("{folder}/{path}"))
        }
    };
    format!("https://{authority}{path}{query}")
}

/// Removes the segments `.` and `..` of a path.
fn without_dots(path: &str) -> String {
    let mut resolved: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    resolved.pop();
                }
                if is_last {
                    resolved.push("");
                }
            }
            segment => resolved.push(segment),
        }
    }
    format!("/{}", resolved.join("/"))
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    fn redirect(status: u16, location: Option<&str>) -> Result<Option<Redirect>, String> {
        let response = Response::builder().status(status);
        let response = location.into_iter().fold(response, |response, to| response.header(header::LOCATION, to));
        let (parts, ()) = response.body(()).unwrap().into_parts();
        follow(&parts, &Method::POST, &"https://hooks.example.com:9443/a/b?timeout=3s".parse().unwrap())
    }

    #[test]
    fn redirect_status_decides_if_the_method_becomes_get() {
        for (status, method) in [
            (301, Some(Method::GET)),
            (302, Some(Method::GET)),
            (303, Some(Method::GET)),
            (307, Some(Method::POST)),
            (308, Some(Method::POST)),
            (200, None),
            (300, None),
            (304, None),
            (305, None),
        ] {
            let found = redirect(status, Some("/x")).unwrap().map(|redirect| redirect.method);
            assert_eq!(found, method, "{status}");
        }
        assert_eq!(redirect(307, None).unwrap(), None, "without a place it is the answer");
    }

    #[test]
    fn locations_are_resolved_from_the_requested_address() {
        for (location, to) in [
            ("/x", "https://hooks.example.com:9443/x"),
            ("/x?a=b#c", "https://hooks.example.com:9443/x?a=b"),
            ("x", "https://hooks.example.com:9443/a/x"),
            ("../x/./y", "https://hooks.example.com:9443/x/y"),
            ("../../..", "https://hooks.example.com:9443/"),
            ("?a=b", "https://hooks.example.com:9443/a/b?a=b"),
            ("//other.example.com/x", "https://other.example.com/x"),
            ("https://other.example.com:1/x", "https://other.example.com:1/x"),
            ("/x?to=https://other.example.com", "https://hooks.example.com:9443/x?to=https://other.example.com"),
        ] {
            let found = redirect(307, Some(location)).unwrap().map(|redirect| redirect.to.to_string());
            assert_eq!(found.as_deref(), Some(to), "{location}");
        }
    }

    #[test]
    fn forbidden_redirects_are_rejected_with_a_message() {
        for (location, expected) in [
            ("http://other.example.com/x", "Post \"http://other.example.com/x\": the webhook redirects to http"),
            ("ftp://other.example.com/x", "Post \"ftp://other.example.com/x\": unsupported protocol scheme \"ftp\""),
            ("https://%zz/", "Post \"https://hooks.example.com:9443/a/b?timeout=3s\": failed to parse Location header"),
        ] {
            let error = redirect(302, Some(location)).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
