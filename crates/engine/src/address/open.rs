//! From addresses to volumes.

use std::sync::Arc;

use block::device::{Device, DeviceOptions};
use block::file::{File, FileOptions};
use block::null::Null;
use block::ram::Ram;
use block::readonly::Readonly;
use block::volume::Volume;
use io::memory::MemoryLimit;

use super::{Address, BlockAddress, FileAddress, Size};

/// What holds for every volume that is opened, whatever its address says.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Octets in a logical block, 512 or 4096; `None`: each volume's own.
    pub block_size: Option<u32>,
    /// Nothing can be written.
    pub read_only: bool,
    /// What all RAM volumes take their memory from.
    pub memory: Arc<MemoryLimit>,
}

/// A volume that cannot be opened, although its address is right. The text names the address, the
/// cause and, where there is one, the way out.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {cause}")]
pub struct OpenError {
    /// The address; within a wrapper that of the volume that could not be opened.
    pub address: String,
    /// Why.
    #[source]
    pub cause: Cause,
}

/// Why a volume cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The volume itself cannot.
    #[error(transparent)]
    Volume(#[from] block::OpenError),
    /// The address means something that this version does not have.
    #[error(
        "\"{0}\" is not built yet in this version of lunar; there are ram, null, file, block and \
         readonly(…)"
    )]
    NotBuilt(&'static str),
}

impl Address {
    /// Opens the volume. Nothing is half-started when that fails.
    ///
    /// # Errors
    ///
    /// When a volume cannot be opened, or is of a kind that is not built yet.
    pub fn open(&self, options: &OpenOptions) -> Result<Arc<dyn Volume>, OpenError> {
        let volume = match self {
            Self::Readonly(inner) => inner.open(&OpenOptions {
                read_only: true,
                ..options.clone()
            })?,
            leaf => leaf.open_leaf(options).map_err(|cause| OpenError {
                address: self.to_string(),
                cause,
            })?,
        };
        let protect = options.read_only && !volume.traits().read_only;
        Ok(match protect {
            true => Arc::new(Readonly::new(volume)),
            false => volume,
        })
    }

    fn open_leaf(&self, options: &OpenOptions) -> Result<Arc<dyn Volume>, Cause> {
        let block_size = options.block_size.unwrap_or(DEFAULT_BLOCK_SIZE);
        Ok(match self {
            Self::Ram(Size(size)) => Arc::new(Ram::new(*size, block_size, &options.memory)?),
            Self::Null(Size(size)) => Arc::new(Null::new(*size, block_size)?),
            Self::File(file) => Arc::new(File::open(&file_options(file, options))?),
            Self::Block(device) => Arc::new(Device::open(&device_options(device, options))?),
            other => return Err(Cause::NotBuilt(other.name())),
        })
    }
}

/// A file that is to be created or extended is opened for writing even if nothing else shall be
/// written to it.
fn file_options(file: &FileAddress, options: &OpenOptions) -> FileOptions {
    FileOptions {
        path: file.path.clone(),
        size: file.size.map(|Size(size)| size),
        sparse: file.sparse,
        direct: file.direct,
        sync: file.sync,
        read_only: file.read_only || (options.read_only && file.size.is_none()),
        block_size: options.block_size,
    }
}

fn device_options(device: &BlockAddress, options: &OpenOptions) -> DeviceOptions {
    DeviceOptions {
        path: device.device.clone(),
        read_only: device.read_only || options.read_only,
        block_size: options.block_size,
    }
}

/// For volumes that have no block size of their own.
const DEFAULT_BLOCK_SIZE: u32 = 512;
