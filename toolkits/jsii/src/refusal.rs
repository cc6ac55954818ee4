//! Parses the kernel's type errors: which property is wrong, and why.

/// Finds the property and the reason in a kernel's message.
///
/// The kernel explains a value of the wrong type as a tree, in which each level names a key or an
/// index; the last leaf is the reason. Any other message is itself the reason.
pub(crate) fn read(message: &str) -> (Option<String>, String) {
    let mut property = String::new();
    for line in message.lines() {
        if let Some(key) = between(line, "Key '", "'") {
            if !property.is_empty() {
                property.push('.');
            }
            property.push_str(key);
        } else if let Some(index) = between(line, "Index ", ":") {
            property = format!("{property}[{index}]");
        }
    }
    if property.is_empty() {
        return (None, message.trim().to_owned());
    }
    let leaf = message.lines().rev().find_map(|line| line.rsplit_once("╰─ ")).map(|(_, leaf)| leaf);
    (Some(property), leaf.unwrap_or(message).trim().to_owned())
}

fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_without_a_tree_is_itself_the_reason() {
        let message = "There is already a Construct with name 'T' in Stack2 [S]";
        assert_eq!(read(message), (None, message.to_owned()));
    }

    #[test]
    fn the_path_to_the_wrong_value_is_read_from_the_tree() {
        let message = "Passed to parameter props of new a.B: Unable to deserialize value as a.BProps\n\
            ├── 🛑 Failing value is an object\n│      { '$jsii.struct': [Object] }\n\
            ╰── 🔍 Failure reason(s):\n    ╰─ Key 'keys': Unable to deserialize value as array<a.Key>\n        \
            ╰── 🔍 Failure reason(s):\n            ╰─ Index 2: Unable to deserialize value as a.Key\n                \
            ╰── 🔍 Failure reason(s):\n                    ╰─ Key 'name': Unable to deserialize value as string\n                        \
            ╰── 🔍 Failure reason(s):\n                            ╰─ Value is not a string";
        assert_eq!(
            read(message),
            (Some("keys[2].name".to_owned()), "Value is not a string".to_owned())
        );
    }
}
