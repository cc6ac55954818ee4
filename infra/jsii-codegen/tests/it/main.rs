//! The generator: on a small library of its own, and on the CDK.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use jsii_codegen::{assembly, plan, render, selection};

/// A library with one of everything.
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
fn a_library_with_one_of_everything_becomes_rust() {
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
fn what_does_not_exist_or_cannot_be_given_is_named() {
    for (selected, complaint) in [
        ("\"shop.Gone\" = []", "no type is called shop.Gone"),
        ("\"shop.Root\" = [\"gone\"]", "shop.Root has no public member called gone"),
        ("\"shop.Root\" = [\"hidden\"]", "shop.Root has no public member called hidden"),
        ("\"shop.Root\" = [\"since\"]", "shop.Root.since: dates cannot be read"),
        (
            "\"shop.goods.BigProps\" = [\"gone\"]",
            "shop.goods.BigProps.gone: the struct has no such member",
        ),
        (
            "\"shop.goods.Shelf\" = [\"cover\"]",
            "shop.goods.Shelf.cover: nothing selected can be given as `lid`",
        ),
    ] {
        assert_eq!(generated(selected).unwrap_err(), complaint, "{selected}");
    }
    assert!(generated("\"shop.Root\" = 7").unwrap_err().starts_with("a selection has a line"));
    let redirect = r#"{"schema": "jsii/file-redirect", "filename": ".jsii.gz"}"#;
    assert!(format!("{:#}", assembly::parse(redirect).unwrap_err()).contains("unpack that"));
}

#[expect(clippy::disallowed_methods, reason = "how the test runner says where the packages are")]
fn cdk() -> Option<PathBuf> {
    std::env::var_os("DAYBOOK_TEST_CDK").map(PathBuf::from)
}

fn check(cdk: &Path, out: &Path) -> (bool, String) {
    let infra = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_jsii-codegen"))
        .arg("--check")
        .args([Path::new("--selection"), &infra.join("bindings.toml"), Path::new("--out"), out])
        .args([cdk.join("constructs.jsii"), cdk.join("aws-cdk-lib.jsii")])
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn the_bindings_are_what_the_cdk_s_description_gives() {
    let Some(cdk) = cdk() else {
        eprintln!("skipped: DAYBOOK_TEST_CDK is not set (`make test` sets it)");
        return;
    };
    let infra = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (same, said) = check(&cdk, &infra.join("src/cdk"));
    assert!(same, "{said}");
    // And a letter that differs would be seen, where formatting has the same settings.
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
        format!("{} is not generated any more", cdk_rs.join("old.rs").display()),
    ];
    assert!(!same && named == expected, "{said}");
}
