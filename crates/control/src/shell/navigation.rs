//! Navigation: `cd`, `ls`, `pwd`, `bookmarks`.

use super::command::{Args, Done};
use super::run::Run;
use super::{Effect, Refusal, look, resolve};

/// A line that is only a path.
pub(super) fn enter(run: &mut Run<'_>) {
    let node = run.node.clone();
    run.shell.enter(node);
}

/// `cd [path]`; without a path to the root.
pub(super) fn cd(run: &mut Run<'_>, args: &Args) -> Done {
    match args.get("path").unwrap_or("/") {
        "<" => back(run),
        ">" => forward(run),
        path => {
            go(run, path)?;
        }
    }
    Ok(())
}

fn go(run: &mut Run<'_>, path: &str) -> Done {
    run.shell.here = run.node.clone();
    let (node, _) = resolve::path_of(run.shell, run.context.tree, path)?;
    run.shell.enter(node);
    Ok(())
}

fn back(run: &mut Run<'_>) {
    let shell = &mut *run.shell;
    let mut earlier = (0..shell.visit).rev();
    let tree = run.context.tree;
    match earlier.find(|visit| shell.visited[*visit].exists(tree)) {
        Some(visit) => visit_again(run, visit),
        None => run.say("Reached beginning of path history."),
    }
}

fn forward(run: &mut Run<'_>) {
    let shell = &mut *run.shell;
    let mut later = shell.visit + 1..shell.visited.len();
    let tree = run.context.tree;
    match later.find(|visit| shell.visited[*visit].exists(tree)) {
        Some(visit) => visit_again(run, visit),
        None => run.say("Reached the end of path history."),
    }
}

fn visit_again(run: &mut Run<'_>, visit: usize) {
    let node = run.shell.visited[visit].clone();
    let path = node.path();
    run.say(format!("Taking you back to {path}."));
    run.shell.visit = visit;
    run.shell.here = node;
}

/// `ls [path] [depth]`.
pub(super) fn ls(run: &mut Run<'_>, args: &Args) -> Done {
    let node = match args.get("path") {
        Some(path) => path_from(run, path)?,
        None => run.node.clone(),
    };
    let depth = args.get("depth").map(str::to_owned);
    let depth = depth.unwrap_or_else(|| run.shell.prefs.value("tree_max_depth").to_owned());
    let depth = depth.parse::<usize>();
    let depth = depth.map_err(|_| Refusal::new("The tree depth must be a number."))?;
    let tree = look::tree(run.context, &run.shell.prefs, &node, depth);
    run.say(tree);
    Ok(())
}

/// Resolves a path relative to the node of the line.
pub(super) fn path_from(run: &Run<'_>, path: &str) -> Result<super::Node, Refusal> {
    let mut there = run.shell.clone();
    there.here = run.node.clone();
    resolve::path_of(&there, run.context.tree, path).map(|(node, _)| node)
}

/// `pwd`.
pub(super) fn pwd(run: &mut Run<'_>, _: &Args) -> Done {
    let path = run.node.path();
    run.say(path);
    Ok(())
}

/// `bookmarks add|del|go|show [bookmark]`.
pub(super) fn bookmarks(run: &mut Run<'_>, args: &Args) -> Done {
    let name = args.get("bookmark").map(str::to_owned);
    match (args.need("action")?, name) {
        ("show", _) => show(run),
        ("add", Some(name)) => return add(run, name),
        ("del", Some(name)) => return delete(run, &name),
        ("go", Some(name)) => return go(run, &format!("@{name}")),
        _ => {
            let what = "Actions are add, del, go and show. All but show need a name.";
            return Err(Refusal::new(what));
        }
    }
    Ok(())
}

fn show(run: &mut Run<'_>) {
    run.say("BOOKMARKS\n=========");
    if run.shell.prefs.bookmarks.is_empty() {
        run.say("No bookmarks yet.");
    }
    for (name, path) in run.shell.prefs.bookmarks.clone() {
        run.say(format!("{name}  {path}"));
    }
}

fn add(run: &mut Run<'_>, name: String) -> Done {
    let path = run.node.path();
    if name == "last" || run.shell.prefs.bookmarks.contains_key(&name) {
        return Err(Refusal::new(format!("Bookmark {name} already exists.")));
    }
    let told = format!("Bookmarked {path} as {name}.");
    run.shell.prefs.bookmarks.insert(name, path);
    run.say(told);
    run.end_with(Effect::Preferences);
    Ok(())
}

fn delete(run: &mut Run<'_>, name: &str) -> Done {
    if run.shell.prefs.bookmarks.remove(name).is_none() {
        return Err(Refusal::new(format!("No such bookmark {name}.")));
    }
    run.say(format!("Deleted bookmark {name}."));
    run.end_with(Effect::Preferences);
    Ok(())
}
