//! Each test is in exactly one of the two test runs, `make test` and `make verify`.

use super::manifest;
use crate::tree::{Finding, Tree};
use toml::Value;

const CONFIG: &str = ".config/nextest.toml";

/// The filter of `quick` is the filter of `verify` inside `not (...)`, so that each test is in exactly one run.
pub(crate) fn findings(tree: &Tree) -> Vec<Finding> {
    let config = match manifest::parse(tree, CONFIG) {
        Ok(config) => config,
        Err(finding) => return vec![finding],
    };
    let filter = |profile: &str| -> Option<String> {
        let profile = config.get("profile")?.get(profile)?;
        let filter = profile.get("default-filter").and_then(Value::as_str)?;
        Some(filter.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (Some(quick), Some(verify)) = (filter("quick"), filter("verify")) else {
        return vec![Finding::new(
            CONFIG,
            1,
            "profile.quick and profile.verify each need a default-filter",
        )];
    };
    let inside = quick.strip_prefix("not (").and_then(|rest| rest.strip_suffix(')'));
    if inside.map(str::trim) == Some(verify.as_str()) {
        return Vec::new();
    }
    let text = tree.text(CONFIG).unwrap_or_default();
    let line = manifest::line_of(text, "profile.quick", "default-filter");
    let what = "profile.quick's default-filter is not profile.verify's inside `not (...)`: \
                a test could be in neither";
    vec![Finding::new(CONFIG, line, what)]
}

#[cfg(test)]
mod tests {
    use crate::tree::fixture;

    #[track_caller]
    fn check(quick: &str, verify: &str, expected: &[&str]) {
        let config = format!(
            "//- .config/nextest.toml\n[profile.quick]\ndefault-filter = '{quick}'\n\
             [profile.verify]\ndefault-filter = '{verify}'\n"
        );
        fixture::check(super::findings, &config, expected);
    }

    #[test]
    fn filters_that_complement_each_other_pass() {
        check("not (package(sim) or test(x))", "package(sim) or test(x)", &[]);
        check("not ( package(sim)  )", " package(sim)", &[]);
    }

    #[test]
    fn filters_that_may_leave_a_test_out_are_named() {
        let expected = ".config/nextest.toml:2: profile.quick's default-filter is not \
                        profile.verify's inside `not (...)`: a test could be in neither";
        for (quick, verify) in [
            ("not (package(sim))", "package(cli)"),
            ("package(sim)", "package(sim)"),
            ("not (package(sim)) and not (test(x))", "package(sim)) and not (test(y)"),
        ] {
            check(quick, verify, &[expected]);
        }
    }

    #[test]
    fn a_profile_without_a_filter_is_named() {
        fixture::check(
            super::findings,
            "//- .config/nextest.toml\n[profile.quick]\ndefault-filter = 'all()'\n",
            &[
                ".config/nextest.toml:1: profile.quick and profile.verify each need a default-filter",
            ],
        );
    }
}
