//! The syntax of Config::General, as far as targets.conf needs it.

use crate::import::ImportProblem;
use crate::import::block::{Blocks, Node};
use crate::import::words::{Comments, Line, key_and_rest, lines, words};

/// The statements of a file.
pub(super) fn parse(text: &str) -> Result<Vec<Node>, ImportProblem> {
    let mut blocks = Blocks::default();
    for line in lines(text, Comments::Anywhere) {
        let number = line.number;
        match line.text.strip_prefix('<') {
            Some(tag) => tag_line(&mut blocks, number, tag)?,
            None => blocks.add(statement(&line)),
        }
    }
    blocks.finish()
}

fn tag_line(blocks: &mut Blocks, line: usize, tag: &str) -> Result<(), ImportProblem> {
    let Some(tag) = tag.strip_suffix('>') else {
        let what = "a tag is not closed by > in its line";
        return Err(ImportProblem::new(
            line,
            what,
            "write <target IQN> or </target>",
        ));
    };
    let Some(name) = tag.strip_prefix('/') else {
        let (key, rest) = key_and_rest(tag.trim());
        return blocks.open(Node::new(
            line,
            vec![key.to_ascii_lowercase(), rest.to_owned()],
        ));
    };
    let name = name.trim().to_ascii_lowercase();
    if let Some(open) = blocks.innermost().filter(|open| open.key() != name) {
        let what = format!("</{name}> stands where </{}> is expected", open.key());
        let way_out = format!("close the block of line {} first", open.line);
        return Err(ImportProblem::new(line, what, way_out));
    }
    blocks.close(line)
}

/// `key value…`, or `key = value`.
fn statement(line: &Line) -> Node {
    let (key, rest) = key_and_rest(&line.text);
    let (key, rest) = match key.split_once('=') {
        Some((key, first)) => (key, format!("{first} {rest}")),
        None => (key, rest.strip_prefix('=').unwrap_or(rest).to_owned()),
    };
    let words = std::iter::once(key.to_owned())
        .chain(words(&rest))
        .collect();
    Node::new(line.number, words)
}
