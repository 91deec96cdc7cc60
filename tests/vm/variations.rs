//! Variations of a cell: what the two ends agree on at login, or the Ethernet between them.

/// How the ends prove themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Auth {
    None,
    Chap,
    Mutual,
}

/// One variation; what a cell is not about, it leaves alone.
#[derive(Clone, Copy)]
pub(crate) struct Variation {
    pub(crate) name: &'static str,
    pub(crate) auth: Auth,
    /// That of CHAP, as open-iscsi spells it.
    pub(crate) hash: &'static str,
    /// CRC32C in each PDU.
    pub(crate) digests: bool,
    pub(crate) immediate_data: bool,
    pub(crate) initial_r2t: bool,
    pub(crate) max_burst: u32,
    /// A CRC in each FPDU, of iSER over software iWARP.
    pub(crate) fpdu_crc: bool,
    /// Bits flip on the way.
    pub(crate) damaged: bool,
    pub(crate) mtu: u16,
}

/// What each other one differs from.
pub(crate) const PLAIN: Variation = Variation {
    name: "plain",
    auth: Auth::None,
    hash: "MD5",
    digests: false,
    immediate_data: true,
    initial_r2t: false,
    max_burst: 256 << 10,
    fpdu_crc: true,
    damaged: false,
    mtu: 1500,
};

pub(crate) const fn mutual(name: &'static str, hash: &'static str) -> Variation {
    Variation {
        name,
        auth: Auth::Mutual,
        hash,
        ..PLAIN
    }
}

pub(crate) const CHAP: Variation = Variation {
    name: "chap",
    auth: Auth::Chap,
    ..PLAIN
};
pub(crate) const DIGESTS: Variation = Variation {
    name: "digests",
    digests: true,
    ..PLAIN
};
pub(crate) const NO_IMMEDIATE_DATA: Variation = Variation {
    name: "no-immediate-data",
    immediate_data: false,
    initial_r2t: true,
    ..PLAIN
};

/// Those of iSCSI. The hashes of CHAP are all that open-iscsi and LIO have.
pub(crate) const ISCSI: &[Variation] = &[
    PLAIN,
    CHAP,
    mutual("mutual-md5", "MD5"),
    mutual("mutual-sha1", "SHA1"),
    mutual("mutual-sha256", "SHA256"),
    mutual("mutual-sha3-256", "SHA3-256"),
    DIGESTS,
    NO_IMMEDIATE_DATA,
    Variation {
        name: "burst-512",
        max_burst: 512,
        ..PLAIN
    },
    // The largest multiple of a block that the key can have.
    Variation {
        name: "burst-16m",
        max_burst: (16 << 20) - 512,
        ..PLAIN
    },
    Variation {
        name: "damaged",
        damaged: true,
        ..DIGESTS
    },
];

/// What each other one of iSER differs from: all of a write is solicited but what comes with its
/// command.
pub(crate) const OVER_RDMA: Variation = Variation {
    name: "plain",
    initial_r2t: true,
    ..PLAIN
};

/// Those of iSER over software iWARP. A guest takes long over each, so one stands for a proof and
/// for something else.
pub(crate) const ISER: &[Variation; 5] = &[
    OVER_RDMA,
    Variation {
        name: "mutual-sha256-no-crc",
        auth: Auth::Mutual,
        hash: "SHA256",
        fpdu_crc: false,
        ..OVER_RDMA
    },
    Variation {
        name: "chap-no-immediate-data",
        auth: Auth::Chap,
        immediate_data: false,
        ..OVER_RDMA
    },
    Variation {
        name: "mutual-md5-burst-16m",
        auth: Auth::Mutual,
        max_burst: (16 << 20) - 512,
        ..OVER_RDMA
    },
    Variation {
        name: "damaged",
        damaged: true,
        ..OVER_RDMA
    },
];

/// Those of an Ethernet. With an MTU of 1500 frames are short.
pub(crate) const ETHERNET: &[Variation] = &[
    Variation {
        name: "mtu-2500",
        mtu: 2500,
        ..PLAIN
    },
    Variation {
        name: "mtu-1500",
        ..PLAIN
    },
];

/// For a cell that has one story.
pub(crate) const ONE: &[Variation] = &[PLAIN];

/// Who logs in, with a secret of a length that every implementation takes.
pub(crate) const USER: &str = "guest";
pub(crate) const SECRET: &str = "fourteen-bytes";
pub(crate) const MUTUAL_USER: &str = "server";
pub(crate) const MUTUAL_SECRET: &str = "sixteen-of-bytes";

/// A word for a guest's script, `NAME=VALUE`. A value has no spaces.
pub(crate) type Word = (&'static str, String);

/// The MaxBurstLength that we offer at either end.
const OUR_MAX_BURST: u32 = 1 << 20;

impl Variation {
    /// The MaxBurstLength that a login comes to.
    pub(crate) fn agreed_burst(&self) -> u32 {
        self.max_burst.min(OUR_MAX_BURST)
    }

    /// What the scripts of iSCSI are told.
    pub(crate) fn words(&self) -> Vec<Word> {
        let yes_no = |yes: bool| if yes { "Yes" } else { "No" }.to_owned();
        let auth = match self.auth {
            Auth::None => "none",
            Auth::Chap => "chap",
            Auth::Mutual => "mutual",
        };
        vec![
            ("variation", self.name.to_owned()),
            ("auth", auth.to_owned()),
            ("hash", self.hash.to_owned()),
            ("user", USER.to_owned()),
            ("secret", SECRET.to_owned()),
            ("mutual_user", MUTUAL_USER.to_owned()),
            ("mutual_secret", MUTUAL_SECRET.to_owned()),
            (
                "digests",
                if self.digests { "CRC32C" } else { "None" }.to_owned(),
            ),
            ("immediate_data", yes_no(self.immediate_data)),
            ("initial_r2t", yes_no(self.initial_r2t)),
            ("max_burst", self.max_burst.to_string()),
            ("agreed_burst", self.agreed_burst().to_string()),
            ("first_burst", self.max_burst.min(256 << 10).to_string()),
        ]
    }
}
