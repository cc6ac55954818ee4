//! HTML that carries nothing but what is meant: a text becomes a part of it only as text, and names of
//! elements and attributes are this program's own.

use std::io;

use serde_json::Value;

use crate::text::is_hostile;

/// Elements that have no content and no end.
const VOID: [&str; 4] = ["br", "input", "link", "meta"];

/// A piece of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    /// The whole page, if this is its `html` element.
    pub fn into_page(self) -> String {
        format!("<!doctype html>\n{}\n", self.0)
    }
}

/// An element with its attributes, their values being text, and its children.
pub fn el(
    name: &'static str,
    attributes: &[(&'static str, &str)],
    children: impl IntoIterator<Item = Html>,
) -> Html {
    let mut made = format!("<{name}");
    for (name, value) in attributes {
        made.push_str(&format!(" {name}=\""));
        escape(value, &mut made);
        made.push('"');
    }
    made.push('>');
    if !VOID.contains(&name) {
        children.into_iter().for_each(|child| made.push_str(&child.0));
        made.push_str(&format!("</{name}>"));
    }
    Html(made)
}

/// Text. Characters that cannot be seen or turn the direction of writing stand in it as escapes.
pub fn text(text: impl AsRef<str>) -> Html {
    let mut made = String::new();
    escape(text.as_ref(), &mut made);
    Html(made)
}

/// At most so many characters of a text, which says so if it has more.
pub fn clipped(all: &str, chars_max: usize) -> Html {
    match all.char_indices().nth(chars_max) {
        None => text(all),
        Some((at, _)) => text(format!("{} …", &all[..at])),
    }
}

/// One piece after the other.
pub fn all(pieces: impl IntoIterator<Item = Html>) -> Html {
    Html(pieces.into_iter().map(|piece| piece.0).collect())
}

fn escape(text: &str, into: &mut String) {
    for c in text.chars() {
        match c {
            '<' => into.push_str("&lt;"),
            '>' => into.push_str("&gt;"),
            '&' => into.push_str("&amp;"),
            '"' => into.push_str("&quot;"),
            '\n' | '\r' | '\t' => into.push(c),
            c if is_hostile(c) => into.extend(c.escape_unicode()),
            c => into.push(c),
        }
    }
}

/// A value as JSON over several lines, if that takes no more than so many bytes.
pub fn printed(value: &Value, bytes_max: usize) -> Option<String> {
    let mut room = Room { written: Vec::new(), bytes_max };
    serde_json::to_writer_pretty(&mut room, value).ok()?;
    String::from_utf8(room.written).ok()
}

/// Takes no more than it has room for: a value of megabytes is not printed to learn that it is large.
struct Room {
    written: Vec<u8>,
    bytes_max: usize,
}

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.written.len() + bytes.len() > self.bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_element_has_its_attributes_and_children_and_a_void_one_has_no_end() {
        let made = el("p", &[("class", "a \"b\"")], [text("1 < 2 & \"3\""), el("br", &[], [])]);
        let expected = "<p class=\"a &quot;b&quot;\">1 &lt; 2 &amp; &quot;3&quot;<br></p>";
        assert_eq!(made.0, expected);
        assert_eq!(text("user\u{202e}txt\u{0}").0, "user\\u{202e}txt\\u{0}");
        assert_eq!(clipped("äbc", 2).0, "äb …");
        assert_eq!(clipped("äb", 2).0, "äb");
    }

    #[test]
    fn a_value_is_printed_only_where_there_is_room() {
        assert_eq!(printed(&json!({"a": 1}), 12).unwrap(), "{\n  \"a\": 1\n}");
        assert_eq!(printed(&json!({"a": 1}), 11), None);
        // What is small in itself may be large when it is indented.
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(printed(&deep, 4_000), None);
    }

    proptest! {
        #[test]
        fn any_text_is_text_and_nothing_else(said in any::<String>()) {
            let made = el("p", &[("title", &said)], [text(&said)]).0;
            let inner = made.strip_prefix("<p title=\"").unwrap().strip_suffix("</p>").unwrap();
            let (value, content) = inner.split_once("\">").unwrap();
            for part in [value, content] {
                prop_assert!(!part.contains(['<', '>', '"']));
                let back = part.replace("&lt;", "<").replace("&gt;", ">");
                let back = back.replace("&quot;", "\"").replace("&amp;", "&");
                let seen: String = said.chars().filter(|c| !is_hostile(*c)).collect();
                let kept = said.chars().all(|c| !is_hostile(c));
                prop_assert!(!kept || back == seen);
            }
        }
    }
}
