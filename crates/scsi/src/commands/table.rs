//! The rows: SPC-5 §6 and SBC-4 §5, in the order of their opcodes. Those of one opcode stand
//! together. 32-byte CDBs (opcode 7Fh) will be rows of that opcode with a service action from
//! bytes 8 and 9.

use super::{
    Access, CommandRow, ExemptCommand, Handler, Length, Medium, Needs, Ordering, Query, QueryResult,
};
use crate::medium::SanitizeKind;
use crate::query::{buffer, capacity, inquiry, log, mode, opcodes, power, report, time};
use crate::statistics::OperationClass;
use crate::wire::cdb::Field;
use crate::{alua, reserve};

/// Every command there is.
pub static TABLE: &[CommandRow] = ROWS;

/// Rows of an opcode.
#[inline]
pub(super) fn rows(opcode: u8) -> &'static [CommandRow] {
    let (first, count) = INDEX[usize::from(opcode)];
    &TABLE[usize::from(first)..usize::from(first) + usize::from(count)]
}

#[rustfmt::skip]
const ROWS: &[CommandRow] = &[
    query(0x00, "TEST UNIT READY", &[F, 0, 0, 0, 0, 0], power::test_unit_ready),
    query(0x03, "REQUEST SENSE", &[F, 0x01, 0, 0, F, 0], power::request_sense)
        .allocation_at(4, 1).always(),
    medium(0x04, "FORMAT UNIT", &[F, 0x3f, 0, 0, 0, 0], Ordering::Exclusive, Medium::FormatUnit)
        .timeout_s(0),
    medium(0x08, "READ(6)", &[F, 0x1f, F, F, F, 0], Ordering::Read, Medium::Read)
        .lba_at(1, 3).blocks_at(4, 1),
    medium(0x0a, "WRITE(6)", &[F, 0x1f, F, F, F, 0], Ordering::Write, Medium::Write)
        .lba_at(1, 3).blocks_at(4, 1),
    query(0x12, "INQUIRY", &[F, 0x01, F, F, F, 0], inquiry::inquiry).allocation_at(3, 2).always(),
    parameters(0x15, "MODE SELECT(6)", &[F, 0x11, 0, 0, F, 0], length::<4, 1>, mode::select6)
        .parameters_at(4, 1).access(Access::Write),
    query(0x16, "RESERVE(6)", &[F, 0, 0, 0, 0, 0], reserve::reserve)
        .needs(Needs::Alone),
    query(0x17, "RELEASE(6)", &[F, 0, 0, 0, 0, 0], reserve::release)
        .needs(Needs::Alone),
    query(0x1a, "MODE SENSE(6)", &[F, 0x08, F, F, F, 0], mode::sense6)
        .allocation_at(4, 1).access(Access::Read),
    query(0x1b, "START STOP UNIT", &[F, 0x01, 0, 0x0f, 0xf7, 0], power::start_stop_unit)
        .access(Access::Write).timeout_s(60),
    query(0x1d, "SEND DIAGNOSTIC", &[F, 0x17, 0, 0, 0, 0], power::send_diagnostic)
        .access(Access::Write),
    query(0x1e, "PREVENT ALLOW MEDIUM REMOVAL", &[F, 0, 0, 0, 0x01, 0],
        power::prevent_allow_medium_removal).access(Access::Write).needs(Needs::Removable),
    query(0x25, "READ CAPACITY(10)", &[F, 0, 0, 0, 0, 0, 0, 0, 0, 0], capacity::read_capacity10),
    medium(0x28, "READ(10)", &[F, 0x18, F, F, F, F, 0x3f, F, F, 0], Ordering::Read, Medium::Read)
        .lba_at(2, 4).blocks_at(7, 2),
    medium(0x2a, "WRITE(10)", &[F, 0x18, F, F, F, F, 0x3f, F, F, 0], Ordering::Write, Medium::Write)
        .lba_at(2, 4).blocks_at(7, 2),
    medium(0x2e, "WRITE AND VERIFY(10)", &[F, 0x16, F, F, F, F, 0x3f, F, F, 0],
        Ordering::Write, Medium::WriteAndVerify).lba_at(2, 4).blocks_at(7, 2),
    medium(0x2f, "VERIFY(10)", &[F, 0x16, F, F, F, F, 0x3f, F, F, 0],
        Ordering::Read, Medium::Verify).lba_at(2, 4).blocks_at(7, 2),
    medium(0x34, "PRE-FETCH(10)", &[F, 0x02, F, F, F, F, 0x3f, F, F, 0],
        Ordering::Read, Medium::Prefetch).lba_at(2, 4).blocks_at(7, 2),
    // SYNC_NV (SBC-3) is met by doing more than it asks for.
    medium(0x35, "SYNCHRONIZE CACHE(10)", &[F, 0x06, F, F, F, F, 0x3f, F, F, 0],
        Ordering::Flush, Medium::SynchronizeCache).lba_at(2, 4).blocks_at(7, 2).timeout_s(60),
    query(0x37, "READ DEFECT DATA(10)", &[F, 0, 0x1f, 0, 0, 0, 0, F, F, 0],
        capacity::read_defect_data10).allocation_at(7, 2).access(Access::Read),
    parameters(0x3b, "WRITE BUFFER", &[F, 0x1f, F, F, F, F, F, F, F, 0],
        length::<6, 3>, buffer::write_buffer)
        .parameters_at(6, 3).access(Access::Write),
    query(0x3c, "READ BUFFER(10)", &[F, 0x1f, F, F, F, F, F, F, F, 0], buffer::read_buffer)
        .allocation_at(6, 3).access(Access::Read),
    medium(0x41, "WRITE SAME(10)", &[F, 0x18, F, F, F, F, 0x3f, F, F, 0],
        Ordering::Write, Medium::WriteSame).lba_at(2, 4).blocks_at(7, 2).timeout_s(60),
    medium(0x42, "UNMAP", &[F, 0x01, 0, 0, 0, 0, 0x3f, F, F, 0], Ordering::Write, Medium::Unmap)
        .parameters_at(7, 2).needs(Needs::Unmap).timeout_s(60),
    medium(0x48, "SANITIZE (OVERWRITE)", &[F, 0xbf, 0, 0, 0, 0, 0, F, F, 0],
        Ordering::Exclusive, Medium::Sanitize)
        .action(0x01).parameters_at(7, 2).timeout_s(0)
        .needs(Needs::Sanitize(SanitizeKind::Overwrite)),
    medium(0x48, "SANITIZE (BLOCK ERASE)", &[F, 0xbf, 0, 0, 0, 0, 0, F, F, 0],
        Ordering::Exclusive, Medium::Sanitize)
        .action(0x02).parameters_at(7, 2).timeout_s(0)
        .needs(Needs::Sanitize(SanitizeKind::BlockErase)),
    medium(0x48, "SANITIZE (EXIT FAILURE MODE)", &[F, 0xbf, 0, 0, 0, 0, 0, F, F, 0],
        Ordering::Exclusive, Medium::Sanitize)
        .action(0x1f).parameters_at(7, 2).needs(Needs::AnySanitize),
    query(0x4d, "LOG SENSE", &[F, 0, F, F, 0, F, F, F, F, 0], log::log_sense).allocation_at(7, 2),
    parameters(0x55, "MODE SELECT(10)", &[F, 0x11, 0, 0, 0, 0, 0, F, F, 0],
        length::<7, 2>, mode::select10).parameters_at(7, 2).access(Access::Write),
    query(0x56, "RESERVE(10)", &[F, 0, 0, 0, 0, 0, 0, 0, 0, 0], reserve::reserve)
        .needs(Needs::Alone),
    query(0x57, "RELEASE(10)", &[F, 0, 0, 0, 0, 0, 0, 0, 0, 0], reserve::release)
        .needs(Needs::Alone),
    query(0x5a, "MODE SENSE(10)", &[F, 0x18, F, F, 0, 0, 0, F, F, 0], mode::sense10)
        .allocation_at(7, 2).access(Access::Read),
    persistent_in(0x00, "PERSISTENT RESERVE IN (READ KEYS)"),
    persistent_in(0x01, "PERSISTENT RESERVE IN (READ RESERVATION)"),
    persistent_in(0x02, "PERSISTENT RESERVE IN (REPORT CAPABILITIES)"),
    persistent_in(0x03, "PERSISTENT RESERVE IN (READ FULL STATUS)"),
    persistent_out(0x00, "PERSISTENT RESERVE OUT (REGISTER)"),
    persistent_out(0x01, "PERSISTENT RESERVE OUT (RESERVE)"),
    persistent_out(0x02, "PERSISTENT RESERVE OUT (RELEASE)"),
    persistent_out(0x03, "PERSISTENT RESERVE OUT (CLEAR)"),
    persistent_out(0x04, "PERSISTENT RESERVE OUT (PREEMPT)"),
    persistent_out(0x05, "PERSISTENT RESERVE OUT (PREEMPT AND ABORT)"),
    persistent_out(0x06, "PERSISTENT RESERVE OUT (REGISTER AND IGNORE EXISTING KEY)"),
    persistent_out(0x07, "PERSISTENT RESERVE OUT (REGISTER AND MOVE)"),
    medium(0x83, "EXTENDED COPY(LID1)", &[F, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0, F, F, F, F, 0, 0],
        Ordering::Write, Medium::ExtendedCopy).action(0x00).parameters_at(10, 4).timeout_s(0),
    copy_results(0x00, "RECEIVE COPY STATUS(LID1)"),
    copy_results(0x01, "RECEIVE COPY DATA(LID1)"),
    copy_results(0x03, "RECEIVE COPY OPERATING PARAMETERS"),
    copy_results(0x04, "RECEIVE COPY FAILURE DETAILS(LID1)"),
    medium(0x88, "READ(16)", &sixteen(0x18), Ordering::Read, Medium::Read)
        .lba_at(2, 8).blocks_at(10, 4),
    medium(0x89, "COMPARE AND WRITE", &[F, 0x18, F, F, F, F, F, F, F, F, 0, 0, 0, F, 0x3f, 0],
        Ordering::Write, Medium::CompareAndWrite).lba_at(2, 8).blocks_at(13, 1)
        .needs(Needs::Alone),
    medium(0x8a, "WRITE(16)", &sixteen(0x18), Ordering::Write, Medium::Write)
        .lba_at(2, 8).blocks_at(10, 4),
    medium(0x8b, "ORWRITE(16)", &sixteen(0x18), Ordering::Write, Medium::OrWrite)
        .lba_at(2, 8).blocks_at(10, 4).needs(Needs::Alone),
    medium(0x8e, "WRITE AND VERIFY(16)", &sixteen(0x16), Ordering::Write, Medium::WriteAndVerify)
        .lba_at(2, 8).blocks_at(10, 4),
    medium(0x8f, "VERIFY(16)", &sixteen(0x16), Ordering::Read, Medium::Verify)
        .lba_at(2, 8).blocks_at(10, 4),
    medium(0x90, "PRE-FETCH(16)", &sixteen(0x02), Ordering::Read, Medium::Prefetch)
        .lba_at(2, 8).blocks_at(10, 4),
    medium(0x91, "SYNCHRONIZE CACHE(16)", &sixteen(0x06), Ordering::Flush, Medium::SynchronizeCache)
        .lba_at(2, 8).blocks_at(10, 4).timeout_s(60),
    medium(0x93, "WRITE SAME(16)", &sixteen(0x19), Ordering::Write, Medium::WriteSame)
        .lba_at(2, 8).blocks_at(10, 4).timeout_s(60),
    medium(0x9c, "WRITE ATOMIC(16)", &[F, 0x18, F, F, F, F, F, F, F, F, 0, 0, F, F, 0x3f, 0],
        Ordering::Write, Medium::WriteAtomic).lba_at(2, 8).blocks_at(12, 2).needs(Needs::Atomic),
    query(0x9e, "READ CAPACITY(16)", &[F, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0, F, F, F, F, 0, 0],
        capacity::read_capacity16).action(0x10).allocation_at(10, 4),
    medium(0x9e, "GET LBA STATUS", &[F, 0x1f, F, F, F, F, F, F, F, F, F, F, F, F, 0, 0],
        Ordering::Read, Medium::LbaStatus)
        .action(0x12).lba_at(2, 8).allocation_at(10, 4).needs(Needs::Unmap),
    query(0xa0, "REPORT LUNS", &[F, 0, F, 0, 0, 0, F, F, F, F, 0, 0], report::report_luns)
        .allocation_at(6, 4).always(),
    query(0xa3, "REPORT TARGET PORT GROUPS", &[F, F, 0, 0, 0, 0, F, F, F, F, 0, 0],
        alua::report_target_port_groups).action(0x0a).allocation_at(6, 4),
    query(0xa3, "REPORT SUPPORTED OPERATION CODES", &[F, 0x1f, 0x87, F, F, F, F, F, F, F, 0, 0],
        opcodes::report_supported_operation_codes).action(0x0c).allocation_at(6, 4),
    query(0xa3, "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS",
        &[F, 0x1f, 0x80, 0, 0, 0, F, F, F, F, 0, 0],
        report::report_supported_task_management_functions).action(0x0d).allocation_at(6, 4),
    query(0xa3, "REPORT TIMESTAMP", &[F, 0x1f, 0, 0, 0, 0, F, F, F, F, 0, 0],
        time::report_timestamp).action(0x0f).allocation_at(6, 4),
    parameters(0xa4, "SET TARGET PORT GROUPS", &[F, 0x1f, 0, 0, 0, 0, F, F, F, F, 0, 0],
        length::<6, 4>, alua::set_target_port_groups)
        .action(0x0a).parameters_at(6, 4).access(Access::Write),
    parameters(0xa4, "SET TIMESTAMP", &[F, 0x1f, 0, 0, 0, 0, F, F, F, F, 0, 0],
        length::<6, 4>, time::set_timestamp)
        .action(0x0f).parameters_at(6, 4).access(Access::Write),
    medium(0xa8, "READ(12)", &twelve(0x18), Ordering::Read, Medium::Read)
        .lba_at(2, 4).blocks_at(6, 4),
    medium(0xaa, "WRITE(12)", &twelve(0x18), Ordering::Write, Medium::Write)
        .lba_at(2, 4).blocks_at(6, 4),
    medium(0xae, "WRITE AND VERIFY(12)", &twelve(0x16), Ordering::Write, Medium::WriteAndVerify)
        .lba_at(2, 4).blocks_at(6, 4),
    medium(0xaf, "VERIFY(12)", &twelve(0x16), Ordering::Read, Medium::Verify)
        .lba_at(2, 4).blocks_at(6, 4),
    query(0xb7, "READ DEFECT DATA(12)", &[F, 0x1f, F, F, F, F, F, F, F, F, 0, 0],
        capacity::read_defect_data12).allocation_at(6, 4).access(Access::Read),
];

/// A byte of which every bit counts.
const F: u8 = 0xff;

/// PARAMETER LIST LENGTH in `LEN` bytes from `AT`. No command has a use for more than
/// [`PARAMETER_BYTES`]: what is longer is taken so far only, and its handler refuses it.
fn length<const AT: u8, const LEN: u8>(cdb: &[u8]) -> u32 {
    let length = Field::new(AT, LEN).read(cdb) as u32;
    length.min(PARAMETER_BYTES)
}

/// The longest parameter list that is received, so that a peer cannot have memory reserved at will.
const PARAMETER_BYTES: u32 = 64 << 10;

/// LBA in bytes 2 to 5, length in 6 to 9, GROUP NUMBER in 10; `flags` count in byte 1.
const fn twelve(flags: u8) -> [u8; 12] {
    [F, flags, F, F, F, F, F, F, F, F, 0x3f, 0]
}

/// LBA in bytes 2 to 9, length in 10 to 13, GROUP NUMBER in 14; `flags` count in byte 1.
const fn sixteen(flags: u8) -> [u8; 16] {
    [F, flags, F, F, F, F, F, F, F, F, F, F, F, F, 0x3f, 0]
}

const fn persistent_in(action: u16, name: &'static str) -> CommandRow {
    const USAGE: &[u8] = &[F, 0x1f, 0, 0, 0, 0, 0, F, F, 0];
    query(0x5e, name, USAGE, reserve::persistent_reserve_in)
        .action(action)
        .allocation_at(7, 2)
        .needs(Needs::Alone)
}

const fn persistent_out(action: u16, name: &'static str) -> CommandRow {
    const USAGE: &[u8] = &[F, 0x1f, F, 0, 0, F, F, F, F, 0];
    parameters(
        0x5f,
        name,
        USAGE,
        length::<5, 4>,
        reserve::persistent_reserve_out,
    )
    .action(action)
    .parameters_at(5, 4)
    .needs(Needs::Alone)
}

const fn copy_results(action: u16, name: &'static str) -> CommandRow {
    const USAGE: &[u8] = &[F, 0x1f, F, 0, 0, 0, 0, 0, 0, 0, F, F, F, F, 0, 0];
    medium(
        0x84,
        name,
        USAGE,
        Ordering::Free,
        Medium::ReceiveCopyResults,
    )
    .action(action)
    .allocation_at(10, 4)
}

const fn query(
    opcode: u8,
    name: &'static str,
    usage: &'static [u8],
    handler: fn(&Query<'_>) -> QueryResult,
) -> CommandRow {
    row(opcode, name, usage, Handler::Query(handler))
}

const fn parameters(
    opcode: u8,
    name: &'static str,
    usage: &'static [u8],
    length: fn(&[u8]) -> u32,
    handler: fn(&Query<'_>) -> QueryResult,
) -> CommandRow {
    row(opcode, name, usage, Handler::Parameters(length, handler))
}

/// Its access class follows from its ordering class.
const fn medium(
    opcode: u8,
    name: &'static str,
    usage: &'static [u8],
    ordering: Ordering,
    command: Medium,
) -> CommandRow {
    let access = match ordering {
        Ordering::Free => Access::Any,
        Ordering::Read => Access::Read,
        Ordering::Write | Ordering::Flush | Ordering::Exclusive => Access::Write,
    };
    let row = row(opcode, name, usage, Handler::Medium(command));
    CommandRow { ordering, ..row }.access(access)
}

const fn row(opcode: u8, name: &'static str, usage: &'static [u8], handler: Handler) -> CommandRow {
    CommandRow {
        opcode,
        service_action: None,
        name,
        usage,
        reserved: reserved(usage),
        access: Access::Any,
        ordering: Ordering::Free,
        always: ExemptCommand::No,
        handler,
        class: class(handler),
        lba: None,
        length: Length::None,
        needs: Needs::Nothing,
        timeout_s: 30,
    }
}

/// LOG SENSE counts as reads and writes what moves blocks between hosts and the medium.
const fn class(handler: Handler) -> OperationClass {
    match handler {
        Handler::Medium(Medium::Read) => OperationClass::Read,
        Handler::Medium(
            Medium::Write
            | Medium::WriteAtomic
            | Medium::WriteAndVerify
            | Medium::OrWrite
            | Medium::CompareAndWrite
            | Medium::WriteSame,
        ) => OperationClass::Write,
        _ => OperationClass::Other,
    }
}

/// See [`CommandRow::reserved`].
const fn reserved(usage: &[u8]) -> u128 {
    let mut reserved = 0;
    let mut at = 0;
    while at < 16 {
        let stray = if at < usage.len() { !usage[at] } else { 0 };
        reserved = reserved << 8 | stray as u128;
        at += 1;
    }
    reserved
}

impl CommandRow {
    const fn action(mut self, action: u16) -> Self {
        self.service_action = Some(action);
        self
    }

    const fn lba_at(mut self, at: u8, len: u8) -> Self {
        self.lba = Some(Field::new(at, len));
        self
    }

    const fn blocks_at(mut self, at: u8, len: u8) -> Self {
        self.length = Length::Blocks(Field::new(at, len));
        self
    }

    const fn allocation_at(mut self, at: u8, len: u8) -> Self {
        self.length = Length::Allocation(Field::new(at, len));
        self
    }

    const fn parameters_at(mut self, at: u8, len: u8) -> Self {
        self.length = Length::Parameters(Field::new(at, len));
        self
    }

    const fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    const fn always(mut self) -> Self {
        self.always = ExemptCommand::Answered;
        self
    }

    const fn needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    const fn timeout_s(mut self, seconds: u16) -> Self {
        self.timeout_s = seconds;
        self
    }
}

/// For each opcode its first row and how many there are, so that a look-up is two loads.
static INDEX: [(u8, u8); 256] = index(ROWS);

const fn index(rows: &[CommandRow]) -> [(u8, u8); 256] {
    assert!(rows.len() < 256);
    let mut index = [(0, 0); 256];
    let mut at = 0;
    while at < rows.len() {
        let (first, count) = &mut index[rows[at].opcode as usize];
        if *count == 0 {
            *first = at as u8;
        }
        *count += 1;
        at += 1;
    }
    index
}
