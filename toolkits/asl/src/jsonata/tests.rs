use serde_json::json;

use super::*;

fn evaluate(source: &str) -> Result<Value, String> {
    let expression = Expression::compile(source).map_err(|error| error.to_string())?;
    let variables = BTreeMap::from([("list".to_owned(), Arc::new(json!([1, 2, 3])))]);
    let now = Timestamp::from_millis(1_795_257_000_000);
    Scope::new([("input", &json!({"a": 1}))], &variables, now, "seed")
        .evaluate(&expression, "Output")
        .map_err(|error| {
            error
                .cause
                .rsplit_once("'Output' ")
                .map_or(error.cause.clone(), |(_, cause)| cause.to_owned())
        })
}

fn check(source: &str, expected: Value) {
    assert_eq!(evaluate(source), Ok(expected), "{source}");
}

#[test]
fn added_functions_match_the_aws_documentation() {
    check("$partition($list, 2)", json!([[1, 2], [3]]));
    check("$partition([], 2)", json!([]));
    check("$range(0, 10, 5)", json!([0, 5, 10]));
    check("$range(3, 1, -1)", json!([3, 2, 1]));
    check("$range(1, 0, 1)", json!([]));
    check("$hash('a')", json!("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"));
    check("$length($hash('a', 'SHA-512'))", json!(128));
    check("$parse('{\"b\": [1, 2.5]}').b[1]", json!(2.5));
    check("$length($uuid())", json!(36));
    check("$uuid() = $uuid()", json!(false));
    check("$random(7) = $random(7)", json!(true));
    check("$random(42)", json!(0.727_563_680_032_868_1));
    check("$range(1, 9, 9)", json!(1));
    check("$random() = $random()", json!(false));
    check("$random() < 1 and $random() >= 0", json!(true));
    check("$now()", json!("2026-11-21T10:30:00.000Z"));
    check("$millis()", json!(1_795_257_000_000_i64));
}

#[test]
fn evaluating_again_gives_the_same_result() {
    for source in
        ["$uuid()", "$random()", "[$uuid(), $uuid(), $random()]", "$shuffle([1..3]) ~> $count"]
    {
        assert_eq!(evaluate(source), evaluate(source), "{source}");
    }
}

#[test]
fn a_call_of_an_unknown_function_fails_as_on_aws() {
    let sentence = "threw an error during evaluation. T1006: Attempted to invoke a non-function";
    for source in ["$randomSeeded(1)", "$eval('1')", "$notreal(1, 2)"] {
        assert_eq!(evaluate(source), Err(sentence.to_owned()), "{source}");
    }
}

#[test]
fn misuse_is_an_error() {
    for source in [
        "$partition(1, 1)",
        "$partition($list, 0)",
        "$range(1, 2, 0)",
        "$range(1, 1001, 1)",
        "$hash('a', 'CRC')",
        "$parse('{')",
        "$eval('1')",
    ] {
        let cause = evaluate(source).unwrap_err();
        assert!(cause.starts_with("threw an error during evaluation"), "{source}: {cause}");
    }
}

#[test]
fn runaway_expressions_are_stopped() {
    assert!(evaluate("[1..10000000]").is_err());
    let deep =
        evaluate("$reduce([1..50000], function($inner, $item) { {'a': $inner} })").unwrap_err();
    assert_eq!(deep, "returned a value nested more than 120 levels deep.");
    assert!(evaluate("($f := function($n) { 1 + $f($n + 1) }; $f(0))").is_err());
}

#[test]
fn expression_results_stay_within_size_limits() {
    let text = "must have at most 1048576 bytes";
    for (source, expected) in [
        ("$reduce([1..60], function($grown, $i) { $grown & $grown }, 'x')", text),
        ("$reduce([1..60], function($grown, $i) { $i & $grown & $grown }, 'x')", text),
        ("$string($reduce([1..60], function($grown, $i) { {'a': $grown, 'b': $grown} }, 1))", text),
        ("'' & $reduce([1..60], function($grown, $i) { {'a': $grown, 'b': $grown} }, 1)", text),
        ("$list.($pad('x', 2000000000))", text),
        ("'x' ~> $pad(-2000000000)", text),
        ("$join($map([1..50], function() { $pad('x', 100000) }))", text),
        (
            "($x := $pad('', 100000); $map([1..50000], function() { $x & $x }))",
            "all texts together",
        ),
        ("$join($map([1..5000], function() { 'x' }), $pad('x', 100000))", "all texts together"),
        ("$replace($pad('x', 100000), ' ', $pad('y', 100000))", "all texts together"),
        ("$replace($pad('x', 100000), / /, $pad('y', 100000))", "all texts together"),
        ("$pad('x', 100000) ~> $replace(' ', $pad('y', 100000))", "all texts together"),
        ("$pad('x', 100000).$replace(' ', $pad('y', 2000))", "1024 bytes"),
        (
            "$reduce([1..60], function($grown, $i) { {'a': $grown, 'b': $grown} }, 1)",
            "more than 10485760",
        ),
        ("($f := function() { $f() }; $f())", "threw an error"),
    ] {
        let cause = evaluate(source).unwrap_err();
        assert!(cause.contains(expected), "{source}: {cause}");
    }
}

#[test]
fn size_limits_do_not_change_what_expressions_mean() {
    check(
        "'a' & 12345678901 & $missing & [1, 'b'] & {'c': null}",
        json!(r#"a12345678901[1,"b"]{"c":null}"#),
    );
    check("$string(12345678901)", json!("12345678901"));
    check("$list.$string()", json!(["1", "2", "3"]));
    check("$pad('x', -3, '#') & $pad('x', 2)", json!("##xx "));
    check("$join(['a', 'b'], ', ') & $join('c') & $join($missing, ',')", json!("a, bc"));
    check("$replace('abcabc', 'b', '[b]', 1)", json!("a[b]cabc"));
    check("$replace('abc', /(b)/, function($m) { $m.match & $m.groups[0] })", json!("abbc"));
    check("$map(['a', 'b'], $replace(?, 'a', 'x'))", json!(["x", "b"]));
    check("['a', 'b'] ~> $join('-')", json!("a-b"));
    check("$length($join($map([1..500], function($i) { $pad('', 800) })))", json!(400_000));
    check("$list.$string().$replace('1', 'one')", json!(["one", "2", "3"]));
    let filled = "$length($replace($pad('{{b}}', 20000), '{{b}}', $pad('x', 50000)))";
    check(filled, json!(69_995));
    check("$length($pad('{{b}}', 20000) ~> $replace('{{b}}', $pad('x', 50000)))", json!(69_995));
    check("'aaa' ~> $replace('a', 'b', 2)", json!("bba"));
    let often = "$count($map([1..300], function($i) { 'a' ~> $replace('a', $pad('', 5000)) }))";
    check(often, json!(300));
    check("$exists($missing & $missing) and '' = $missing & $missing", json!(true));
}

#[test]
fn expression_variables_do_not_outlive_it() {
    check("$mine := 1", json!(1));
    assert_eq!(evaluate("$mine"), Err("returned nothing (undefined).".to_owned()));
}

#[test]
fn numbers_are_spelled_as_javascript_spells_them() {
    let spelled = |source| evaluate(source).unwrap().to_string();
    assert_eq!(spelled("1.0"), "1");
    assert_eq!(spelled("-0"), "0");
    assert_eq!(spelled("0.1 + 0.2"), "0.30000000000000004");
    assert_eq!(spelled("9007199254740992"), "9007199254740992");
}

#[test]
fn only_a_fully_delimited_string_is_an_expression() {
    assert_eq!(embedded("{% 1 %}"), Some("1"));
    assert_eq!(embedded("{%1%}"), Some("1"));
    assert_eq!(embedded(" {% 1 %}"), None);
    assert_eq!(embedded("{% 1 %} "), None);
    assert_eq!(embedded("a {% 1 %}"), None);
}

#[test]
fn a_reference_to_the_context_item_is_rejected() {
    let check = |source: &str, expected: &str| {
        let error = Expression::compile(source).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("reference to '{expected}' at the top level is not supported"),
            "{source}"
        );
    };
    check("phone", "phone");
    check("phone.number[0]", "phone");
    check("$states.input.a + b", "b");
    check("$sum(prices)", "prices");
    check("$exists($x) ? $x : y", "y");
    check("{'k': [v]}", "v");
    check("($x := z; $x)", "z");
    check("$$", "$$");
    check("$$.a", "$$");
    check("$", "$");
    for fine in [
        "$states.input.a[b = 1].c",
        "$map($list, function($item) { $item.name })",
        "$x.{'a': b}",
        "$list^(>age)",
        "$list[$ > 1]",
        "$list.($ * 2)",
        "$f := 1",
        "$list ~> $sum",
    ] {
        assert!(Expression::compile(fine).is_ok(), "{fine}");
    }
}
