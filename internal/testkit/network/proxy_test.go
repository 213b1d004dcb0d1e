package network_test

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/testkit/network"
)

// client is a connection to a server that sends back what it gets.
type client struct {
	*testing.T
	net.Conn
}

func (c client) send(text string) {
	c.Helper()
	_, err := c.Write([]byte(text))
	require.NoError(c, err)
}

func (c client) requireAnswer(text string) {
	c.Helper()
	buffer := make([]byte, len(text))
	_, err := io.ReadFull(c, buffer)
	require.NoError(c, err)
	require.Equal(c, text, string(buffer))
}

func (c client) requireBroken() {
	c.Helper()
	_, err := c.Read(make([]byte, 1))
	require.Error(c, err)
}

func dial(t *testing.T, address string) client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return client{t, conn}
}

// startEcho starts a server that puts a prefix before what it sends back.
func startEcho(t *testing.T, prefix string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.WriteString(c, prefix)
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return listener.Addr().String()
}

func TestAProxyHoldsAndCuts(t *testing.T) {
	p := network.NewProxy(t, startEcho(t, ""))
	c := dial(t, p.Address())
	c.send("one")
	c.requireAnswer("one")
	p.Hold(true, false)
	c.send("two")
	p.Hold(false, true)
	p.Hold(false, false)
	c.requireAnswer("two")
	p.Cut()
	c.requireBroken()
	dial(t, p.Address()).send("taken")
	p.Refuse(true)
	if conn, err := net.Dial("tcp", p.Address()); err == nil {
		client{t, conn}.requireBroken()
	}
}

func TestAProxyMutesAndRedirects(t *testing.T) {
	first, second := startEcho(t, "1"), startEcho(t, "2")
	p := network.NewProxy(t, first)
	muted := dial(t, p.Address())
	muted.requireAnswer("1")
	p.Mute(network.ToServer)
	muted.send("lost")
	require.False(t, p.Redirect(first))
	require.True(t, p.Redirect(second))
	c := dial(t, p.Address())
	c.send("kept")
	c.requireAnswer("2kept")
	p.Close()
	text, _ := io.ReadAll(muted) // how the connection breaks is up to the system
	require.Empty(t, text)
}

func TestAProxyAsksBeforeBytesPass(t *testing.T) {
	p := network.NewProxy(t, startEcho(t, ""))
	p.Inspect(func(d network.Direction) bool { return d == network.ToServer })
	c := dial(t, p.Address())
	c.send("done")
	c.requireBroken()
	p.Inspect(nil)
	c = dial(t, p.Address())
	c.send("heard")
	c.requireAnswer("heard")
}
