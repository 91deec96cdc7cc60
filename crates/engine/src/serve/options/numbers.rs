//! Volumes and serial numbers of a command, by number: `3=file:disk.img`, `--serial 3=DB-0001`.
//!
//! What has no number in front is one further than what stands before it. A number that is given
//! stays with its volume when others are left out.

use std::collections::HashMap;

use super::{ServeMisuse, ServeOptions};
use address::LUN_MAX;

impl ServeOptions {
    /// The addresses of the volumes and their numbers, in the order of the command.
    ///
    /// # Errors
    ///
    /// When a number is too large or given twice.
    pub fn numbered(&self) -> Result<Vec<(u16, &str)>, ServeMisuse> {
        let (mut numbered, mut next) = (Vec::new(), 0);
        let mut known = HashMap::new();
        for written in &self.volumes {
            let (number, address) = split(written)?;
            let number = number.unwrap_or(next);
            if number > LUN_MAX {
                return Err(ServeMisuse::LunTooHigh(written.clone()));
            }
            if let Some(other) = known.insert(number, address) {
                return Err(ServeMisuse::SameLun {
                    number,
                    one: other.to_owned(),
                    other: address.to_owned(),
                });
            }
            next = number + 1;
            numbered.push((number, address));
        }
        Ok(numbered)
    }

    /// The serial numbers that volumes were told to have, by the numbers of the volumes.
    ///
    /// # Errors
    ///
    /// When it cannot be known whose one is, or one stands for several volumes.
    pub fn serials(&self) -> Result<HashMap<u16, &str>, ServeMisuse> {
        let numbered = self.numbered()?;
        let mut serials = HashMap::new();
        let mut owners: HashMap<&str, u16> = HashMap::new();
        for written in &self.units.serials {
            let (number, serial) = match (split(written)?, &numbered[..]) {
                ((Some(number), serial), _) => (number, serial),
                ((None, serial), [(number, _)]) => (*number, serial),
                ((None, _), _) => return Err(ServeMisuse::WhoseSerial(written.clone())),
            };
            if !numbered.iter().any(|(known, _)| *known == number) {
                return Err(ServeMisuse::SerialOfNothing(written.clone()));
            }
            if serials.insert(number, serial).is_some() {
                return Err(ServeMisuse::TwoSerials(number));
            }
            if let Some(other) = owners.insert(serial, number) {
                return Err(ServeMisuse::SharedSerial {
                    serial: serial.to_owned(),
                    one: other,
                    other: number,
                });
            }
        }
        Ok(serials)
    }
}

/// What stands in front of a `=`, where that is a number.
fn split(written: &str) -> Result<(Option<u16>, &str), ServeMisuse> {
    let Some((number, rest)) = written.split_once('=') else {
        return Ok((None, written));
    };
    if number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) {
        return Ok((None, written));
    }
    match number.parse() {
        Ok(number) if number <= LUN_MAX => Ok((Some(number), rest)),
        _ => Err(ServeMisuse::LunTooHigh(written.to_owned())),
    }
}
