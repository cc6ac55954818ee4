//! The page's files, which are part of the program.
//!
//! They hold no data: the script fetches that through the API. Everything that it shows is set as
//! text, never as markup, and [`POLICY`] keeps a browser from running or loading anything else.

/// What a browser may do on the page: run our script, use our style sheet, talk with whoever served
/// it, and nothing else.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it is served.
    pub path: &'static str,
    /// Its content type.
    pub content_type: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// All files; the first is the page itself.
pub static FILES: [File; 13] = [
    File {
        path: "/",
        content_type: "text/html; charset=utf-8",
        text: include_str!("../assets/index.html"),
    },
    File {
        path: "/page/style.css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("../assets/style.css"),
    },
    File {
        path: "/page/icon.svg",
        content_type: "image/svg+xml",
        text: include_str!("../assets/icon.svg"),
    },
    script("/page/main.js", include_str!("../assets/main.js")),
    script("/page/api.js", include_str!("../assets/api.js")),
    script("/page/dom.js", include_str!("../assets/dom.js")),
    script("/page/compare.js", include_str!("../assets/compare.js")),
    script("/page/health.js", include_str!("../assets/health.js")),
    script("/page/list.js", include_str!("../assets/list.js")),
    script("/page/picture.js", include_str!("../assets/picture.js")),
    script("/page/record.js", include_str!("../assets/record.js")),
    script("/page/session.js", include_str!("../assets/session.js")),
    script("/page/tables.js", include_str!("../assets/tables.js")),
];

const fn script(path: &'static str, text: &'static str) -> File {
    File { path, content_type: "text/javascript; charset=utf-8", text }
}
