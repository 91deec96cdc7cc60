//! iSER over a device of RDMA. This machine has none, so the guest is both ends: rxe, which the
//! kernel of Debian has, leads from its address back to it. `lunar` runs there, beside its peer.

use anyhow::{Result, bail};

use crate::Scene;
use crate::serving::{GUEST, TARGET, load_words};
use crate::using;
use crate::variations::{Auth, ISER, OVER_RDMA, Variation, Word};

/// Those of iSER but for what software iWARP alone has: a CRC, and a TCP connection in whose bytes
/// bits can flip.
pub(crate) const VARIATIONS: &[Variation; 4] = &{
    let [plain, mut sha256, chap, md5, _] = *ISER;
    sha256.name = "mutual-sha256";
    [plain, sha256, chap, md5]
};

/// QEMU has no target prove itself.
pub(crate) const LIBISCSI: &[Variation; 2] = &[
    OVER_RDMA,
    Variation {
        name: "chap",
        auth: Auth::Chap,
        ..OVER_RDMA
    },
];

/// tgtd knows MD5 alone.
pub(crate) const TGTD: &[Variation; 3] = &{
    let [plain, _, chap, md5] = *VARIATIONS;
    [plain, chap, md5]
};

/// What a script has to know that serves by `lunar` in the guest.
pub(crate) fn served_in_guest(scene: &Scene) -> Vec<Word> {
    let own = scene.lane.guest(0);
    vec![
        ("portal", format!("{own}:3260")),
        ("own", own),
        ("target", TARGET.to_owned()),
        ("initiator", GUEST.to_owned()),
    ]
}

/// An initiator in the guest at `lunar` beside it.
pub(crate) fn serving(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let mut words = variation.words();
    words.extend(served_in_guest(scene));
    words.extend(load_words(variation));
    run(scene, scene.cell.script, &words)
}

/// `lunar`'s verbs at LIO beside it.
pub(crate) fn lio(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let words = verbs_words(scene, variation, "LIO-ORG", 0);
    acts(scene, "lio.sh", "begin", &words)?;
    acts(scene, "verbs.sh", "begin", &words)?;
    acts(scene, "lio.sh", "grow", &words)?;
    acts(scene, "verbs.sh", "grown", &words)?;
    acts(scene, "lio.sh", "end", &words)
}

/// `lunar`'s verbs at tgtd beside it.
pub(crate) fn tgtd(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let words = verbs_words(scene, variation, "IET", 1);
    acts(scene, "tgtd.sh", "begin", &words)?;
    acts(scene, "verbs.sh", "begin", &words)?;
    if variation.name == OVER_RDMA.name {
        acts(scene, "verbs.sh", "struck", &words)?;
    }
    acts(scene, "tgtd.sh", "end", &words)
}

fn verbs_words(scene: &Scene, variation: &Variation, vendor: &str, lun: u32) -> Vec<Word> {
    let own = scene.lane.guest(0);
    let mut words = variation.words();
    words.extend([
        ("rdma", "rxe".to_owned()),
        ("portal", format!("{own}:3260")),
        ("own", own),
        ("target", using::TARGET.to_owned()),
        ("initiator", using::INITIATOR.to_owned()),
        ("vendor", vendor.to_owned()),
        ("lun", lun.to_string()),
    ]);
    words.extend(load_words(variation));
    words
}

fn acts(scene: &mut Scene, script: &str, action: &str, words: &[Word]) -> Result<()> {
    let words = [&[("action", action.to_owned())], words].concat();
    run(scene, script, &words)
}

fn run(scene: &mut Scene, script: &str, words: &[Word]) -> Result<()> {
    let mut none = |_: &str| bail!("the host has no part in it");
    scene.guest.run(script, words, &mut none)
}
