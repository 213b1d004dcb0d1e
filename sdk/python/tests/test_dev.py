"""Servers that programs start for themselves."""

import pytest

from graphd.dev import DevServer


def test_servers_choose_ports_of_their_own():
    with DevServer() as one, DevServer(flags=["--log-level", "debug"]) as other:
        assert one.port and other.port and one.port != other.port
        assert one.address == f"127.0.0.1:{one.port}"
        assert f'"address":"{one.address}"' in one.log()


@pytest.mark.parametrize("flags", [["--log-level", "error"], ["--log-level=warn"], ["--log-format", "console"]])
def test_a_server_whose_log_hides_its_address_needs_a_port(flags):
    with pytest.raises(ValueError, match="give port as well"):
        DevServer(flags=flags)


def test_a_server_that_ends_says_why():
    with pytest.raises(RuntimeError, match="no-such-flag"):
        DevServer(flags=["--no-such-flag"])
