//! Rust names for the library's names.

/// Rust keywords that libraries use as names.
const KEYWORDS: &[&str] = &[
    "as", "async", "await", "const", "continue", "else", "enum", "final", "fn", "for", "if",
    "impl", "in", "loop", "match", "mod", "move", "override", "priv", "pub", "ref", "static",
    "struct", "trait", "type", "use", "virtual", "where", "while", "yield",
];

/// `pointInTimeRecovery` becomes `point_in_time_recovery`, `enforceSSL` becomes `enforce_ssl`.
pub(crate) fn snake(name: &str) -> String {
    // A constant is in capitals with underscores already.
    let name =
        if name.chars().any(char::is_lowercase) { name.to_owned() } else { name.to_lowercase() };
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| letters[before]);
        let begins_word = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_uppercase()
                        && letters.get(index + 1).is_some_and(|next| next.is_lowercase()))
            });
        if begins_word {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    if KEYWORDS.contains(&snake.as_str()) { format!("r#{snake}") } else { snake }
}

/// `PAY_PER_REQUEST` becomes `PayPerRequest`.
pub(crate) fn pascal(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let mut pascal = String::new();
    for word in words {
        let (first, rest) = word.split_at(1);
        // Groups of digits stay separate: `V1_10` must not become `V110`.
        if first.chars().all(|c| c.is_ascii_digit())
            && pascal.ends_with(|c: char| c.is_ascii_digit())
        {
            pascal.push('_');
        }
        pascal.push_str(&first.to_uppercase());
        pascal.push_str(&rest.to_lowercase());
    }
    pascal
}

/// The module of a type, `None` for the root: the lower case parts of its full name, without the package if there are
/// others.
pub(crate) fn module(fqn: &str) -> Option<String> {
    let parts: Vec<&str> = fqn.split('.').collect();
    let lower: Vec<&str> = parts
        .iter()
        .skip(1)
        .copied()
        .take_while(|part| part.starts_with(char::is_lowercase))
        .collect();
    match (lower.is_empty(), parts[0]) {
        (false, _) => Some(lower.join("_")),
        (true, "aws-cdk-lib") => None,
        (true, package) => Some(package.replace(['-', '/'], "_").replace('@', "")),
    }
}

/// A type's name in its module: the upper case parts of its full name.
pub(crate) fn local(fqn: &str) -> String {
    fqn.split('.').filter(|part| part.starts_with(char::is_uppercase)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_rust() {
        for (theirs, ours) in [
            ("tableArn", "table_arn"),
            ("enforceSSL", "enforce_ssl"),
            ("SSLPolicyName", "ssl_policy_name"),
            ("type", "r#type"),
            ("PROVIDED_AL2023", "provided_al2023"),
            ("grantReadData", "grant_read_data"),
            ("s3Bucket", "s3_bucket"),
        ] {
            assert_eq!(snake(theirs), ours);
        }
        assert_eq!(pascal("PAY_PER_REQUEST"), "PayPerRequest");
        assert_eq!(pascal("V1_10"), "V1_10");
        assert_eq!(pascal("ARM_64"), "Arm64");
    }

    #[test]
    fn a_type_stands_in_the_module_of_its_full_name() {
        let place = |fqn| (module(fqn), local(fqn));
        let (root, in_module) = (None, |module: &str| Some(module.to_owned()));
        assert_eq!(place("aws-cdk-lib.App"), (root, "App".into()));
        assert_eq!(place("constructs.Construct"), (in_module("constructs"), "Construct".into()));
        assert_eq!(
            place("aws-cdk-lib.aws_events.CfnRule.TargetProperty"),
            (in_module("aws_events"), "CfnRuleTargetProperty".into())
        );
        assert_eq!(
            place("aws-cdk-lib.interfaces.aws_iam.IRoleRef"),
            (in_module("interfaces_aws_iam"), "IRoleRef".into())
        );
    }
}
