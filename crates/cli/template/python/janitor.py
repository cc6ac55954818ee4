"""Keeps a folder below a size limit; asks before it deletes."""

import os

from daybook import Context, agent, run


def sizes(folder: str) -> dict:
    return {entry.name: entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()}


def delete(folder: str, name: str) -> str:
    os.remove(os.path.join(folder, name))
    return name


@agent("janitor", version=1, title="Tidy {folder}")
def main(ctx: Context, folder: str, bytes_max: int) -> dict:
    """Keeps a folder below a size limit; asks before it deletes."""
    files = ctx.step("sizes", sizes, folder)
    deleted = []
    while sum(files.values()) > bytes_max:
        largest = max(files, key=files.get)
        answer = ctx.ask(f"Delete {largest} ({files.pop(largest)} bytes)?", choices=["approve", "reject"])
        if answer["decision"] == "approve":
            deleted.append(ctx.step("delete", delete, folder, largest, critical=True))
    return {"summary": f"{len(deleted)} files deleted.", "findings": deleted}


if __name__ == "__main__":
    run(main)
