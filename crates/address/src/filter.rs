//! Wrappers: `name[:args](address,…)`.

use super::error::{SyntaxFault, SyntaxProblem};
use super::number::{ByteRate, ItemCount, Size, Time};
use super::parse::nested;
use super::text_piece::{Parsed, TextPiece};
use super::{Address, faults};

/// How one wrapper is read.
pub(super) struct FilterRule {
    /// It stands around several volumes, else around one.
    several: bool,
    example: &'static str,
    parse: fn(&Arguments<'_>, Vec<Address>) -> Parsed<Address>,
}

/// What stands between the name and the parenthesis.
pub(super) struct Arguments<'a> {
    name: TextPiece<'a>,
    example: &'static str,
    /// `None` without a colon.
    text: Option<TextPiece<'a>>,
}

/// Reads what follows the name of a wrapper, and says what follows that.
pub(super) fn parse<'a>(
    wrapper: &'static str,
    rule: &FilterRule,
    name: TextPiece<'a>,
    rest: TextPiece<'a>,
    depth: usize,
) -> Parsed<(Address, TextPiece<'a>)> {
    let (arguments, volumes) = split(wrapper, rule, name, rest)?;
    let (addresses, rest) = list(volumes, depth)?;
    let found = addresses.len();
    let fits = if rule.several { found >= 2 } else { found == 1 };
    if !fits {
        return Err(name.fault(SyntaxProblem::Volumes {
            name: wrapper,
            takes: if rule.several {
                "two volumes or more"
            } else {
                "one volume"
            },
            found,
        }));
    }
    Ok(((rule.parse)(&arguments, addresses)?, rest))
}

/// The arguments, and the rest from `(` on.
fn split<'a>(
    wrapper: &'static str,
    rule: &FilterRule,
    name: TextPiece<'a>,
    rest: TextPiece<'a>,
) -> Parsed<(Arguments<'a>, TextPiece<'a>)> {
    let missing = |at: usize| {
        rest.split_at(at)
            .1
            .split_at(0)
            .0
            .fault(SyntaxProblem::Parenthesis {
                name: wrapper,
                example: rule.example,
            })
    };
    let (text, volumes) = match rest.strip_prefix(":") {
        Some(text) => {
            let end = text.text.find(['(', ')']).unwrap_or(text.text.len());
            let (text, volumes) = text.split_at(end);
            (Some(text), volumes)
        }
        None => (None, rest),
    };
    if !volumes.text.starts_with('(') {
        return Err(missing(volumes.at - rest.at));
    }
    let arguments = Arguments {
        name,
        example: rule.example,
        text,
    };
    Ok((arguments, volumes))
}

/// `(address,…)`, and what follows it.
fn list(text: TextPiece<'_>, depth: usize) -> Parsed<(Vec<Address>, TextPiece<'_>)> {
    let (open, mut rest) = text.split_at(1);
    let mut addresses = Vec::new();
    loop {
        let (address, behind) = nested(rest, depth + 1)?;
        addresses.push(address);
        let next = behind.first();
        match next.text {
            "," => rest = behind.split_at(1).1,
            ")" => return Ok((addresses, behind.split_at(1).1)),
            "" => return Err(open.fault(SyntaxProblem::Unclosed)),
            other => {
                let found = other.chars().next().unwrap_or_default();
                return Err(next.fault(SyntaxProblem::Behind(found)));
            }
        }
    }
}

impl<'a> Arguments<'a> {
    fn none(&self, name: &'static str) -> Parsed<()> {
        match self.text {
            Some(text) => Err(text.fault(SyntaxProblem::NoArguments(name))),
            None => Ok(()),
        }
    }

    fn missing(&self, name: &'static str, needs: &'static str) -> SyntaxFault {
        self.name.fault(SyntaxProblem::MissingArgument {
            name,
            needs,
            example: self.example,
        })
    }

    /// The one value that there must be.
    fn value(&self, name: &'static str, needs: &'static str) -> Parsed<TextPiece<'a>> {
        match self.text {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(self.missing(name, needs)),
        }
    }

    /// `key=value,…` of a list of known keys.
    fn pairs(
        &self,
        name: &'static str,
        needs: &'static str,
        known: &'static [&'static str],
    ) -> Parsed<Vec<(TextPiece<'a>, TextPiece<'a>)>> {
        let mut pairs: Vec<(TextPiece<'a>, TextPiece<'a>)> = Vec::new();
        for pair in self.value(name, needs)?.split(',') {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| pair.fault(self.missing(name, needs).problem))?;
            if !known.contains(&key.text) {
                return Err(key.fault(SyntaxProblem::UnknownOption {
                    scheme: name,
                    key: key.text.to_owned(),
                    known,
                }));
            }
            if pairs.iter().any(|(other, _)| other.text == key.text) {
                return Err(key.fault(SyntaxProblem::Duplicate(key.text.to_owned())));
            }
            pairs.push((key, value));
        }
        Ok(pairs)
    }
}

fn stripe(arguments: &Arguments<'_>, volumes: Vec<Address>) -> Parsed<Address> {
    let chunk = arguments.value("stripe", "the size of its chunks")?;
    let chunk = Size::parse_positive(chunk, "the size of a chunk")?;
    Ok(Address::Stripe { chunk, volumes })
}

fn concat(arguments: &Arguments<'_>, volumes: Vec<Address>) -> Parsed<Address> {
    arguments.none("concat")?;
    Ok(Address::Concat(volumes))
}

fn mirror(arguments: &Arguments<'_>, volumes: Vec<Address>) -> Parsed<Address> {
    arguments.none("mirror")?;
    Ok(Address::Mirror(volumes))
}

fn limit(arguments: &Arguments<'_>, volumes: Vec<Address>) -> Parsed<Address> {
    let (mut iops, mut rate, mut burst) = (None, None, None);
    let needs = "iops=COUNT or rate=RATE";
    for (key, value) in arguments.pairs("limit", needs, &["iops", "rate", "burst"])? {
        match key.text {
            "iops" => iops = Some(ItemCount::parse(value)?),
            "rate" => rate = Some(ByteRate::parse(value)?),
            _ => burst = Some(Time::parse(value)?),
        }
    }
    if iops.is_none() && rate.is_none() {
        return Err(arguments.missing("limit", needs));
    }
    let volume = single(arguments, volumes)?;
    Ok(Address::Limit {
        iops,
        rate,
        burst,
        volume,
    })
}

fn delay(arguments: &Arguments<'_>, volumes: Vec<Address>) -> Parsed<Address> {
    let Time(time) = Time::parse(arguments.value("delay", "a time")?)?;
    let volume = single(arguments, volumes)?;
    Ok(Address::Delay { time, volume })
}

fn fault(arguments: &Arguments<'_>, volumes: Vec<Address>) -> Parsed<Address> {
    let faults = faults::parse(arguments.value("fault", "a description of the faults")?)?;
    let volume = single(arguments, volumes)?;
    Ok(Address::Fault { faults, volume })
}

fn verify(arguments: &Arguments<'_>, volumes: Vec<Address>) -> Parsed<Address> {
    arguments.none("verify")?;
    single(arguments, volumes).map(Address::Verify)
}

fn stats(arguments: &Arguments<'_>, volumes: Vec<Address>) -> Parsed<Address> {
    arguments.none("stats")?;
    single(arguments, volumes).map(Address::Stats)
}

fn readonly(arguments: &Arguments<'_>, volumes: Vec<Address>) -> Parsed<Address> {
    arguments.none("readonly")?;
    single(arguments, volumes).map(Address::Readonly)
}

fn single(arguments: &Arguments<'_>, volumes: Vec<Address>) -> Parsed<Box<Address>> {
    let volume = volumes.into_iter().next();
    volume
        .map(Box::new)
        .ok_or_else(|| arguments.name.fault(SyntaxProblem::Empty))
}

const fn rule(
    several: bool,
    example: &'static str,
    parse: fn(&Arguments<'_>, Vec<Address>) -> Parsed<Address>,
) -> FilterRule {
    FilterRule {
        several,
        example,
        parse,
    }
}

pub(super) const STRIPE: FilterRule = rule(true, "stripe:64k(A,B)", stripe);
pub(super) const CONCAT: FilterRule = rule(true, "concat(A,B)", concat);
pub(super) const MIRROR: FilterRule = rule(true, "mirror(A,B)", mirror);
pub(super) const LIMIT: FilterRule = rule(false, "limit:iops=10k,rate=100M(A)", limit);
pub(super) const DELAY: FilterRule = rule(false, "delay:5ms(A)", delay);
pub(super) const FAULT: FilterRule = rule(false, "fault:read=1e-4(A)", fault);
pub(super) const VERIFY: FilterRule = rule(false, "verify(A)", verify);
pub(super) const STATS: FilterRule = rule(false, "stats(A)", stats);
pub(super) const READONLY: FilterRule = rule(false, "readonly(A)", readonly);
