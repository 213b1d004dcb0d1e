package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/cli/certs"
	"github.com/graphd-dev/graphd/internal/cli/keys"
	"github.com/graphd-dev/graphd/internal/server"
)

// devFolder has what `dev` makes: its store, and for a server that other machines may
// reach a CA, a certificate and a key.
const devFolder = ".graphd"

const (
	devValidDays = 30
	devKeyExpiry = "30d"
)

// devSecurity is what `dev` has made for a server that other machines may reach.
type devSecurity struct {
	ca    string // file with the CA of the server; "" = the server has a certificate of its own, or none
	token string // of an admin; "" = options say who may call, or everybody may
}

// secureDev makes what a server that other machines may reach lacks: a certificate, and a
// key of an admin. A CA and a token of an earlier call stay as they are.
func secureDev(ctx context.Context, o *server.Options) (made devSecurity, err error) {
	if !o.IsExposed() && !o.IsHTTPExposed() {
		return made, nil
	}
	if err := os.MkdirAll(devFolder, 0o700); err != nil {
		return made, err
	}
	if o.TLSCert == "" && o.TLSKey == "" {
		pair, err := certs.WriteCertificates(certs.Request{
			Dir: filepath.Join(devFolder, "certs"), Hosts: slices.Concat(listOwnHosts(o.Listen), listOwnHosts(o.HTTP)), Days: devValidDays, Force: true, Now: time.Now(),
		})
		if err != nil {
			return made, err
		}
		o.TLSCert, o.TLSKey, made.ca = pair.Server.Cert, pair.Server.Key, pair.CA
	}
	if !o.KnowsCallers() {
		o.APIKeys = filepath.Join(devFolder, "keys.yaml")
		made.token, err = keys.KeepToken(ctx, o.APIKeys, filepath.Join(devFolder, "token"),
			keys.CreateRequest{Name: "dev", Roles: []string{"admin"}, Expires: devKeyExpiry}, time.Now())
	}
	return made, err
}

// listOwnHosts returns the names and addresses by which other machines call a server that
// listens on an address.
func listOwnHosts(listen string) []string {
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && host != "" && (ip == nil || !ip.IsUnspecified()) {
		return []string{host}
	}
	var hosts []string
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	addresses, _ := net.InterfaceAddrs() // those that are not known are not in the certificate
	for _, address := range addresses {
		if at, ok := address.(*net.IPNet); ok && at.IP.IsGlobalUnicast() {
			hosts = append(hosts, at.IP.String())
		}
	}
	return hosts
}

// listOwnAddresses returns the addresses by which other machines call a server.
func listOwnAddresses(address string) []string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	var all []string
	for _, host := range listOwnHosts(address) {
		all = append(all, net.JoinHostPort(host, port))
	}
	return all
}

// callableAddress returns the address by which this machine calls a server: its
// certificate does not name the address of all interfaces.
func callableAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return address
}
