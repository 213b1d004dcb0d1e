package certs

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// Request says which certificates to make.
type Request struct {
	Dir     string   // made if it is missing
	Hosts   []string // names and addresses of the server besides this host's
	Clients []string // names of clients
	Days    int      // for which the certificates are valid
	Force   bool     // replace keys that exist, except for the CA's
	Now     time.Time
}

// Files of a folder.
const (
	caName       = "ca"
	serverName   = "server"
	clientPrefix = "client-"
)

// maxDays is half the time for which the CA is valid.
const maxDays = 1825

// checkRequest returns an *exit.UsageError for a request that can't be fulfilled.
func (r Request) checkRequest() error {
	if r.Days < 1 || r.Days > maxDays {
		return exit.Usagef("--valid is %d", r.Days).WithHint("want a number of days from 1 to %d", maxDays)
	}
	for _, host := range r.Hosts {
		if net.ParseIP(host) == nil && (len(host) > 253 || !hostPattern().MatchString(host)) {
			return exit.Usagef("--host %q is no name and no address of a host", host).
				WithHint("want one without a port, like graphd.internal or 10.0.0.5; give --host again for another")
		}
	}
	for _, name := range r.Clients {
		if len(name) > 64 || !clientPattern().MatchString(name) || strings.HasSuffix(name, "-key") {
			return exit.Usagef("--client %q can't be the name of a client", name).
				WithHint("want at most 64 letters, digits and . _ @ -, the first a letter or digit, and not -key at the end")
		}
	}
	return nil
}

func hostPattern() *regexp.Regexp {
	const label = `[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
	return regexp.MustCompile(`^(\*\.)?` + label + `(\.` + label + `)*$`)
}

func clientPattern() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]*$`) }

// listHosts returns the names and addresses of the server's certificate, each once.
func (r Request) listHosts() []string {
	var all []string
	for _, host := range slices.Concat([]string{"localhost", "127.0.0.1", "::1"}, r.Hosts) {
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all
}

// listNames returns the certificates to make, each once: of the server when it has
// none or hosts are given, and of clients. The error is an *exit.UsageError when
// one has a key already.
func (r Request) listNames() ([]string, error) {
	var names []string
	if has, err := r.hasFile(keyFile(serverName)); err != nil {
		return nil, err
	} else if !has || len(r.Hosts) > 0 {
		names = append(names, serverName)
	}
	for _, client := range r.Clients {
		if name := clientPrefix + client; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		has, err := r.hasFile(keyFile(name))
		if err != nil {
			return nil, err
		}
		if has && !r.Force {
			return nil, exit.Usagef("%s exists", r.joinPath(keyFile(name))).
				WithHint("give --force to replace it and its certificate, or name another folder with --dir")
		}
	}
	return names, nil
}

func (r Request) hasFile(name string) (bool, error) {
	_, err := os.Lstat(r.joinPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (r Request) joinPath(name string) string { return filepath.Join(r.Dir, name) }

func certFile(name string) string { return name + ".pem" }

func keyFile(name string) string { return name + "-key.pem" }
