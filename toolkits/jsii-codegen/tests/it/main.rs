//! Tests of the generator, with a small library and with the CDK.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use jsii_codegen::{assembly, plan, render, selection};

/// A library with one of each kind of type.
const LIBRARY: &str = include_str!("library.json");

fn generated(selected: &str) -> Result<String, String> {
    let assemblies = [assembly::parse(LIBRARY).unwrap()];
    let selection = selection::parse(selected).map_err(|error| format!("{error:#}"))?;
    let plan = plan::plan(&assemblies, &selection).map_err(|error| format!("{error:#}"))?;
    Ok(render::render(&plan)
        .into_iter()
        .map(|(name, text)| format!("=== {name}\n{text}"))
        .collect())
}

#[test]
fn a_library_with_one_of_each_kind_becomes_rust() {
    let selected = r#"
        "shop.Root" = ["new", "find", "label"]
        "shop.goods.Shelf" = ["new", "put", "many", "LARGE_SIZE", "atHome", "price", "parts"]
        "shop.goods.Lid" = []
        "shop.goods.BigProps" = ["wanted"]
    "#;
    let text = generated(selected).unwrap();
    assert_eq!(text, generated(selected).unwrap());
    insta::assert_snapshot!("library", text);
}

#[test]
fn a_missing_or_unsupported_type_is_named() {
    for (selected, complaint) in [
        ("\"shop.Gone\" = []", "unknown type shop.Gone"),
        ("\"shop.Root\" = [\"gone\"]", "shop.Root has no public member gone"),
        ("\"shop.Root\" = [\"hidden\"]", "shop.Root has no public member hidden"),
        ("\"shop.Root\" = [\"since\"]", "shop.Root.since: dates are not supported"),
        (
            "\"shop.goods.BigProps\" = [\"gone\"]",
            "shop.goods.BigProps.gone: no such member in the struct",
        ),
        (
            "\"shop.goods.Shelf\" = [\"cover\"]",
            "shop.goods.Shelf.cover: no selected type fits `lid`",
        ),
    ] {
        assert_eq!(generated(selected).unwrap_err(), complaint, "{selected}");
    }
    assert!(generated("\"shop.Root\" = 7").unwrap_err().starts_with("a selection has a line"));
    let redirect = r#"{"schema": "jsii/file-redirect", "filename": ".jsii.gz"}"#;
    assert!(format!("{:#}", assembly::parse(redirect).unwrap_err()).contains("decompress that"));
}

#[expect(clippy::disallowed_methods, reason = "the test runner passes the packages' folder")]
fn cdk() -> Option<PathBuf> {
    std::env::var_os("JSII_TEST_CDK").map(PathBuf::from)
}

fn check(cdk: &Path, out: &Path) -> (bool, String) {
    let infra = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra");
    let output = Command::new(env!("CARGO_BIN_EXE_jsii-codegen"))
        .arg("--check")
        .args([Path::new("--selection"), &infra.join("bindings.toml"), Path::new("--out"), out])
        .args([cdk.join("constructs.jsii"), cdk.join("aws-cdk-lib.jsii")])
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn committed_bindings_match_the_cdk_assembly() {
    let Some(cdk) = cdk() else {
        eprintln!("skipped: JSII_TEST_CDK is not set to a folder with the CDK's packages");
        return;
    };
    let infra = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra");
    let (same, said) = check(&cdk, &infra.join("src/cdk"));
    assert!(same, "{said}");
    // A single different letter must be found, given the same format settings.
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(infra.join("../rustfmt.toml"), copy.path().join("rustfmt.toml")).unwrap();
    let cdk_rs = copy.path().join("cdk");
    std::fs::create_dir(&cdk_rs).unwrap();
    for file in std::fs::read_dir(infra.join("src/cdk")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), cdk_rs.join(file.file_name())).unwrap();
    }
    let changed = cdk_rs.join("aws_sqs.rs");
    let text = std::fs::read_to_string(&changed).unwrap();
    std::fs::write(&changed, text.replacen("queue_name", "queue_nams", 1)).unwrap();
    std::fs::write(cdk_rs.join("old.rs"), "").unwrap();
    let (same, said) = check(&cdk, &cdk_rs);
    let named: Vec<_> = said.lines().filter(|line| line.contains(".rs ")).collect();
    let expected = [
        format!("{} differs", changed.display()),
        format!("{} is no longer generated", cdk_rs.join("old.rs").display()),
    ];
    assert!(!same && named == expected, "{said}");
}
