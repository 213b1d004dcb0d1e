package server

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfLangGraphAreNamesOfHosts(t *testing.T) {
	for name, isName := range map[string]bool{"graphd.example.com": true, "": false, "http://graphd.example.com": false, "graphd.example.com:2024": false, "a b": false} {
		o := Options{LangGraphOptions: LangGraphOptions{LangGraph: "127.0.0.1:0", LangGraphHosts: []string{name}, MaxLangGraphConnections: 1}}
		require.Equal(t, isName, o.validateLangGraph() == nil, name)
	}
	o := Options{LangGraphOptions: LangGraphOptions{LangGraphHosts: []string{"a.example"}, MaxLangGraphConnections: 1}}
	require.ErrorContains(t, o.validateLangGraph(), "--langgraph-host needs --langgraph")
}

func TestAnAddressOfThisMachineInPlainTextKnowsItsNames(t *testing.T) {
	here, everywhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4zero}
	o := Options{LangGraphOptions: LangGraphOptions{LangGraphHosts: []string{"Graphd.example.com"}}}
	guard, err := o.newLangGraphGuard(here)
	require.NoError(t, err)
	require.True(t, guard.IsOwnHost("graphd.example.com:443"))
	require.False(t, guard.IsOwnHost("evil.example:443"))

	guard, err = o.newLangGraphGuard(everywhere)
	require.NoError(t, err)
	require.Nil(t, guard, "it is served with TLS or by choice to a network, under any name")
	o.TLSCert = "cert.pem"
	guard, err = o.newLangGraphGuard(here)
	require.NoError(t, err)
	require.Nil(t, guard, "the certificate names the server")
}
