//! JSON (RFC 8259) with the line of each value. The parser of serde_json is not used here, as its
//! values do not know where they stood, and what is left out is named with its line.

use super::{DEPTH_MAX, ImportProblem};

/// A value, and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Json {
    /// The line, from 1.
    pub(super) line: usize,
    /// What it is.
    pub(super) kind: Kind,
}

/// What a value is. Numbers keep their text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// A text, a number or a flag as text; rtslib writes many numbers in quotes.
    pub(super) fn text(&self) -> Option<String> {
        match &self.kind {
            Kind::Text(text) | Kind::Number(text) => Some(text.clone()),
            Kind::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<u64> {
        match &self.kind {
            Kind::Text(text) | Kind::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// A flag; rtslib writes 0 and 1 too.
    pub(super) fn flag(&self) -> Option<bool> {
        match &self.kind {
            Kind::Bool(flag) => Some(*flag),
            Kind::Text(text) | Kind::Number(text) => super::words::flag(text),
            _ => None,
        }
    }

    pub(super) fn items(&self) -> Option<&[Json]> {
        match &self.kind {
            Kind::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn fields(&self) -> Option<&[(String, Json)]> {
        match &self.kind {
            Kind::Object(fields) => Some(fields),
            _ => None,
        }
    }
}

/// Reads a text that is one value.
pub(super) fn parse(text: &str) -> Result<Json, ImportProblem> {
    let mut reader = Reader {
        rest: text,
        line: 1,
    };
    let value = reader.value(0)?;
    reader.skip_space();
    match reader.rest.chars().next() {
        None => Ok(value),
        Some(c) => Err(reader.wrong(format!("{c:?} stands behind the end of the value"))),
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

type Parsed<T> = Result<T, ImportProblem>;

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Parsed<Json> {
        self.skip_space();
        if depth > DEPTH_MAX {
            return Err(self.wrong(format!("values are more than {DEPTH_MAX} deep")));
        }
        let line = self.line;
        let kind = match self.rest.chars().next() {
            Some('{') => self.object(depth)?,
            Some('[') => self.array(depth)?,
            Some('"') => Kind::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            Some('a'..='z') => self.word()?,
            Some(c) => return Err(self.wrong(format!("no value begins with {c:?}"))),
            None => return Err(self.wrong("the text ends where a value is expected")),
        };
        Ok(Json { line, kind })
    }

    fn object(&mut self, depth: usize) -> Parsed<Kind> {
        let mut fields = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        self.step(1);
        if self.accept('}') {
            return Ok(Kind::Object(fields));
        }
        loop {
            self.skip_space();
            let key = self.string()?;
            self.expect(':', "a colon behind the key")?;
            if !seen.insert(key.clone()) {
                return Err(self.wrong(format!("the key {key:?} is there twice")));
            }
            fields.push((key, self.value(depth + 1)?));
            if self.accept('}') {
                return Ok(Kind::Object(fields));
            }
            self.expect(',', "a comma or } behind a value")?;
        }
    }

    fn array(&mut self, depth: usize) -> Parsed<Kind> {
        let mut items = Vec::new();
        self.step(1);
        if self.accept(']') {
            return Ok(Kind::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.accept(']') {
                return Ok(Kind::Array(items));
            }
            self.expect(',', "a comma or ] behind a value")?;
        }
    }

    fn number(&mut self) -> Parsed<Kind> {
        let end = |c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c);
        let text = self.until(end);
        let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
        if is_number && !text.ends_with('.') {
            Ok(Kind::Number(text))
        } else {
            // The text is not shown, as it may be a secret without its quotes.
            Err(self.wrong("this is not a number"))
        }
    }

    fn word(&mut self) -> Parsed<Kind> {
        let text = self.until(|c| !c.is_ascii_alphabetic());
        match &*text {
            "null" => Ok(Kind::Null),
            "true" => Ok(Kind::Bool(true)),
            "false" => Ok(Kind::Bool(false)),
            _ => Err(self.wrong("this is neither true, false, null nor a text in quotes")),
        }
    }

    fn string(&mut self) -> Parsed<String> {
        if !self.rest.starts_with('"') {
            return Err(self.wrong("a text in quotes is expected"));
        }
        self.step(1);
        let mut text = String::new();
        loop {
            text.push_str(&self.until(|c| c == '"' || c == '\\' || c < ' '));
            match self.rest.chars().next() {
                Some('"') => break,
                Some('\\') => text.push(self.escape()?),
                _ => return Err(self.wrong("a text is not closed by a quote in its line")),
            }
        }
        self.step(1);
        Ok(text)
    }

    fn escape(&mut self) -> Parsed<char> {
        self.step(1);
        let letter = self.rest.chars().next();
        let c = match letter {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.unicode(),
            _ => return Err(self.wrong("a backslash is followed by a letter that means nothing")),
        };
        self.step(1);
        Ok(c)
    }

    fn unicode(&mut self) -> Parsed<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or_else(|| self.wrong("half a surrogate pair"));
        }
        if !self.rest.starts_with("\\u") {
            return Err(self.wrong("half a surrogate pair"));
        }
        self.step(1);
        let second = self.four_digits()?;
        let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400);
        let both = low.map(|low| 0x1_0000 + ((first - 0xd800) << 10) + low);
        both.and_then(char::from_u32)
            .ok_or_else(|| self.wrong("half a surrogate pair"))
    }

    /// `u` and four hexadecimal digits.
    fn four_digits(&mut self) -> Parsed<u32> {
        let digits = self.rest.get(1..5);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let number = number.ok_or_else(|| self.wrong("\\u is followed by four digits"))?;
        self.step(5);
        Ok(number)
    }

    fn until(&mut self, is_end: impl Fn(char) -> bool) -> String {
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text.to_owned()
    }

    fn expect(&mut self, c: char, what: &str) -> Parsed<()> {
        if self.accept(c) {
            Ok(())
        } else {
            Err(self.wrong(format!("{what} is expected")))
        }
    }

    fn accept(&mut self, c: char) -> bool {
        self.skip_space();
        let is_next = self.rest.starts_with(c);
        if is_next {
            self.step(c.len_utf8());
        }
        is_next
    }

    fn skip_space(&mut self) {
        let space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
        let rest = self.rest.trim_start_matches(space);
        let skipped = &self.rest[..self.rest.len() - rest.len()];
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }

    fn step(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn wrong(&self, what: impl Into<String>) -> ImportProblem {
        let way_out = "this is to be JSON, as targetcli saveconfig writes it";
        ImportProblem::new(self.line, what, way_out)
    }
}

#[cfg(test)]
mod tests;
