//! The command window (RFC 7143 §4.2.2.1; UNH FFP 1.1 to 1.3, 5.1, 16.4).

use std::collections::VecDeque;

use super::rig::{FIRST_CMD_SN, Rig, over_all_but_iser, over_each_datamover, over_one_datamover};
use crate::session::window::{CommandWindow, WindowMemory};
use crate::target::TargetLimits;
use crate::wire::bhs::{Itt, Ttt};
use crate::wire::serial::CmdSn;
use crate::wire::task_management::function;

over_each_datamover! {
    #[test]
    fn a_command_beyond_the_window_is_ignored() {
        let mut rig = Rig::new();
        rig.send_read(1, 8, |pdu| pdu.cmd_sn = CmdSn(FIRST_CMD_SN + 16));
        rig.quiet();
        rig.ping(2, b"");
        rig.sends(["NOP-In #2 \"\""]);
        assert_eq!((rig.exp_cmd_sn, rig.max_cmd_sn), (100, 115));
    }

    #[test]
    fn a_command_that_came_before_is_ignored() {
        let mut rig = Rig::new();
        let pdu = rig.read_pdu(1, 8);
        rig.send(pdu.encode(), &[]);
        let command = rig.executed();
        rig.send(pdu.encode(), &[]);
        rig.quiet();
        rig.good(command.tag, 8, 0);
        rig.sent();
        rig.send(pdu.encode(), &[]);
        rig.quiet();
        rig.sends_nothing();
    }

    #[test]
    fn the_data_of_an_ignored_command_is_dropped() {
        let mut rig = Rig::new();
        let mut pdu = rig.write_pdu(1, 512, true);
        pdu.cmd_sn = CmdSn(FIRST_CMD_SN - 1);
        rig.send(pdu.encode(), &[7; 512]);
        rig.ping(2, b"");
        rig.sends(["NOP-In #2 \"\""]);
    }

    #[test]
    fn early_commands_wait_for_the_missing_one() {
        let mut rig = Rig::new();
        let one = rig.read_pdu(1, 1);
        let two = rig.read_pdu(2, 2);
        let three = rig.read_pdu(3, 3);
        rig.send(three.encode(), &[]);
        rig.send(two.encode(), &[]);
        rig.send(two.encode(), &[]);
        rig.quiet();
        rig.send(one.encode(), &[]);
        let order: Vec<u32> = (0..3).map(|_| rig.executed().expected_in).collect();
        assert_eq!(order, [1, 2, 3]);
        rig.quiet();
    }

    /// Found by fuzzing: their places were given back though they had taken none, so that the
    /// window grew by one with each.
    #[test]
    fn commands_aborted_before_their_turn_do_not_widen_the_window() {
        let mut rig = Rig::new();
        let missing = rig.read_pdu(1, 8);
        for itt in 2..5 {
            let early = rig.read_pdu(itt, 8);
            rig.send(early.encode(), &[]);
            rig.abort(0x100 + itt, itt, early.cmd_sn.0);
        }
        rig.send(missing.encode(), &[]);
        let command = rig.executed();
        rig.good(command.tag, 8, 0);
        rig.sent();
        assert_eq!((rig.exp_cmd_sn, rig.max_cmd_sn), (104, 119));
    }

    #[test]
    fn commands_that_a_reset_drops_before_their_turn_do_not_widen_the_window() {
        let mut rig = Rig::new();
        rig.skip_cmd_sn();
        let early = rig.read_pdu(2, 8);
        rig.send(early.encode(), &[]);
        rig.manage(3, function::TARGET_WARM_RESET);
        rig.obeys(&[]);
        rig.sends(["Task Response #3 0"]);
        assert_eq!((rig.exp_cmd_sn, rig.max_cmd_sn), (102, 117));
    }

    #[test]
    fn an_early_ping_is_echoed_in_its_turn() {
        let mut rig = Rig::new();
        let one = rig.read_pdu(1, 0);
        let mut ping = rig.nop_pdu(Itt(2));
        ping.immediate = false;
        ping.cmd_sn = rig.next_cmd_sn();
        rig.send(ping.encode(), b"early");
        rig.sends_nothing();
        rig.send(one.encode(), &[]);
        rig.sends(["NOP-In #2 \"early\""]);
        assert_eq!(rig.session.held, 0);
    }

    #[test]
    fn immediate_commands_need_no_place_in_the_window() {
        let mut rig = Rig::new();
        for itt in 0..16 {
            rig.read(itt, 8);
        }
        rig.send_read(50, 8, |pdu| pdu.immediate = true);
        let command = rig.executed();
        rig.good(command.tag, 0, 0);
        rig.sends(["Response #50 00 U=8"]);
        assert_eq!((rig.exp_cmd_sn, rig.max_cmd_sn), (116, 115));
    }

    #[test]
    fn too_many_immediate_commands_are_rejected() {
        let mut rig = Rig::new();
        for itt in 1..=17 {
            rig.send_read(itt, 8, |pdu| pdu.immediate = true);
        }
        rig.sends(["Reject 06 of ScsiCommand"]);
    }

    #[test]
    fn a_window_that_is_used_up_grows_to_its_limit_and_no_further() {
        let mut rig = Rig::limited(|limits| limits.held_bytes = 1 << 20);
        let mut tags = Vec::new();
        let mut widths = Vec::new();
        for itt in 0..400 {
            tags.push(rig.read(itt, 0).tag);
            if rig.session.window.max_cmd_sn().next() == rig.session.window.exp_cmd_sn() {
                widths.push(tags.len());
                for tag in tags.drain(..) {
                    rig.good(tag, 0, 0);
                }
                rig.sent();
            }
        }
        assert_eq!(widths, [16, 32, 64, 128, 128]);
    }

    /// Whoever sends no more than it may is never told that there is no room (TASK SET FULL).
    #[test]
    fn all_data_that_the_window_lets_in_can_be_held() {
        let mut rig = Rig::limited(|limits| limits.held_bytes = 20 << 10);
        rig.max_cmd_sn = FIRST_CMD_SN + 15;
        let mut waiting = VecDeque::new();
        for itt in 0..300 {
            while rig.cmd_sn > rig.max_cmd_sn {
                let tag = waiting.pop_front().unwrap();
                rig.grant(tag, 0, 1024);
                rig.got_data();
                rig.good(tag, 0, 1024);
                assert_eq!(rig.sent().len(), 1);
            }
            waiting.push_back(rig.write(itt, 1024, true, &[7; 1024]).tag);
            assert!(rig.session.held <= 20 << 10);
        }
        assert_eq!(waiting.len(), 20);
    }

    #[test]
    fn commands_without_data_take_no_memory_of_the_window() {
        let mut rig = Rig::limited(|limits| limits.held_bytes = 16 << 10);
        rig.max_cmd_sn = FIRST_CMD_SN + 15;
        let mut waiting = VecDeque::new();
        for itt in 0..128 {
            while rig.cmd_sn > rig.max_cmd_sn {
                rig.good(waiting.pop_front().unwrap(), 0, 0);
                assert_eq!(rig.sent().len(), 1);
            }
            waiting.push_back(rig.read(itt, 0).tag);
        }
        assert!(waiting.len() > 100, "{}", waiting.len());
    }

    #[test]
    fn data_that_was_lent_memory_makes_room_for_the_next() {
        let mut rig = Rig::limited(|limits| limits.held_bytes = 16 << 10);
        let tags: Vec<_> = (0..16)
            .map(|itt| rig.write(itt, 1024, true, &[7; 1024]).tag)
            .collect();
        rig.ping(90, b"");
        rig.sent();
        assert_eq!(rig.max_cmd_sn, FIRST_CMD_SN + 15);
        for tag in &tags[..4] {
            rig.grant(*tag, 0, 1024);
            rig.got_data();
        }
        assert_eq!(rig.session.held, 12 << 10);
        rig.good(tags[0], 0, 1024);
        rig.sent();
        assert_eq!(rig.max_cmd_sn, FIRST_CMD_SN + 19);
    }

    /// However little memory there is, the commands that a login lets in can bring what they may.
    #[test]
    fn first_burst_length_leaves_memory_for_the_first_window() {
        let offered = |held_bytes| {
            let limits = TargetLimits {
                held_bytes,
                ..TargetLimits::default()
            };
            limits.preferences().first_burst
        };
        assert_eq!([16 << 20, 4 << 20].map(offered), [256 << 10; 2]);
        assert_eq!(offered(512 << 10), 32 << 10);
    }

    #[test]
    fn numbers_go_on_past_the_end() {
        let mut rig = Rig::new();
        let memory = WindowMemory::new(65_536, &rig.keys);
        rig.session.window = CommandWindow::new(CmdSn(u32::MAX), 4, memory);
        for (itt, number) in [(1, u32::MAX), (2, 0), (3, 1)] {
            rig.send_read(itt, 0, |pdu| pdu.cmd_sn = CmdSn(number));
            rig.executed();
        }
    }

    /// As over a device, where each place has a receive that takes pinned memory.
    #[test]
    fn a_window_that_is_held_back_opens_when_it_is_let() {
        let mut rig = Rig::new();
        let memory = WindowMemory::new(1 << 20, &rig.keys);
        rig.session.window = CommandWindow::new(CmdSn(FIRST_CMD_SN), 64, memory);
        rig.session.limit_window(16);
        let use_up = |rig: &mut Rig| {
            let window = &mut rig.session.window;
            let mut taken = 0;
            while window.max_cmd_sn().next() != window.exp_cmd_sn() {
                window.accept();
                taken += 1;
            }
            taken
        };
        for (limit, places, next) in [(16, 16, 16), (32, 16, 32), (64, 32, 64)] {
            assert_eq!(rig.session.used_up_window(), None);
            assert_eq!(use_up(&mut rig), places);
            assert_eq!(rig.session.used_up_window(), Some(places));
            rig.session.limit_window(limit);
            (0..places).for_each(|_| rig.session.window.release());
            let window = &rig.session.window;
            let open = window.max_cmd_sn().0 - window.exp_cmd_sn().0 + 1;
            assert_eq!(open, next);
        }
    }

    /// They are held meanwhile, and pings are answered all the while.
    #[test]
    fn a_gap_that_is_not_plugged_ends_the_session() {
        let mut rig = Rig::new();
        rig.skip_cmd_sn();
        let early = rig.write_pdu(2, 512, true);
        rig.send(early.encode(), &[7; 512]);
        for _ in 0..3 {
            rig.quiet();
            rig.ping(9, b"");
            rig.wait(20);
        }
        assert_eq!(rig.rule(), "a missing CmdSN");
    }

    #[test]
    fn a_gap_that_is_plugged_is_forgotten() {
        let mut rig = Rig::new();
        let missing = rig.read_pdu(1, 8);
        let early = rig.read_pdu(2, 8);
        rig.send(early.encode(), &[]);
        rig.wait(20);
        rig.send(missing.encode(), &[]);
        rig.executed();
        rig.executed();
        for _ in 0..5 {
            rig.ping(9, b"");
            rig.wait(20);
            rig.quiet();
        }
    }
}

over_all_but_iser! {
    /// A queue pair takes responses as they come: over iSER they leave before the next command
    /// is heard.
    #[test]
    fn a_place_is_free_only_when_the_response_has_left() {
        let mut rig = Rig::new();
        let tags: Vec<_> = (0..16).map(|itt| rig.read(itt, 0).tag).collect();
        tags.into_iter().for_each(|tag| rig.good(tag, 0, 0));
        let pdu = rig.read_pdu(77, 0);
        rig.send(pdu.encode(), &[]);
        rig.quiet();
        assert_eq!(rig.sent().len(), 16);
        rig.send(pdu.encode(), &[]);
        rig.executed();
    }
}

/// Of many sessions that leave gaps, each holds little.
#[test]
fn next_to_nothing_is_held_behind_a_gap() {
    let mut rig = Rig::new();
    rig.skip_cmd_sn();
    for itt in 2..16 {
        let early = rig.write_pdu(itt, 4096, false);
        rig.send(early.encode(), &[7; 1024]);
        rig.data_out(itt, Ttt::NONE, 0, 1024, true, &[7; 1024]);
    }
    assert!(rig.session.held <= 16 << 10, "{} bytes", rig.session.held);
}
