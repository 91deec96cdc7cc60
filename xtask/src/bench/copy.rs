//! How fast memory is copied that is in no cache.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::VOLUME;
use super::load::Random;

const PIECE: usize = 64 << 10;
const TIME: Duration = Duration::from_millis(300);

/// Gigabytes a second that one core copies, piece by piece, from random places of as much memory as
/// volumes have.
pub(crate) fn measure_gb_s() -> f64 {
    let memory = vec![0x5a_u8; VOLUME as usize];
    let mut piece = vec![0; PIECE];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (start, mut copied) = (Instant::now(), 0);
    while start.elapsed() < TIME {
        let at = random.below((memory.len() / PIECE) as u64) as usize * PIECE;
        piece.copy_from_slice(&memory[at..at + PIECE]);
        black_box(&mut piece);
        copied += PIECE;
    }
    copied as f64 / start.elapsed().as_secs_f64() / 1e9
}
