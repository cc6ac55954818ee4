//! `halt` and `unhalt`, as typed.

use crate::harness::{Dev, run_in};

#[test]
fn a_halt_is_shown_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), &folder.path().join("data"));
    let typed = |arguments: &[&str]| {
        run_in(folder.path(), &[&["--endpoint", &dev.endpoint], arguments].concat())
    };
    let unknown = typed(&["halt", "--agent", "chekup", "--reason", "x"]);
    assert!(
        unknown.exit != 0 && unknown.stderr.contains("did you mean `checkup`?"),
        "{unknown:#?}"
    );
    for wrong in [&["halt", "--all"][..], &["halt", "--reason", "x"], &["unhalt"]] {
        assert_eq!(typed(wrong).exit, 64, "{wrong:?}");
    }
    let halted = typed(&["halt", "--agent", "checkup", "--reason", "a bad release"]);
    assert_eq!(halted.exit, 0, "{halted:#?}");
    for (shows, exit) in [(&["doctor"], 1), (&["sessions"], 0)] {
        let shown = typed(shows);
        assert_eq!(shown.exit, exit, "{shown:#?}");
        assert!(format!("{shown:?}").contains("a bad release"), "{shown:#?}");
    }
    let other = typed(&["unhalt", "--all"]);
    assert!(other.exit != 0 && other.stderr.contains("no halt of all is in force"), "{other:#?}");
    let unhalted = typed(&["unhalt", "--agent", "checkup", "--json"]);
    assert_eq!((unhalted.exit, &unhalted.json()[0]["halts"]), (0, &serde_json::json!([])));
    assert_eq!(typed(&["doctor"]).exit, 0);
}
