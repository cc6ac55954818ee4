//! Keeps a folder below a size limit; asks before it deletes.

use std::path::Path;

use daybook::{Agent, Context, Decision, Error};
use serde_json::{Value, json};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    folder: String,
    bytes_max: u64,
}

fn agent() -> Agent {
    Agent::new("janitor", "1", janitor)
        .summary("Keeps a folder below a size limit; asks before it deletes.")
        .title("Tidy {folder}")
        .input_schema(json!({
            "type": "object",
            "properties": {"folder": {"type": "string"}, "bytes_max": {"type": "integer"}},
            "required": ["folder", "bytes_max"],
            "additionalProperties": false,
        }))
}

async fn janitor(ctx: Context, input: Input) -> Result<Value, Error> {
    let folder = Path::new(&input.folder);
    let files: Vec<(String, u64)> =
        ctx.step("sizes", &input.folder, async || sizes(folder)).await?;
    let mut left: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    let mut deleted = Vec::new();
    for (name, bytes) in files {
        if left <= input.bytes_max {
            break;
        }
        let question = format!("Delete {name} ({bytes} bytes)?");
        let choices = [Decision::Approve, Decision::Reject];
        if ctx.ask(&question).choices(choices).await?.decision != Decision::Approve {
            continue;
        }
        let remove = async || std::fs::remove_file(folder.join(&name));
        ctx.critical_step::<(), _, _, _>("delete", &name, remove).await?;
        deleted.push(name);
        left -= bytes;
    }
    Ok(json!({"summary": format!("{} files deleted.", deleted.len()), "findings": deleted}))
}

/// The files of a folder and their sizes, the largest first.
fn sizes(folder: &Path) -> Result<Vec<(String, u64)>, std::io::Error> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len()));
    }
    files.sort_by(|(a, some), (b, more)| more.cmp(some).then(a.cmp(b)));
    Ok(files)
}

fn main() {
    daybook::run(agent());
}

#[cfg(test)]
mod tests {
    use daybook::testing::Script;

    use super::*;

    #[test]
    fn it_goes_on_from_every_effect() {
        let folder = std::env::temp_dir().join(format!("janitor-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("old.log"), "x".repeat(90)).unwrap();
        let input = json!({"folder": folder, "bytes_max": 50});
        let script = Script::new(agent(), input).answer([json!("reject")]);
        let result = script.every_prefix().unwrap();
        assert_eq!(result["summary"], "0 files deleted.");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
