//! What the name server adds to a port.

use fc::wire::ct::name_server::{Fc4Types, PortType, SymbolicName};

use super::*;

/// A port in the words of GA_NXT.
fn entry() -> PortEntry {
    PortEntry {
        kind: PortType::N_PORT,
        fc_id: FcId(0x01_0203),
        wwpn: Wwn(7),
        symbolic_port: SymbolicName::new(b"web"),
        wwnn: Wwn(8),
        symbolic_node: SymbolicName::default(),
        classes: 0,
        types: Fc4Types::default(),
        f_port_name: Wwn(0),
        hard_address: FcId(0),
    }
}

#[test]
fn the_name_server_tells_the_node_of_a_port_without_a_login() {
    let mut port = listed(&PortEntry {
        wwnn: Wwn(0),
        ..entry()
    });
    port.learn(&entry());
    assert_eq!(port.node_name, Wwn(8));
    assert_eq!(port.symbolic_name.as_deref(), Some("web"));
}

/// It may have told another one there.
#[test]
fn the_node_that_a_login_has_told_stays() {
    let mut port = listed(&PortEntry {
        wwnn: Wwn(9),
        ..entry()
    });
    port.learn(&entry());
    assert_eq!(port.node_name, Wwn(9));
}
