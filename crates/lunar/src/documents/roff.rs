//! From the Markdown of the manual to the macros of man(7).

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A page of the manual, taken apart.
#[derive(Debug, Default)]
pub(super) struct ManualPage {
    /// What stands first: how the command is called.
    pub(super) synopsis: String,
    /// Titles as they are written, and text. The first has no title.
    pub(super) sections: Vec<(String, String)>,
    /// The paragraph on exit codes.
    pub(super) exit_codes: String,
    /// Lines of examples that are commands.
    pub(super) commands: Vec<String>,
}

impl ManualPage {
    pub(super) fn parse(markdown: &str) -> Self {
        let mut writer = RoffWriter::default();
        writer.page.sections.push(Default::default());
        for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
            writer.event(event);
        }
        writer.page
    }

    pub(super) fn section(&self, title: &str) -> Option<&str> {
        let found = self.sections.iter().find(|(known, _)| known == title);
        found.map(|(_, text)| text.as_str())
    }
}

/// Text that has no meaning to roff.
pub(super) fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    text.replace('…', "...")
}

/// A block of lines as they are.
pub(super) fn verbatim(text: &str) -> String {
    let lines = text.lines().map(|line| format!("\\&{}\n", escape(line)));
    format!(".RS 4\n.nf\n{}.fi\n.RE\n", lines.collect::<String>())
}

#[derive(Default)]
struct RoffWriter {
    page: ManualPage,
    /// Of the paragraph, heading, cell or block that is being read.
    text: String,
    /// Cells of the row of a table.
    cells: Vec<String>,
    in_head: bool,
    in_code: bool,
    /// Below an option or an item, whose text is indented.
    indented: bool,
    /// A macro that puts the next paragraph into its place was written already.
    placed: bool,
    lists: usize,
    /// The whole heading is code: an option.
    code_only: bool,
}

impl RoffWriter {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code => self.text.push_str(&text),
            Event::Text(text) => {
                self.code_only = false;
                self.text.push_str(&escape(&text));
            }
            Event::Code(code) => self.bold(&escape(&code)),
            Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            _ => {}
        }
    }

    fn bold(&mut self, text: &str) {
        self.text.push_str(&format!("\\fB{text}\\fR"));
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { .. } => {
                self.text.clear();
                self.code_only = true;
            }
            Tag::Paragraph | Tag::TableCell => self.text.clear(),
            Tag::CodeBlock(_) => {
                self.flush();
                self.in_code = true;
            }
            Tag::TableHead => self.in_head = true,
            Tag::Table(_) if self.indented => self.put(".RS\n"),
            Tag::List(_) => {
                self.flush();
                self.lists += 1;
            }
            Tag::Item => {
                self.put(".IP \\(bu 2\n");
                self.placed = true;
            }
            Tag::Strong => self.text.push_str("\\fB"),
            Tag::Emphasis => self.text.push_str("\\fI"),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(level) => self.heading(level),
            TagEnd::Paragraph | TagEnd::Item => self.flush(),
            TagEnd::CodeBlock => self.code(),
            TagEnd::TableCell => self.cells.push(std::mem::take(&mut self.text)),
            TagEnd::TableHead => {
                self.in_head = false;
                self.cells.clear();
            }
            TagEnd::TableRow => self.row(),
            TagEnd::Table if self.indented => self.put(".RE\n"),
            TagEnd::List(_) => self.lists -= 1,
            TagEnd::Strong | TagEnd::Emphasis => self.text.push_str("\\fR"),
            _ => {}
        }
    }

    fn heading(&mut self, level: HeadingLevel) {
        let title = std::mem::take(&mut self.text);
        self.indented = false;
        match level {
            HeadingLevel::H1 => {}
            HeadingLevel::H2 => self.page.sections.push((title, String::new())),
            _ if self.code_only => {
                self.put(&format!(".TP\n{}\n", option(&title)));
                (self.indented, self.placed) = (true, true);
            }
            _ => self.put(&format!(".SS {title}\n")),
        }
    }

    /// A paragraph.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if let Some(codes) = text.strip_prefix("Exit codes: ") {
            self.page.exit_codes = format!("\\&{codes}\n");
            return;
        }
        let place = match (self.placed, self.indented || self.lists > 0) {
            (true, _) => "",
            (false, true) => ".IP\n",
            (false, false) => ".PP\n",
        };
        self.placed = false;
        self.put(&format!("{place}\\&{text}\n"));
    }

    fn code(&mut self) {
        let code = std::mem::take(&mut self.text);
        self.in_code = false;
        if self.page.synopsis.is_empty() {
            self.page.synopsis = code;
            return;
        }
        for line in code.lines() {
            let line = line.trim_start_matches(['$', '#', ' ']);
            if line.starts_with("lunar ") {
                self.page.commands.push(line.to_owned());
            }
        }
        let (before, after) = if self.indented {
            (".RS\n", ".RE\n")
        } else {
            ("", "")
        };
        self.put(&format!(".sp\n{before}{}{after}", verbatim(&code)));
    }

    /// What is in the first column, and below it the others.
    fn row(&mut self) {
        let cells = std::mem::take(&mut self.cells);
        let (first, others) = cells.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
        self.put(&format!(".TP\n\\&{first}\n\\&{}\n", others.join("; ")));
    }

    fn put(&mut self, text: &str) {
        if let Some((_, section)) = self.page.sections.last_mut() {
            section.push_str(text);
        }
    }
}

/// An option in bold letters, its value in italics.
fn option(heading: &str) -> String {
    let words = heading.trim_start_matches("\\fB").trim_end_matches("\\fR");
    let words = words.split(' ').map(|word| {
        let font = if word.starts_with("\\-") { 'B' } else { 'I' };
        format!("\\f{font}{word}\\fR")
    });
    words.collect::<Vec<_>>().join(" ")
}
