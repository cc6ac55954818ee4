//! The page's files, embedded in the program.
//!
//! The files contain no session data: the script fetches it through the API and sets it as text,
//! never as markup. [`POLICY`] keeps the browser from running or loading anything else.

/// The page's content security policy: scripts, styles, images and connections of its own origin
/// only.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    pub path: &'static str,
    pub content_type: &'static str,
    pub text: &'static str,
}

/// All files; the first is the page itself.
pub static FILES: [File; 22] = [
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
    script("/page/conclusion.js", include_str!("../assets/conclusion.js")),
    script("/page/data.js", include_str!("../assets/data.js")),
    script("/page/filter.js", include_str!("../assets/filter.js")),
    script("/page/executions.js", include_str!("../assets/executions.js")),
    script("/page/health.js", include_str!("../assets/health.js")),
    script("/page/inbox.js", include_str!("../assets/inbox.js")),
    script("/page/list.js", include_str!("../assets/list.js")),
    script("/page/markdown.js", include_str!("../assets/markdown.js")),
    script("/page/picture.js", include_str!("../assets/picture.js")),
    script("/page/record.js", include_str!("../assets/record.js")),
    script("/page/session.js", include_str!("../assets/session.js")),
    script("/page/start.js", include_str!("../assets/start.js")),
    script("/page/tables.js", include_str!("../assets/tables.js")),
    script("/page/talk.js", include_str!("../assets/talk.js")),
    script("/page/timeline.js", include_str!("../assets/timeline.js")),
];

const fn script(path: &'static str, text: &'static str) -> File {
    File { path, content_type: "text/javascript; charset=utf-8", text }
}
